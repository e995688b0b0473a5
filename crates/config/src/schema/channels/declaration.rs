//! What the program knows of a channel before anybody has set it up.

use serde_json::Value;

use super::DEFAULT_ACCOUNT;
use crate::config_path::ConfigPath;

/// A channel: what it is, and what it needs.
#[derive(Debug, Clone, Copy)]
pub struct ChannelDeclaration {
    /// What it is, for people.
    pub about: &'static str,
    /// What follows its name in an example of `channels add`.
    pub example: &'static str,
    /// Who writes there.
    pub people: ChannelPeople,
    /// Whether it can have several accounts.
    pub accounts: ChannelAccounts,
    /// The values that are asked for.
    pub fields: &'static [ChannelField],
    /// The secrets that are asked for. The first is the one whose variable an option can name.
    pub secrets: &'static [ChannelSecret],
}

/// Who writes in a channel.
#[derive(Debug, Clone, Copy)]
pub enum ChannelPeople {
    /// Programs, which are the owner's.
    None,
    /// People who write letters.
    Letters,
    /// People who chat.
    Chats {
        /// What proves there who somebody is, for people.
        proof: &'static str,
        /// Whether an id of a person is such a proof.
        is_proof: fn(&str) -> bool,
    },
}

/// Whether a channel can have several accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelAccounts {
    /// It has one.
    One,
    /// Further ones are in `accounts`, by name, each with secrets of its own.
    Further,
    /// Likewise, with the secrets of the first.
    FurtherOfOneApp,
    /// Each has a name, and there is none without.
    Named,
}

/// A value that is no secret.
#[derive(Debug, Clone, Copy)]
pub struct ChannelField {
    /// Its key in the config, with a dot before one within it.
    pub key: &'static str,
    /// The option of `channels add` that gives it.
    pub given: ChannelOption,
    /// What it is, for people; `None` if the channel works without it.
    pub what: Option<&'static str>,
    /// Whether a phone that is linked gives it too.
    pub is_linked: bool,
    /// Whether it is text, whatever it looks like. Others may be a number, `true` or `false`.
    pub is_text: bool,
}

impl ChannelField {
    /// The value that a text stands for.
    pub fn value(&self, text: &str) -> Value {
        if self.is_text { Value::from(text) } else { plain_value(text) }
    }
}

/// A number, `true` or `false` if a text looks like one, else the text.
pub fn plain_value(text: &str) -> Value {
    let read = serde_json::from_str(text).ok();
    let read = read.filter(|read: &Value| read.is_number() || read.is_boolean());
    read.unwrap_or_else(|| Value::from(text))
}

/// A secret.
#[derive(Debug, Clone, Copy)]
pub struct ChannelSecret {
    /// Its key in the config.
    pub key: &'static str,
    /// The usual variable for it.
    pub usual: &'static str,
    /// How to get it.
    pub whence: &'static str,
}

impl ChannelDeclaration {
    /// Where an account of the channel `name` is in the config.
    pub fn place(&self, name: &str, account: &str) -> ConfigPath {
        let path = ConfigPath::default().key("channels").key(name);
        match account {
            account if self.accounts == ChannelAccounts::Named => path.key(account),
            DEFAULT_ACCOUNT => path,
            account => path.key("accounts").key(account),
        }
    }

    /// The secrets of an account. A further account of one app has those of the first.
    pub fn secrets_of(&self, account: &str) -> &'static [ChannelSecret] {
        match self.accounts {
            ChannelAccounts::FurtherOfOneApp if account != DEFAULT_ACCOUNT => &[],
            _ => self.secrets,
        }
    }

    /// Whether the config of an account says who may write.
    pub fn takes_people(&self, account: &str) -> bool {
        !matches!(self.people, ChannelPeople::None) && account == DEFAULT_ACCOUNT
    }
}

impl ChannelSecret {
    /// The variable for it, which is another one for each account.
    pub fn variable(&self, account: &str) -> String {
        let part = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        match account {
            DEFAULT_ACCOUNT => self.usual.to_owned(),
            account => {
                format!("{}_{}", self.usual, account.chars().map(part).collect::<String>())
            }
        }
    }
}

/// The option of `channels add` that gives a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the options")]
pub enum ChannelOption {
    Url,
    Address,
    Imap,
    Smtp,
    AuthservId,
    Id,
    Host,
    Nick,
    /// None: it is for servers that are not as usual, and stands in the config and on the page.
    None,
}

/// The account's own address.
pub(super) const ADDRESS: ChannelField =
    field("address", ChannelOption::Address, "the account's own address, such as claw@example.org");
/// The vendor's own unless it is given.
pub(super) const BASE_URL: ChannelField = optional("baseUrl", ChannelOption::Url);

pub(super) const fn field(
    key: &'static str,
    given: ChannelOption,
    what: &'static str,
) -> ChannelField {
    ChannelField { key, given, what: Some(what), is_linked: false, is_text: true }
}

pub(super) const fn linked(
    key: &'static str,
    given: ChannelOption,
    what: &'static str,
) -> ChannelField {
    ChannelField { is_linked: true, ..field(key, given, what) }
}

pub(super) const fn optional(key: &'static str, given: ChannelOption) -> ChannelField {
    ChannelField { key, given, what: None, is_linked: false, is_text: true }
}

pub(super) const fn secret(
    key: &'static str,
    usual: &'static str,
    whence: &'static str,
) -> ChannelSecret {
    ChannelSecret { key, usual, whence }
}

/// People whose ids are proof enough as the channel gives them.
pub(super) const fn chats(proof: &'static str) -> ChannelPeople {
    ChannelPeople::Chats { proof, is_proof: |_| true }
}

/// People whose ids are numbers. Names change hands, and a group has many administrators without a name.
pub(super) const fn numbered(proof: &'static str) -> ChannelPeople {
    ChannelPeople::Chats { proof, is_proof: |id| id.bytes().all(|byte| byte.is_ascii_digit()) }
}

/// How a server is reached that is not as usual.
pub(super) const fn unusual(key: &'static str) -> ChannelField {
    ChannelField { is_text: false, ..optional(key, ChannelOption::None) }
}
