//! The files to and from the host: one JSON object each, under a name that sorts by time.
//!
//! A file appears as a whole: it is written as `<name>.tmp`, synchronised and renamed. A file of the host is deleted
//! only when what it says is in the session, so a message is not lost when this process is killed in between.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use myclaw_engine::{Clock as _, SystemClock};
use myclaw_files::portable::PermissionsExt as _;
use myclaw_files::{Durability, NewFile, from_json, read_regular, remove_if_there};
use myclaw_speech::Audio;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::payload::Payload;

/// The file by which the host ends the job.
const CLOSE: &str = "_close";
/// Most bytes of a message of the host.
const MAX_MESSAGE_BYTES: u64 = 1024 * 1024;
/// Most messages that are taken at once; the others wait.
const MAX_MESSAGES: usize = 100;
/// A damaged file that is younger than this may still be written by a host that does not rename.
const WRITING_TIME: Duration = Duration::from_secs(2);
/// What is added to the name of a file that holds no message.
const DAMAGED: &str = "unreadable";

/// The directories below `ipc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outbound {
    Messages,
    Voice,
    Tasks,
}

impl Outbound {
    fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Voice => "voice",
            Self::Tasks => "tasks",
        }
    }
}

/// The directory that the host shares with this process.
pub(crate) struct Ipc {
    root: PathBuf,
    /// The group and the chat of the job, as the files name them.
    pub(crate) group_folder: String,
    pub(crate) chat_jid: String,
    pub(crate) is_main: bool,
    /// Files whose messages were taken and may not be in the session yet.
    taken: Mutex<Vec<PathBuf>>,
    /// Names of the files that the current query has put into the session.
    settled: Mutex<Vec<String>>,
}

/// A message of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Incoming {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

#[derive(Deserialize)]
struct InputFile {
    r#type: String,
    text: String,
}

/// A message to the chat.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChatMessage<'a> {
    r#type: &'static str,
    chat_jid: &'a str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    voice: Option<&'a str>,
    /// Name of the file next to this one that holds the speech.
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<&'a str>,
    group_folder: &'a str,
    timestamp: String,
    /// Whether the job waits for a reply.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_question: bool,
}

impl Ipc {
    pub(crate) fn new(root: PathBuf, payload: &Payload) -> Self {
        Self {
            root,
            group_folder: payload.group_folder.clone(),
            chat_jid: payload.chat_jid.clone(),
            is_main: payload.is_main,
            taken: Mutex::default(),
            settled: Mutex::default(),
        }
    }

    /// Sends a text to the chat of the job.
    pub(crate) fn send_message(&self, text: &str) -> io::Result<()> {
        self.send_chat(Outbound::Messages, "message", text, (None, None))
    }

    /// Sends a question to the chat of the job. The job waits for the reply.
    pub(crate) fn send_question(&self, text: &str) -> io::Result<()> {
        let message = self.chat_message("message", text, (None, None));
        self.write(Outbound::Messages, &ChatMessage { is_question: true, ..message })
    }

    /// Sends a text to be spoken, in `voice` if one is named. `audio` is the speech, if it is made already: it becomes a
    /// file of its own. A host that does not know it has the text.
    pub(crate) fn send_voice(
        &self,
        text: &str,
        voice: Option<&str>,
        audio: Option<&Audio>,
    ) -> io::Result<()> {
        let Some(audio) = audio else {
            return self.send_chat(Outbound::Voice, "voice_message", text, (voice, None));
        };
        let name = file_name(audio.format.ending());
        self.put(Outbound::Voice, &name, &audio.bytes)?;
        self.send_chat(Outbound::Voice, "voice_message", text, (voice, Some(&name)))
    }

    fn send_chat(
        &self,
        to: Outbound,
        kind: &'static str,
        text: &str,
        speech: (Option<&str>, Option<&str>),
    ) -> io::Result<()> {
        self.write(to, &self.chat_message(kind, text, speech))
    }

    fn chat_message<'a>(
        &'a self,
        kind: &'static str,
        text: &'a str,
        (voice, audio): (Option<&'a str>, Option<&'a str>),
    ) -> ChatMessage<'a> {
        ChatMessage {
            r#type: kind,
            chat_jid: &self.chat_jid,
            text,
            voice,
            audio,
            group_folder: &self.group_folder,
            timestamp: timestamp(),
            is_question: false,
        }
    }

    /// Writes a file for the host. It is on the disk when this returns.
    pub(crate) fn write(&self, to: Outbound, content: &impl Serialize) -> io::Result<()> {
        self.put(to, &file_name("json"), &serde_json::to_vec_pretty(content)?)
    }

    fn put(&self, to: Outbound, name: &str, content: &[u8]) -> io::Result<()> {
        let directory = self.root.join(to.name());
        std::fs::create_dir_all(&directory)?;
        let mut file = NewFile::named(&directory.join(format!("{name}.tmp")))?;
        // The host may be another user.
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
        file.write_all(content)?;
        file.put_at_free(&directory.join(name), Durability::Synced)?;
        Ok(())
    }

    /// A file that the host keeps up to date next to the directories, such as the list of tasks.
    pub(crate) fn snapshot(&self, name: &str) -> io::Result<Vec<u8>> {
        read_regular(&self.root.join(name), MAX_MESSAGE_BYTES)
    }

    /// The messages of the host that nobody took, the oldest first. Files that hold none are moved aside; `say` gets a
    /// line about each.
    pub(crate) fn pending(&self, say: &dyn Fn(&str)) -> Vec<Incoming> {
        let taken = self.taken.lock().clone();
        let mut paths: Vec<PathBuf> = std::fs::read_dir(self.input())
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
            .filter(|path| !taken.contains(path))
            .collect();
        paths.sort_unstable();
        paths.into_iter().filter_map(|path| message(path, say)).take(MAX_MESSAGES).collect()
    }

    /// Remembers that a message was taken. Its file goes with [`Ipc::settle`].
    pub(crate) fn take(&self, message: &Incoming) {
        self.taken.lock().push(message.path.clone());
    }

    /// Deletes the files of the taken messages, which are in the session now.
    pub(crate) fn settle(&self) {
        for path in self.taken.lock().drain(..) {
            // A file that stays is a message that comes again, which the user sees.
            drop(remove_if_there(&path));
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.settled.lock().push(name);
        }
    }

    /// The names of the files that the query has taken, which ends now. By them the host knows which messages are
    /// answered.
    pub(crate) fn end_query(&self) -> Vec<String> {
        std::mem::take(&mut *self.settled.lock())
    }

    /// Whether the host wants the job to end.
    pub(crate) fn is_closed(&self) -> bool {
        self.input().join(CLOSE).exists()
    }

    /// Removes the sign that ends the job.
    pub(crate) fn forget_close(&self) {
        drop(remove_if_there(&self.input().join(CLOSE)));
    }

    fn input(&self) -> PathBuf {
        self.root.join("input")
    }
}

/// Reads a message; a file that holds none is moved aside.
fn message(path: PathBuf, say: &dyn Fn(&str)) -> Option<Incoming> {
    let problem = match read_regular(&path, MAX_MESSAGE_BYTES) {
        Ok(bytes) if bytes.len() as u64 == MAX_MESSAGE_BYTES => "it is too long".to_owned(),
        Ok(bytes) => match from_json::<InputFile>(&bytes) {
            Ok(InputFile { r#type, text }) if r#type == "message" => {
                return Some(Incoming { path, text });
            }
            Ok(_) => "its type is not `message`".to_owned(),
            Err(_) if is_young(&path) => return None,
            Err(problem) => problem,
        },
        // Another process has taken it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => error.to_string(),
    };
    let aside = path.with_extension(format!("json.{DAMAGED}"));
    let moved = std::fs::rename(&path, &aside);
    let outcome = if moved.is_ok() { "moved aside" } else { "left out" };
    say(&format!("the message {} is {outcome}: {problem}", path.display()));
    None
}

fn is_young(path: &Path) -> bool {
    let changed = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    let age = changed.ok().and_then(|changed| SystemTime::now().duration_since(changed).ok());
    age.is_some_and(|age| age < WRITING_TIME)
}

/// Milliseconds, a dash, and random base-36 digits.
fn file_name(ending: &str) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut random = uuid::Uuid::new_v4().as_u128();
    let mut digits = String::new();
    for _ in 0..8 {
        digits.push(char::from(DIGITS[(random % 36) as usize]));
        random /= 36;
    }
    format!("{}-{digits}.{ending}", SystemClock.now_ms())
}

/// The time as the host writes it: ISO 8601 in UTC, with milliseconds.
pub(crate) fn timestamp() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}
