//! Matrix, through the client-server API: one account. Encrypted rooms need the feature `matrix-encryption`.

mod act;
mod api;
#[cfg_attr(not(feature = "matrix-encryption"), path = "matrix/no_encryption.rs")]
mod encryption;
mod event;
mod format;
mod press;
mod receive;
mod send;
mod thread;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use secrecy::SecretString;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::recent::Recent;
use crate::shell::channel_shell;
use crate::taking::MOST_WITH_FILES;
use crate::{Account, Action, AfterInterruption, Capabilities, Channel, ProbeFailure, split};
use api::{Api, ApiError, CALL_TIME};
use receive::Room;

pub(crate) use format::render;

/// Name of the channel.
pub const MATRIX: &str = "matrix";
/// Most bytes of a message. An event has at most 65,536 bytes, and holds the text twice, once with tags.
const MOST_BYTES: usize = 8_000;
/// Pause after a refusal that only the owner can end.
const OWNER_PAUSE: Duration = Duration::from_secs(60);

/// Whether an invitation of `inviter` (second) to `room` (first) is accepted.
pub type AcceptsInvite = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// How an account is set up.
#[derive(Clone)]
pub struct MatrixOptions {
    /// The account's name in the config.
    pub account: String,
    /// Address of the homeserver.
    pub base_url: String,
    /// Names a device of the account. Transaction ids belong to it, so no other program may use it.
    pub token: SecretString,
    /// Which invitations are accepted.
    pub accepts_invite: AcceptsInvite,
    /// Largest file in both directions, in bytes.
    pub most_file_bytes: u64,
    /// Whether a reply is shown while it is written.
    pub preview: bool,
    /// The file with the keys of encryption. A program that is built without encryption leaves it alone.
    pub keys: PathBuf,
}

/// An account.
pub struct Matrix {
    options: MatrixOptions,
    api: Api,
    account: Account,
    memory: Mutex<Memory>,
    with_files: Semaphore,
    #[cfg_attr(
        not(feature = "matrix-encryption"),
        expect(dead_code, reason = "there are no keys")
    )]
    encryption: encryption::Cell,
}

/// What the process knows of the server.
#[derive(Default)]
struct Memory {
    me: Option<Me>,
    rooms: HashMap<String, Room>,
    /// Who began threads, and the threads whose earlier messages were read.
    roots: Recent<String>,
    threads: Recent<()>,
    /// The server asked for quiet until then.
    quiet_until: Option<Instant>,
    /// Whether messages that wait for keys were looked at.
    #[cfg(feature = "matrix-encryption")]
    has_looked: bool,
}

/// The account itself.
#[derive(Debug, Clone)]
struct Me {
    /// Such as `@claw:example.org`.
    id: String,
    /// The name that is shown.
    name: Option<String>,
    /// The device that the token names.
    device: Option<String>,
}

#[derive(Deserialize)]
struct WhoAmI {
    user_id: String,
    device_id: Option<String>,
}

/// Why an account cannot be used.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// A call failed.
    #[error("{0}")]
    Call(ApiError),
    /// Another attempt may succeed.
    #[error("{0}")]
    #[cfg_attr(not(feature = "matrix-encryption"), expect(dead_code, reason = "there are no keys"))]
    NotNow(String),
    /// Only the owner can mend it. The text says how.
    #[error("{0}")]
    #[cfg_attr(not(feature = "matrix-encryption"), expect(dead_code, reason = "there are no keys"))]
    Stop(String),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Profile {
    displayname: Option<String>,
}

impl Matrix {
    /// Sets up an account. Nothing is sent yet.
    ///
    /// # Errors
    /// The HTTP client cannot be set up; the text says why.
    pub fn new(options: MatrixOptions) -> Result<Self, String> {
        let api = Api::new(&options.base_url, options.token.clone())?;
        let account = Account::new(MATRIX, &options.account);
        let with_files = Semaphore::new(MOST_WITH_FILES);
        Ok(Self {
            options,
            api,
            account,
            memory: Mutex::default(),
            with_files,
            encryption: encryption::Cell::default(),
        })
    }

    /// The account, which the server names once.
    async fn me(&self) -> Result<Me, ApiError> {
        if let Some(me) = self.memory.lock().me.clone() {
            return Ok(me);
        }
        let WhoAmI { user_id: id, device_id: device } =
            self.api.get("/_matrix/client/v3/account/whoami", &[], CALL_TIME).await?;
        let path = format!("/_matrix/client/v3/profile/{}", api::encode(&id));
        let profile: Profile = match self.api.get(&path, &[], CALL_TIME).await {
            // Nobody has named it yet.
            Err(ApiError::Refused(refused)) if refused.status == 404 => Profile::default(),
            profile => profile?,
        };
        let me = Me { id, name: profile.displayname, device };
        self.memory.lock().me = Some(me.clone());
        Ok(me)
    }

    /// Notes that the server wants quiet.
    fn be_quiet(&self, time: Duration) {
        let mut memory = self.memory.lock();
        memory.quiet_until = memory.quiet_until.max(Some(Instant::now() + time));
    }

    fn is_quiet(&self) -> bool {
        self.memory.lock().quiet_until.is_some_and(|until| until > Instant::now())
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Call(error)
    }
}

/// Whether the server does not know the token.
fn is_wrong_token(error: &ApiError) -> bool {
    matches!(error, ApiError::Refused(refused) if refused.status == 401)
}

const WRONG_TOKEN: &str = "the homeserver does not know the access token; log in again, put the new token into \
                           accessToken of the config, and restart the gateway";

impl Channel for Matrix {
    channel_shell! {
        run: receive_events,
        send: send_part,
        change: [set_reaction, edit_text, remove],
        live: here,
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            // The part's id is the transaction id, under which the server takes an event once.
            after_interruption: AfterInterruption::SendAgain,
            most_file_bytes: Some(self.options.most_file_bytes),
            actions: &[Action::React, Action::Edit, Action::Unsend],
        }
    }

    fn split(&self, text: &str) -> Vec<String> {
        split(text, MOST_BYTES, str::len)
    }

    fn has_buttons(&self) -> bool {
        true
    }

    fn probe(&self) -> BoxFuture<'_, Result<String, ProbeFailure>> {
        Box::pin(async {
            match self.me().await {
                Ok(me) => Ok(format!(
                    "{} at {}, login {}, {} encryption",
                    me.id,
                    self.options.base_url,
                    me.device.as_deref().unwrap_or("without a device"),
                    if encryption::is_built() { "with" } else { "built without" },
                )),
                Err(error) if is_wrong_token(&error) => Err(ProbeFailure(WRONG_TOKEN.to_owned())),
                Err(error) => {
                    Err(ProbeFailure(format!("{error}; check the network and homeserverUrl")))
                }
            }
        })
    }

    /// As the section "matrix.to navigation" of the specification says.
    fn address(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async {
            let me = self.me().await.ok()?;
            Some(format!("https://matrix.to/#/{}", me.id))
        })
    }
}
