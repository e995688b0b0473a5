//! Keeps keys out of documents: they go to other people, and to other machines.

use myclaw_llm::Redactor;
use myclaw_session::{
    About, Entry, EntryId, Meta, ReadSession, Role, SessionError, SessionHeader, TranscriptMessage,
};
use serde_json::Value;

use super::redactors::{Known, Version};
use super::tool_calls;
use crate::Home;
use crate::secrets::written_secrets;

impl Home {
    /// Removes what is removed from the log: the keys that are written in the config and in the key stores of the agents, the
    /// variables whose names say that they hold one, and what looks like a key. Reads those files if they have changed
    /// since the last time; blocks.
    pub fn redactor(&self) -> Redactor {
        let mut kept = self.redactors.0.lock();
        if let Some(known) = kept.as_ref().filter(|known| known.is_current()) {
            return Redactor::new(known.secrets.iter().map(String::as_str));
        }
        // The versions are taken first: what is written meanwhile is read the next time.
        let config_file = Version::of(self.paths.config_file().to_owned());
        let config = myclaw_config::load_or_default(&self.environment).map(|loaded| loaded.config);
        // An owner with a broken config may export too; the patterns and the variables are known without it.
        let config = config.unwrap_or_default();
        let (mut files, mut secrets, mut is_watched) = (vec![config_file], Vec::new(), true);
        for id in config.agent_ids() {
            let Ok(agent) = config.resolve_agent(Some(id.as_str())) else { continue };
            let store = self.keys_of(&agent);
            is_watched &= store.file().is_some();
            files.extend(store.file().map(|file| Version::of(file.to_owned())));
            secrets.extend(written_secrets(&config, &self.stored_keys(&agent), &self.environment));
        }
        let redactor = Redactor::new(secrets.iter().map(String::as_str));
        // What is in no file can change unnoticed.
        *kept = is_watched.then_some(Known { files, secrets });
        redactor
    }

    /// At most `limit` messages before one, as [`redact_row`] leaves them; `None` if there is no such message. Blocks.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn shown_messages(
        &self,
        reader: &dyn ReadSession,
        before: Option<EntryId>,
        limit: usize,
    ) -> Result<Option<Vec<TranscriptMessage>>, SessionError> {
        let mut found = reader.messages_before(before, limit)?;
        let mut redactor = self.redactor();
        found.iter_mut().flatten().for_each(|row| redact_row(row, &mut redactor));
        Ok(found)
    }
}

/// Removes keys from an entry of a log. Pictures and signatures stay as they are.
pub fn redact_entry(entry: &mut Entry, redactor: &mut Redactor) {
    match entry {
        Entry::Message(message) => redact_message(message, redactor),
        Entry::Compaction(compaction) => redactor.clean_in_place(&mut compaction.summary),
        Entry::About(about) => redact_about(&mut about.about, redactor),
        Entry::Unknown(value) => redactor.clean_value(value),
        Entry::Reduction(_) | Entry::Refusal(_) | Entry::Unsigned(_) => {}
    }
}

/// Removes keys from a row that its owner is shown. What people wrote stays as it is.
pub fn redact_row(row: &mut TranscriptMessage, redactor: &mut Redactor) {
    if row.role != Role::User {
        redact_message(row, redactor);
    }
}

/// Removes keys from all parts of a message.
pub(super) fn redact_message(message: &mut TranscriptMessage, redactor: &mut Redactor) {
    redactor.clean_in_place(&mut message.content);
    redact_meta(message, redactor);
}

fn redact_meta(message: &mut TranscriptMessage, redactor: &mut Redactor) {
    let Some(meta) = &message.meta else { return };
    let mut value = Value::Object(meta.to_object());
    let before = redactor.removed();
    redactor.clean_value(&mut value);
    if let Value::Object(object) = value
        && redactor.removed() > before
    {
        message.meta = Some(Meta::from(object));
    }
}

/// As [`redact_message`], for a document that shows the text and the calls of a message and nothing else: only there it counts
/// what it removes.
pub(super) fn redact_text(message: &mut TranscriptMessage, redactor: &mut Redactor) {
    redactor.clean_in_place(&mut message.content);
    for (_, arguments) in tool_calls(message) {
        redactor.clean(&arguments);
    }
    redactor.uncounted(|redactor| redact_meta(message, redactor));
}

/// As [`redact_text`], for a document that shows the blocks of a message in place of its text.
pub(super) fn redact_blocks(message: &mut TranscriptMessage, redactor: &mut Redactor) {
    let blocks: Option<Value> = message.meta.as_ref().and_then(|meta| meta.field("contentBlocks"));
    let Some(mut blocks) = blocks else { return redact_text(message, redactor) };
    redactor.clean_value(&mut blocks);
    redactor.uncounted(|redactor| redact_message(message, redactor));
}

/// Removes keys from the title and the labels of a session.
pub fn redact_about(about: &mut About, redactor: &mut Redactor) {
    let titles = about.title.iter_mut().chain(&mut about.automatic_title);
    titles.chain(&mut about.labels).for_each(|text| redactor.clean_in_place(text));
}

/// Removes keys from the header: the directory is a path that somebody chose.
pub(super) fn redact_header(header: &mut SessionHeader, redactor: &mut Redactor) {
    header.directory.iter_mut().for_each(|text| redactor.clean_in_place(text));
}

#[cfg(test)]
mod tests;
