//! Files of the workspace that a reply sends: lines `MEDIA: path`.
//!
//! A file is copied when the reply is stored, so what is sent later is what the agent meant. The copy is removed when its
//! part is over.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::approvals::is_deceptive;
use myclaw_agent::{PERSON_CHANNEL, SessionConfig};
use myclaw_config::Config;
use myclaw_files::read_regular;
use myclaw_session::{BlobError, BlobLimits, Blobs, CLI_CHANNEL};
use myclaw_speech::{Audio, AudioFormat};

use super::Delivery;
use crate::DeliveryError;
use crate::named_files::{MARK, find};
use crate::route::Route;
use crate::rows::{PartId, SentFile};

/// Most files of a reply.
const MOST_FILES: usize = 10;
/// Why a copy is not made where too many wait.
const TOO_MANY: &str = "too many files wait to be sent already; send it later";
/// Most bytes of speech of a host's group.
const MOST_SPOKEN_BYTES: u64 = 32 * 1024 * 1024;
/// Longest name of a file that is kept, in characters.
const MOST_NAME_CHARS: usize = 100;
/// What is said on a route.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Saying {
    /// Markdown; may be empty if there are files.
    pub text: String,
    /// Copies of the files, in the order in which they are named.
    pub files: Vec<SentFile>,
}

impl Saying {
    /// Text alone.
    pub(crate) fn of(text: &str) -> Self {
        Self { text: text.to_owned(), files: Vec::new() }
    }

    /// Without a text, the names of the files become the text.
    pub(super) fn name_files_without_text(&mut self) {
        if self.text.is_empty() {
            let names: Vec<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
            self.text = names.join("\n");
        }
    }
}

impl Delivery {
    /// What `text` says on a route, with the files that it names and the `pictures` that were made for it. A file that cannot
    /// be sent becomes a line of the text that says why. A channel without files gets the text as it is.
    pub(super) async fn saying(
        &self,
        route: &Route,
        session: &str,
        said: &str,
        (text, pictures): (&str, &[String]),
    ) -> Saying {
        let most =
            self.outbox.channel(route).and_then(|channel| channel.capabilities().most_file_bytes);
        let has_files = text.contains(MARK) || !pictures.is_empty();
        let (Some(most), true) = (most, has_files) else { return Saying::of(text) };
        let (mut left, mut paths) = find(text);
        paths.retain(|path| !pictures.contains(path));
        paths.extend_from_slice(pictures);
        let mut files = Vec::new();
        for (number, path) in paths.into_iter().enumerate() {
            let is_made = pictures.contains(&path);
            let id = PartId::of(session, said, route, number);
            let copied = match number < MOST_FILES {
                true => self.copy(session, (path.clone(), is_made), id, most).await,
                false => Err(format!("a reply sends at most {MOST_FILES} files")),
            };
            match copied {
                Ok(file) => files.push(file),
                Err(reason) => {
                    tracing::warn!(session, %reason, "a file of a reply is not sent");
                    let name = name_of(&path);
                    left = format!("{left}\n\n[the file {name} was not sent: {reason}]")
                        .trim()
                        .to_owned();
                }
            }
        }
        Saying { text: left, files }
    }

    /// Copies of files that a session sends.
    ///
    /// # Errors
    /// One of them cannot be sent; the text says which, and why.
    pub(super) async fn copies(
        &self,
        route: &Route,
        session: &str,
        said: &str,
        paths: Vec<String>,
    ) -> Result<Vec<SentFile>, DeliveryError> {
        let most =
            self.outbox.channel(route).and_then(|channel| channel.capabilities().most_file_bytes);
        let channel = &route.channel;
        let mut files = Vec::with_capacity(paths.len());
        for (number, path) in paths.into_iter().enumerate() {
            let Some(most) = most.filter(|_| number < MOST_FILES) else {
                return Err(DeliveryError::Unusable(match most {
                    Some(_) => format!("a message has at most {MOST_FILES} files"),
                    None => format!("the channel {channel} takes no files; send text"),
                }));
            };
            let id = PartId::of(session, said, route, number);
            let copied = self.copy(session, (path.clone(), false), id, most).await;
            files.push(copied.map_err(|reason| {
                DeliveryError::Unusable(format!("the file {path} was not sent: {reason}"))
            })?);
        }
        Ok(files)
    }

    /// Stores speech as a file that is sent alone.
    ///
    /// # Errors
    /// The channel takes no such file, or it cannot be stored.
    pub(super) async fn keep_audio(
        &self,
        route: &Route,
        session: &str,
        said: &str,
        audio: Audio,
    ) -> Result<SentFile, DeliveryError> {
        let most =
            self.outbox.channel(route).and_then(|channel| channel.capabilities().most_file_bytes);
        let size = audio.bytes.len() as u64;
        if most.is_none_or(|most| size > most) {
            return Err(DeliveryError::Unusable(match most {
                Some(most) => format!(
                    "the voice message has {size} bytes, and the channel {} sends at most {most}",
                    route.channel
                ),
                None => format!("the channel {} takes no files", route.channel),
            }));
        }
        let (files, id) = (Arc::clone(&self.outbox.files), PartId::of(session, said, route, 0));
        let name = format!("voice.{}", audio.format.ending());
        let limits = BlobLimits { each: size, together: room(&self.config()) };
        let storing = tokio::task::spawn_blocking(move || {
            files.put(id.as_str(), &mut &audio.bytes[..], limits)
        });
        let stored = storing.await.map_err(|error| DeliveryError::Internal(error.to_string()))?;
        let blob = stored.map_err(|error| match error {
            BlobError::Full { .. } => TOO_MANY.to_owned(),
            other => other.to_string(),
        });
        let blob = blob.map_err(|why| {
            DeliveryError::Internal(format!("the voice message cannot be stored: {why}"))
        })?;
        Ok(SentFile { blob, name })
    }

    /// A copy of speech for [`Delivery::say_once`]; `None` if the chat takes no such file, or it is no speech any more.
    ///
    /// # Errors
    /// It cannot be stored.
    pub async fn keep_spoken(
        &self,
        (record, key): (&str, &str),
        route: &Route,
        path: &Path,
    ) -> Result<Option<SentFile>, DeliveryError> {
        let Ok(bytes) = read_regular(path, MOST_SPOKEN_BYTES) else { return Ok(None) };
        let Some(format) = AudioFormat::of(&bytes) else { return Ok(None) };
        let said = format!("{record} {key}");
        match self.keep_audio(route, "", &said, Audio { format, bytes }).await {
            Ok(file) => Ok(Some(file)),
            Err(DeliveryError::Unusable(why)) => {
                tracing::info!(%why, "an answer is sent as text alone");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether replies of a session may go where files can be sent. Those of the terminal's sessions, and of a person on
    /// several channels, go wherever somebody writes to them.
    pub fn sends_files(&self, session: &SessionConfig) -> bool {
        let channel = Some(session.session_key.parts().channel);
        self.outbox.sends_files(
            channel
                .filter(|name| ![CLI_CHANNEL, PERSON_CHANNEL].contains(&name.as_str()))
                .as_deref(),
        )
    }

    async fn copy(
        &self,
        session: &str,
        (path, is_made): (String, bool),
        id: PartId,
        most: u64,
    ) -> Result<SentFile, String> {
        let config = self.session_config(session).map_err(|error| unusable(&error))?;
        let files = Arc::clone(&self.outbox.files);
        let copying = tokio::task::spawn_blocking(move || {
            let opened = match is_made {
                true => config.open_made_picture(&path),
                false => config.open_in_workspace(&path),
            };
            let source = opened.map_err(|error| error.message)?;
            copy_file(&config, (&source, &path), &*files, &id, most)
        });
        copying.await.map_err(|error| unusable(&error))?
    }

    /// Removes copies of a process that was killed before it stored their parts.
    pub(super) async fn sweep_copies(&self, kept: Duration) {
        let files = Arc::clone(&self.outbox.files);
        let sweeping = tokio::task::spawn_blocking(move || files.sweep(kept)).await;
        if let Ok(Err(error)) = sweeping {
            tracing::warn!(%error, "old copies of files are not removed; trying again in an hour");
        }
    }
}

/// Message to a person about a failure. Its reason is for the owner only.
fn unusable(error: &dyn std::fmt::Display) -> String {
    tracing::error!(%error, "a file cannot be sent");
    "it cannot be read".to_owned()
}

/// The reasons name no directory: the person may be anybody.
fn copy_file(
    config: &SessionConfig,
    (mut source, path): (&File, &str),
    files: &dyn Blobs,
    id: &PartId,
    most: u64,
) -> Result<SentFile, String> {
    let size = source.metadata().map_err(|error| unusable(&error))?.len();
    if size > most {
        return Err(format!("it has {size} bytes, and the channel sends at most {most}"));
    }
    let name = name_of(path);
    let limits = BlobLimits { each: most, together: room(&config.config) };
    let blob = files.put(id.as_str(), &mut source, limits).map_err(|error| match error {
        BlobError::Full { .. } => TOO_MANY.to_owned(),
        error => {
            tracing::error!(%error, "a file cannot be copied");
            "it cannot be copied".to_owned()
        }
    })?;
    Ok(SentFile { blob, name })
}

/// Most bytes of all copies that wait to be sent; `None` for no limit. While a channel cannot be reached, all of them wait.
fn room(config: &Config) -> Option<u64> {
    let megabytes = u64::from(config.side_files.total_mb);
    (megabytes > 0).then_some(megabytes << 20)
}

/// The name for the receiver: the last part of the path, in one line, without marks that make it look like another one.
fn name_of(path: &str) -> String {
    let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|c| !is_deceptive(*c)).take(MOST_NAME_CHARS).collect();
    if name.is_empty() { "file".to_owned() } else { name }
}

#[cfg(test)]
mod tests;
