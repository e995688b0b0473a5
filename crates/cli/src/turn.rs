//! One turn: from what the user said to the engine's call, and from its outcome to exit codes.
//!
//! This is the only place that knows the engine's parameters. One [`Conversation`] serves a whole chat, so that its
//! connection to the model's server is kept.

use std::sync::Arc;
use std::time::Duration;

use myclaw_config::{Config, Environment};
use myclaw_engine::{
    CompactionReport, Engine, EventCallback, Hook, ModelChoice, ModelSwitch, NextModel,
    RunAgentParams, RunError, RunResult,
};
use myclaw_hooks::{RunInfo, command_hooks};
use myclaw_llm::{ErrorClass, ModelError, ModelRef, StopReason, ThinkingLevel};
use myclaw_session::SessionKey;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::exit::CliError;
use crate::model_choice::{ChoiceSource, ChosenModel};
use crate::settings::{Settings, config_error};

/// Runs turns with one engine.
pub(crate) struct Conversation {
    engine: Arc<Engine>,
}

/// What one turn needs.
pub(crate) struct Turn<'a> {
    /// Agent and directory.
    pub(crate) settings: &'a Settings,
    /// Which conversation.
    pub(crate) session_key: &'a SessionKey,
    /// Who answers.
    pub(crate) model: &'a ChosenModel,
    /// What the user says; `None` to go on with what waits and what an interrupted turn left.
    pub(crate) message: Option<String>,
    /// How much the model should think, if the user said so.
    pub(crate) thinking: Option<ThinkingLevel>,
    /// Changes the model while it goes on.
    pub(crate) switch: ModelSwitch,
    /// Aborts it.
    pub(crate) cancel: CancellationToken,
    /// Receives its events.
    pub(crate) on_event: EventCallback,
}

impl Conversation {
    /// Opens no connection yet. Keys and credentials are looked for in `environment`.
    pub(crate) fn new(environment: &Environment) -> Self {
        Self { engine: Arc::new(Engine::with_variables(environment.variables().collect())) }
    }

    /// Runs one turn.
    ///
    /// # Errors
    /// There is no reply. The conversation is in order, and holds whatever was said and done.
    pub(crate) async fn run(&self, turn: Turn<'_>) -> Result<RunResult, CliError> {
        let model = turn.model;
        let params = run_params(turn)?;
        let engine = Arc::clone(&self.engine);
        let run = in_own_task(async move { engine.run(params).await });
        has_reply(run.await.map_err(|error| run_error(error, model))?)
    }

    /// Summarises all but the newest messages, without a turn; the message of `turn` is not said. `focus` is what the
    /// summary should pay attention to.
    ///
    /// # Errors
    /// The conversation is as it was.
    pub(crate) async fn compact(
        &self,
        turn: Turn<'_>,
        focus: Option<&str>,
    ) -> Result<CompactionReport, CliError> {
        let model = turn.model;
        let params = run_params(turn)?;
        self.engine.compact(params, focus).await.map_err(|error| match error {
            RunError::Aborted => CliError::aborted_compaction(),
            error => run_error(error, model),
        })
    }
}

/// Runs `work` as a task, which ends with the future. The connection is a task too: two tasks hand deltas over without
/// asking the system for news between any two of them, as the runtime does around the future that it blocks on.
async fn in_own_task<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match AbortOnDropHandle::new(tokio::spawn(work)).await {
        Ok(outcome) => outcome,
        // Nobody but the end of the future aborts it.
        Err(failure) => std::panic::resume_unwind(failure.into_panic()),
    }
}

/// What the engine has to know of a turn.
fn run_params(turn: Turn<'_>) -> Result<RunAgentParams, CliError> {
    let Turn { settings, session_key, model, message, thinking, switch, cancel, on_event } = turn;
    let NextModel { model: choice, fallbacks, config, thinking } = next_model(model, thinking);
    let key = session_key.clone();
    let mut params = match message {
        Some(message) => RunAgentParams::new(key, message, config),
        None => RunAgentParams::go_on(key, config),
    };
    params.model = Some(choice);
    params.thinking = thinking;
    params.fallbacks = fallbacks;
    params.auth_profile.clone_from(&settings.auth_profile);
    params.agent = Some(settings.agent.id.to_string());
    let command_timeout = Duration::from_secs(model.config.tools.bash.timeout_seconds);
    params.tools = myclaw_tools::builtin_tools(command_timeout);
    params.working_directory.clone_from(&settings.directory);
    params.hooks = hooks(settings, session_key, model)?;
    params.switch = switch;
    params.cancel = cancel;
    params.on_event = Some(on_event);
    Ok(params)
}

/// A model as a run needs it.
pub(crate) fn next_model(model: &ChosenModel, thinking: Option<ThinkingLevel>) -> NextModel {
    let choice = |(reference, config): (&ModelRef, &Arc<Config>)| {
        ModelChoice::from_config(config, reference)
    };
    NextModel {
        model: choice((&model.reference, &model.config)),
        fallbacks: model.fallbacks.iter().map(|(name, config)| choice((name, config))).collect(),
        config: Arc::clone(&model.config),
        thinking,
    }
}

/// The commands of the config file.
fn hooks(
    settings: &Settings,
    session_key: &SessionKey,
    model: &ChosenModel,
) -> Result<Vec<Arc<dyn Hook>>, CliError> {
    let directory = settings.directory.as_ref().unwrap_or(&settings.agent.workspace);
    let run = RunInfo {
        session_key: session_key.to_string(),
        agent: settings.agent.id.to_string(),
        working_directory: directory.clone(),
    };
    command_hooks(&model.config, run).map_err(|error| config_error(&error))
}

/// A run that ended without an answer is no success, whatever else it did.
fn has_reply(result: RunResult) -> Result<RunResult, CliError> {
    if let Some(bound) = result.bound {
        let calls = if result.iterations == 1 { "model call" } else { "model calls" };
        let go_on = match bound.is_of_a_day() {
            true => "go on tomorrow",
            false => "send another message to go on",
        };
        let message = format!(
            "stopped after {} {calls} without a final answer, because {}; {go_on}, or raise {} in the config file",
            result.iterations,
            bound.reason(),
            bound.setting()
        );
        return Err(CliError::failure_of_class(bound.as_str(), message));
    }
    if result.reply.trim().is_empty() {
        let name = format!("{}/{}", result.provider, result.model);
        return Err(match result.stop_reason {
            Some(StopReason::Refusal) => CliError::model(
                "refusal",
                format!(
                    "{name} refused to answer, or its provider's filter stopped it; say it in other words, or try \
                     another model"
                ),
            ),
            _ => CliError::model(
                "empty_reply",
                format!("{name} ended its turn without a word; ask again, or try another model"),
            ),
        });
    }
    Ok(result)
}

fn run_error(error: RunError, model: &ChosenModel) -> CliError {
    let class = error.class();
    match error {
        RunError::Aborted => CliError::aborted(),
        RunError::Model(error) => CliError::model(class, model_failure(&error, model)),
        RunError::ContextOverflow { .. }
        | RunError::AllModelsFailed(_)
        | RunError::WindowTooSmall { .. } => CliError::model(class, error.to_string()),
        RunError::UnknownProfile { .. } => CliError::usage(error.to_string()),
        RunError::Config(error) => config_error(&error),
        RunError::NoModel | RunError::ModelNotAllowed { .. } | RunError::ModelName(_) => {
            CliError::config(error.to_string())
        }
        _ => CliError::failure_of_class(class, error.to_string()),
    }
}

/// What failed, and what to do about it where the model layer cannot know.
fn model_failure(error: &ModelError, model: &ChosenModel) -> String {
    let name = &model.reference;
    let message = error.message.trim_end_matches('.');
    // The model layer says the provider first; the model's name says it already.
    let message = message.strip_prefix(&format!("{}: ", name.provider)).unwrap_or(message);
    match &model.source {
        ChoiceSource::KeyVariable(variable) if error.class == ErrorClass::Auth => {
            format!(
                "{name}: {message}. The key came from {variable}; check it, or choose another model with --model"
            )
        }
        _ => match error.class {
            ErrorClass::Timeout | ErrorClass::RateLimit => format!(
                "{name}: {message}. The conversation is kept; try again later, or choose another model with --model"
            ),
            _ => format!("{name}: {message}"),
        },
    }
}
