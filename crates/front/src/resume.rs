//! The sessions from which `--resume` and `/resume` let the user choose.

use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use myclaw_session::{About, FIRST_WORDS, IndexedSession, SessionKey, indexed_title};

use crate::exit::CliError;
use crate::interrupt::Interrupts;
use crate::picker::{Choices, Picked, Row, Words, end_of_path, pick};
use crate::print::columns;
use crate::sessions::Sessions;
use crate::time::now_ms;

const WORDS: Words = Words { title: "Resume a session", keys: ", typing searches", letters: &[] };
/// Most columns of a directory.
const DIRECTORY_COLUMNS: usize = 28;
/// Most sessions in the plain list.
const LISTED: usize = 20;

/// The sessions, those of one place before all others, each part with the latest first.
pub struct SessionChoices {
    sessions: Sessions,
    found: Vec<IndexedSession>,
    /// The text in which each is found, made when the user begins to search.
    texts: OnceCell<Vec<String>>,
    home: Option<PathBuf>,
    now: u64,
}

impl SessionChoices {
    /// All sessions. Those that work in `directory` come first; without one, those of the agent's workspace.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn read(sessions: &Sessions, directory: Option<&Path>) -> Result<Self, CliError> {
        let mut found = Vec::new();
        sessions.each(|session| {
            found.push(session);
            Ok(ControlFlow::Continue(()))
        })?;
        found.sort_by_key(|session: &IndexedSession| {
            session.entry.directory.as_deref().map(Path::new) != directory
        });
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let texts = OnceCell::new();
        Ok(Self { sessions: sessions.clone(), found, texts, home, now: now_ms() })
    }

    /// Whether there is nothing to choose.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Lets the user choose; `None` if the list was left.
    pub async fn pick(&self, interrupts: &Interrupts) -> Option<SessionKey> {
        match pick(interrupts, WORDS, self, 0).await {
            Picked::Entry(at) => self.found.get(at).map(|session| session.key.clone()),
            Picked::With(..) | Picked::Nothing => None,
        }
    }

    /// The first sessions as lines, where there is no terminal to choose on.
    pub fn lines(&self) -> Vec<String> {
        let rows: Vec<Vec<String>> = self.found[..self.found.len().min(LISTED)]
            .iter()
            .enumerate()
            .map(|(at, session)| {
                let row = self.row(at);
                let mut cells = vec![self.sessions.name_of(&session.key)];
                cells.extend(row.details);
                cells.push(row.name);
                cells
            })
            .collect();
        columns(&rows)
    }
}

impl Choices for SessionChoices {
    fn count(&self) -> usize {
        self.found.len()
    }

    fn search_text(&self, at: usize) -> &str {
        let texts = self.texts.get_or_init(|| {
            self.found.iter().map(|session| search_text(&self.sessions, session)).collect()
        });
        texts.get(at).map_or("", String::as_str)
    }

    fn row(&self, at: usize) -> Row {
        let Some(IndexedSession { key, entry }) = self.found.get(at) else {
            return Row::default();
        };
        let first = first_words(entry.extra.as_ref());
        // Only the sessions on the screen are read.
        let title = indexed_title(entry.extra.as_ref()).or_else(|| self.sessions.title_of(key));
        let is_given = About::from_extra(entry.extra.as_ref()).title.is_some();
        let about = first.filter(|_| is_given).unwrap_or_default().to_owned();
        let name = title.unwrap_or_else(|| self.sessions.name_of(key));
        let directory = entry.directory.as_deref().map(|directory| {
            end_of_path(
                &shown_directory(Path::new(directory), self.home.as_deref()),
                DIRECTORY_COLUMNS,
            )
        });
        let messages = entry.messages.map(|count| format!("{count} msg")).unwrap_or_default();
        let cost = entry.micro_dollars.map(|micros| format!("${:.2}", micros as f64 / 1e6));
        let details = vec![
            age(self.now.saturating_sub(entry.updated_at)),
            directory.unwrap_or_default(),
            messages,
            cost.unwrap_or_default(),
        ];
        Row { name, about, details }
    }
}

/// A directory as people write it.
pub fn shown_directory(directory: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| directory.strip_prefix(home).ok()) {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => format!("~/{}", below.display()),
        None => directory.display().to_string(),
    }
}

fn first_words(extra: Option<&serde_json::Map<String, serde_json::Value>>) -> Option<&str> {
    extra?.get(FIRST_WORDS)?.as_str()
}

fn search_text(sessions: &Sessions, session: &IndexedSession) -> String {
    let IndexedSession { key, entry } = session;
    let about = About::from_extra(entry.extra.as_ref());
    let mut text = sessions.name_of(key);
    let parts = [
        about.title.as_deref(),
        about.automatic_title.as_deref(),
        first_words(entry.extra.as_ref()),
        entry.directory.as_deref(),
    ];
    for part in parts.into_iter().flatten().chain(about.labels.iter().map(String::as_str)) {
        text.push(' ');
        text.push_str(part);
    }
    text.to_lowercase()
}

/// A time that has passed, in its largest unit.
fn age(milliseconds: u64) -> String {
    let minutes = milliseconds / 60_000;
    match minutes {
        0 => "now".to_owned(),
        1..60 => format!("{minutes}m"),
        60..1_440 => format!("{}h", minutes / 60),
        1_440..20_160 => format!("{}d", minutes / 1_440),
        20_160..525_600 => format!("{}w", minutes / 10_080),
        _ => format!("{}y", minutes / 525_600),
    }
}

#[cfg(test)]
mod tests;
