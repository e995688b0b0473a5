//! A copy of a state directory in one file, made while the program runs, and a state directory made of such a file.
//!
//! **What arrives** is a directory that other processes change all the time, in part by less trusted ones: what is in a
//! workspace. **What leaves** is a compressed archive of the tar format, which may be encrypted (`sealed.rs`).
//!
//! **Why a copy of a changing directory is whole:** the program can be killed at any moment, so every state in which the
//! files can stand together is one from which it continues. The copy takes them in the order in which a message goes
//! the other way: first the databases, then the inboxes of sessions, then their logs, then the files that the logs name
//! (`source.rs`). So a message that moves meanwhile is in the copy once or twice, never not at all, and a message that
//! stands in two places is known by its id, as after a kill.
//!
//! **What may fail:** a full disk, a file that cannot be read, a damaged database. Then there is no backup, and nothing else
//! has changed. A backup that was cut off or changed is refused as a whole: its last part names the digests of all files.

mod archive;
#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod basis;
mod create;
mod error;
mod restore;
mod sealed;
mod source;

pub use archive::{Contents, LeftOut, Why};
pub use create::{Source, create};
pub use error::BackupError;
pub use restore::{Restored, UNPACKING, check, restore};
pub use sealed::Passphrase;
pub use source::FileRole;
