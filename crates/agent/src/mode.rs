//! The permission mode of a session: where it is kept, and how it is changed.

use std::str::FromStr;

use myclaw_engine::{Mode, SessionMode};
use myclaw_session::{
    Catalog, FORKED_FROM, MODE, MetaPatch, Role, SessionError, SessionKey, UpdatedAt,
};
use serde_json::Value;

use crate::{AgentError, SessionConfig};

/// Most forks between a session and the one that it has its mode from.
const MOST_FORKS: usize = 32;
/// Most messages at the end of a session among which one of the user is looked for.
const MOST_LAST_MESSAGES: usize = 200;

/// The mode that was chosen for a stored session. A fork has that of the session that it was made from.
///
/// # Errors
/// The list of sessions cannot be read.
pub(crate) fn stored_mode(
    catalog: &dyn Catalog,
    key: &SessionKey,
) -> Result<Option<Mode>, SessionError> {
    let mut key = key.clone();
    for _ in 0..MOST_FORKS {
        if !catalog.exists(&key) {
            return Ok(None);
        }
        let entry = match catalog.entry(&key) {
            Ok(entry) => entry,
            // No session depends on the list.
            Err(error) => {
                tracing::warn!(%error, session = key.as_str(), "the mode is taken from the session's messages");
                return mode_of_messages(catalog, &key);
            }
        };
        let Some(extra) = entry.and_then(|entry| entry.extra) else { return Ok(None) };
        let field = |name: &str| extra.get(name).and_then(Value::as_str);
        if let Some(name) = field(MODE) {
            return Ok(Some(named(name)));
        }
        match field(FORKED_FROM).and_then(|parent| parent.parse().ok()) {
            Some(parent) => key = parent,
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// A later version may know more modes. None of them may become one that allows more.
fn named(name: &str) -> Mode {
    Mode::from_str(name).unwrap_or(Mode::ReadOnly)
}

/// The mode that the newest of the last messages of a user names.
fn mode_of_messages(catalog: &dyn Catalog, key: &SessionKey) -> Result<Option<Mode>, SessionError> {
    let Some(session) = catalog.read(key)? else { return Ok(None) };
    let last = session.messages_before(None, MOST_LAST_MESSAGES)?.unwrap_or_default();
    let of_user = last.iter().rev().filter(|message| message.role == Role::User);
    let mut named_modes =
        of_user.filter_map(|message| message.meta.as_ref()?.field::<String>(MODE));
    Ok(named_modes.next().map(|name| named(&name)))
}

impl SessionConfig {
    /// The session with the mode that the user asks for, else with its own. A session that exists keeps it from then on.
    /// Blocks.
    ///
    /// # Errors
    /// The list of sessions cannot be read or written.
    pub fn in_mode(mut self, asked: Option<Mode>) -> Result<Self, AgentError> {
        self.mode = SessionMode::new(stored_mode(&**self.home.catalog(), &self.session_key)?);
        if let Some(mode) = asked.filter(|asked| *asked != self.mode.get()) {
            self.change_mode(mode)?;
        }
        Ok(self)
    }

    /// Changes the permission mode of the session: from the next call on, and in the sandbox from the next message on. It is
    /// stored. Blocks.
    ///
    /// # Errors
    /// It cannot be stored. It is changed for this process all the same.
    pub(crate) fn change_mode(&self, mode: Mode) -> Result<(), AgentError> {
        self.mode.set(mode);
        let catalog = self.home.catalog();
        // A session that does not exist yet gets it with its first message.
        if catalog.exists(&self.session_key) {
            let extra = Some([(MODE.to_owned(), mode.as_str().into())].into_iter().collect());
            let patch = MetaPatch { extra, updated_at: UpdatedAt::Keep, ..MetaPatch::default() };
            catalog.update(&self.session_key, patch)?;
        }
        Ok(())
    }

    /// The narrowest mode among the session's own and those of the sessions on whose behalf it works, at this moment.
    pub(crate) fn mode_of_principals(&self) -> Option<Mode> {
        let catalog = self.home.catalog();
        let modes = self.principals.iter().map(|principal| {
            // What cannot be read may be the narrowest.
            let stored = stored_mode(&**catalog, &principal.session);
            stored.unwrap_or(Some(Mode::ReadOnly)).unwrap_or_default()
        });
        modes.min_by_key(|mode| match mode {
            Mode::ReadOnly | Mode::Plan => 0,
            Mode::Ask => 1,
            Mode::Auto | Mode::Sandbox => 2,
        })
    }
}
