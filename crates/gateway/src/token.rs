//! The token that clients present.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use myclaw_agent::config::{Config, ExposeSecret as _};
use myclaw_agent::files::{create_private_directory, private_options};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::GatewayError;

/// Name of the file in the gateway's directory.
const FILE: &str = "token";
/// Shortest token of a config, in bytes. Shorter ones can be guessed.
const MIN_BYTES: usize = 16;
/// Longest token, in bytes.
const MAX_BYTES: u64 = 4_096;

/// The token. It is never printed.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Token(String);

impl Token {
    /// The token of the config, else that of the file, which the first start creates for the user alone. Blocks.
    pub(crate) fn find_or_create(config: &Config, directory: &Path) -> Result<Self, GatewayError> {
        match Self::find(config, directory)? {
            Some(token) => Ok(token),
            None => Self::create(directory),
        }
    }

    /// The token of the config, else that of the file. Blocks.
    pub(crate) fn find(config: &Config, directory: &Path) -> Result<Option<Self>, GatewayError> {
        if let Some(token) = &config.gateway.token {
            let token = token.expose_secret();
            let why = "it can be guessed; use a longer one, or remove the key and let the gateway create one";
            if token.len() < MIN_BYTES {
                let message = format!("gateway.token has fewer than {MIN_BYTES} bytes, so {why}");
                return Err(GatewayError::Token(message));
            }
            return Ok(Some(Self(token.to_owned())));
        }
        let path = Self::path(directory);
        let text = match myclaw_agent::files::read_regular(&path, MAX_BYTES) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).trim().to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &path, &error)),
        };
        if text.len() < MIN_BYTES {
            let path = path.display();
            let message =
                format!("{path} holds no token; remove it, and the next start creates one");
            return Err(GatewayError::Token(message));
        }
        Ok(Some(Self(text)))
    }

    /// The file of the token.
    pub(crate) fn path(directory: &Path) -> PathBuf {
        directory.join(FILE)
    }

    fn create(directory: &Path) -> Result<Self, GatewayError> {
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
    pub(crate) fn random() -> Self {
        let [first, second] = [(); 2].map(|()| uuid::Uuid::new_v4().simple());
        Self(format!("{first}{second}"))
    }

    /// Whether `presented` is the token. Takes the same time wherever the two differ.
    pub(crate) fn is(&self, presented: &str) -> bool {
        self.0.as_bytes().ct_eq(presented.as_bytes()).into()
    }

    /// What the store keeps of it.
    pub(crate) fn hash(&self) -> String {
        crate::devices::hash(&self.0)
    }

    /// The value of the header `Authorization`.
    pub(crate) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.is(&other.0)
    }
}

impl Eq for Token {}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token")
    }
}

fn failed(action: &'static str, path: &Path, error: &io::Error) -> GatewayError {
    GatewayError::File { action, path: path.to_owned(), reason: error.to_string() }
}
