//! How programs of this user find the gateway that runs, whatever the config file says meanwhile.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use myclaw_agent::files::{Durability, NewFile, read_regular, remove_if_there};
use serde::{Deserialize, Serialize};

use crate::GatewayError;
use crate::token::Token;

/// Name of the file in the gateway's directory.
const FILE: &str = "running.json";
/// Largest such file that is read.
const MAX_BYTES: u64 = 64 * 1024;

/// Where a gateway listens, and a token that holds as long as it runs. Only its user can read the file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunningFile {
    pub(crate) process_id: u32,
    pub(crate) address: SocketAddr,
    pub(crate) token: Token,
}

impl RunningFile {
    /// Writes the file, with a token of its own. Blocks.
    pub(crate) fn write(directory: &Path, address: SocketAddr) -> Result<Self, GatewayError> {
        let running = Self { process_id: std::process::id(), address, token: Token::random() };
        let path = directory.join(FILE);
        let written = serde_json::to_vec(&running).map_err(io::Error::from).and_then(|text| {
            let file = NewFile::in_directory(directory, FILE)?;
            file.as_file().write_all(&text)?;
            file.put_at(&path, Durability::Unsynced)
        });
        match written {
            Ok(_) => Ok(running),
            Err(error) => Err(failed("write", path, &error)),
        }
    }

    /// The file of the gateway that runs, if it has one. The store says whether one runs. Blocks.
    pub(crate) fn read(directory: &Path) -> Result<Option<Self>, GatewayError> {
        let path = directory.join(FILE);
        match read_regular(&path, MAX_BYTES) {
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", path, &error)),
        }
    }

    /// Removes the file. Blocks.
    pub(crate) fn remove(directory: &Path) {
        // What is left is of no use: its token holds for no other process.
        let _ = remove_if_there(&directory.join(FILE));
    }
}

fn failed(action: &'static str, path: PathBuf, error: &io::Error) -> GatewayError {
    GatewayError::File { action, path, reason: error.to_string() }
}
