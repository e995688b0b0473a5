//! Files of the workspace that a reply sends: lines `MEDIA: path`.
//!
//! A file is copied when the reply is stored, so what is sent later is what the agent meant. The copy is removed when its
//! part is over.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use myclaw_agent::approvals::is_deceptive;
use myclaw_agent::{PERSON_CHANNEL, SessionConfig};
use myclaw_config::Config;
use myclaw_files::{Durability, NewFile, create_private_directory, read_regular, remove_if_there};
use myclaw_gateway_client::gateway_directory;
use myclaw_session::CLI_CHANNEL;
use myclaw_speech::{Audio, AudioFormat};

use super::Delivery;
use crate::GatewayError;
use crate::rows::{PartId, Route, SentFile};

/// Begins a line that names a file.
const MARK: &str = "MEDIA:";
/// Directory of the copies, in that of the gateway.
const DIRECTORY: &str = "outgoing";
/// Most files of a reply.
const MOST_FILES: usize = 10;
/// Why a copy is not made where too many wait.
const TOO_MANY: &str = "too many files wait to be sent already; send it later";
/// Most bytes of speech of a host's group.
const MOST_SPOKEN_BYTES: u64 = 32 * 1024 * 1024;
/// Longest name of a file that is kept, in characters.
const MOST_NAME_CHARS: usize = 100;
/// Tells the model how to send a file.
pub(crate) const NOTE: &str = "To send a file of the working directory to the person, name it in your answer, on a line \
                               of its own: MEDIA: path/of/the/file";

/// What is said on a route.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Saying {
    /// Markdown; may be empty if there are files.
    pub(crate) text: String,
    /// Copies of the files, in the order in which they are named.
    pub(crate) files: Vec<SentFile>,
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

/// A text without the lines that name files, as a preview shows it.
pub(crate) fn without_files(text: &str) -> String {
    find(text).0
}

/// The text without the lines that name files, and the paths. What is in a code block is text.
fn find(text: &str) -> (String, Vec<String>) {
    let (mut lines, mut paths) = (Vec::new(), Vec::new());
    let mut is_code = false;
    for line in text.split('\n') {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            is_code = !is_code;
        }
        let path = trimmed.strip_prefix(MARK).filter(|_| !is_code);
        let path = path.map(|path| path.trim().trim_matches(['`', '"', '\'']));
        match path.filter(|path| !path.is_empty()) {
            Some(path) => paths.push(path.to_owned()),
            None => lines.push(line),
        }
    }
    let text = lines.join("\n");
    let text = if paths.is_empty() { text } else { text.trim().to_owned() };
    (text, paths)
}

impl Delivery {
    /// What `text` says on a route, with the files that it names. A file that cannot be sent becomes a line of the text
    /// that says why. A channel without files gets the text as it is.
    pub(super) async fn saying(
        &self,
        route: &Route,
        session: &str,
        said: &str,
        text: &str,
    ) -> Saying {
        let most =
            self.outbox.channel(route).and_then(|channel| channel.capabilities().most_file_bytes);
        let (Some(most), true) = (most, text.contains(MARK)) else { return Saying::of(text) };
        let (mut left, paths) = find(text);
        let mut files = Vec::new();
        for (number, path) in paths.into_iter().enumerate() {
            let id = PartId::of(session, said, route, number);
            let copied = match number < MOST_FILES {
                true => self.copy(session, path.clone(), id, most).await,
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
    ) -> Result<Vec<SentFile>, GatewayError> {
        let most =
            self.outbox.channel(route).and_then(|channel| channel.capabilities().most_file_bytes);
        let channel = &route.channel;
        let mut files = Vec::with_capacity(paths.len());
        for (number, path) in paths.into_iter().enumerate() {
            let Some(most) = most.filter(|_| number < MOST_FILES) else {
                return Err(GatewayError::Unusable(match most {
                    Some(_) => format!("a message has at most {MOST_FILES} files"),
                    None => format!("the channel {channel} takes no files; send text"),
                }));
            };
            let id = PartId::of(session, said, route, number);
            let copied = self.copy(session, path.clone(), id, most).await;
            files.push(copied.map_err(|reason| {
                GatewayError::Unusable(format!("the file {path} was not sent: {reason}"))
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
    ) -> Result<SentFile, GatewayError> {
        let most =
            self.outbox.channel(route).and_then(|channel| channel.capabilities().most_file_bytes);
        let size = audio.bytes.len() as u64;
        if most.is_none_or(|most| size > most) {
            return Err(GatewayError::Unusable(match most {
                Some(most) => format!(
                    "the voice message has {size} bytes, and the channel {} sends at most {most}",
                    route.channel
                ),
                None => format!("the channel {} takes no files", route.channel),
            }));
        }
        let directory = self.outgoing();
        let path = directory.join(PartId::of(session, said, route, 0).as_str());
        let name = format!("voice.{}", audio.format.ending());
        let (kept, room) = (path.clone(), room(&self.config()));
        let storing = tokio::task::spawn_blocking(move || -> io::Result<()> {
            create_private_directory(&directory)?;
            if has_most(&directory, size, room) {
                return Err(io::Error::other(TOO_MANY));
            }
            let mut file = NewFile::in_directory(&directory, "copy")?;
            file.write_all(&audio.bytes)?;
            file.put_at(&kept, Durability::Synced).map(|_| ())
        });
        let stored = storing.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
        stored.map_err(|error| {
            GatewayError::Internal(format!("the voice message cannot be stored: {error}"))
        })?;
        Ok(SentFile { path, name })
    }

    /// A copy of speech for [`Delivery::say_once`]; `None` if the chat takes no such file, or it is no speech any more.
    ///
    /// # Errors
    /// It cannot be stored.
    pub(crate) async fn keep_spoken(
        &self,
        (record, key): (&str, &str),
        route: &Route,
        path: &Path,
    ) -> Result<Option<SentFile>, GatewayError> {
        let Ok(bytes) = read_regular(path, MOST_SPOKEN_BYTES) else { return Ok(None) };
        let Some(format) = AudioFormat::of(&bytes) else { return Ok(None) };
        let said = format!("{record} {key}");
        match self.keep_audio(route, "", &said, Audio { format, bytes }).await {
            Ok(file) => Ok(Some(file)),
            Err(GatewayError::Unusable(why)) => {
                tracing::info!(%why, "an answer is sent as text alone");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether replies of a session may go where files can be sent. Those of the terminal's sessions, and of a person on
    /// several channels, go wherever somebody writes to them.
    pub(crate) fn sends_files(&self, session: &SessionConfig) -> bool {
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
        path: String,
        id: PartId,
        most: u64,
    ) -> Result<SentFile, String> {
        let config = self.session_config(session).map_err(|error| unusable(&error))?;
        let directory = self.outgoing();
        let copying =
            tokio::task::spawn_blocking(move || copy_file(&config, &path, &directory, &id, most));
        copying.await.map_err(|error| unusable(&error))?
    }

    fn outgoing(&self) -> PathBuf {
        gateway_directory(&self.home()).join(DIRECTORY)
    }

    /// Removes copies of a process that was killed before it stored their parts.
    pub(super) async fn sweep_copies(&self, kept: Duration) {
        let directory = self.outgoing();
        let sweeping = tokio::task::spawn_blocking(move || {
            let Some(before) = SystemTime::now().checked_sub(kept) else { return };
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                let changed = entry.metadata().and_then(|found| found.modified());
                if changed.is_ok_and(|changed| changed < before) {
                    let _ = remove_if_there(&entry.path());
                }
            }
        });
        let _ = sweeping.await;
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
    path: &str,
    directory: &Path,
    id: &PartId,
    most: u64,
) -> Result<SentFile, String> {
    let source = config.open_in_workspace(path).map_err(|error| error.message)?;
    let size = source.metadata().map_err(|error| unusable(&error))?.len();
    if size > most {
        return Err(format!("it has {size} bytes, and the channel sends at most {most}"));
    }
    let name = name_of(path);
    let path = directory.join(id.as_str());
    if has_most(directory, size, room(&config.config)) {
        return Err(TOO_MANY.to_owned());
    }
    store(source, directory, &path, most).map_err(|error| {
        tracing::error!(directory = %directory.display(), %error, "a file cannot be copied");
        "it cannot be copied".to_owned()
    })?;
    Ok(SentFile { path, name })
}

/// Most bytes of all copies that wait to be sent; `None` for no limit.
fn room(config: &Config) -> Option<u64> {
    let megabytes = u64::from(config.side_files.total_mb);
    (megabytes > 0).then_some(megabytes << 20)
}

/// Whether a copy of `bytes` would be one too many. While a channel cannot be reached, all of them wait.
fn has_most(directory: &Path, bytes: u64, room: Option<u64>) -> bool {
    let Some(room) = room else { return false };
    let copies = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = copies.filter_map(|copy| Some(copy.metadata().ok()?.len()));
    sizes.fold(bytes, u64::saturating_add) > room
}

fn store(source: File, directory: &Path, path: &Path, most: u64) -> io::Result<()> {
    create_private_directory(directory)?;
    let mut copy = NewFile::in_directory(directory, "copy")?;
    // It may have grown since.
    if io::copy(&mut source.take(most.saturating_add(1)), &mut copy)? > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    copy.put_at(path, Durability::Synced).map(|_| ())
}

/// The name for the receiver: the last part of the path, in one line, without marks that make it look like another one.
fn name_of(path: &str) -> String {
    let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|c| !is_deceptive(*c)).take(MOST_NAME_CHARS).collect();
    if name.is_empty() { "file".to_owned() } else { name }
}

#[cfg(test)]
mod tests;
