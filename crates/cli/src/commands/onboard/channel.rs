//! One channel: its token, tried with the vendor before anything is written.

use std::io::Write as _;
use std::path::Path;

use clap::ValueEnum as _;
use myclaw_agent::config::{ConfigChange, ConfigFile, ConfigPath, ExposeSecret as _, SecretString};
use myclaw_agent::files::{Durability, NewFile, create_private_directory, read_regular};
use myclaw_agent::{AgentError, Home};
use myclaw_gateway::channels_of;
use serde_json::{Value, json};

use super::asking::Asker;
use super::{say, write};
use crate::args::{ChannelKind, DISCORD_BOT, OnboardArgs, SLACK_APP, SLACK_BOT};
use crate::exit::CliError;
use crate::home::find_home;
use crate::runtime;

/// Largest `.env` file that is changed.
const MAX_BYTES: u64 = 1024 * 1024;
/// Name of the only webhook.
const WEBHOOK: &str = "mine";

/// What a kind of channel needs.
#[derive(Default)]
struct Needs {
    /// Values that no vendor knows: a key, with a dot before one within it, and what is asked.
    fields: &'static [(&'static str, &'static str)],
    secrets: Vec<Secret>,
    /// The key of an address, and what it is; required unless the vendor's own is meant.
    url: Option<(&'static str, &'static str)>,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Any,
}

/// A secret of a channel.
struct Secret {
    key: &'static str,
    /// The usual variable for it.
    usual: &'static str,
    /// How to get it.
    whence: &'static str,
}

/// The first secret is the one that `--channel-token-env` is about.
#[expect(clippy::too_many_lines, reason = "one entry for each channel")]
fn needs(kind: ChannelKind) -> Needs {
    let secret = |key, usual, whence| Secret { key, usual, whence };
    match kind {
        ChannelKind::Telegram => Needs {
            secrets: vec![secret(
                "botToken",
                "TELEGRAM_BOT_TOKEN",
                "Talk with @BotFather on Telegram to make a bot; it gives you a token.",
            )],
            url: Some(("baseUrl", "")),
            ..Needs::default()
        },
        ChannelKind::Matrix => Needs {
            secrets: vec![secret(
                "accessToken",
                "MATRIX_ACCESS_TOKEN",
                "Make an account for the agent, and log in with it once; docs/matrix.md has the command.",
            )],
            url: Some(("homeserverUrl", "the homeserver, such as https://matrix.example.org")),
            ..Needs::default()
        },
        ChannelKind::Slack => Needs {
            secrets: vec![
                secret("botToken", "SLACK_BOT_TOKEN", SLACK_BOT),
                secret("appToken", "SLACK_APP_TOKEN", SLACK_APP),
            ],
            url: Some(("baseUrl", "")),
            ..Needs::default()
        },
        ChannelKind::Discord => Needs {
            secrets: vec![secret("botToken", "DISCORD_BOT_TOKEN", DISCORD_BOT)],
            url: Some(("baseUrl", "")),
            ..Needs::default()
        },
        ChannelKind::Webhook => Needs {
            secrets: vec![secret(
                "secret",
                "WEBHOOK_SECRET",
                "It is a random secret, such as the output of `openssl rand -hex 32`.",
            )],
            url: Some(("url", "where answers are posted, such as http://127.0.0.1:8080/answers")),
            ..Needs::default()
        },
        ChannelKind::Email => Needs {
            fields: &[
                ("address", "The account's own address, such as claw@example.org"),
                ("imap.host", "The server where mails are read, such as imap.example.org"),
                ("smtp.host", "The server where mails are sent, such as smtp.example.org"),
                (
                    "authservId",
                    "The first word of the field Authentication-Results in the mails that it receives (docs/email.md)",
                ),
            ],
            secrets: vec![secret(
                "password",
                "EMAIL_PASSWORD",
                "It is the password of the account; many providers want one for this program alone.",
            )],
            url: None,
        },
        ChannelKind::Irc => Needs {
            fields: &[("host", "The server, such as irc.example.org"), ("nick", "The nickname")],
            ..Needs::default()
        },
        ChannelKind::Xmpp => Needs {
            fields: &[("address", "The account's own address, such as claw@example.org")],
            secrets: vec![secret(
                "password",
                "XMPP_PASSWORD",
                "It is the password of the account.",
            )],
            url: None,
        },
        ChannelKind::WhatsApp => Needs {
            fields: &[(
                "phoneNumberId",
                "The id of the phone number, from the page API Setup of the app",
            )],
            secrets: vec![
                secret(
                    "accessToken",
                    "WHATSAPP_ACCESS_TOKEN",
                    "It is the permanent token of a system user; docs/whatsapp.md says how to get it.",
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
            url: Some(("baseUrl", "")),
        },
        ChannelKind::Signal => Needs {
            fields: &[("account", "The phone number, such as +4915112345678")],
            url: Some(("baseUrl", "")),
            ..Needs::default()
        },
        ChannelKind::Socket => Needs::default(),
    }
}

/// Adds the channel that the options or the answers name.
pub(super) fn set_up(args: &OnboardArgs, asker: &Asker) -> Result<(), CliError> {
    let kind = match args.channel {
        Some(kind) => kind,
        None => {
            let question = "A channel to reach it (telegram, matrix, email, slack, discord, whatsapp, signal, irc, xmpp, webhook, socket), or none";
            let answer = asker.ask(question, "none")?;
            if answer == "none" {
                return Ok(());
            }
            ChannelKind::from_str(&answer, true)
                .map_err(|_| CliError::usage(format!("there is no channel `{answer}`")))?
        }
    };
    let needs = needs(kind);
    let name = kind.to_possible_value().map(|value| value.get_name().to_owned());
    let name = name.unwrap_or_default();
    let home = find_home()?;
    let file = ConfigFile::read(&home.paths).map_err(AgentError::from)?;
    let mut path = ConfigPath::default().key("channels").key(&name);
    if kind == ChannelKind::Webhook {
        path = path.key(WEBHOOK);
    }
    if file.has(&path).map_err(AgentError::from)? {
        say(format_args!("channel     {name} is in the config already, and stays as it is"));
        return Ok(());
    }
    if needs.url.is_none() && args.channel_url.is_some() {
        return Err(CliError::usage(format!(
            "--channel-url has no meaning for {name}; use --channel-set"
        )));
    }
    let mut value = fields(args, asker, needs.fields)?;
    if let Some((key, what)) = needs.url {
        let url = match &args.channel_url {
            Some(url) => url.clone(),
            None if what.is_empty() => String::new(),
            None => asker.ask(&format!("Address: {what}"), "")?,
        };
        if url.is_empty() && !what.is_empty() {
            return Err(CliError::usage(format!("--channel-url is missing: {what}")));
        }
        if !url.is_empty() {
            value[key] = json!(url);
        }
    }
    let mut typed: Vec<(&str, String, SecretString)> = Vec::new();
    for (number, Secret { key, usual, whence }) in needs.secrets.iter().enumerate() {
        let named = args.channel_token_env.as_deref().filter(|_| number == 0);
        let variable = named.unwrap_or(usual).to_owned();
        value[*key] = json!(format!("${{{variable}}}"));
        if let Some(token) = typed_token(&home, asker, &variable, whence)? {
            typed.push((*key, variable, token));
        }
    }
    let probed = {
        let mut tried = value.clone();
        for (key, _, token) in &typed {
            tried[*key] = json!(token.expose_secret());
        }
        probe(&home, &file, &path, tried)?
    };
    let typed = typed.into_iter().map(|(_, variable, token)| (variable, token)).collect();
    keep(&home, &file, path, value, typed)?;
    say(format_args!("channel     {name}: {probed}"));
    Ok(())
}

/// The values that are no secrets: what the options say, else what is answered.
fn fields(
    args: &OnboardArgs,
    asker: &Asker,
    wanted: &[(&'static str, &'static str)],
) -> Result<Value, CliError> {
    let mut value = json!({});
    // What is asked for is text, such as the id of a number. Other numbers, `true` and `false` are what they look like.
    let form = |key: &str| match wanted.iter().any(|(name, _)| *name == key) {
        true => Form::Text,
        false => Form::Any,
    };
    let mut set = |key: &str, text: &str, form: Form| {
        let read = serde_json::from_str(text).ok().filter(|_| form == Form::Any);
        let read = read.filter(|read: &Value| read.is_number() || read.is_boolean());
        let read = read.unwrap_or_else(|| json!(text));
        match key.split_once('.') {
            Some((outer, inner)) if value[outer].is_object() => value[outer][inner] = read,
            Some((outer, inner)) => value[outer] = json!({inner: read}),
            None => value[key] = read,
        }
    };
    for given in &args.channel_set {
        match given.split_once('=') {
            Some((key, text)) if !key.is_empty() => set(key, text, form(key)),
            _ => {
                return Err(CliError::usage(format!(
                    "--channel-set needs KEY=VALUE, not `{given}`"
                )));
            }
        }
    }
    let is_given = |key: &str| {
        args.channel_set
            .iter()
            .any(|given| given.split_once('=').is_some_and(|(name, _)| name == key))
    };
    for (key, question) in wanted.iter().filter(|(key, _)| !is_given(key)) {
        let answer = asker.ask(question, "")?;
        if answer.is_empty() {
            return Err(CliError::usage(format!("--channel-set {key}=… is missing: {question}")));
        }
        set(key, &answer, Form::Text);
    }
    Ok(value)
}

/// A token that is in no variable yet.
fn typed_token(
    home: &Home,
    asker: &Asker,
    variable: &str,
    whence: &str,
) -> Result<Option<SecretString>, CliError> {
    if home.environment.get(variable).is_some_and(|text| !text.trim().is_empty()) {
        return Ok(None);
    }
    if asker.is_quiet() {
        let place = home.paths.state_dir().join(".env");
        return Err(CliError::usage(format!(
            "the variable {variable} is not set. {whence} Put it into {}, or into the environment, and run this again",
            place.display()
        )));
    }
    say(whence);
    asker.secret(&format!("{variable} (not shown)")).map(Some)
}

/// Asks the vendor whether it knows the account. Nothing is written.
fn probe(
    home: &Home,
    file: &ConfigFile,
    path: &ConfigPath,
    value: Value,
) -> Result<String, CliError> {
    let change = ConfigChange::Set { path: path.clone(), value };
    let changed = file.with(&[change]).map_err(|error| CliError::usage(error.to_string()))?;
    let config = changed.load(&home.environment).map_err(AgentError::from)?.config;
    let before: Vec<String> = match file.load(&home.environment) {
        Ok(loaded) => channels_of(home, &loaded.config).iter().map(name_of).collect(),
        Err(_) => Vec::new(),
    };
    let setups = channels_of(home, &config);
    let Some(setup) = setups.iter().find(|setup| !before.contains(&name_of(setup))) else {
        return Ok("added".to_owned());
    };
    let refused = |why: String| {
        let message = format!("{} cannot be used: {why}. Nothing was written", setup.channel);
        CliError::failure_of_class("channel", message)
    };
    match &setup.made {
        Ok(channel) => {
            runtime::block_on(channel.probe())?.map_err(|failure| refused(failure.to_string()))
        }
        Err(reason) => Err(refused(reason.clone())),
    }
}

fn name_of(setup: &myclaw_gateway::ChannelSetup) -> String {
    format!("{} {}", setup.channel, setup.account)
}

/// Writes the variables, then the config. If the config is not written, the variables go away again.
fn keep(
    home: &Home,
    file: &ConfigFile,
    path: ConfigPath,
    value: Value,
    tokens: Vec<(String, SecretString)>,
) -> Result<(), CliError> {
    let place = home.paths.state_dir().join(".env");
    let mut before = None;
    for (variable, token) in tokens {
        let held = add_variable(&place, &variable, &token)?;
        before.get_or_insert(held);
    }
    // With the new variables.
    let written =
        find_home().and_then(|home| write(&home, file, &[ConfigChange::Set { path, value }]));
    if let (Err(_), Some(before)) = (&written, before) {
        replace(&place, &before)?;
    }
    written
}

/// Adds a line to the `.env` file; returns what it held before.
fn add_variable(place: &Path, variable: &str, token: &SecretString) -> Result<Vec<u8>, CliError> {
    let before = match read_regular(place, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(unwritable(place, &error)),
    };
    let mut text = before.clone();
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    text.extend(format!("{variable}={}\n", token.expose_secret()).into_bytes());
    replace(place, &text)?;
    Ok(before)
}

fn replace(place: &Path, text: &[u8]) -> Result<(), CliError> {
    let directory = place.parent().unwrap_or(Path::new("/"));
    let written = create_private_directory(directory).and_then(|_| {
        let mut file = NewFile::in_directory(directory, ".env.")?;
        file.write_all(text)?;
        file.put_at(place, Durability::Synced)
    });
    written.map(drop).map_err(|error| unwritable(place, &error))
}

fn unwritable(place: &Path, error: &std::io::Error) -> CliError {
    CliError::failure(format!("cannot write {}: {error}", place.display()))
}
