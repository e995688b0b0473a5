//! Looking up the addresses of a name.

use std::io;
use std::net::IpAddr;

use futures_util::future::BoxFuture;

/// Looks up the addresses of a name.
pub trait Lookup: Send + Sync {
    /// All addresses of `name`.
    ///
    /// # Errors
    /// The name has none, or nobody answers.
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Looks names up as this machine does: its hosts file, then its name servers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
