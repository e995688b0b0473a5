//! Going back in talk and files at once.

use myclaw_agent::{Session, UndoMode, is_remark, undone_in_words};
use myclaw_session::{EntryId, Role, SessionKey, TailLimit, TranscriptMessage};
use myclaw_tools::{Direction, Undone};

use super::Sessions;
use crate::exit::CliError;

/// A message of the user in a session.
#[derive(Debug, Clone)]
pub struct Said {
    /// The row before it; `None` if it is the first.
    pub before: Option<EntryId>,
    /// The message.
    pub message: TranscriptMessage,
}

/// What going back has changed.
#[derive(Debug)]
pub struct Rewound {
    /// The file changes that were undone, by turns, the latest first.
    pub undone: Vec<Undone>,
}

impl Rewound {
    /// What was done, one line for each file.
    pub fn lines(&self) -> String {
        if self.undone.is_empty() {
            return "no file was changed since".to_owned();
        }
        let one = |undone| undone_in_words(undone, Direction::Undo, UndoMode::Apply);
        self.undone.iter().map(one).collect::<Vec<_>>().join("\n")
    }
}

impl Sessions {
    /// The messages of the user in a session, the oldest first.
    ///
    /// # Errors
    /// The session cannot be read.
    pub fn said(&self, key: &SessionKey) -> Result<Vec<Said>, CliError> {
        let Some(reader) = self.catalog.read(key)? else { return Ok(Vec::new()) };
        let mut before = None;
        let mut said = Vec::new();
        for message in reader.tail(TailLimit::UNLIMITED)?.messages {
            let id = message.id;
            if message.role == Role::User && !is_remark(&message.content) {
                said.push(Said { before, message });
            }
            before = Some(id);
        }
        Ok(said)
    }

    /// Undoes what the turns since a message changed in files, and makes the session `to` of what was said before it. The session
    /// stays as it is, but for a note about the files.
    ///
    /// # Errors
    /// The session is busy, or a file or the session cannot be read or written.
    pub async fn rewind(
        &self,
        session: &Session,
        said: &Said,
        to: &SessionKey,
    ) -> Result<Rewound, CliError> {
        let undone = session.undo_since(said.message.ts).await?;
        let (sessions, from, to) = (self.clone(), session.config(), to.clone());
        let last = said.before;
        let copying = tokio::task::spawn_blocking(move || {
            if let Some(last) = last {
                sessions.catalog.fork(&from.session_key, Some(last), &to)?;
            }
            from.for_session(to).inherit_changes(&from)?;
            Ok::<_, CliError>(())
        });
        copying.await.map_err(|error| CliError::failure(format!("internal error: {error}")))??;
        Ok(Rewound { undone })
    }
}
