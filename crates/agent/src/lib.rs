//! An agent ready to run: the resolved config, models and keys, open sessions, tools and hooks.
//!
//! Every front-end, and every program that embeds an agent, needs this crate and no other. [`run_agent`] answers one
//! message. A [`Session`] stays open between its runs and takes messages while it runs; all sessions of a front-end share
//! a [`Driver`]. This crate does not know terminals, the command line, exit codes or HTTP servers: a failure is an
//! [`AgentError`] with a class.
#![forbid(unsafe_code)]

mod config_check;
mod driver;
mod error;
mod home;
mod key_lookup;
mod models;
mod providers;
mod run;
mod selection;
mod session;
mod session_config;
mod similar;
mod trial;

pub use config_check::{Examination, examine, load_checked, unread_keys};
pub use driver::Driver;
pub use error::{AgentError, FailureClass};
pub use home::Home;
pub use key_lookup::{KeyPresence, find_program, look_for_key, look_for_profile};
pub use models::{configured_model, profiles_in_order};
pub use providers::{HttpProviders, engine, key_resolver};
pub use run::{RunAgentParams, run_agent, run_agent_with};
pub use selection::{
    LOCAL_SERVERS_VARIABLE, Selection, SelectionSource, Wanted, environment_key, known_providers,
    local_base_url, local_probe, select, unknown_provider,
};
pub use session::{
    Done, Foreground, Next, Outcome, Said, Session, SessionCallback, SessionEvent, Work,
};
pub use session_config::{
    MAIN_SESSION, SessionConfig, SessionOptions, call_limits, check_agent, stored_keys,
};
pub use similar::did_you_mean;
pub use trial::{Question, Trial, TrialAnswer, TrialFailure};

/// The engine's.
pub use myclaw_engine::*;
/// x
pub mod config {
    pub use myclaw_config::*;
}
/// x
pub mod auth {
    pub use myclaw_auth::*;
}
/// x
pub mod llm {
    pub use myclaw_llm::*;
}
/// x
pub mod sessions {
    pub use myclaw_session::*;
}
/// x
pub mod tools {
    pub use myclaw_tools::*;
}
/// x
pub mod hooks {
    pub use myclaw_hooks::*;
}
/// x
pub mod files {
    pub use myclaw_files::*;
}
/// x
pub mod llm_cloud {
    pub use myclaw_llm_cloud::*;
}
pub use myclaw_exec::hide_environment;
