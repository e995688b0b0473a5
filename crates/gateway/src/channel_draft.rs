//! Adds, repairs and removes channels in the config file, for every kind from its one declaration. What is new is tried with
//! the vendor before anything is written; secrets go into `.env` of the state directory.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use myclaw_agent::{
    AgentError, Home,
    config_write::{ConfigWriteError, WrittenConfig, change_config},
};
use myclaw_channels::Channel;
use myclaw_config::{
    ChannelAccounts, ChannelDeclaration, ChannelsConfig, ConfigChange, ConfigFile, ConfigPath,
    DEFAULT_ACCOUNT, ExposeSecret as _, SecretString, with_variable,
};
use myclaw_delivery::channels::ChannelSetup;
use myclaw_files::{Durability, NewFile, create_private_directory, read_regular};
use serde_json::{Value, json};

use crate::connect::channels_of;

/// Name of the file with variables in the state directory.
const VARIABLES: &str = ".env";
/// Largest such file that is changed.
const MAX_BYTES: u64 = 256 * 1024;

/// What a channel is to be in the config.
pub struct ChannelDraft {
    channel: &'static str,
    declaration: ChannelDeclaration,
    account: String,
    kind: DraftKind,
    value: Value,
    secrets: Vec<NewSecret>,
}

/// What a draft is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftKind {
    /// The channel is not in the config.
    Add,
    /// It is, and some of its keys are changed.
    Repair,
}

/// A secret that is in no variable yet.
struct NewSecret {
    key: String,
    variable: String,
    secret: SecretString,
}

/// Why a channel was not changed. Everything is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ChannelDraftError {
    /// The config does not take it.
    #[error(transparent)]
    Config(#[from] ConfigWriteError),
    /// The secrets cannot be written.
    #[error("cannot write {}: {reason}", place.display())]
    Variables {
        /// The file.
        place: PathBuf,
        /// The failure.
        reason: String,
    },
    /// The directories cannot be found.
    #[error(transparent)]
    Home(#[from] AgentError),
}

impl ChannelDraft {
    /// A draft of an account of the channel `name`, in which nothing is set; `None` if there is no such channel.
    pub fn new(name: &str, account: &str, kind: DraftKind) -> Option<Self> {
        let (channel, declaration) = declared(name)?;
        let (account, value) = (account.to_owned(), json!({}));
        Some(Self { channel, declaration, account, kind, value, secrets: Vec::new() })
    }

    /// What is known of the channel before it is set up.
    pub fn declaration(&self) -> &ChannelDeclaration {
        &self.declaration
    }

    /// Where it is in the config.
    pub fn place(&self) -> ConfigPath {
        self.declaration.place(self.channel, &self.account)
    }

    /// The value, with references in place of secrets.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Whether the key is set; `imap.host` is one within another.
    pub fn has(&self, key: &str) -> bool {
        self.value.pointer(&format!("/{}", key.replace('.', "/"))).is_some()
    }

    /// Sets a key.
    pub fn set(&mut self, key: &str, new: Value) {
        put(&mut self.value, key, new);
    }

    /// Sets a key to what a variable holds.
    pub fn refer(&mut self, key: &str, variable: &str) {
        self.set(key, json!(format!("${{{variable}}}")));
    }

    /// Sets a key to a variable that gets a value when the draft is kept.
    pub fn keep_secret(&mut self, key: &str, variable: String, secret: SecretString) {
        self.refer(key, &variable);
        self.secrets.push(NewSecret { key: key.to_owned(), variable, secret });
    }

    /// Asks the vendor whether it knows the account. Gives one line for people; the inner error says why it cannot be used.
    /// Nothing is written.
    ///
    /// # Errors
    /// The config does not take it.
    pub async fn probe(
        &self,
        home: &Home,
        file: &ConfigFile,
    ) -> Result<Result<Probed, String>, ChannelDraftError> {
        let mut tried = self.value.clone();
        for NewSecret { key, secret, .. } in &self.secrets {
            put(&mut tried, key, json!(secret.expose_secret()));
        }
        let changed = file.with(&self.changes(tried)).map_err(ConfigWriteError::from)?;
        let loaded = changed.load(&home.environment).map_err(ConfigWriteError::from)?;
        Ok(match find_channel(channels_of(home, &loaded.config), self.channel, &self.account) {
            Some(setup) => probed(&setup).await,
            None => Ok(Probed { found: "added".to_owned(), address: None }),
        })
    }

    /// Writes the variables, then the config. If the config is not written, the variables are as before. Blocks for the
    /// first part.
    ///
    /// # Errors
    /// Something cannot be written, or the config has mistakes then.
    pub async fn keep(
        self,
        home: &Home,
        file: &ConfigFile,
    ) -> Result<WrittenConfig, ChannelDraftError> {
        let changes = self.changes(self.value.clone());
        let place = home.paths.state_dir().join(VARIABLES);
        let before = match self.secrets.is_empty() {
            true => None,
            false => Some(write_variables(&place, &self.secrets)?),
        };
        // With the new variables.
        let written = match Home::find() {
            Ok(home) => change_config(&home, file, &changes).await.map_err(ChannelDraftError::from),
            Err(error) => Err(error.into()),
        };
        if let (Err(_), Some(before)) = (&written, before) {
            replace(&place, &before)?;
        }
        written
    }

    fn changes(&self, value: Value) -> Vec<ConfigChange> {
        let place = self.place();
        if self.kind == DraftKind::Add {
            return vec![ConfigChange::Set { path: place, value }];
        }
        let mut changes = Vec::new();
        for (key, value) in value.as_object().into_iter().flatten() {
            let path = place.clone().key(key);
            match value.as_object() {
                Some(inner) => changes.extend(inner.iter().map(|(key, value)| ConfigChange::Set {
                    path: path.clone().key(key),
                    value: value.clone(),
                })),
                None => changes.push(ConfigChange::Set { path, value: value.clone() }),
            }
        }
        changes
    }
}

/// What a vendor said about an account.
#[derive(Debug)]
pub struct Probed {
    /// Who it is, in one line.
    pub found: String,
    /// What begins a chat with it on a phone.
    pub address: Option<String>,
}

/// Asks the vendor of a channel who it is.
///
/// # Errors
/// It cannot be used, for this reason.
pub(crate) async fn probed(setup: &ChannelSetup) -> Result<Probed, String> {
    let channel: &dyn Channel = &**setup.made.as_ref().map_err(Clone::clone)?;
    let found = channel.probe().await.map_err(|failure| failure.to_string())?;
    Ok(Probed { found, address: channel.address().await })
}

/// An account of a channel among all.
pub(crate) fn find_channel(
    setups: Vec<ChannelSetup>,
    channel: &str,
    account: &str,
) -> Option<ChannelSetup> {
    setups.into_iter().find(|setup| setup.channel == channel && setup.account == account)
}

/// What removes an account of a channel from the config that has `setups`; `None` if there is none.
///
/// # Errors
/// It holds further accounts.
pub fn channel_removal(
    setups: &[ChannelSetup],
    channel: &str,
    account: &str,
) -> Option<Result<ConfigPath, String>> {
    let (_, declaration) = declared(channel)?;
    let own = setups.iter().filter(|setup| setup.channel == channel);
    if !own.clone().any(|setup| setup.account == account) {
        return None;
    }
    let path = declaration.place(channel, account);
    let has_further =
        matches!(declaration.accounts, ChannelAccounts::Further | ChannelAccounts::FurtherOfOneApp);
    Some(match account == DEFAULT_ACCOUNT && has_further && own.count() > 1 {
        true => Err(format!(
            "{path} holds further accounts, which would be removed too; remove those first"
        )),
        false => Ok(path),
    })
}

fn declared(name: &str) -> Option<(&'static str, ChannelDeclaration)> {
    ChannelsConfig::declared().into_iter().find(|(known, _)| *known == name)
}

/// Puts `new` under a key such as `imap.host`.
fn put(value: &mut Value, key: &str, new: Value) {
    match key.split_once('.') {
        Some((outer, inner)) if value[outer].is_object() => value[outer][inner] = new,
        Some((outer, inner)) => value[outer] = json!({inner: new}),
        None => value[key] = new,
    }
}

/// Writes secrets into the file with variables; returns what it held before.
fn write_variables(place: &Path, secrets: &[NewSecret]) -> Result<Vec<u8>, ChannelDraftError> {
    let unwritable =
        |reason: String| ChannelDraftError::Variables { place: place.to_owned(), reason };
    let before = match read_regular(place, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(unwritable(error.to_string())),
    };
    let mut text = String::from_utf8(before.clone())
        .map_err(|_| unwritable("it is not UTF-8 text".to_owned()))?;
    for NewSecret { variable, secret, .. } in secrets {
        text = with_variable(&text, variable, secret.expose_secret());
    }
    replace(place, text.as_bytes())?;
    Ok(before)
}

fn replace(place: &Path, text: &[u8]) -> Result<(), ChannelDraftError> {
    let directory = place.parent().unwrap_or(Path::new("/"));
    let written = create_private_directory(directory).and_then(|_| {
        let mut file = NewFile::in_directory(directory, ".env.")?;
        file.write_all(text)?;
        file.put_at(place, Durability::Synced)
    });
    written.map(drop).map_err(|error| ChannelDraftError::Variables {
        place: place.to_owned(),
        reason: error.to_string(),
    })
}
