//! One channel: its token, tried with the vendor before anything is written.

use std::io::Write as _;
use std::path::Path;

use myclaw_agent::{AgentError, Home};
use myclaw_config::{
    ChannelAccounts, ChannelField, ChannelOption, ChannelSecret, ConfigChange, ConfigFile,
    ConfigPath, ExposeSecret as _, SecretString, is_secret_key,
};
use myclaw_files::{Durability, NewFile, create_private_directory, read_regular};
use myclaw_gateway::channels_of;
use serde_json::{Value, json};

use super::asking::{Asker, Default};
use super::{say, write};
use crate::args::{ChannelKind, OnboardArgs};
use crate::commands::auth::checked_key;
use crate::commands::channels::needs;
use myclaw_front::exit::{CliError, Exit};
use myclaw_front::home::find_home;
use myclaw_front::runtime;

/// Largest `.env` file that is changed.
const MAX_BYTES: u64 = 1024 * 1024;
/// Name of the only account, where each has one.
const ONLY: &str = "mine";

/// A secret that is in no variable yet.
struct NewSecret {
    key: String,
    variable: String,
    secret: SecretString,
}

/// What became of a channel.
enum Outcome {
    /// It is in the config now, or was before. The text says so.
    Kept(String),
    /// It cannot be used. Nothing was written.
    Refused(String),
}

/// Adds the channel that the options or the answers name. A person may try again, or go on without it.
pub(super) fn set_up(args: &OnboardArgs, asker: &Asker) -> Result<(), CliError> {
    loop {
        let Some(kind) = wanted(args, asker)? else { return Ok(()) };
        let name = kind.name;
        match add(kind, args, asker)? {
            Outcome::Kept(how) => {
                say(format_args!("channel     {name}{how}"));
                return Ok(());
            }
            Outcome::Refused(why) => {
                let message = format!("{name} cannot be used: {why}. Nothing was written");
                if asker.is_quiet() {
                    return Err(CliError::failure_of_class("channel", message));
                }
                say(format_args!("myclaw: {message}"));
                if !asker.confirm("Try the channel again?", Default::Yes)? {
                    return Ok(());
                }
            }
        }
    }
}

/// The kind of channel; `None` for none.
fn wanted(args: &OnboardArgs, asker: &Asker) -> Result<Option<ChannelKind>, CliError> {
    if args.channel.is_some() {
        return Ok(args.channel);
    }
    loop {
        let names: Vec<&str> = ChannelKind::all().map(|kind| kind.name).collect();
        let question = format!("A channel to reach it ({}), or none", names.join(", "));
        let answer = asker.ask(&question, "none")?;
        if answer == "none" {
            return Ok(None);
        }
        match ChannelKind::named(&answer) {
            Some(kind) => return Ok(Some(kind)),
            None => say(format_args!("myclaw: there is no channel `{answer}`")),
        }
    }
}

fn add(kind: ChannelKind, args: &OnboardArgs, asker: &Asker) -> Result<Outcome, CliError> {
    let ChannelKind { name, declaration } = kind;
    let home = find_home()?;
    let file = ConfigFile::read(&home.paths).map_err(AgentError::from)?;
    let mut path = ConfigPath::default().key("channels").key(name);
    if declaration.accounts == ChannelAccounts::Named {
        path = path.key(ONLY);
    }
    if file.has(&path).map_err(AgentError::from)? {
        return Ok(Outcome::Kept(" is in the config already, and stays as it is".to_owned()));
    }
    if args.channel_url.is_some()
        && !declaration.fields.iter().any(|field| field.given == ChannelOption::Url)
    {
        return Err(CliError::usage(format!(
            "--channel-url has no meaning for {name}; use --channel-set"
        )));
    }
    let mut value = json!({});
    let mut new = set_given(args, &home, kind, &mut value)?;
    for field in declaration.fields {
        if !is_set(&value, field.key) {
            set_asked(args, asker, field, &mut value)?;
        }
    }
    for (number, ChannelSecret { key, usual, whence }) in declaration.secrets.iter().enumerate() {
        if is_set(&value, key) {
            continue;
        }
        let named = args.channel_token_env.as_deref().filter(|_| number == 0);
        let variable = named.unwrap_or(usual).to_owned();
        needs::put(&mut value, key, json!(needs::reference(&variable)));
        if let Some(secret) = typed_token(&home, asker, &variable, whence)? {
            new.push(NewSecret { key: (*key).to_owned(), variable, secret });
        }
    }
    let mut tried = value.clone();
    for NewSecret { key, secret, .. } in &new {
        needs::put(&mut tried, key, json!(secret.expose_secret()));
    }
    let probed = match probe(&home, &file, &path, tried) {
        // The config takes no such value.
        Err(error) if error.exit == Exit::Config && !asker.is_quiet() => Err(error.message),
        probed => probed?,
    };
    match probed {
        Ok(found) => {
            keep(&home, &file, path, value, new)?;
            Ok(Outcome::Kept(format!(": {found}")))
        }
        Err(why) => Ok(Outcome::Refused(why)),
    }
}

fn is_set(value: &Value, key: &str) -> bool {
    value.pointer(&format!("/{}", key.replace('.', "/"))).is_some()
}

/// Sets what `--channel-set` says. Gives the secrets among it, in whose place stand references to variables.
fn set_given(
    args: &OnboardArgs,
    home: &Home,
    ChannelKind { name, declaration }: ChannelKind,
    value: &mut Value,
) -> Result<Vec<NewSecret>, CliError> {
    let mut new = Vec::new();
    for given in &args.channel_set {
        let Some((key, text)) = given.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            // What it holds may be a secret.
            return Err(CliError::usage("--channel-set needs KEY=VALUE, such as port=6697"));
        };
        let last = key.rsplit('.').next().unwrap_or(key);
        if is_secret_key(last) && !text.starts_with("${") {
            let usual = declaration.secrets.iter().find(|secret| secret.key == key);
            let variable = match usual {
                Some(secret) => secret.usual.to_owned(),
                None => variable_name(name, key),
            };
            if is_in(home, &variable) {
                return Err(CliError::usage(format!(
                    "the variable {variable} is set already; leave --channel-set {key}=… out to use it, or remove it"
                )));
            }
            needs::put(value, key, json!(needs::reference(&variable)));
            new.push(NewSecret { key: key.to_owned(), variable, secret: checked_key(text)? });
            continue;
        }
        // What a channel needs is text, such as the id of a number. Other numbers, `true` and `false` are what they
        // look like.
        let is_text = declaration.fields.iter().any(|field| field.key == key);
        let read = serde_json::from_str(text).ok().filter(|_| !is_text);
        let read = read.filter(|read: &Value| read.is_number() || read.is_boolean());
        needs::put(value, key, read.unwrap_or_else(|| json!(text)));
    }
    Ok(new)
}

/// A variable for the key of a channel that has no usual one, such as `IRC_SERVER_PASSWORD`.
fn variable_name(channel: &str, key: &str) -> String {
    let mut name = channel.to_uppercase();
    name.push('_');
    for c in key.chars() {
        if c.is_uppercase() {
            name.push('_');
        }
        name.push(if c.is_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    }
    name
}

/// Sets a value that is no secret: what `--channel-url` says, else what is answered.
fn set_asked(
    args: &OnboardArgs,
    asker: &Asker,
    field: &ChannelField,
    value: &mut Value,
) -> Result<(), CliError> {
    let given = args.channel_url.clone().filter(|_| field.given == ChannelOption::Url);
    let answer = match (given, field.what) {
        (Some(given), _) => given,
        (None, None) => return Ok(()),
        (None, Some(what)) => asker.ask(&format!("Give {what}"), "")?,
    };
    if answer.is_empty() {
        let option = match field.given {
            ChannelOption::Url => "--channel-url".to_owned(),
            _ => format!("--channel-set {}=…", field.key),
        };
        let what = field.what.unwrap_or("an address");
        return Err(CliError::usage(format!("{option} is missing: {what}")));
    }
    needs::put(value, field.key, json!(answer));
    Ok(())
}

fn is_in(home: &Home, variable: &str) -> bool {
    home.environment.get(variable).is_some_and(|text| !text.trim().is_empty())
}

/// A token that is in no variable yet.
fn typed_token(
    home: &Home,
    asker: &Asker,
    variable: &str,
    whence: &str,
) -> Result<Option<SecretString>, CliError> {
    if is_in(home, variable) {
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

/// Asks the vendor whether it knows the account; the inner error says why it cannot be used. Nothing is written.
fn probe(
    home: &Home,
    file: &ConfigFile,
    path: &ConfigPath,
    value: Value,
) -> Result<Result<String, String>, CliError> {
    let change = ConfigChange::Set { path: path.clone(), value };
    let changed = file.with(&[change]).map_err(|error| CliError::usage(error.to_string()))?;
    let config = changed.load(&home.environment).map_err(AgentError::from)?.config;
    let before: Vec<String> = match file.load(&home.environment) {
        Ok(loaded) => channels_of(home, &loaded.config).iter().map(name_of).collect(),
        Err(_) => Vec::new(),
    };
    let setups = channels_of(home, &config);
    let Some(setup) = setups.iter().find(|setup| !before.contains(&name_of(setup))) else {
        return Ok(Ok("added".to_owned()));
    };
    match &setup.made {
        Ok(channel) => {
            let probed = runtime::block_on(channel.probe())?;
            Ok(probed.map_err(|failure| failure.to_string()))
        }
        Err(reason) => Ok(Err(reason.clone())),
    }
}

fn name_of(setup: &myclaw_delivery::channels::ChannelSetup) -> String {
    format!("{} {}", setup.channel, setup.account)
}

/// Writes the variables, then the config. If the config is not written, the variables go away again.
fn keep(
    home: &Home,
    file: &ConfigFile,
    path: ConfigPath,
    value: Value,
    new: Vec<NewSecret>,
) -> Result<(), CliError> {
    let place = home.paths.state_dir().join(".env");
    let mut before = None;
    for NewSecret { variable, secret, .. } in new {
        let held = add_variable(&place, &variable, &secret)?;
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
    text.extend(format!("{variable}={}\n", quoted(token.expose_secret())).into_bytes());
    replace(place, &text)?;
    Ok(before)
}

/// A value as a `.env` file writes it.
fn quoted(value: &str) -> String {
    match value.contains(['"', '\'', '`', '\\', '#', '$']) {
        true => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
        false => value.to_owned(),
    }
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
