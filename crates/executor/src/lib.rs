//! The tool executor: runs tools in a confined helper process, or on a node.
//!
//! An [`Executor`] starts the helper at its first call, which is this program itself under a sandbox, and forwards the
//! calls of the tools that it [wraps](Executor::wrap). The helper [serves](serve()) the same tools, so they have one
//! implementation, and the operating system confines file tools and commands alike. What the helper returns is external
//! data: bounded, checked, and ignored unless it belongs to a waiting call.
//!
//! | module | is |
//! |---|---|
//! | `backlog` | output on its way, bounded |
//! | `protocol` | the messages between the two processes, and their limits |
//! | `frames` | the messages as bytes: a length and JSON |
//! | `serve` | the side that makes calls: a helper, or a node |
//! | `client` | the side that asks for them: starts, replaces and ends helpers; `client/remote` asks a node |
//! | `tool` | a tool whose calls are made by something else |
//!
//! This crate does not know which tools there are, nor what a session is.
#![forbid(unsafe_code)]

mod backlog;
mod client;
mod error;
mod frames;
mod protocol;
mod serve;
mod tool;

pub use client::{Executor, Launch, RemoteCallError, RemoteCalls};
pub use error::ExecutorError;
pub use frames::text_of;
pub use serve::{ArrivedCall, BareCommands, CallServer, CallService, ServerLimits, serve};
pub use tool::{CallHandler, with_handler};
