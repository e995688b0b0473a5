//! Confined processes: what a command may read, change, reach and use up is enforced by the operating system.
//!
//! [`Sandbox::run`] runs one command to its end; [`Sandbox::spawn`] starts a long-lived helper with pipes. Both fail if
//! this machine cannot enforce the requested [`Confinement`]; they never fall back to less. This crate knows nothing of
//! agents, tools and sessions.
//!
//! | module | is |
//! |---|---|
//! | `confinement` | what a process may do |
//! | `probe` | what this machine can enforce |
//! | `sandbox` | starting confined processes |
//! | `plan` | the plan that the helper process gets from its parent |
//! | `enter` | the helper process: it confines itself, becomes the command, and ends all that the command started |
//! | `bubblewrap`, `container` | command lines of other programs that confine |
//! | `thread` | work of this process that may touch only some files |
//! | `system_files` | files of the system that every program needs |
//! | `escapes` | attempts to get out, to try on the user's machine |
//! | `basis` | what differs between Unix and Windows, where nothing is confined |
//! | `system` | system calls without a safe wrapper |
//!
//! The helper process is this program itself, started with a hidden argument. It calls [`enter_and_exec`].
//!
//! At the level [`Level::Landlock`] a command cannot open a Unix socket at all. Landlock does not confine `connect` to a
//! socket that has a path (Linux 6.18, Landlock 7), and seccomp cannot see the path. Sockets of docker, D-Bus and agents
//! lead straight out of a sandbox.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod basis;
mod bubblewrap;
mod confinement;
mod container;
#[cfg(target_os = "linux")]
mod enter;
mod error;
#[cfg(target_os = "linux")]
pub mod escapes;
mod plan;
mod probe;
mod sandbox;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "fork, signals and closing descriptors have no safe wrapper")]
mod system;
mod system_files;
mod thread;

pub use basis::Socket;
pub use confinement::{
    Confinement, ContainerEngine, Level, Limits, Network, PROXY_ADDRESS, ProtectedNames,
    WorkspaceAccess,
};
#[cfg(target_os = "linux")]
pub use enter::enter_and_exec;
pub use error::SandboxError;
pub use probe::{Probe, probe};
pub use sandbox::{Confined, Sandbox};
pub use thread::{OpenPaths, can_confine_threads, with_open_paths};
