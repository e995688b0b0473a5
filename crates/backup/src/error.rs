//! Failures of a backup.

use std::io;
use std::path::PathBuf;

use myclaw_files::formats::StateFormatsError;
use myclaw_store::StoreError;

/// Why there is no backup, or why one cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file of the state directory cannot be copied.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
    /// A database cannot be copied.
    #[error(transparent)]
    Database(#[from] StoreError),
    /// The backup cannot be written.
    #[error("cannot write the backup: {0}; check the free space and the permissions")]
    Unwritable(io::Error),
    /// The backup is not what `myclaw backup` writes, or no longer.
    #[error("the backup cannot be used: {0}")]
    Unusable(String),
    /// The backup is encrypted, and there is no passphrase.
    #[error(
        "the backup is encrypted; give its passphrase with --passphrase-file FILE, or type it at a terminal"
    )]
    Encrypted,
    /// The passphrase does not open the backup.
    #[error("the passphrase does not open the backup, or the backup was changed")]
    WrongPassphrase,
    /// A newer version of the program has made the backup.
    #[error(
        "the backup was made by MyClaw {program}, which writes a newer format ({format}; this version knows {known}); \
         install that version first"
    )]
    Newer {
        /// The version of the program.
        program: String,
        /// The format of the backup.
        format: u32,
        /// The newest format that this version knows.
        known: u32,
    },
    /// Files in the backup have formats that this version does not read. The text says what to do.
    #[error("the backup cannot be used: {0}")]
    NewerFiles(StateFormatsError),
    /// A state directory is there already.
    #[error(
        "{} is not empty; `myclaw restore --replace` puts the backup in its place and keeps what is there now next to it",
        .0.display()
    )]
    Occupied(PathBuf),
    /// Something else is in the place of the state directory.
    #[error(
        "{} is no directory; move it away, or name another place with MYCLAW_STATE_DIR",
        .0.display()
    )]
    NoDirectory(PathBuf),
    /// The state directory is the root of a file system, such as a volume of a container.
    #[error(
        "a file system is mounted on {}, and a restore replaces the whole directory; restore into another one with \
         MYCLAW_STATE_DIR, and move its files there (docs/operate/backup.md). Nothing was changed",
        .0.display()
    )]
    Mounted(PathBuf),
    /// The restored files cannot be written.
    #[error("cannot restore into {}: {source}; what was there is unchanged", path.display())]
    Place {
        /// Where they should be.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
}

impl BackupError {
    /// A failure to read the backup, which may carry one of these.
    pub(crate) fn reading(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => own,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Self::Unusable("it is cut off".to_owned())
            }
            Err(error) => Self::Unusable(error.to_string()),
        }
    }
}
