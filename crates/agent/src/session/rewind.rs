//! Going back in talk and files at once.

use std::sync::Arc;

use myclaw_llm::outside::plain_name;
use myclaw_session::{
    Catalog, EntryId, Role, SessionError, SessionKey, TailLimit, TranscriptMessage,
};
use myclaw_tools::{Direction, Undone};

use super::command::CommandAnswer;
use super::{Session, is_remark, undone_in_words};
use crate::blocking::blocking;
use crate::export::local_minute;
use crate::goal::is_of_goal;
use crate::{AgentError, UndoMode};

/// Most messages that a list of them has: the latest.
const MOST_LISTED: usize = 20;
/// Most characters of a message in it.
const MOST_LINE_CHARS: usize = 80;

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

/// The messages of the user in a session, the oldest first.
///
/// # Errors
/// The session cannot be read.
pub fn messages_of_user(
    catalog: &dyn Catalog,
    key: &SessionKey,
) -> Result<Vec<Said>, SessionError> {
    let Some(reader) = catalog.read(key)? else { return Ok(Vec::new()) };
    let mut before = None;
    let mut said = Vec::new();
    for message in reader.tail(TailLimit::UNLIMITED)?.messages {
        let id = message.id;
        let is_said = !is_remark(&message.content) && !is_of_goal(&message.content);
        if message.role == Role::User && is_said {
            said.push(Said { before, message });
        }
        before = Some(id);
    }
    Ok(said)
}

/// A name for a new session: the time, and a number where that is taken.
pub fn new_session_name(is_taken: impl Fn(&str) -> bool) -> String {
    let name = jiff::Zoned::now().strftime("%Y-%m-%d-%H%M%S").to_string();
    std::iter::once(name.clone())
        .chain((2..).map(|number| format!("{name}-{number}")))
        .find(|name| !is_taken(name))
        .unwrap_or(name)
}

impl Session {
    /// Undoes what the turns since a message changed in files, and makes the session `to` of what was said before it. The session
    /// stays as it is, but for a note about the files.
    ///
    /// # Errors
    /// The session is busy, or a file or the session cannot be read or written.
    pub async fn rewind(&self, said: &Said, to: &SessionKey) -> Result<Rewound, AgentError> {
        let undone = self.undo_since(said.message.ts).await?;
        let (from, to, last) = (self.config(), to.clone(), said.before);
        blocking(move || {
            if let Some(last) = last {
                from.home.catalog().fork(&from.session_key, Some(last), &to)?;
            }
            from.for_session(to).inherit_changes(&from)
        })
        .await??;
        Ok(Rewound { undone })
    }

    /// Lists the messages of the user, counted from the last one; or goes back to before one of them.
    pub(super) async fn rewind_to(
        &self,
        number: Option<&str>,
        name: &str,
    ) -> Result<CommandAnswer, AgentError> {
        let (catalog, key) = (Arc::clone(self.config().home.catalog()), self.key().clone());
        let mut said = blocking(move || messages_of_user(&*catalog, &key)).await??;
        if said.is_empty() {
            return Err(AgentError::usage("there is no earlier message to go back to"));
        }
        let Some(number) = number else { return Ok(listed(&said)) };
        let count = said.len();
        let at = number.parse().ok().and_then(|number: usize| count.checked_sub(number));
        let Some(at) = at.filter(|at| *at < count) else {
            return Err(AgentError::usage(format!(
                "`{number}` is none of the {count} messages; /rewind lists them, the last one is 1"
            )));
        };
        let said = said.swap_remove(at);
        let config = self.config();
        let (catalog, agent) = (config.home.catalog(), config.agent.id.as_str());
        let key_of = |name: &str| SessionKey::for_cli(agent, name);
        let new = new_session_name(|name| catalog.exists(&key_of(name)));
        let to = key_of(&new);
        let rewound = self.rewind(&said, &to).await?;
        Ok(CommandAnswer {
            text: format!("{}\nonce more, in `{new}`; `{name}` stays as it is", rewound.lines()),
            session: Some(to.as_str().to_owned()),
            unsent: Some(said.message.content),
            ..CommandAnswer::default()
        })
    }
}

fn listed(said: &[Said]) -> CommandAnswer {
    let latest = said.iter().rev().enumerate().take(MOST_LISTED);
    let row = |(before, said): (usize, &Said)| {
        let text = plain_name(&said.message.content, MOST_LINE_CHARS);
        vec![(before + 1).to_string(), local_minute(said.message.ts), text]
    };
    let mut rows: Vec<Vec<String>> = latest.map(row).collect();
    rows.reverse();
    let text =
        "/rewind NUMBER goes back to before that message, in files too; this session is kept";
    CommandAnswer { rows, text: text.to_owned(), ..CommandAnswer::default() }
}
