//! The token that clients present.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use myclaw_config::{Config, ExposeSecret as _, SecretString};
use myclaw_files::{create_private_directory, hex, private_options};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::ClientError;

/// Name of the file in the gateway's directory.
const FILE: &str = "token";
/// Shortest token of a config, in bytes. Shorter ones can be guessed.
const MIN_BYTES: usize = 16;
/// Longest token, in bytes.
const MAX_BYTES: u64 = 4_096;

/// The token. It is never printed.
#[derive(Clone, Serialize, Deserialize)]
pub struct GatewayToken(String);

impl GatewayToken {
    /// The token of the config, else that of the file, which the first start creates for the user alone. Blocks.
    ///
    /// # Errors
    /// The token can be guessed, or the file cannot be read or made.
    pub fn find_or_create(config: &Config, directory: &Path) -> Result<Self, ClientError> {
        match Self::find(config, directory)? {
            Some(token) => Ok(token),
            None => Self::create(directory),
        }
    }

    /// The token of the config, else that of the file. Blocks.
    ///
    /// # Errors
    /// The token can be guessed, or the file cannot be read.
    pub fn find(config: &Config, directory: &Path) -> Result<Option<Self>, ClientError> {
        if let Some(token) = &config.gateway.token {
            let token = token.expose_secret();
            let why = "it can be guessed; use a longer one, or remove the key and let the gateway create one";
            if token.len() < MIN_BYTES {
                let message = format!("gateway.token has fewer than {MIN_BYTES} bytes, so {why}");
                return Err(ClientError::Token(message));
            }
            return Ok(Some(Self(token.to_owned())));
        }
        let path = Self::path(directory);
        let text = match myclaw_files::read_regular(&path, MAX_BYTES) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).trim().to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &path, &error)),
        };
        if text.len() < MIN_BYTES {
            let path = path.display();
            let message =
                format!("{path} holds no token; remove it, and the next start creates one");
            return Err(ClientError::Token(message));
        }
        Ok(Some(Self(text)))
    }

    /// The file of the token.
    pub fn path(directory: &Path) -> PathBuf {
        directory.join(FILE)
    }

    fn create(directory: &Path) -> Result<Self, ClientError> {
        let path = Self::path(directory);
        create_private_directory(directory).map_err(|error| failed("create", directory, &error))?;
        let Self(token) = Self::random();
        let created = private_options().write(true).create_new(true).open(&path);
        created
            .and_then(|mut file| {
                file.write_all(format!("{token}\n").as_bytes())?;
                file.sync_all()
            })
            .map_err(|error| failed("create", &path, &error))?;
        Ok(Self(token))
    }

    /// A new token, of 244 random bits.
    pub fn random() -> Self {
        let [first, second] = [(); 2].map(|()| uuid::Uuid::new_v4().simple());
        Self(format!("{first}{second}"))
    }

    /// A token that something else has made.
    pub fn of(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    pub(crate) fn secret(&self) -> SecretString {
        SecretString::from(self.0.as_str())
    }

    /// Whether `presented` is the token. Takes the same time wherever the two differ.
    pub fn is(&self, presented: &str) -> bool {
        self.0.as_bytes().ct_eq(presented.as_bytes()).into()
    }

    /// What the store keeps of it.
    pub fn hash(&self) -> String {
        token_hash(&self.0)
    }

    /// The value of the header `Authorization`.
    pub fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl PartialEq for GatewayToken {
    fn eq(&self, other: &Self) -> bool {
        self.is(&other.0)
    }
}

impl Eq for GatewayToken {}

impl fmt::Debug for GatewayToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token")
    }
}

/// What the store keeps of a token. Tokens are random, so nothing needs to make the digest slow.
pub fn token_hash(token: &str) -> String {
    hex(digest(&SHA256, token.as_bytes()).as_ref())
}

fn failed(action: &'static str, path: &Path, error: &io::Error) -> ClientError {
    ClientError::File { action, path: path.to_owned(), reason: error.to_string() }
}
