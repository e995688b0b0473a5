//! Packages of others: skills, commands, hooks, MCP servers and agents in one directory, in the layouts that other agents
//! have.
//!
//! Nothing of a package is used before the owner approved it, and then only the bytes that were approved. So a package is read
//! into memory once ([`Tree`]), everything is decided on these bytes, and [`PackageStore::load`] compares them with the digests in the
//! lock file. This crate starts nothing and downloads nothing. It must not know agents, models or sessions.
//!
//! | module | is |
//! |---|---|
//! | `tree` | the files of a package in memory, within limits, and their digest |
//! | `archive` | reading them from a compressed tar archive |
//! | `contents` | what is in a package, and what it asks for |
//! | `scan` | what a reader should look at before an approval |
//! | `store` | the approved packages on disk, and the lock file |
#![forbid(unsafe_code)]

mod archive;
mod contents;
mod scan;
mod store;
mod tree;

pub use contents::{
    CLAUDE_EVENTS, ClaudeHookEntry, PackageContents, PackageDocument, PackageServer, ROOT,
    plain_name,
};
pub use scan::{CANNOT_KNOW, scan};
pub use store::{
    Changed, LoadedPackage, Locked, PackageApproval, PackageError, PackageState, PackageStore,
    Source,
};
pub use tree::{FileChange, Tree, TreeEntry, TreeError};
