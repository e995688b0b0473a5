//! One channel: its token, tried with the vendor before anything is written.

use myclaw_agent::{AgentError, Home, config_write::ConfigWriteError};
use myclaw_config::{
    ChannelAccounts, ChannelField, ChannelOption, ChannelSecret, ConfigFile, DEFAULT_ACCOUNT,
    SecretString, is_secret_key, plain_value,
};
use myclaw_gateway::{ChannelDraft, ChannelDraftError, DraftKind, Probed};
use serde_json::json;

use super::asking::{Asker, Default};
use super::{say, warn};
use crate::args::{ChannelKind, OnboardArgs};
use crate::commands::auth::checked_key;
use crate::commands::channels::linked_account;
use myclaw_front::exit::{CliError, Exit};
use myclaw_front::home::find_home;
use myclaw_front::runtime;

/// Name of the only account, where each has one.
const ONLY: &str = "mine";

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
    let account = match declaration.accounts {
        ChannelAccounts::Named => ONLY,
        _ => DEFAULT_ACCOUNT,
    };
    let mut draft = ChannelDraft::new(name, account, DraftKind::Add)
        .ok_or_else(|| CliError::usage(format!("there is no channel `{name}`")))?;
    if file.has(&draft.place()).map_err(AgentError::from)? {
        return Ok(Outcome::Kept(" is in the config already, and stays as it is".to_owned()));
    }
    if args.channel_url.is_some()
        && !declaration.fields.iter().any(|field| field.given == ChannelOption::Url)
    {
        return Err(CliError::usage(format!(
            "--channel-url has no meaning for {name}; use --channel-set"
        )));
    }
    set_given(args, &home, kind, &mut draft)?;
    for field in declaration.fields.iter().filter(|field| !field.is_linked) {
        if !draft.has(field.key) {
            set_asked(args, asker, field, &mut draft)?;
        }
    }
    // A link needs the others.
    for field in declaration.fields.iter().filter(|field| field.is_linked) {
        if !draft.has(field.key)
            && let Some(why) = set_linked(kind, asker, field, &mut draft)?
        {
            return Ok(Outcome::Refused(why));
        }
    }
    for (number, ChannelSecret { key, usual, whence }) in declaration.secrets.iter().enumerate() {
        if draft.has(key) {
            continue;
        }
        let named = args.channel_token_env.as_deref().filter(|_| number == 0);
        let variable = named.unwrap_or(usual).to_owned();
        match typed_token(&home, asker, &variable, whence)? {
            Some(secret) => draft.keep_secret(key, variable, secret),
            None => draft.refer(key, &variable),
        }
    }
    let probed = match runtime::block_on(draft.probe(&home, &file))?.map_err(of_draft) {
        // The config takes no such value.
        Err(error) if error.exit == Exit::Config && !asker.is_quiet() => Err(error.message),
        probed => probed?,
    };
    match probed {
        Ok(Probed { found, .. }) => {
            let written = runtime::block_on(draft.keep(&home, &file))?.map_err(of_draft)?;
            warn(&written);
            Ok(Outcome::Kept(format!(": {found}")))
        }
        Err(why) => Ok(Outcome::Refused(why)),
    }
}

fn of_draft(error: ChannelDraftError) -> CliError {
    match error {
        ChannelDraftError::Config(ConfigWriteError::Edit(error)) => {
            CliError::usage(error.to_string())
        }
        ChannelDraftError::Config(error) => AgentError::from(error).into(),
        ChannelDraftError::Home(error) => error.into(),
        ChannelDraftError::Variables { .. } => CliError::failure(error.to_string()),
    }
}

/// Sets what `--channel-set` says. In place of secrets stand references to variables.
fn set_given(
    args: &OnboardArgs,
    home: &Home,
    ChannelKind { name, declaration }: ChannelKind,
    draft: &mut ChannelDraft,
) -> Result<(), CliError> {
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
            draft.keep_secret(key, variable, checked_key(text)?);
            continue;
        }
        let known = declaration.fields.iter().find(|field| field.key == key);
        // What it does not know is what it looks like.
        draft.set(key, known.map_or_else(|| plain_value(text), |field| field.value(text)));
    }
    Ok(())
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
    draft: &mut ChannelDraft,
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
    draft.set(field.key, json!(answer));
    Ok(())
}

/// Sets what is answered, or the account of the phone that scans a code. Says why it is not linked.
fn set_linked(
    ChannelKind { name, declaration }: ChannelKind,
    asker: &Asker,
    field: &ChannelField,
    draft: &mut ChannelDraft,
) -> Result<Option<String>, CliError> {
    let Some(what) = field.what else { return Ok(None) };
    let question = format!("Give {what}, or press Enter to link a phone with a QR code");
    let answer = asker.ask(&question, "")?;
    if !answer.is_empty() {
        draft.set(field.key, json!(answer));
        return Ok(None);
    }
    if asker.is_quiet() {
        return Err(CliError::usage(format!(
            "--channel-set {}=… is missing: {what}; or leave --yes out, to scan a QR code",
            field.key
        )));
    }
    let url = declaration.fields.iter().find(|field| field.given == ChannelOption::Url);
    let url = url.and_then(|url| draft.value()[url.key].as_str().map(str::to_owned));
    Ok(match linked_account(name, url.as_deref())? {
        Ok(account) => {
            draft.set(field.key, json!(account));
            None
        }
        Err(why) => Some(why),
    })
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
