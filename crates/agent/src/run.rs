//! [`run_agent`]: one message in, a reply out, with models, tools and hooks as configured.

use std::path::PathBuf;
use std::sync::Arc;

use myclaw_config::{Config, ConfigError, Environment};
use myclaw_engine::{Approver, Engine, EventCallback, Hook, RunResult, Tool};
use myclaw_llm::{ContentBlock, ThinkingLevel};
use myclaw_session::SessionKey;
use tokio_util::sync::CancellationToken;

use crate::blocking::with_threads;
use crate::driver::run_error;
use crate::{AgentError, Home, RunAdditions, SessionConfig, SessionOptions, Stores, engine};

/// Parameters of [`run_agent`]. Start from [`RunAgentParams::new`] and set the fields that differ.
#[derive(Clone)]
pub struct RunAgentParams {
    /// The session that the run continues or begins.
    pub session_key: SessionKey,
    /// The user's message: text and image blocks. If empty, the run answers the messages that wait in the session, and
    /// continues an interrupted run.
    pub user_message: Vec<ContentBlock>,
    /// The config, as [`load_or_default`](crate::config::load_or_default) gives it.
    pub config: Arc<Config>,
    /// Where variables with keys and addresses are looked up; at first those of this process.
    pub environment: Environment,
    /// The model as `provider/model`, if not the one that the config or this machine gives.
    pub model: Option<String>,
    /// How much the model should think, if not as the config says.
    pub thinking: Option<ThinkingLevel>,
    /// Tools besides the built-in ones. One with the name of a built-in tool replaces it. The lists of the config that
    /// permit and deny tools apply to them as well.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Hooks besides those of the config. They are called after them.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// Answers the questions about calls that need an approval. Without it they are denied, except for those that an
    /// earlier "always" covers.
    pub approver: Option<Arc<dyn Approver>>,
    /// Where sessions and what else outlives the run are kept, if not in files below the state directory of the config's paths.
    pub stores: Option<Stores>,
    /// The whole system prompt, if not the one that is made of the files of the agent's workspace. With it the workspace is
    /// neither read nor made.
    pub system_prompt: Option<String>,
    /// Directory in which tools work, if not the agent's workspace. It must exist.
    pub working_directory: Option<PathBuf>,
    /// Aborts the run when it fires.
    pub cancel: CancellationToken,
    /// Receives events as they happen; without it only the result is returned.
    pub on_event: Option<EventCallback>,
}

impl RunAgentParams {
    /// Parameters for a text message. The agent is the one that the session key names.
    pub fn new(
        session_key: SessionKey,
        user_message: impl Into<String>,
        config: Arc<Config>,
    ) -> Self {
        Self {
            session_key,
            user_message: vec![ContentBlock::text(user_message)],
            config,
            environment: Environment::from_process(),
            model: None,
            thinking: None,
            tools: Vec::new(),
            hooks: Vec::new(),
            approver: None,
            stores: None,
            system_prompt: None,
            working_directory: None,
            cancel: CancellationToken::new(),
            on_event: None,
        }
    }
}

/// Takes a user message, calls the model, runs tools until the model answers, and returns when everything is on disk.
///
/// It does the same as `myclaw run`: the model, its key and the fallbacks come from the config, the environment, the
/// agent's key store, or a model server on this machine; without any of these the built-in model answers. The built-in
/// tools and the hooks of the config are used. Background jobs end with the run; a [`Session`](crate::Session) keeps them.
///
/// # Errors
/// See [`FailureClass`](crate::FailureClass). The session stays valid and holds all messages and results until then.
pub async fn run_agent(params: RunAgentParams) -> Result<RunResult, AgentError> {
    let home = home(&params)?;
    let engine = engine(home.http_options());
    with_threads(Box::pin(run_in(&engine, home, params))).await
}

/// Like [`run_agent`], with an engine that the caller provides. Keep the engine for several runs: it keeps the
/// connection to the model's server open, and lets runs of one session wait for each other.
///
/// # Errors
/// As [`run_agent`].
pub async fn run_agent_with(
    engine: &Engine,
    params: RunAgentParams,
) -> Result<RunResult, AgentError> {
    let home = home(&params)?;
    with_threads(Box::pin(run_in(engine, home, params))).await
}

fn home(params: &RunAgentParams) -> Result<Home, AgentError> {
    let paths = params.config.paths.clone().ok_or(ConfigError::NoPaths)?;
    let home = Home::new(params.environment.clone(), paths);
    Ok(match params.stores.clone() {
        Some(stores) => home.with_stores(stores),
        None => home,
    })
}

async fn run_in(
    engine: &Engine,
    home: Home,
    params: RunAgentParams,
) -> Result<RunResult, AgentError> {
    let options = SessionOptions {
        session: Some(params.session_key.to_string()),
        directory: params.working_directory,
        ..SessionOptions::default()
    };
    let config = SessionConfig::new(home, params.config, &options)?;
    let selection = config.select_model(params.model.as_deref()).await?;
    let RunAgentParams { tools, hooks, approver, system_prompt, .. } = params;
    let added = RunAdditions { tools, hooks, approver, system_prompt };
    let mut run = config.run_params(&selection, added).await?;
    run.user_message = params.user_message;
    run.thinking = params.thinking;
    run.cancel = params.cancel;
    run.on_event.clone_from(&params.on_event);
    params.on_event.iter().for_each(|listener| config.subscribe_to_notices(listener));
    let mark = config.mark_turn();
    let outcome = engine.run(run).await;
    drop(mark);
    config.close_jobs(&|event| params.on_event.iter().for_each(|emit| emit(event.clone()))).await;
    outcome.map_err(|error| run_error(&error, &selection))
}
