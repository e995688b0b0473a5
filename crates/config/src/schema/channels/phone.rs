//! Channels whose accounts are phone numbers: WhatsApp and Signal.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::super::policy::ToolRules;
use super::super::values::{self, BaseUrl, ChatId, NonBlankText};
use super::checks::{check_names, check_people, check_url, is_digits};
use super::declaration::{
    BASE_URL, ChannelAccounts, ChannelDeclaration, ChannelOption, chats, field, linked, secret,
};
use super::{
    ChannelConfig, ChatRules, DEFAULT_ACCOUNT, DmPolicy, GroupConfig, GroupPolicy,
    UncertainDelivery, default_dm_history_limit, default_history_limit,
};
use crate::config_path::ConfigPath;
use crate::locate::Target;
use crate::validate::{Finding, finding};

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

impl ChannelConfig for WhatsAppConfig {
    fn declaration() -> ChannelDeclaration {
        const {
            ChannelDeclaration {
                about: "A phone number on WhatsApp",
                example: "--id 106540352242922 --allow-from 16505551234",
                people: chats("your phone number as the bot sees it at /status"),
                accounts: ChannelAccounts::FurtherOfOneApp,
                fields: &[
                    field(
                        "phoneNumberId",
                        ChannelOption::Id,
                        "the id of the phone number, from the page API Setup of the app",
                    ),
                    BASE_URL,
                ],
                secrets: &[
                    secret(
                        "accessToken",
                        "WHATSAPP_ACCESS_TOKEN",
                        "It is the permanent token of a system user; docs/channels/whatsapp.md says how to get it.",
                    ),
                    secret(
                        "appSecret",
                        "WHATSAPP_APP_SECRET",
                        "It is the app secret, in the basic settings of the app at developers.facebook.com.",
                    ),
                    secret(
                        "verifyToken",
                        "WHATSAPP_VERIFY_TOKEN",
                        "It is a random text, such as the output of `openssl rand -hex 32`, which you also enter at Meta.",
                    ),
                ],
            }
        }
    }

    fn accounts_if_absent() -> Vec<&'static str> {
        Vec::new()
    }

    fn rules(&self) -> Option<ChatRules<'_>> {
        Some(self.chat_rules())
    }

    fn secrets(&self) -> Vec<&SecretString> {
        vec![&self.access_token, &self.app_secret, &self.verify_token]
    }

    fn accounts(&self) -> Vec<&str> {
        self.numbers().map(|number| number.account).collect()
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        check_url(self.base_url.as_deref(), path.clone().key("baseUrl"), findings);
        let accounts = path.clone().key("accounts");
        check_names(self.accounts.keys(), &accounts, findings);
        if self.accounts.contains_key(DEFAULT_ACCOUNT) {
            findings.push(Finding {
                target: Target::Key,
                ..finding(
                    accounts.clone().key(DEFAULT_ACCOUNT),
                    "the account `default` is that of channels.whatsapp.phoneNumberId",
                    "choose another name",
                )
            });
        }
        let mut seen = BTreeMap::new();
        for number in self.numbers() {
            let place = match number.account {
                DEFAULT_ACCOUNT => path.clone(),
                name => accounts.clone().key(name),
            };
            let place = place.key("phoneNumberId");
            if !is_digits(number.phone_number_id) {
                let help = "it is shown beside the number in the app's page `API Setup` at developers.facebook.com";
                findings.push(finding(
                    place,
                    "expected the id of a phone number, which is digits",
                    help,
                ));
            } else if let Some(other) = seen.insert(number.phone_number_id, number.account) {
                let message = format!("the account `{other}` has the same number");
                findings.push(finding(place, message, "name each number once"));
            }
        }
        let is_version = |version: &str| {
            let numbers = version.strip_prefix('v').and_then(|rest| rest.split_once('.'));
            numbers.is_some_and(|(major, minor)| is_digits(major) && is_digits(minor))
        };
        if self.api_version.as_deref().is_some_and(|version| !is_version(version)) {
            let message = "expected a version of the Graph API";
            findings.push(finding(path.clone().key("apiVersion"), message, "such as \"v26.0\""));
        }
        // A person who hides the number has an id with a country, a dot and more.
        let is_person = |name: &str| is_digits(name) || name.contains('.') || name.starts_with('@');
        check_people(&self.allow_from, path, is_person, findings, |name| {
            let digits: String = name.chars().filter(char::is_ascii_digit).collect();
            format!(
                "write the number with its country, without `+` and spaces, such as \"{digits}\""
            )
        });
    }
}

impl ChannelConfig for SignalConfig {
    fn declaration() -> ChannelDeclaration {
        const {
            ChannelDeclaration {
                about: "An account on Signal, through signal-cli",
                example: "--id +4915112345678 --allow-from +4915187654321",
                people: chats("such as \"signal:+491701234567\""),
                accounts: ChannelAccounts::One,
                fields: &[
                    linked(
                        "account",
                        ChannelOption::Id,
                        "the phone number, such as +4915112345678",
                    ),
                    BASE_URL,
                ],
                secrets: &[],
            }
        }
    }

    fn rules(&self) -> Option<ChatRules<'_>> {
        Some(self.chat_rules())
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        check_url(self.base_url.as_deref(), path.clone().key("baseUrl"), findings);
        let is_number = |name: &str| name.strip_prefix('+').is_some_and(is_digits);
        let is_id = |name: &str| name.len() == 36 && name.split('-').count() == 5;
        if !is_number(&self.account) && !is_id(&self.account) {
            findings.push(finding(
                path.clone().key("account"),
                "expected the phone number of the account, or its id",
                "write the number with its country, such as \"+4915112345678\"",
            ));
        }
        check_people(
            &self.allow_from,
            path,
            |name| is_number(name) || is_id(name),
            findings,
            |_| {
                "write the number with its country, such as \"+4915112345678\", or the id that `myclaw channels status` shows"
            .to_owned()
            },
        );
    }
}
