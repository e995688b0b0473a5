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
use crate::args::{ChannelKind, OnboardArgs};
use crate::exit::CliError;
use crate::home::find_home;
use crate::runtime;

/// Largest `.env` file that is changed.
const MAX_BYTES: u64 = 1024 * 1024;
/// Name of the only webhook.
const WEBHOOK: &str = "mine";

/// What a kind of channel needs.
struct Needs {
    /// The key of its secret, and the usual variable for it.
    secret: Option<(&'static str, &'static str)>,
    /// How to get the secret.
    whence: &'static str,
    /// The key of an address, and what it is; required unless it is Telegram's.
    url: Option<(&'static str, &'static str)>,
}

/// What a kind of channel needs; `None` if it is more than a secret and an address.
fn needs(kind: ChannelKind) -> Needs {
    match kind {
        ChannelKind::Telegram => Needs {
            secret: Some(("botToken", "TELEGRAM_BOT_TOKEN")),
            whence: "Talk with @BotFather on Telegram to make a bot; it gives you a token.",
            url: Some(("baseUrl", "")),
        },
        ChannelKind::Matrix => Needs {
            secret: Some(("accessToken", "MATRIX_ACCESS_TOKEN")),
            whence: "Make an account for the agent, and log in with it once; docs/matrix.md has the command.",
            url: Some(("homeserverUrl", "the homeserver, such as https://matrix.example.org")),
        },
        ChannelKind::Webhook => Needs {
            secret: Some(("secret", "WEBHOOK_SECRET")),
            whence: "It is a random secret, such as the output of `openssl rand -hex 32`.",
            url: Some(("url", "where answers are posted, such as http://127.0.0.1:8080/answers")),
        },
        // The others need more than one answer; see `set_up`.
        ChannelKind::Socket
        | ChannelKind::Email
        | ChannelKind::Irc
        | ChannelKind::WhatsApp
        | ChannelKind::Signal => Needs { secret: None, whence: "", url: None },
    }
}

/// Adds the channel that the options or the answers name.
pub(super) fn set_up(args: &OnboardArgs, asker: &Asker) -> Result<(), CliError> {
    let kind = match args.channel {
        Some(kind) => kind,
        None => {
            let question = "A channel to reach it (telegram, matrix, webhook, socket), or none";
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
    if matches!(
        kind,
        ChannelKind::Email | ChannelKind::Irc | ChannelKind::WhatsApp | ChannelKind::Signal
    ) {
        return Err(CliError::usage(format!(
            "{name} is not set up here: follow docs/{name}.md, which ends with `myclaw channels add {name}`"
        )));
    }
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
    let mut value = json!({});
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
    let token = match needs.secret {
        Some((key, usual)) => {
            let variable = args.channel_token_env.as_deref().unwrap_or(usual).to_owned();
            let typed = typed_token(&home, asker, &variable, needs.whence)?;
            value[key] = json!(format!("${{{variable}}}"));
            typed.map(|typed| (key, variable, typed))
        }
        None => None,
    };
    let probed = {
        let mut tried = value.clone();
        if let Some((key, _, typed)) = &token {
            tried[*key] = json!(typed.expose_secret());
        }
        probe(&home, &file, &path, tried)?
    };
    keep(&home, &file, path, value, token.map(|(_, variable, typed)| (variable, typed)))?;
    say(format_args!("channel     {name}: {probed}"));
    Ok(())
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

/// Writes the variable, then the config. If the config is not written, the variable goes away again.
fn keep(
    home: &Home,
    file: &ConfigFile,
    path: ConfigPath,
    value: Value,
    token: Option<(String, SecretString)>,
) -> Result<(), CliError> {
    let place = home.paths.state_dir().join(".env");
    let before = match token {
        None => None,
        Some((variable, token)) => Some(add_variable(&place, &variable, &token)?),
    };
    // With the new variable.
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
