//! The host: the other side of the container runner.
//!
//! It takes messages of chats, starts one container for each group that has work, writes the job to the container's
//! standard input, reads the answers from its standard output, and talks with it through files. `docs/operate/host.md`
//! describes it.
//!
//! | module | is |
//! |---|---|
//! | `home` | the directories of a host |
//! | `groups` | which chats are answered, and where |
//! | `mounts` | further directories of a group, checked against the owner's allowlist |
//! | `backend` | what runs a runner: a plain process, the sandbox, podman or docker |
//! | `output` | the blocks between markers, from chunks that end anywhere |
//! | `model` | the model behind a Unix socket, for runners without a key and without the network |
//! | `job` | the job for standard input, and the prompt |
//! | `ledger`, `rows` | messages, parts, tasks and the state of groups in the store |
//! | `shared_directory` | files that a container can write: nothing in them is followed or believed |
//! | `desk` | what runners ask for through files, and whether they may |
//! | `tasks` | what is done by the clock |
//! | `watch` | files are noticed when they appear |
//! | `channel` | where messages go to, and the file channel |
//! | `queue`, `run` | what a group does next, and one run of a container |
//! | `orders` | what people ask of a group besides answers: a stop, a new session, its state |
//! | `intake`, `outbox` | messages that come in, and parts that go out |
//! | `host` | all of it together |
//!
//! A message is in the store before it is acknowledged. What becomes of it is stored in the same transaction as what is
//! sent about it. This crate knows no sessions, and nothing of the gateway: whoever has messages calls
//! [`Host::accept`], and whoever can deliver them implements [`Messenger`].
#![forbid(unsafe_code)]

mod backend;
mod channel;
mod desk;
mod error;
mod groups;
mod home;
mod host;
mod intake;
mod job;
mod ledger;
mod model;
mod mounts;
mod orders;
mod outbox;
mod output;
mod queue;
mod rows;
mod run;
mod shared_directory;
mod speech;
mod tasks;
mod watch;

pub use backend::{
    Access, Backend, BackendError, ContainerBackend, Launch, Mount, ProcessBackend, RunnerProgram,
    SandboxBackend,
};
pub use channel::{FileChannel, Messenger, Outbound, OutboundKind, Progress};
pub use error::HostError;
pub use groups::{Folder, Group, Groups, GroupsError, Listens};
pub use home::HostHome;
pub use host::{Host, HostOptions, Limits, Say};
pub use intake::{Accepted, Addressing, Inbound};
pub use job::Secrets;
pub use model::{DayUsage, GroupUsage, ModelLimits, ModelUpstream};
pub use mounts::{Allowlist, ExtraMount, MountError};
pub use myclaw_sandbox::{ContainerEngine, Level};
pub use orders::GroupStatus;
