//! Finds what would keep sandboxed sessions from running, before one is started.

use std::sync::Arc;

use myclaw_config::{Config, ConfigPath, SandboxMode};
use myclaw_sandbox::Level;

use super::own_sandbox;
use crate::permissions::{confinement_place, sandbox_rules};
use crate::{AgentError, FailureClass, Home, SessionConfig, SessionOptions};

/// Name of a session that is sandboxed if any session is.
const ANY_SESSION: &str = "check";

/// What keeps the sandboxed sessions of an agent from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxProblem {
    /// The key of the config that demands the sandbox.
    pub place: ConfigPath,
    /// What is wrong and what to do.
    pub message: String,
    /// Which runs fail.
    pub stops: StoppedRuns,
}

/// Which runs a problem stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedRuns {
    /// Every run of the agent, because all its sessions are sandboxed.
    All,
    /// Those of sandboxed sessions; the main session runs.
    Sandboxed,
    /// Those of sandboxed sessions, until the config is changed.
    ByMistake,
}

/// Looks for everything that keeps sandboxed sessions from running: values of the config, directories with keys, what
/// this machine cannot enforce, an image that is missing. It starts no sandbox. A problem that several agents share is reported once.
pub async fn sandbox_problems(config: &Arc<Config>, home: &Home) -> Vec<SandboxProblem> {
    let mut problems = Vec::new();
    for id in config.agent_ids() {
        let options = SessionOptions {
            agent: Some(id.to_string()),
            session: Some(ANY_SESSION.to_owned()),
            ..SessionOptions::default()
        };
        // Other checks report an agent that cannot be resolved.
        let Ok(session) = SessionConfig::new(home.clone(), Arc::clone(config), &options) else {
            continue;
        };
        let mode = sandbox_rules(config, &session.agent).mode;
        if mode == SandboxMode::Off {
            continue;
        }
        if let Err(error) = session.check_sandbox().await {
            let stops = match (error.class, mode) {
                (FailureClass::Config, _) => StoppedRuns::ByMistake,
                (_, SandboxMode::All) => StoppedRuns::All,
                _ => StoppedRuns::Sandboxed,
            };
            let place = confinement_place(config, &session.agent);
            let problem = SandboxProblem { place, message: error.message, stops };
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    }
    problems
}

impl SessionConfig {
    /// Whether the session's sandbox could be set up, as far as that shows without starting it.
    async fn check_sandbox(&self) -> Result<(), AgentError> {
        let this = self.clone();
        let checked = tokio::task::spawn_blocking(move || {
            let confinement = this.confinement()?;
            this.proxy_rules()?;
            let sandbox = own_sandbox()?;
            sandbox.probe().check(&confinement).map_err(|error| unavailable(&error))?;
            Ok::<_, AgentError>((sandbox, confinement.level))
        });
        let (sandbox, level) = checked
            .await
            .map_err(|error| AgentError::new(FailureClass::Internal, error.to_string()))??;
        match level {
            Level::Container { engine, image } => {
                sandbox.check_image(engine, &image).await.map_err(|error| unavailable(&error))
            }
            _ => Ok(()),
        }
    }
}

fn unavailable(error: &myclaw_sandbox::SandboxError) -> AgentError {
    AgentError::new(FailureClass::Sandbox, error.to_string())
}
