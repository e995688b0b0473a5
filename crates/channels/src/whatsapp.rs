//! WhatsApp, through the Cloud API of Meta: the phone numbers of one app.
//!
//! Meta posts what happens to all numbers of an app to one address, so the accounts share an [`WhatsAppApp`], which knows
//! whose message it is. A request is answered with 200 once its messages are on disk. Downloads of files continue when Meta
//! gives up waiting for that answer: it posts again later, and finds them stored.

mod api;
mod memory;
mod payload;
mod receive;
mod send;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use secrecy::SecretString;
use tokio::sync::{Notify, Semaphore, mpsc};

use crate::marks::marked;
use crate::shell::channel_shell;
use crate::taking::MOST_WITH_FILES;
use crate::{
    Account, Action, AfterInterruption, Capabilities, Change, Channel, Intake, Part, ProbeFailure,
    SendFailure, utf16_units,
};
use api::{Api, ApiError};
use memory::Memory;
use receive::PostedMessages;

/// What stands around blocks of code.
const FENCES: [&str; 2] = ["```"; 2];
/// Name of the channel.
pub const WHATSAPP: &str = "whatsapp";
/// The public API.
pub const WHATSAPP_BASE_URL: &str = "https://graph.facebook.com";
/// The version of the API that this was written for. Meta serves a version for about two years.
pub const WHATSAPP_VERSION: &str = "v26.0";
/// Longest text of a message, in characters ("Text messages" in the vendor's documentation).
const MOST_UNITS: usize = 4_096;
/// Largest file that can be sent: a document ("Supported media types").
const MOST_SENT_BYTES: u64 = 100 * 1024 * 1024;
/// Requests of Meta that wait to be taken. Further ones are refused, and come again.
const MOST_JOBS: usize = 256;

/// How a phone number is set up.
#[derive(Debug, Clone)]
pub struct WhatsAppOptions {
    /// The account's name in the config.
    pub account: String,
    /// The number's id, which is not the number.
    pub phone_number_id: String,
    /// Address of the Graph API.
    pub base_url: String,
    /// Its version, such as `v26.0`.
    pub version: String,
    /// Sends for the number.
    pub token: SecretString,
    /// Signs what Meta posts.
    pub app_secret: SecretString,
    /// What Meta presents when the owner enters the address of the gateway.
    pub verify_token: SecretString,
    /// [`AfterInterruption::Report`] or [`AfterInterruption::SendMarked`]: the API knows no ids for sending once.
    pub after_interruption: AfterInterruption,
    /// Largest file that is downloaded, in bytes.
    pub most_file_bytes: u64,
    /// What is sent when a reply comes too late to be delivered.
    pub template: Option<WhatsAppTemplate>,
}

/// A message that WhatsApp delivers at any time, because it has approved it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhatsAppTemplate {
    /// Its name in the WhatsApp Manager.
    pub name: String,
    /// Its language, such as `en_US`.
    pub language: String,
}

/// The numbers of one app, to which what Meta posts is handed.
#[derive(Debug, Clone, Default)]
pub struct WhatsAppApp {
    numbers: Arc<Mutex<HashMap<String, mpsc::Sender<PostedMessages>>>>,
}

impl WhatsAppApp {
    fn numbers(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<PostedMessages>>> {
        self.numbers.lock()
    }
}

/// A phone number.
pub struct WhatsApp {
    options: WhatsAppOptions,
    app: WhatsAppApp,
    api: Api,
    account: Account,
    /// What was posted, for [`Channel::run`].
    jobs: tokio::sync::Mutex<mpsc::Receiver<PostedMessages>>,
    /// Places for messages with files.
    with_files: Semaphore,
    memory: Mutex<Memory>,
    /// Fires when Meta says what became of a message.
    heard: Notify,
}

impl WhatsApp {
    /// Sets up a number of `app`. Nothing is sent yet.
    ///
    /// # Errors
    /// The HTTP client cannot be set up; the text says why.
    pub fn new(options: WhatsAppOptions, app: &WhatsAppApp) -> Result<Self, String> {
        let WhatsAppOptions { base_url, version, phone_number_id, token, .. } = &options;
        let api = Api::new(base_url, version, phone_number_id, token.clone())?;
        let (sender, jobs) = mpsc::channel(MOST_JOBS);
        app.numbers().insert(options.phone_number_id.clone(), sender);
        Ok(Self {
            app: app.clone(),
            api,
            account: Account::new(WHATSAPP, &options.account),
            options,
            jobs: tokio::sync::Mutex::new(jobs),
            with_files: Semaphore::new(MOST_WITH_FILES),
            memory: Mutex::default(),
            heard: Notify::new(),
        })
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock()
    }
}

/// Whether the token is not valid, or may not do this: codes 0, 190, 10, 200 to 299, and 33 for a number that is not its
/// own.
fn is_wrong_token(error: &ApiError) -> bool {
    let ApiError::Refused(refused) = error else { return false };
    refused.status == 401 || matches!(refused.code, 190 | 10 | 33 | 200..=299)
}

const WRONG_TOKEN: &str = "WhatsApp does not accept the access token for this phoneNumberId; make a permanent token of a \
                           system user with the permission whatsapp_business_messaging, and put it into accessToken";

impl Channel for WhatsApp {
    channel_shell! { hook: [admit_hook, receive_hook], send: send_part, live: here }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            after_interruption: self.options.after_interruption,
            most_file_bytes: Some(MOST_SENT_BYTES),
            actions: &[Action::React],
        }
    }

    fn split(&self, text: &str) -> Vec<String> {
        let fits =
            |part: &str| utf16_units(&marked(part, FENCES)) <= MOST_UNITS - send::REPEAT.len();
        crate::split::split_rendered(text, MOST_UNITS - send::REPEAT.len(), utf16_units, &fits)
    }

    fn run(self: Arc<Self>, intake: Arc<dyn Intake>) -> BoxFuture<'static, ()> {
        Box::pin(self.take_jobs(intake))
    }

    fn change<'a>(
        &'a self,
        change: Change,
        part: &'a Part,
        message: &'a str,
    ) -> BoxFuture<'a, Result<(), SendFailure>> {
        Box::pin(async move {
            match change {
                Change::React => self.set_reaction(part, message).await,
                Change::Edit | Change::Unsend => Err(SendFailure::unsupported()),
            }
        })
    }

    fn probe(&self) -> BoxFuture<'_, Result<String, ProbeFailure>> {
        Box::pin(async {
            match self.api.number().await {
                Ok(number) => {
                    let name = number.verified_name.unwrap_or_default();
                    Ok(format!("{} {name}", number.display_phone_number).trim().to_owned())
                }
                Err(error) if is_wrong_token(&error) => {
                    Err(ProbeFailure(format!("{WRONG_TOKEN} ({error})")))
                }
                Err(error) => {
                    Err(ProbeFailure(format!("{error}; check the network, baseUrl and apiVersion")))
                }
            }
        })
    }

    /// As on <https://faq.whatsapp.com/5913398998672934>.
    fn address(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async {
            let number = self.api.number().await.ok()?.display_phone_number;
            let digits: String = number.chars().filter(char::is_ascii_digit).collect();
            (!digits.is_empty()).then(|| format!("https://wa.me/{digits}"))
        })
    }
}
