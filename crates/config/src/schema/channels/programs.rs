//! Channels of programs: signed webhooks, and a socket.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::super::values::{self, BaseUrl, NonBlankText};
use super::ChannelConfig;
use super::checks::{check_names, check_url};
use super::declaration::{
    ChannelAccounts, ChannelDeclaration, ChannelOption, ChannelPeople, field, secret,
};
use crate::config_path::ConfigPath;
use crate::validate::{Finding, finding};

/// Shortest secret of a webhook, in bytes. Shorter ones can be guessed.
const MIN_SECRET: usize = 16;

/// A signed HTTP webhook.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebhookConfig {
    /// Signs requests in both directions. Preferably a reference such as `"${WEBHOOK_SECRET}"`; at least 16 characters.
    #[serde(with = "values::secret")]
    #[schemars(with = "values::SecretText")]
    pub secret: SecretString,
    /// Where answers are posted.
    #[serde(deserialize_with = "values::url")]
    #[schemars(with = "BaseUrl")]
    pub url: String,
}

impl ChannelConfig for BTreeMap<String, WebhookConfig> {
    fn declaration() -> ChannelDeclaration {
        const {
            ChannelDeclaration {
                about: "A signed HTTP webhook",
                example: "--account mine --url http://127.0.0.1:8080/answers",
                people: ChannelPeople::None,
                accounts: ChannelAccounts::Named,
                fields: &[field(
                    "url",
                    ChannelOption::Url,
                    "where answers are posted, such as http://127.0.0.1:8080/answers",
                )],
                secrets: &[secret(
                    "secret",
                    "WEBHOOK_SECRET",
                    "It is a random secret, such as the output of `openssl rand -hex 32`.",
                )],
            }
        }
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn secrets(&self) -> Vec<&SecretString> {
        self.values().map(|webhook| &webhook.secret).collect()
    }

    fn accounts(&self) -> Vec<&str> {
        self.keys().map(String::as_str).collect()
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        check_names(self.keys(), path, findings);
        for (name, webhook) in self {
            let path = path.clone().key(name);
            check_url(Some(&webhook.url), path.clone().key("url"), findings);
            if webhook.secret.expose_secret().len() < MIN_SECRET {
                findings.push(finding(
                    path.key("secret"),
                    format!("the secret has fewer than {MIN_SECRET} bytes, so it can be guessed"),
                    "use a longer one, such as the output of `openssl rand -hex 32`",
                ));
            }
        }
    }
}

/// A Unix socket for scripts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SocketConfig {
    /// Where it is. May begin with `~`; a relative path starts at the directory of this file. Default:
    /// `gateway/socket` in the state directory.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub path: Option<String>,
}

impl ChannelConfig for SocketConfig {
    fn declaration() -> ChannelDeclaration {
        const {
            ChannelDeclaration {
                about: "A Unix socket",
                example: "--dry-run",
                people: ChannelPeople::None,
                accounts: ChannelAccounts::One,
                fields: &[],
                secrets: &[],
            }
        }
    }

    fn check(&self, _: &ConfigPath, _: &mut Vec<Finding>) {}
}
