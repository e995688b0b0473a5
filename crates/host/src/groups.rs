//! Which chats are answered, and where their files are.

use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use myclaw_files::{
    Durability, LockError, LockFile, LockWait, NewFile, create_private_directory, from_json,
    parent_of, read_regular,
};
use serde::{Deserialize, Serialize};

use crate::{ExtraMount, HostHome};

/// Longest name of a folder.
const MAX_FOLDER: usize = 64;
/// Longest identifier of a chat, in bytes: it is part of the key of a record.
pub(crate) const MAX_JID: usize = 256;
/// How long a change waits for another one.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// Most bytes of the file.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The name of a group's directory: a letter or digit, then letters, digits, `_` and `-`, at most 64.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Folder(String);

/// A chat that is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Group {
    /// The chat, as the channel names it.
    pub jid: String,
    /// Its name, for people.
    pub name: String,
    /// Its directory. The group with the folder `main` is the owner's own.
    pub folder: Folder,
    /// The word at the beginning of a message for the agent; `@` and the assistant's name if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// Which messages are for the agent.
    #[serde(default)]
    pub listens: Listens,
    /// Further directories of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<ExtraMount>,
}

/// Which messages of a chat are for the agent. In the main group all are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Listens {
    /// Those that begin with the trigger. The others are shown to the agent with the next of these.
    #[default]
    Trigger,
    /// All.
    All,
}

/// All groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups(Vec<Group>);

/// Why the list of groups cannot be used or changed.
#[derive(Debug, thiserror::Error)]
pub enum GroupsError {
    /// The file cannot be read or written.
    #[error("failed to {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{} is no list of groups: {problem}. Correct it, or move it away and use `myclaw groups add`", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A value cannot be used.
    #[error("{0}")]
    Unusable(String),
}

impl Folder {
    /// The directory that all groups read; no group has it.
    pub(crate) const GLOBAL: &'static str = "global";
    /// The folder of the owner's own group.
    const MAIN: &'static str = "main";

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the owner's own group, which has more rights.
    pub fn is_main(&self) -> bool {
        self.0 == Self::MAIN
    }
}

impl TryFrom<String> for Folder {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let is_sign = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
        let is_valid = name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name.chars().all(is_sign)
            && name.len() <= MAX_FOLDER;
        if !is_valid {
            return Err(format!(
                "{name:?} cannot be a folder: write a letter or digit, then letters, digits, _ or -, at most {MAX_FOLDER}"
            ));
        }
        if name.eq_ignore_ascii_case(Self::GLOBAL) {
            return Err(
                "the folder `global` is what all groups share; write another name".to_owned()
            );
        }
        Ok(Self(name))
    }
}

impl std::str::FromStr for Folder {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::try_from(name.to_owned())
    }
}

impl From<Folder> for String {
    fn from(folder: Folder) -> Self {
        folder.0
    }
}

impl fmt::Display for Folder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Group {
    /// Whether it is the owner's own.
    pub fn is_main(&self) -> bool {
        self.folder.is_main()
    }

    /// Whether a text of this chat is for an assistant of that name.
    pub(crate) fn is_addressed(&self, text: &str, assistant: &str) -> bool {
        if self.is_main() || self.listens == Listens::All {
            return true;
        }
        let usual = format!("@{assistant}");
        let trigger = self.trigger.as_deref().unwrap_or(&usual).to_lowercase();
        let text = text.trim_start().to_lowercase();
        text.strip_prefix(trigger.as_str()).is_some_and(|rest| {
            !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
        })
    }

    fn check(&self) -> Result<(), String> {
        if self.jid.is_empty() || self.jid.len() > MAX_JID || self.jid.contains(char::is_control) {
            return Err(format!(
                "a chat is named by 1 to {MAX_JID} bytes without line breaks, and this one by {:?}",
                self.jid
            ));
        }
        if self.trigger.as_ref().is_some_and(|trigger| trigger.trim().is_empty()) {
            return Err(format!("the trigger of {} is empty; leave it out", self.folder));
        }
        Ok(())
    }
}

impl Groups {
    /// Reads the list. Without a file there are no groups.
    ///
    /// # Errors
    /// It cannot be read, or holds something else.
    pub fn load(home: &HostHome) -> Result<Self, GroupsError> {
        let path = home.groups_file();
        let bytes = match read_regular(&path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(GroupsError::Io { action: "read", path, source }),
        };
        let malformed = |problem: String| GroupsError::Malformed { path: path.clone(), problem };
        let list: Vec<Group> = from_json(&bytes).map_err(malformed)?;
        let mut groups = Self::default();
        for group in list {
            groups.insert(group).map_err(malformed)?;
        }
        Ok(groups)
    }

    /// Adds a group to the file.
    ///
    /// # Errors
    /// It cannot be used, another one has its chat or its folder, or the file cannot be changed.
    pub fn add(home: &HostHome, group: Group) -> Result<(), GroupsError> {
        Self::change(home, |groups| groups.insert(group))
    }

    /// Removes the group with this folder from the file. Its directories stay.
    ///
    /// # Errors
    /// There is none, or the file cannot be changed.
    pub fn remove(home: &HostHome, folder: &Folder) -> Result<(), GroupsError> {
        Self::change(home, |groups| {
            let before = groups.0.len();
            groups.0.retain(|group| group.folder != *folder);
            if groups.0.len() == before {
                return Err(format!("there is no group with the folder {folder}"));
            }
            Ok(())
        })
    }

    /// In the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Group> {
        self.0.iter()
    }

    /// The group of a chat.
    pub fn of_chat(&self, jid: &str) -> Option<&Group> {
        self.0.iter().find(|group| group.jid == jid)
    }

    /// The group with this folder.
    pub fn of_folder(&self, folder: &Folder) -> Option<&Group> {
        self.0.iter().find(|group| group.folder == *folder)
    }

    fn insert(&mut self, group: Group) -> Result<(), String> {
        group.check()?;
        if let Some(other) = self.of_chat(&group.jid) {
            return Err(format!(
                "the chat {} belongs to the group {} already",
                group.jid, other.folder
            ));
        }
        // Two folders that differ in case are one on some file systems.
        let is_same = |other: &&Group| other.folder.0.eq_ignore_ascii_case(&group.folder.0);
        if let Some(other) = self.0.iter().find(is_same) {
            return Err(format!(
                "the folder {} belongs to the chat {} already",
                other.folder, other.jid
            ));
        }
        self.0.push(group);
        Ok(())
    }

    fn change(
        home: &HostHome,
        change: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), GroupsError> {
        let path = home.groups_file();
        let io = |action| {
            let path = path.clone();
            move |source| GroupsError::Io { action, path, source }
        };
        create_private_directory(home.root()).map_err(io("create the directory of"))?;
        let _lock =
            LockFile::acquire(&path.with_extension("json.lock"), LockWait::Until(LOCK_WAIT))
                .map_err(|error| io("lock")(lock_failure(&error)))?;
        let mut groups = Self::load(home)?;
        change(&mut groups).map_err(GroupsError::Unusable)?;
        write(&path, &groups.0).map_err(io("write"))
    }
}

fn lock_failure(error: &LockError) -> io::Error {
    match error {
        LockError::Io { source, .. } => source.kind().into(),
        LockError::Held { .. } => io::Error::other("another command is changing it; try again"),
    }
}

fn write(path: &Path, groups: &[Group]) -> io::Result<()> {
    let mut file = NewFile::in_directory(&parent_of(path), "groups.json")?;
    file.write_all(&serde_json::to_vec_pretty(groups)?)?;
    file.write_all(b"\n")?;
    file.put_at(path, Durability::Synced).map(drop)
}

#[cfg(test)]
mod tests;
