//! The container runner: an agent that lives for one job.
//!
//! It reads the job from standard input, answers in blocks between markers on standard output, and talks with its host
//! through files. It is the engine with another profile: one model and key from the job, a prompt of its own, a session
//! in a JSON file, and the tools of this protocol. `docs/develop/runner.md` describes the protocol.
//!
//! | module | is |
//! |---|---|
//! | `payload` | the job |
//! | `output` | the blocks, and whether somebody still reads them |
//! | `backend` | the model that the job's secrets name |
//! | `prompt` | the system prompt |
//! | `profile` | the engine's rules for this protocol, and what is changed in the messages that are sent |
//! | `ipc` | the files to and from the host |
//! | `workflows` | the registry, the search in it, and running an entry |
//! | `tools` | the tools under the names of the protocol |
//! | `job` | the queries of a job, from the first to the last |
//!
//! This crate knows neither channels nor the gateway, and not the config file of `myclaw`.
#![forbid(unsafe_code)]

mod backend;
mod ipc;
mod job;
mod output;
mod payload;
mod profile;
mod prompt;
mod tools;
mod workflows;

pub use job::{NamedModel, Partial, RunnerError, RunnerJob, Stay, serve};
pub use myclaw_embed::{Source, SourceError, Weights};
pub use myclaw_exec::EnvironmentPolicy;
pub use myclaw_web::{AllowedHost, InvalidHost};
pub use output::{Markers, MarkersError};
pub use workflows::{
    KeywordRanker, Ranked, Ranker, Ranking, Registry, RegistryError, Say, Workflow, WorkflowRun,
    check_workflows, semantic_ranker,
};
