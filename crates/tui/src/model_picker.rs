//! The models from which `/model` lets the user choose.

use myclaw_agent::{AgentError, Session, SessionConfig, config_write::change_config};
use myclaw_config::{ConfigChange, ConfigFile, ConfigPath};

use myclaw_front::exit::CliError;
use myclaw_front::interrupt::Interrupts;
use myclaw_front::model::change_model;
use myclaw_front::models::{ListedModel, ModelFilter, find_models};
use myclaw_front::picker::{Choices, Picked, Row, Words, pick};

/// Chooses the model and makes it that of the config.
const KEEP: char = 'k';
/// Makes a model a favourite, or no favourite any more.
const FAVORITE: char = 'f';
const WORDS: Words = Words {
    title: "Choose a model",
    keys: ", Ctrl-K keeps it for good, Ctrl-F makes it a favourite",
    letters: &[KEEP, FAVORITE],
};

/// Lets the user choose; returns what to say about it.
///
/// # Errors
/// The models cannot be found, or none is active.
pub(crate) async fn choose(
    session: &Session,
    interrupts: &Interrupts,
) -> Result<Option<String>, CliError> {
    let config = session.config();
    let mut favorites: Vec<String> =
        config.config.models.favorites.iter().map(|name| name.0.clone()).collect();
    let active = session.selection().await?.reference.to_string();
    let filter = ModelFilter { provider: None, search: None };
    let models = find_models(&config.home, &config.config, filter).await?;
    let mut choices = ModelChoices { models, order: Vec::new(), favorites: Vec::new(), active };
    let mut marked = String::new();
    loop {
        choices.arrange(&favorites);
        let at = choices.place_of(&marked);
        let (picked, keeps) = match pick(interrupts, WORDS, &choices, at).await {
            Picked::Nothing => return Ok(None),
            Picked::Entry(picked) => (picked, false),
            Picked::With(FAVORITE, picked) => {
                let name = choices.name(picked);
                if let Err(error) = toggle_favorite(&config, &mut favorites, &name).await {
                    return Ok(Some(error.message));
                }
                // The entry has moved, and the mark with it.
                marked = name;
                continue;
            }
            Picked::With(_, picked) => (picked, true),
        };
        let name = choices.name(picked);
        let mut text = match change_model(session, &name).await {
            Ok(text) => text,
            Err(error) => return Ok(Some(error.message)),
        };
        if keeps {
            text.push('\n');
            text.push_str(&match keep(&config, &name).await {
                Ok(path) => format!("it is {path} of the config file now"),
                Err(error) => format!("the config file is as it was: {}", error.message),
            });
        }
        return Ok(Some(text));
    }
}

/// Makes the model that of the agent in the config file. Returns the key that was set.
async fn keep(config: &SessionConfig, name: &str) -> Result<ConfigPath, CliError> {
    let file = ConfigFile::read(&config.home.paths).map_err(AgentError::from)?;
    let values = file.values().map_err(AgentError::from)?;
    let list = ConfigPath::default().key("agents").key("list");
    let own = config
        .config
        .agents
        .list
        .iter()
        .position(|entry| entry.id == config.agent.id.as_str())
        .map(|at| list.index(at).key("model"))
        .filter(|path| values.get(path).is_some());
    let path =
        own.unwrap_or_else(|| ConfigPath::default().key("agents").key("defaults").key("model"));
    // It may have fallbacks, which stay.
    let path = match values.get(&path).filter(|_| file.found()) {
        Some(value) if value.is_object() => path.key("primary"),
        _ => path,
    };
    let change = ConfigChange::Set { path: path.clone(), value: name.into() };
    change_config(&config.home, &file, &[change]).await.map_err(AgentError::from)?;
    Ok(path)
}

async fn toggle_favorite(
    config: &SessionConfig,
    favorites: &mut Vec<String>,
    name: &str,
) -> Result<(), CliError> {
    let mut new = favorites.clone();
    match new.iter().position(|favorite| favorite == name) {
        Some(at) => drop(new.remove(at)),
        None => new.push(name.to_owned()),
    }
    let file = ConfigFile::read(&config.home.paths).map_err(AgentError::from)?;
    let path = ConfigPath::default().key("models").key("favorites");
    let change = ConfigChange::Set { path, value: new.clone().into() };
    change_config(&config.home, &file, &[change]).await.map_err(AgentError::from)?;
    *favorites = new;
    Ok(())
}

/// The models, favourites first, then the active one, then those that can be used.
struct ModelChoices {
    models: Vec<ListedModel>,
    /// Places in `models`, with the text to search for.
    order: Vec<(usize, String)>,
    favorites: Vec<String>,
    active: String,
}

impl ModelChoices {
    fn arrange(&mut self, favorites: &[String]) {
        favorites.clone_into(&mut self.favorites);
        let mut order: Vec<(usize, String)> = self
            .models
            .iter()
            .enumerate()
            .map(|(at, model)| (at, model.name().to_lowercase()))
            .collect();
        order.sort_by_key(|(at, _)| {
            let Some(model) = self.models.get(*at) else { return (usize::MAX, false, false) };
            let name = model.name();
            let place = favorites.iter().position(|favorite| *favorite == name);
            (place.unwrap_or(usize::MAX), name != self.active, !model.has_key())
        });
        self.order = order;
    }

    fn model(&self, at: usize) -> Option<&ListedModel> {
        self.order.get(at).and_then(|(at, _)| self.models.get(*at))
    }

    fn place_of(&self, name: &str) -> usize {
        (0..self.order.len()).find(|at| self.name(*at) == name).unwrap_or(0)
    }

    fn name(&self, at: usize) -> String {
        self.model(at).map(ListedModel::name).unwrap_or_default()
    }
}

impl Choices for ModelChoices {
    fn count(&self) -> usize {
        self.order.len()
    }

    fn search_text(&self, at: usize) -> &str {
        self.order.get(at).map_or("", |(_, text)| text)
    }

    /// What cannot be used, as long as something can.
    fn is_folded(&self, at: usize) -> bool {
        let is_of_user = |name: &String| *name == self.active || self.favorites.contains(name);
        self.model(at).is_some_and(|model| !model.has_key() && !is_of_user(&model.name()))
            && self.models.iter().any(ListedModel::has_key)
    }

    fn row(&self, at: usize) -> Row {
        let Some(model) = self.model(at) else { return Row::default() };
        let name = model.name();
        let star = if self.favorites.contains(&name) { "★ " } else { "" };
        let about = if name == self.active { "(active)" } else { "" };
        let key = if model.has_key() { "" } else { "no key" };
        let mut details = vec![key.to_owned()];
        details.extend(model.figures());
        Row { name: format!("{star}{name}"), about: about.to_owned(), details }
    }
}
