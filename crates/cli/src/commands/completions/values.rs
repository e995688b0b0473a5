//! The values that completion scripts ask for.

use myclaw_agent::Home;
use myclaw_config::{Config, load_or_default};
use myclaw_llm::{ModelCatalog, ThinkingLevel};

use crate::args::CompletedValues;
use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;
use myclaw_front::sessions::Sessions;

/// Most sessions: a longer list helps nobody.
const MOST_SESSIONS: usize = 200;

/// The values; none of a kind that the config file prevents.
///
/// # Errors
/// There is no home directory, or the sessions cannot be read.
pub(super) fn of(kind: CompletedValues) -> Result<Vec<String>, CliError> {
    let home = find_home()?;
    Ok(match kind {
        CompletedValues::Session => Sessions::of(home).names("", MOST_SESSIONS)?,
        CompletedValues::Thinking => ThinkingLevel::ALL.map(|level| level.to_string()).to_vec(),
        CompletedValues::Model => models(&home),
        CompletedValues::Agent => agents(&home),
        CompletedValues::AuthProfile => profiles(&home),
    })
}

fn with_config(home: &Home, values: impl FnOnce(&Config) -> Vec<String>) -> Vec<String> {
    load_or_default(&home.environment).map(|loaded| values(&loaded.config)).unwrap_or_default()
}

fn models(home: &Home) -> Vec<String> {
    let mut names = with_config(home, |config| {
        let favorites = config.models.favorites.iter().map(|name| name.0.clone());
        let own = config.models.providers.iter().flat_map(|(provider, own)| {
            own.models.iter().map(move |model| format!("{provider}/{}", model.id))
        });
        favorites.chain(own).collect()
    });
    let catalog = ModelCatalog::builtin();
    names.extend(catalog.iter().map(|model| format!("{}/{}", model.provider, model.id)));
    names
}

fn agents(home: &Home) -> Vec<String> {
    with_config(home, |config| {
        let mut ids: Vec<String> =
            config.agents.list.iter().map(|entry| entry.id.clone()).collect();
        if ids.is_empty() {
            ids.push(config.default_agent_id().to_string());
        }
        ids
    })
}

fn profiles(home: &Home) -> Vec<String> {
    with_config(home, |config| {
        let configured = config.provider.iter().flat_map(|provider| &provider.auth_profiles);
        let mut ids: Vec<String> = configured.map(|profile| profile.id.clone()).collect();
        if let Ok(agent) = config.resolve_agent(None) {
            ids.extend(home.stored_keys(&agent).profiles().map(|(name, _)| name.to_owned()));
        }
        ids
    })
}
