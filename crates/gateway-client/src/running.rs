//! How programs of this user find the gateway that runs, whatever the config file says meanwhile.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use myclaw_files::{Durability, NewFile, read_regular, remove_if_there};
use serde::{Deserialize, Serialize};

use crate::{ClientError, GatewayToken, near};

/// Name of the file in the gateway's directory.
const FILE: &str = "running.json";
/// Largest such file that is read.
const MAX_BYTES: u64 = 64 * 1024;

/// Where a gateway listens, and a token that holds as long as it runs. Only its user can read the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningFile {
    /// The process.
    pub process_id: u32,
    /// Where programs of this machine connect to.
    pub address: SocketAddr,
    /// The token.
    pub token: GatewayToken,
    /// The hashes of the certificates that it may show, the newest first; none without TLS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<String>,
}

/// Most certificates that are remembered: the newest, and the one before it that some connections still get.
const MOST_CERTIFICATES: usize = 2;

impl RunningFile {
    /// That of this process, with a token of its own. Programs of this machine connect to `address`.
    pub fn new(address: SocketAddr, certificate: Option<String>) -> Self {
        let address = near(address);
        let certificates = certificate.into_iter().collect();
        Self {
            process_id: std::process::id(),
            address,
            token: GatewayToken::random(),
            certificates,
        }
    }

    /// The same with a certificate that is about to be shown.
    pub fn with_certificate(mut self, certificate: Option<String>) -> Self {
        match certificate {
            Some(new) => {
                self.certificates.retain(|old| *old != new);
                self.certificates.insert(0, new);
                self.certificates.truncate(MOST_CERTIFICATES);
            }
            None => self.certificates.clear(),
        }
        self
    }

    /// Where it listens, as programs of this machine write it.
    pub fn url(&self) -> String {
        let scheme = if self.certificates.is_empty() { "http" } else { "https" };
        format!("{scheme}://{}", self.address)
    }

    /// Writes the file. Blocks.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), ClientError> {
        let path = directory.join(FILE);
        let written = serde_json::to_vec(self).map_err(io::Error::from).and_then(|text| {
            let file = NewFile::in_directory(directory, FILE)?;
            file.as_file().write_all(&text)?;
            file.put_at(&path, Durability::Unsynced)
        });
        written.map(drop).map_err(|error| failed("write", path, &error))
    }

    /// The file of the gateway that runs, if it has one. The store says whether one runs. Blocks.
    ///
    /// # Errors
    /// There is one that cannot be read.
    pub fn read(directory: &Path) -> Result<Option<Self>, ClientError> {
        let path = directory.join(FILE);
        match read_regular(&path, MAX_BYTES) {
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", path, &error)),
        }
    }

    /// Removes the file. Blocks.
    pub fn remove(directory: &Path) {
        // What is left is of no use: its token holds for no other process.
        let _ = remove_if_there(&directory.join(FILE));
    }
}

fn failed(action: &'static str, path: PathBuf, error: &io::Error) -> ClientError {
    ClientError::File { action, path, reason: error.to_string() }
}
