//! Mistakes in the channels whose accounts are phone numbers.

use std::collections::BTreeMap;

use secrecy::SecretString;

use super::{check_names, check_url, is_everybody};
use crate::config_path::ConfigPath;
use crate::locate::Target;
use crate::schema::{
    ChannelConfig, ChatId, ChatRules, DEFAULT_ACCOUNT, SignalConfig, WhatsAppConfig,
};
use crate::semantics::{Finding, finding};

impl ChannelConfig for WhatsAppConfig {
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

pub(super) fn check_people(
    people: &[ChatId],
    path: &ConfigPath,
    is_person: impl Fn(&str) -> bool,
    findings: &mut Vec<Finding>,
    help: impl Fn(&str) -> String,
) {
    let people = people.iter().enumerate().filter(|(_, person)| !is_everybody(person));
    for (index, person) in people {
        let name = match person {
            ChatId::Number(number) => number.to_string(),
            ChatId::Name(name) => name.trim().to_owned(),
        };
        if !is_person(&name) {
            let place = path.clone().key("allowFrom").index(index);
            findings.push(finding(place, "nobody has such an id in this channel", help(&name)));
        }
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
