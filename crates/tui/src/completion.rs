//! Completion with Tab: commands, the models, sessions and skills that they take as arguments, and paths.

use myclaw_agent::SessionConfig;
use myclaw_agent::mcp::OfferKind;
use myclaw_llm::{ModelCatalog, ThinkingLevel};
use reedline::{Completer, CompletionResult, Span, Suggestion};

use super::command::NAMES;
use super::{custom, paths, skill};
use myclaw_front::sessions::Sessions;

/// Most suggestions at once: a longer menu is hard to read.
const MOST_SUGGESTIONS: usize = 100;

/// Completes the commands of the chat. Models and sessions are read on first use.
pub(super) struct ChatCompleter {
    pub(super) sessions: Sessions,
    /// Models of the config file, as `provider/model`.
    pub(super) own_models: Vec<String>,
    /// Whose skills are offered.
    pub(super) config: SessionConfig,
}

impl ChatCompleter {
    /// The paths that fit the last word of a line, and where it begins.
    fn paths(&self, line: &str) -> Option<(usize, Vec<String>)> {
        let start = line.rfind([' ', '\t', '\n', '!']).map_or(0, |at| at + 1);
        let word = &line[start..];
        let directory = self.config.working_directory();
        if let Some(typed) = word.strip_prefix('@') {
            let mut found = paths::find(directory, typed, MOST_SUGGESTIONS);
            // Resources of MCP servers, as those had them when they were approved.
            let resources = self.config.server_offers(OfferKind::Resources);
            found.extend(resources.into_iter().filter(|name| name.starts_with(typed)));
            found.iter_mut().for_each(|path| path.insert(0, '@'));
            return Some((start, found));
        }
        // A word of a sentence is no path, but one of a command may be.
        let is_path = word.contains('/') || (line.starts_with(['!', '/']) && start > 0);
        is_path.then(|| (start, paths::complete(directory, word, MOST_SUGGESTIONS)))
    }

    /// The words that fit, and where in the line they begin.
    fn candidates(&self, line: &str) -> Option<(usize, Vec<String>)> {
        if !line.starts_with('/') || line.contains('\n') {
            return None;
        }
        let Some((command, _)) = line.split_once(' ') else {
            let mut names = NAMES.map(str::to_owned).to_vec();
            names.extend(custom::names(&self.config));
            let prompts = self.config.server_offers(OfferKind::Prompts);
            names.extend(prompts.into_iter().map(|name| format!("/{name}")));
            return Some((0, names));
        };
        let names = match command {
            "/model" => self.models(),
            "/thinking" => ThinkingLevel::ALL
                .map(|level| level.to_string())
                .into_iter()
                .chain(["show".to_owned(), "hide".to_owned()])
                .collect(),
            "/sessions" => self.session_names(&line[command.len() + 1..]),
            "/skill" | "/skills" => skill::names(&self.config),
            _ => return None,
        };
        Some((command.len() + 1, names))
    }

    fn models(&self) -> Vec<String> {
        let catalog = ModelCatalog::builtin();
        let known = catalog.iter().map(|model| format!("{}/{}", model.provider, model.id));
        self.own_models.iter().cloned().chain(known).collect()
    }

    fn session_names(&self, prefix: &str) -> Vec<String> {
        self.sessions.names(prefix, MOST_SUGGESTIONS).unwrap_or_default()
    }
}

impl Completer for ChatCompleter {
    fn complete(&mut self, line: &str, position: usize) -> CompletionResult {
        let Some(typed) = line.get(..position) else { return CompletionResult::fresh(Vec::new()) };
        let commands = self.candidates(typed).map(|(start, mut names)| {
            names.retain(|name| name.starts_with(&typed[start..]));
            (start, names)
        });
        let commands = commands.filter(|(_, names)| !names.is_empty());
        let Some((start, names)) = commands.or_else(|| self.paths(typed)) else {
            return CompletionResult::fresh(Vec::new());
        };
        let suggestions: Vec<Suggestion> = names
            .into_iter()
            // The names of files may hold escape sequences, which the editor would draw.
            .filter(|name| !name.contains(char::is_control))
            .take(MOST_SUGGESTIONS)
            .map(|value| Suggestion {
                value,
                span: Span::new(start, position),
                ..Suggestion::default()
            })
            .collect();
        CompletionResult::fresh(suggestions)
    }
}
