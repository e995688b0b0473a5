//! The directories of a host.

use std::path::{Path, PathBuf};

use myclaw_files::create_private_directory;

use crate::{Folder, HostError};

/// The directory below which everything of a host is.
#[derive(Debug, Clone)]
pub struct HostHome {
    root: PathBuf,
}

impl HostHome {
    /// The host with its files in `root`, an absolute path.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The list of groups.
    pub fn groups_file(&self) -> PathBuf {
        self.root.join("groups.json")
    }

    /// The directories of all groups.
    pub(crate) fn all_groups(&self) -> PathBuf {
        self.root.join("groups")
    }

    /// The directory of a group: its `MISSION.md`, its workflows, its files.
    pub fn group(&self, folder: &Folder) -> PathBuf {
        self.all_groups().join(folder.as_str())
    }

    /// What all groups read and the main group writes.
    pub fn global(&self) -> PathBuf {
        self.all_groups().join(Folder::GLOBAL)
    }

    /// The files between the host and the runner of a group.
    pub fn ipc(&self, folder: &Folder) -> PathBuf {
        self.root.join("data/ipc").join(folder.as_str())
    }

    /// Files of runners that could not be used. No folder is called so, because its name holds a dot.
    pub fn errors(&self) -> PathBuf {
        self.root.join("data/errors")
    }

    /// The home directory of the runner, with its sessions.
    pub fn session(&self, folder: &Folder) -> PathBuf {
        self.root.join("data/sessions").join(folder.as_str())
    }

    /// Links to the directories above under the names that a runner expects, for runners without a container.
    pub(crate) fn workspace(&self, folder: &Folder) -> PathBuf {
        self.root.join("data/workspaces").join(folder.as_str())
    }

    /// The directory for temporary files of a sandboxed runner.
    pub(crate) fn temporary(&self, folder: &Folder) -> PathBuf {
        self.root.join("data/tmp").join(folder.as_str())
    }

    /// Recordings that are not transcribed yet. No container can reach them.
    pub(crate) fn unheard(&self, folder: &Folder) -> PathBuf {
        self.root.join("data/unheard").join(folder.as_str())
    }

    /// The directory with the socket of a group's runner.
    pub(crate) fn model(&self, folder: &Folder) -> PathBuf {
        self.root.join("data/model").join(folder.as_str())
    }

    /// What a group has used of the model behind the socket.
    pub fn usage(&self, folder: &Folder) -> PathBuf {
        self.root.join("data/usage").join(format!("{folder}.json"))
    }

    /// One file for each run of a group. No container can reach it.
    pub fn logs(&self, folder: &Folder) -> PathBuf {
        self.root.join("logs").join(folder.as_str())
    }

    /// The directory of the file channel.
    pub fn channel(&self) -> PathBuf {
        self.root.join("channel")
    }

    /// The database.
    pub fn store(&self) -> PathBuf {
        self.root.join("host.sqlite")
    }

    /// Makes the directories of a group.
    ///
    /// # Errors
    /// One cannot be made.
    pub(crate) fn make_group(&self, folder: &Folder) -> Result<(), HostError> {
        let directories =
            [self.group(folder), self.global(), self.ipc(folder), self.session(folder)];
        for directory in directories.iter().chain([&self.logs(folder), &self.errors()]) {
            make(directory)?;
        }
        Ok(())
    }
}

/// Makes a directory that only this user can enter.
pub(crate) fn make(directory: &Path) -> Result<(), HostError> {
    create_private_directory(directory)
        .map(|_| ())
        .map_err(|source| HostError::io("create the directory", directory, source))
}
