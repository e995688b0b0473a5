//! Where messages go to, and the file channel.
//!
//! The file channel is two directories. A program puts a message into `in` as a JSON file (`chat`, `text`, and if it has
//! them `id`, `sender`, `name`, `time` in milliseconds, `audio`), under another ending first, and renames it. The host
//! deletes the file when the message is in its store. What goes out are files in `out`, which the program deletes. A file that holds
//! no message is moved to `errors`.

use std::io::{self, Write as _};
use std::path::PathBuf;

use futures_util::future::BoxFuture;
use myclaw_files::{Access, Durability, NewFile, SharedDirectory, from_json};
use serde::{Deserialize, Serialize};

use crate::desk::MAX_AUDIO;
use crate::home::make;
use crate::shared_directory::{MAX_JSON_BYTES, json_files};
use crate::{Accepted, Addressing, Host, HostError, HostHome, Inbound};

/// Delivers messages. A part may be given again with the same id if the host was killed just after its delivery.
pub trait Messenger: Send + Sync + 'static {
    /// Delivers one part. When this is ready without an error, the part counts as delivered.
    ///
    /// # Errors
    /// Why it was not delivered; it is tried again later.
    fn deliver<'a>(&'a self, part: &'a Outbound) -> BoxFuture<'a, Result<(), String>>;

    /// Whether a chat shows what its group does. Then [`Messenger::show`] is called, and runners write texts also while
    /// they come.
    fn shows(&self, _chat: &str) -> bool {
        false
    }

    /// Shows what the group of a chat does. It must return at once.
    fn show(&self, _chat: &str, _progress: Progress) {}
}

/// What a group does. Nothing of this is kept: what counts is what is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It works on messages.
    Working,
    /// It writes; this is the text so far.
    Writing(String),
    /// It waits for messages.
    Waiting,
}

/// Something for a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outbound {
    /// The same in each attempt.
    pub id: String,
    /// The chat.
    pub chat: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: OutboundKind,
    /// The text.
    pub text: String,
    /// The ids of the messages that a notice is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<String>,
}

/// What goes out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum OutboundKind {
    /// A text of the agent.
    Message,
    /// A text to be spoken.
    Voice {
        /// The voice, if one was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        voice: Option<String>,
        /// The name of the file with the speech, in the same directory, if it is made already.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio: Option<String>,
    },
    /// The host says that something failed.
    Notice,
}

/// The directories `in`, `out` and `errors`.
#[derive(Debug, Clone)]
pub struct FileChannel {
    root: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InboundFile {
    #[serde(default)]
    id: Option<String>,
    chat: String,
    #[serde(default)]
    text: String,
    /// The name of a recording in the same directory.
    #[serde(default)]
    audio: Option<String>,
    #[serde(default)]
    sender: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    time: Option<u64>,
}

impl FileChannel {
    /// The file channel of a host.
    ///
    /// # Errors
    /// Its directories cannot be made.
    pub fn open(home: &HostHome) -> Result<Self, HostError> {
        let channel = Self { root: home.channel() };
        for name in ["in", "out", "errors"] {
            make(&channel.root.join(name))?;
        }
        Ok(channel)
    }

    /// The directory in which messages arrive.
    pub fn inbox(&self) -> PathBuf {
        self.root.join("in")
    }

    /// Takes all messages that are there. The file of each is deleted once it is in the store.
    ///
    /// # Errors
    /// The store or the directory cannot be used; the messages stay.
    pub(crate) async fn take_in(&self, host: &Host) -> Result<(), HostError> {
        let path = self.inbox();
        let io = |source| HostError::io("read the directory", &path, source);
        let directory = SharedDirectory::open(&self.root)
            .and_then(|root| root.make_directory("in", Access::Everyone))
            .map_err(io)?;
        for name in json_files(&directory).map_err(io)? {
            let read = directory.read(&name, MAX_JSON_BYTES).map_err(|error| error.to_string());
            let file = read.and_then(|bytes| from_json(&bytes));
            let audio = file.as_ref().ok().and_then(|file: &InboundFile| file.audio.clone());
            let message = file.and_then(|file| inbound(&name, file, &directory));
            let problem = match message {
                Ok(message) => match host.accept(message).await? {
                    Accepted::Unusable(problem) => problem,
                    accepted => {
                        if accepted == Accepted::NoGroup {
                            host.say(&format!(
                                "the message {name} is ignored: its chat has no group"
                            ));
                        }
                        directory.remove(&name).map_err(io)?;
                        if let Some(audio) = audio {
                            directory.remove(&audio).map_err(io)?;
                        }
                        continue;
                    }
                },
                Err(problem) => problem,
            };
            SharedDirectory::open(&self.root.join("errors"))
                .and_then(|errors| directory.move_to(&name, &errors, &name))
                .map_err(io)?;
            host.say(&format!(
                "the message {name} of the file channel is moved to errors: {problem}"
            ));
        }
        Ok(())
    }

    fn write(&self, part: &Outbound) -> io::Result<()> {
        let directory = self.root.join("out");
        let mut file = NewFile::in_directory(&directory, "part")?;
        file.write_all(&serde_json::to_vec_pretty(part)?)?;
        file.put_at(&directory.join(format!("{}.json", part.id)), Durability::Synced).map(drop)
    }
}

impl Messenger for FileChannel {
    fn deliver<'a>(&'a self, part: &'a Outbound) -> BoxFuture<'a, Result<(), String>> {
        let written = self.write(part).map_err(|error| {
            format!("failed to write to {}: {error}", self.root.join("out").display())
        });
        Box::pin(std::future::ready(written))
    }
}

fn inbound(name: &str, file: InboundFile, directory: &SharedDirectory) -> Result<Inbound, String> {
    let recording = |audio: String| {
        if audio.contains('/') || audio.ends_with(".json") {
            return Err(format!("its audio {audio:?} is no name of a recording beside it"));
        }
        let read = directory.read(&audio, MAX_AUDIO);
        let bytes = read.map_err(|error| format!("its audio {audio:?} cannot be read: {error}"))?;
        Ok((audio, bytes))
    };
    let files = file.audio.map(recording).transpose()?.into_iter().collect();
    Ok(Inbound {
        id: file.id.unwrap_or_else(|| name.to_owned()),
        chat: file.chat,
        sender: file.name.or(file.sender).unwrap_or_else(|| "user".to_owned()),
        text: file.text,
        at_ms: file.time,
        addressing: Addressing::ByText,
        files,
    })
}
