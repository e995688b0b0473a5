//! `myclaw channels add` and `remove`: change the config file, and keep what its owner has written there.

use myclaw_agent::{AgentError, Home, config_write::change_config};
use myclaw_config::{ChannelAccounts, ConfigChange, ConfigFile, DEFAULT_ACCOUNT};
use myclaw_gateway::{ChannelDraft, DeviceLink, DraftKind, channel_removal};
use serde_json::json;

use super::needs;
use super::{configured, unknown};
use crate::args::{AddChannelArgs, ChannelKind};
use crate::commands::gateway::drawn;
use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;
use myclaw_front::print::{Printer, note};
use myclaw_front::runtime;

/// Whether the file is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It is.
    Change,
    /// What would be changed is printed.
    Show,
}

/// Variables with secrets, and where the owner gets each.
type Variables = Vec<(String, &'static str)>;

pub(super) fn add(args: &AddChannelArgs) -> Result<(), CliError> {
    let home = find_home()?;
    let file = read(&home)?;
    let (mut draft, secrets) = addition(args)?;
    let path = draft.place();
    if file.has(&path).map_err(AgentError::from)? {
        return Err(CliError::usage(format!(
            "{} has {path} already; remove it first with `myclaw channels remove`, or name another --account",
            file.path().display()
        )));
    }
    let mut printer = Printer::stdout();
    let is_set =
        |name: &str| home.environment.get(name).is_some_and(|text| !text.trim().is_empty());
    let missing: Vec<_> = secrets.into_iter().filter(|(name, _)| !is_set(name)).collect();
    if args.dry_run {
        for (name, whence) in &missing {
            printer.line(format_args!("{whence} Put it into the variable {name}."))?;
        }
        let shown = serde_json::to_string_pretty(draft.value()).unwrap_or_default();
        printer.line(format_args!(
            "This would be added to {} as {path}:\n\n{shown}",
            file.path().display()
        ))?;
        return printer.finish();
    }
    if let Some((name, whence)) = missing.first() {
        return Err(CliError::usage(format!(
            "the variable {name} is not set. {whence} Put it into {}, or into the environment, and run this again",
            home.paths.state_dir().join(".env").display()
        )));
    }
    if args.link {
        link(args, &mut draft)?;
    }
    let value = draft.value().clone();
    change(&home, &file, &ConfigChange::Set { path: path.clone(), value })?;
    printer.line(format_args!("added {path} to {}", file.path().display()))?;
    printer.line("Check it with `myclaw channels probe`. A gateway that runs takes it over.")?;
    printer.finish()
}

/// Links the account of a phone.
fn link(args: &AddChannelArgs, draft: &mut ChannelDraft) -> Result<(), CliError> {
    let (channel, fields) = (args.channel.name, args.channel.declaration.fields);
    let Some(key) = fields.iter().find(|field| field.is_linked) else {
        return Err(CliError::usage(format!("--link has no meaning for {channel}")));
    };
    let account = linked_account(channel, args.url.as_deref())?.map_err(|why| {
        let why = format!("{channel} is not linked: {why}. Nothing was written");
        CliError::failure_of_class("channel", why)
    })?;
    draft.set(key.key, json!(account));
    Ok(())
}

/// Shows what a phone scans, and waits for its account; why there is none otherwise.
pub(in crate::commands) fn linked_account(
    channel: &str,
    url: Option<&str>,
) -> Result<Result<String, String>, CliError> {
    runtime::block_on(async {
        let begun = match DeviceLink::begin(channel, url).await {
            Some(Ok(begun)) => begun,
            Some(Err(why)) => return Ok(Err(why)),
            None => return Ok(Err("it has no phone that could scan a code".to_owned())),
        };
        let code = begun.code().map_err(|error| CliError::failure(error.to_string()))?;
        let mut printer = Printer::stdout();
        printer.safe_lines(drawn(&code.iter().map(String::as_str).collect::<Vec<_>>()))?;
        printer.safe_lines([&begun.address])?;
        printer.finish()?;
        note(
            "scan the code with the app on the phone: Settings, Linked devices, Link new device; it is valid for a short time",
        );
        let account = begun.finish().await;
        if let Ok(account) = &account {
            note(format_args!("linked to {account}"));
        }
        Ok(account)
    })?
}

pub(super) fn remove(channel: &str, account: &str, mode: Mode) -> Result<(), CliError> {
    let home = find_home()?;
    let setups = configured()?;
    let removal = channel_removal(&setups, channel, account);
    let path = removal.ok_or_else(|| unknown(&setups, channel))?.map_err(CliError::usage)?;
    let file = read(&home)?;
    let mut printer = Printer::stdout();
    let shown = file.path().display();
    if mode == Mode::Show {
        printer.line(format_args!("{path} would be removed from {shown}"))?;
        return printer.finish();
    }
    change(&home, &file, &ConfigChange::Unset { path: path.clone() })?;
    printer
        .line(format_args!("removed {path} from {shown}. A gateway that runs takes it over."))?;
    printer.finish()
}

/// What is added to the file, and the variables of its secrets.
fn addition(args: &AddChannelArgs) -> Result<(ChannelDraft, Variables), CliError> {
    let ChannelKind { name: channel, declaration } = args.channel;
    let account = args.account.as_deref().map(str::trim).filter(|name| !name.is_empty());
    if account.is_some() && declaration.accounts == ChannelAccounts::One {
        return Err(CliError::usage("this channel has one account; leave --account out"));
    }
    let fields = declaration.fields;
    let is_stray = |option: &_| {
        needs::given(*option, args).is_some() && !fields.iter().any(|field| field.given == *option)
    };
    if let Some(stray) = needs::OPTIONS.into_iter().find(is_stray) {
        let option = needs::option(stray);
        return Err(CliError::usage(format!("{option} has no meaning for {channel}")));
    }
    let name = account.unwrap_or(DEFAULT_ACCOUNT);
    let mut draft = ChannelDraft::new(channel, name, DraftKind::Add)
        .ok_or_else(|| CliError::usage(format!("there is no channel `{channel}`")))?;
    for field in fields {
        match (needs::given(field.given, args), field.what) {
            (Some(text), _) => draft.set(field.key, json!(text)),
            (None, Some(_)) if args.link && field.is_linked => {}
            (None, Some(what)) => {
                let option = needs::option(field.given);
                let or = if field.is_linked { "; or --link, to scan a QR code" } else { "" };
                return Err(CliError::usage(format!("{option} is missing: {what}{or}")));
            }
            (None, None) => {}
        }
    }
    let mut secrets = Vec::new();
    for (number, secret) in declaration.secrets_of(name).iter().enumerate() {
        let own = args.variable.clone().filter(|_| number == 0);
        let variable = own.unwrap_or_else(|| secret.variable(name));
        draft.refer(secret.key, &variable);
        secrets.push((variable, secret.whence));
    }
    if !args.allow_from.is_empty() {
        if !declaration.takes_people(name) {
            return Err(CliError::usage("--allow-from has no meaning for this channel or account"));
        }
        draft.set("allowFrom", json!(args.allow_from));
    }
    Ok((draft, secrets))
}

fn read(home: &Home) -> Result<ConfigFile, CliError> {
    Ok(ConfigFile::read(&home.paths).map_err(AgentError::from)?)
}

fn change(home: &Home, file: &ConfigFile, change: &ConfigChange) -> Result<(), CliError> {
    let changing = change_config(home, file, std::slice::from_ref(change));
    runtime::block_on(changing)?
        .map(|_| ())
        .map_err(|error| CliError::failure_of_class("config", error.to_string()))
}
