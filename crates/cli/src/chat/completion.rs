//! Completion with Tab: commands, and the models, sessions and skills that they take as arguments.

use myclaw_agent::SessionConfig;
use myclaw_agent::llm::{Catalog, ThinkingLevel};
use reedline::{Completer, CompletionResult, Span, Suggestion};

use super::command::NAMES;
use super::skill;
use crate::commands::sessions::Sessions;

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
    /// The words that fit, and where in the line they begin.
    fn candidates(&self, line: &str) -> Option<(usize, Vec<String>)> {
        if !line.starts_with('/') || line.contains('\n') {
            return None;
        }
        let Some((command, _)) = line.split_once(' ') else {
            return Some((0, NAMES.map(str::to_owned).to_vec()));
        };
        let names = match command {
            "/model" => self.models(),
            "/thinking" => ThinkingLevel::ALL.map(|level| level.to_string()).to_vec(),
            "/sessions" => self.session_names(&line[command.len() + 1..]),
            "/skill" => skill::names(&self.config),
            _ => return None,
        };
        Some((command.len() + 1, names))
    }

    fn models(&self) -> Vec<String> {
        let catalog = Catalog::builtin();
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
        let Some((start, names)) = self.candidates(typed) else {
            return CompletionResult::fresh(Vec::new());
        };
        let prefix = &typed[start..];
        let suggestions: Vec<Suggestion> = names
            .into_iter()
            .filter(|name| name.starts_with(prefix))
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
