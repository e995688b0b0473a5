//! What a node keeps: where its gateway is, and its token. Only its user can read the file.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use myclaw_config::{ExposeSecret as _, SecretString};
use myclaw_files::{Durability, NewFile, create_private_directory, read_regular};
use serde_json::{Value, json};

use crate::remote::RemoteGateway;
use crate::{ClientError, PlainLink};

/// The directory in the state directory, and the file in it.
const DIRECTORY: &str = "node";
const FILE: &str = "paired.json";
/// Largest such file that is read.
const MAX_BYTES: u64 = 64 * 1024;

/// A pairing with a gateway.
pub(super) struct Paired {
    pub(super) url: String,
    /// A PEM file with the certificate of the gateway, or of the authority that signed it.
    pub(super) ca: Option<PathBuf>,
    pub(super) link: PlainLink,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) token: SecretString,
}

impl Paired {
    /// The way to the gateway.
    pub(super) fn gateway(&self) -> Result<RemoteGateway, ClientError> {
        RemoteGateway::new(&self.url, self.ca.as_deref(), self.link)
    }
}

/// The directory of the node, in a state directory.
pub(super) fn directory(state: &Path) -> PathBuf {
    state.join(DIRECTORY)
}

impl Paired {
    pub(super) async fn write(&self, state: &Path) -> Result<(), ClientError> {
        let directory = directory(state);
        let text = json!({
            "url": self.url, "ca": self.ca, "protectedLink": self.link == PlainLink::Protected, "id": self.id, "name": self.name, "token": self.token.expose_secret(),
        });
        let path = directory.join(FILE);
        let writing = tokio::task::spawn_blocking(move || {
            create_private_directory(&directory)?;
            let file = NewFile::in_directory(&directory, FILE)?;
            file.as_file().write_all(text.to_string().as_bytes())?;
            file.put_at(&directory.join(FILE), Durability::Synced).map(drop)
        });
        joined(writing.await)?.map_err(|error| failed("write", path, &error))
    }

    /// # Errors
    /// The node is not paired, or the file cannot be read.
    pub(super) async fn read(state: &Path) -> Result<Self, ClientError> {
        let path = directory(state).join(FILE);
        let of_task = path.clone();
        let reading = tokio::task::spawn_blocking(move || read_regular(&of_task, MAX_BYTES));
        let unpaired = "this machine is paired with no gateway; make a code there with `myclaw devices code --scope node`, \
                        then run `myclaw node --url ADDRESS --pair CODE` here";
        let bytes = match joined(reading.await)? {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ClientError::Unusable(unpaired.to_owned()));
            }
            Err(error) => return Err(failed("read", path, &error)),
        };
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        match (text("url"), text("id"), text("name"), text("token")) {
            (Some(url), Some(id), Some(name), Some(token)) => {
                let link = PlainLink::of_option(value["protectedLink"] == true);
                let ca = text("ca").map(PathBuf::from);
                Ok(Self { url, ca, link, id, name, token: token.into() })
            }
            _ => Err(ClientError::Unusable(format!(
                "{} holds no pairing; remove it, and pair again",
                path.display()
            ))),
        }
    }
}

fn joined<T>(result: Result<T, tokio::task::JoinError>) -> Result<T, ClientError> {
    result.map_err(|error| ClientError::Internal(error.to_string()))
}

fn failed(action: &'static str, path: PathBuf, error: &io::Error) -> ClientError {
    ClientError::File { action, path, reason: error.to_string() }
}
