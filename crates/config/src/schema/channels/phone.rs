//! Channels whose accounts are phone numbers: WhatsApp and Signal.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::super::policy::ToolRules;
use super::super::values::{self, BaseUrl, ChatId, NonBlankText};
use super::{
    ChatRules, DEFAULT_ACCOUNT, DmPolicy, GroupConfig, GroupPolicy, UncertainDelivery,
    default_dm_history_limit, default_history_limit,
};

/// Largest file on WhatsApp, and on Signal.
const MAX_MEDIA_MB: u64 = 100;

plain_chat_channel! {
    /// Phone numbers on WhatsApp, through the Cloud API of Meta.
    WhatsAppConfig {
        /// The id of the number, which is not the number itself.
        #[serde(deserialize_with = "values::non_blank")]
        #[schemars(with = "NonBlankText")]
        pub phone_number_id: String,
        /// The access token. Preferably a reference such as `"${WHATSAPP_ACCESS_TOKEN}"`.
        #[serde(with = "values::secret")]
        #[schemars(with = "values::SecretText")]
        pub access_token: SecretString,
        /// The secret of the app, which signs what Meta posts. Preferably a reference such as
        /// `"${WHATSAPP_APP_SECRET}"`.
        #[serde(with = "values::secret")]
        #[schemars(with = "values::SecretText")]
        pub app_secret: SecretString,
        /// A random text that you enter at Meta together with the address of the gateway. Preferably a reference such as
        /// `"${WHATSAPP_VERIFY_TOKEN}"`.
        #[serde(with = "values::secret")]
        #[schemars(with = "values::SecretText")]
        pub verify_token: SecretString,
        /// Address of the Graph API, if it is not the public one.
        #[serde(
            default,
            deserialize_with = "values::optional_url",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(with = "Option<BaseUrl>")]
        pub base_url: Option<String>,
        /// Version of the API, such as `v26.0`. Default: the one that this program was written for.
        #[serde(
            default,
            deserialize_with = "values::optional_non_blank",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(with = "Option<NonBlankText>")]
        pub api_version: Option<String>,
        /// What happens to a message of which nobody knows whether it was delivered.
        #[serde(default)]
        pub uncertain: UncertainDelivery,
        /// Megabytes of the largest file that is downloaded; at most 100.
        #[serde(
            default = "default_whatsapp_media_mb",
            deserialize_with = "values::within::<_, _, 1, MAX_MEDIA_MB>"
        )]
        #[schemars(range(min = 1, max = MAX_MEDIA_MB))]
        pub media_max_mb: u64,
        /// A template that is sent, once, when a reply comes more than 24 hours after the person's last message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub template: Option<WhatsAppTemplate>,
        /// Further numbers of the same app, by the name of the account. The other keys of `channels.whatsapp` hold for them
        /// as well.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub accounts: BTreeMap<String, WhatsAppAccount>,
    }
}

/// A further number.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WhatsAppAccount {
    /// The id of the number.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub phone_number_id: String,
}

/// A message that WhatsApp has approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WhatsAppTemplate {
    /// Its name in the WhatsApp Manager. It must have no variables.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub name: String,
    /// Its language, such as `en_US`.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub language: String,
}

/// An account of [`WhatsAppConfig`].
#[derive(Debug, Clone, Copy)]
pub struct WhatsAppNumber<'a> {
    /// The account's name.
    pub account: &'a str,
    /// The id of the number.
    pub phone_number_id: &'a str,
}

impl WhatsAppConfig {
    /// All numbers, that without a name of its own first.
    pub fn numbers(&self) -> impl Iterator<Item = WhatsAppNumber<'_>> {
        let first =
            WhatsAppNumber { account: DEFAULT_ACCOUNT, phone_number_id: &self.phone_number_id };
        let others = self.accounts.iter().map(|(account, number)| WhatsAppNumber {
            account,
            phone_number_id: &number.phone_number_id,
        });
        std::iter::once(first).chain(others)
    }
}

plain_chat_channel! {
    /// An account on Signal, through the daemon of signal-cli.
    SignalConfig {
        /// The phone number of the account, such as `+4915112345678`.
        #[serde(deserialize_with = "values::non_blank")]
        #[schemars(with = "NonBlankText")]
        pub account: String,
        /// Address of the daemon. Default: `http://127.0.0.1:8080`, where `signal-cli daemon --http` listens.
        #[serde(
            default,
            deserialize_with = "values::optional_url",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(with = "Option<BaseUrl>")]
        pub base_url: Option<String>,
        /// What happens to a message of which nobody knows whether it was delivered.
        #[serde(default)]
        pub uncertain: UncertainDelivery,
        /// Megabytes of the largest file in both directions; at most 100.
        #[serde(
            default = "default_signal_media_mb",
            deserialize_with = "values::within::<_, _, 1, MAX_MEDIA_MB>"
        )]
        #[schemars(range(min = 1, max = MAX_MEDIA_MB))]
        pub media_max_mb: u64,
    }
}

/// The largest file that people can send, except for documents.
fn default_whatsapp_media_mb() -> u64 {
    16
}

/// Files travel in base64 within JSON, and are in memory several times.
fn default_signal_media_mb() -> u64 {
    25
}
