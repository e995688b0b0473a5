//! `myclaw channels add` and `remove`: change the config file, and keep what its owner has written there.

use myclaw_agent::{AgentError, Home, change_config};
use myclaw_config::{
    ChannelAccounts, ChannelPeople, ConfigChange, ConfigFile, ConfigPath, DEFAULT_ACCOUNT,
};
use serde_json::{Value, json};

use super::needs;
use super::{configured, unknown};
use crate::args::{AddChannelArgs, ChannelKind};
use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;
use myclaw_front::print::Printer;
use myclaw_front::runtime;

/// Whether the file is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It is.
    Change,
    /// What would be changed is printed.
    Show,
}

/// What is added to the file.
struct Addition {
    path: ConfigPath,
    value: Value,
    /// The variables with secrets, and where the owner gets each.
    secrets: Vec<(String, &'static str)>,
}

pub(super) fn add(args: &AddChannelArgs) -> Result<(), CliError> {
    let home = find_home()?;
    let file = read(&home)?;
    let Addition { path, value, secrets } = addition(args)?;
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
        let shown = serde_json::to_string_pretty(&value).unwrap_or_default();
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
    change(&home, &file, &ConfigChange::Set { path: path.clone(), value })?;
    printer.line(format_args!("added {path} to {}", file.path().display()))?;
    printer.line("Check it with `myclaw channels probe`. A gateway that runs takes it over.")?;
    printer.finish()
}

pub(super) fn remove(channel: &str, account: &str, mode: Mode) -> Result<(), CliError> {
    let home = find_home()?;
    let setups = configured()?;
    if !setups.iter().any(|setup| setup.channel == channel && setup.account == account) {
        return Err(unknown(&setups, channel));
    }
    let path = place(channel, account);
    let further = place(channel, "x");
    let others = setups.iter().filter(|setup| setup.channel == channel).count() > 1;
    if others && account == DEFAULT_ACCOUNT && further != path && !is_named(channel) {
        return Err(CliError::usage(format!(
            "{path} holds further accounts, which would be removed too; remove those first"
        )));
    }
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

/// Where an account of a channel is in the config.
fn place(channel: &str, account: &str) -> ConfigPath {
    let path = ConfigPath::default().key("channels").key(channel);
    match account {
        name if is_named(channel) => path.key(name),
        DEFAULT_ACCOUNT => path,
        name => path.key("accounts").key(name),
    }
}

/// Whether each account of a channel has a name.
fn is_named(channel: &str) -> bool {
    let kind = ChannelKind::named(channel);
    kind.is_some_and(|kind| kind.declaration.accounts == ChannelAccounts::Named)
}

fn addition(args: &AddChannelArgs) -> Result<Addition, CliError> {
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
    let mut value = json!({});
    for field in fields {
        match (needs::given(field.given, args), field.what) {
            (Some(text), _) => needs::put(&mut value, field.key, json!(text)),
            (None, Some(what)) => {
                let option = needs::option(field.given);
                return Err(CliError::usage(format!("{option} is missing: {what}")));
            }
            (None, None) => {}
        }
    }
    let is_first = account.is_none_or(|name| name == DEFAULT_ACCOUNT);
    let secrets = match declaration.accounts {
        ChannelAccounts::FurtherOfOneApp if !is_first => &[][..],
        _ => declaration.secrets,
    };
    let variables = secrets.iter().enumerate().map(|(number, secret)| {
        let own = args.variable.clone().filter(|_| number == 0);
        let variable = own.unwrap_or_else(|| match account.filter(|_| !is_first) {
            Some(name) => format!("{}_{}", secret.usual, variable_part(name)),
            None => secret.usual.to_owned(),
        });
        needs::put(&mut value, secret.key, json!(needs::reference(&variable)));
        (variable, secret.whence)
    });
    let secrets = variables.collect();
    let account = account.unwrap_or(DEFAULT_ACCOUNT);
    if !args.allow_from.is_empty() {
        if matches!(declaration.people, ChannelPeople::None) || !is_first {
            return Err(CliError::usage("--allow-from has no meaning for this channel or account"));
        }
        value["allowFrom"] = json!(args.allow_from);
    }
    Ok(Addition { path: place(channel, account), value, secrets })
}

/// The name of an account as a part of a variable.
fn variable_part(name: &str) -> String {
    let part = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(part).collect()
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
