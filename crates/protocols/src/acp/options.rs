//! The options of a session that the user can change: model, thinking level and permission mode.

use agent_client_protocol_schema::v1::{
    Error, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption,
    SessionMode, SessionModeState,
};
use myclaw_agent::{Session, SessionConfig, offered_levels, selection::Selection};
use myclaw_engine::Mode;
use myclaw_llm::ThinkingLevel;

use super::failure::{failed, invalid};
use myclaw_front::models::{ListedModel, ModelFilter, find_models};

/// The id of the option for the active model.
const MODEL: &str = "model";
/// The id of the option for the thinking level.
const THINKING: &str = "thinking";
/// The id of the option for the permission mode.
const MODE: &str = "mode";

/// The models that can be used now: those with a key, and those of servers on this machine.
pub(super) async fn usable_models(session_config: &SessionConfig) -> Vec<String> {
    let found =
        find_models(&session_config.home, &session_config.config, ModelFilter::default()).await;
    // Without a list the model can still be set on the command line and in the config file.
    let found = found.unwrap_or_default();
    found.iter().filter(|model| model.has_key()).map(ListedModel::name).collect()
}

/// The options of a session with their values.
pub(super) fn options(
    session: &Session,
    model: &Selection,
    models: &[String],
) -> Vec<SessionConfigOption> {
    let current = model.reference.to_string();
    let mut names: Vec<&str> = models.iter().map(String::as_str).collect();
    if !names.contains(&current.as_str()) {
        names.insert(0, &current);
    }
    let choices: Vec<_> = names
        .into_iter()
        .map(|name| SessionConfigSelectOption::new(name.to_owned(), name))
        .collect();
    let model_option = SessionConfigOption::select(MODEL, "Model", current.clone(), choices)
        .category(SessionConfigOptionCategory::Model);
    let offered = model.model().offered_thinking_levels();
    let (_, level) = session.thinking(model);
    let thinking_option = (offered.len() > 1).then(|| {
        let choices: Vec<_> = offered
            .iter()
            .map(|level| SessionConfigSelectOption::new(level.as_str(), level_name(*level)))
            .collect();
        SessionConfigOption::select(THINKING, "Thinking", level.as_str(), choices)
            .description("How much the model thinks before it answers".to_owned())
            .category(SessionConfigOptionCategory::ThoughtLevel)
    });
    let choices: Vec<_> = Mode::ALL
        .into_iter()
        .map(|mode| {
            SessionConfigSelectOption::new(mode.as_str(), mode.as_str())
                .description(mode.meaning().to_owned())
        })
        .collect();
    let mode_option = SessionConfigOption::select(MODE, "Mode", session.mode().as_str(), choices)
        .description("What the agent may do without a question".to_owned())
        .category(SessionConfigOptionCategory::Mode);
    std::iter::once(model_option).chain(thinking_option).chain([mode_option]).collect()
}

/// The permission modes, for clients that have no options.
pub(super) fn modes(session: &Session) -> SessionModeState {
    let described = |mode: Mode| {
        SessionMode::new(mode.as_str(), mode.as_str()).description(mode.meaning().to_owned())
    };
    let modes = Mode::ALL.into_iter().map(described).collect();
    SessionModeState::new(session.mode().as_str(), modes)
}

/// Changes the permission mode, from the next call on.
///
/// # Errors
/// There is no such mode, or it cannot be stored.
pub(super) async fn set_mode(session: &Session, method: &str, name: &str) -> Result<(), Error> {
    let mode: Mode = name.parse().map_err(|error| invalid(format!("{method}: {error}")))?;
    session.set_mode(mode).await.map_err(failed)
}

/// Sets an option, from the next model call on.
///
/// # Errors
/// There is no such option, or it cannot have that value.
pub(super) async fn set(session: &Session, option: &str, value: &str) -> Result<(), Error> {
    match option {
        MODEL => {
            session.select_model(Some(value)).await.map_err(failed)?;
        }
        THINKING => {
            let level: ThinkingLevel = value
                .parse()
                .map_err(|error| invalid(format!("session/set_config_option: {error}")))?;
            check_offered(session, level).await?;
            session.set_thinking(level);
        }
        MODE => set_mode(session, "session/set_config_option", value).await?,
        _ => {
            return Err(invalid(format!(
                "session/set_config_option: there is no option `{option}`; there are: {MODEL}, {THINKING}, {MODE}"
            )));
        }
    }
    Ok(())
}

/// Refuses a level that the model does not offer, which would otherwise be silently replaced.
async fn check_offered(session: &Session, level: ThinkingLevel) -> Result<(), Error> {
    let model = session.selection().await.map_err(failed)?;
    let known = model.model();
    if known.offered_thinking_levels().contains(&level) {
        return Ok(());
    }
    Err(invalid(format!(
        "session/set_config_option: {} does not offer the thinking level {level}; it offers: {}",
        model.reference,
        offered_levels(known)
    )))
}

fn level_name(level: ThinkingLevel) -> &'static str {
    match level {
        ThinkingLevel::Off => "Off",
        ThinkingLevel::Minimal => "Minimal",
        ThinkingLevel::Low => "Low",
        ThinkingLevel::Medium => "Medium",
        ThinkingLevel::High => "High",
        ThinkingLevel::Xhigh => "Extra high",
    }
}
