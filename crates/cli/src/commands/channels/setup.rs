//! `myclaw channels add` and `remove`: change the config file, and keep what its owner has written there.

use myclaw_agent::config::{ConfigChange, ConfigFile, ConfigPath, DEFAULT_ACCOUNT};
use myclaw_agent::{AgentError, Home, change_config};
use serde_json::{Value, json};

use super::{configured, unknown};
use crate::args::{AddChannelArgs, ChannelKind, DISCORD_BOT, SLACK_APP, SLACK_BOT};
use crate::exit::CliError;
use crate::home::find_home;
use crate::print::Printer;
use crate::runtime;

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
    if others
        && account == DEFAULT_ACCOUNT
        && further != path
        && matches!(channel, "telegram" | "whatsapp")
    {
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
    match (channel, account) {
        ("webhook", name) => path.key(name),
        (_, DEFAULT_ACCOUNT) => path,
        (_, name) => path.key("accounts").key(name),
    }
}

#[expect(clippy::too_many_lines, reason = "one entry for each channel")]
fn addition(args: &AddChannelArgs) -> Result<Addition, CliError> {
    let account = args.account.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let has_account = matches!(
        args.channel,
        ChannelKind::Telegram | ChannelKind::WhatsApp | ChannelKind::Webhook
    );
    if account.is_some() && !has_account {
        return Err(CliError::usage("this channel has one account; leave --account out"));
    }
    let variable = |usual: &str| {
        let usual = match account.filter(|name| *name != DEFAULT_ACCOUNT) {
            Some(name) => format!("{usual}_{}", variable_part(name)),
            None => usual.to_owned(),
        };
        args.variable.clone().unwrap_or(usual)
    };
    let url = |what: &str| {
        let missing = || CliError::usage(format!("--url is missing: {what}"));
        args.url.clone().ok_or_else(missing)
    };
    let id = |what: &str| {
        let missing = || CliError::usage(format!("--id is missing: {what}"));
        args.id.clone().ok_or_else(missing)
    };
    let is_first = account.is_none_or(|name| name == DEFAULT_ACCOUNT);
    let (channel, mut value, secrets) = match args.channel {
        ChannelKind::Telegram => {
            let name = variable("TELEGRAM_BOT_TOKEN");
            let whence = "Talk with @BotFather on Telegram to make a bot; it gives you a token.";
            ("telegram", json!({"botToken": reference(&name)}), vec![(name, whence)])
        }
        ChannelKind::Matrix => {
            let name = variable("MATRIX_ACCESS_TOKEN");
            let whence = "Make an account for the agent, and log in with it once; docs/matrix.md has the command.";
            let url = url("the address of the homeserver, such as https://matrix.example.org")?;
            let value = json!({"homeserverUrl": url, "accessToken": reference(&name)});
            ("matrix", value, vec![(name, whence)])
        }
        ChannelKind::WhatsApp => {
            let id = id("the id of the phone number, from the page API Setup of the app")?;
            let (value, secrets) = whatsapp(&id, is_first, variable("WHATSAPP_ACCESS_TOKEN"));
            ("whatsapp", value, secrets)
        }
        ChannelKind::Signal => {
            let account = id("the phone number, such as +4915112345678")?;
            ("signal", at_url(json!({"account": account}), args), Vec::new())
        }
        ChannelKind::Email => {
            let name = variable("EMAIL_PASSWORD");
            let whence = "It is the password of the account; many providers want one for this program alone.";
            ("email", email(args, &reference(&name))?, vec![(name, whence)])
        }
        ChannelKind::Irc => ("irc", irc(args)?, Vec::new()),
        ChannelKind::Xmpp => {
            let name = variable("XMPP_PASSWORD");
            let value = xmpp(args, &reference(&name))?;
            ("xmpp", value, vec![(name, "It is the password of the account.")])
        }
        ChannelKind::Slack => {
            let (app, bot) = ("SLACK_APP_TOKEN".to_owned(), variable("SLACK_BOT_TOKEN"));
            let value = json!({"appToken": reference(&app), "botToken": reference(&bot)});
            ("slack", at_url(value, args), vec![(app, SLACK_APP), (bot, SLACK_BOT)])
        }
        ChannelKind::Discord => {
            let name = variable("DISCORD_BOT_TOKEN");
            let value = json!({"botToken": reference(&name)});
            ("discord", at_url(value, args), vec![(name, DISCORD_BOT)])
        }
        ChannelKind::Webhook => {
            let name = variable("WEBHOOK_SECRET");
            let whence = "It is a random secret, such as the output of `openssl rand -hex 32`.";
            let url = url("where answers are posted, such as http://127.0.0.1:8080/answers")?;
            ("webhook", json!({"secret": reference(&name), "url": url}), vec![(name, whence)])
        }
        ChannelKind::Socket => ("socket", json!({}), Vec::new()),
    };
    let account = account.unwrap_or(DEFAULT_ACCOUNT);
    if !args.allow_from.is_empty() {
        if matches!(channel, "webhook" | "socket") || !is_first {
            return Err(CliError::usage("--allow-from has no meaning for this channel or account"));
        }
        value["allowFrom"] = json!(args.allow_from);
    }
    Ok(Addition { path: place(channel, account), value, secrets })
}

/// The same with the address of the server, if one is given.
fn at_url(mut value: Value, args: &AddChannelArgs) -> Value {
    if let Some(url) = &args.url {
        value["baseUrl"] = json!(url);
    }
    value
}

/// An account on a network of IRC.
fn irc(args: &AddChannelArgs) -> Result<Value, CliError> {
    let missing = |name| CliError::usage(format!("{name} is missing: IRC needs --host and --nick"));
    let host = args.host.as_ref().ok_or_else(|| missing("--host"))?;
    let nick = args.nick.as_ref().ok_or_else(|| missing("--nick"))?;
    Ok(json!({"host": host, "nick": nick}))
}

/// An account of XMPP.
fn xmpp(args: &AddChannelArgs, password: &str) -> Result<Value, CliError> {
    let missing =
        || CliError::usage("--address is missing: the account's own, such as claw@example.org");
    let address = args.address.as_ref().ok_or_else(missing)?;
    let mut value = json!({"address": address, "password": password});
    for (key, given) in [("host", &args.host), ("nick", &args.nick)] {
        if let Some(given) = given {
            value[key] = json!(given);
        }
    }
    Ok(value)
}

/// A number on WhatsApp. Further ones have the secrets of the first.
fn whatsapp(id: &str, is_first: bool, token: String) -> (Value, Vec<(String, &'static str)>) {
    let mut value = json!({"phoneNumberId": id});
    if !is_first {
        return (value, Vec::new());
    }
    let secrets = vec![
        (token, "It is the permanent token of a system user; docs/whatsapp.md says how to get it."),
        (
            "WHATSAPP_APP_SECRET".to_owned(),
            "It is the app secret, in the basic settings of the app at developers.facebook.com.",
        ),
        (
            "WHATSAPP_VERIFY_TOKEN".to_owned(),
            "It is a random text, such as the output of `openssl rand -hex 32`, which you also enter at Meta.",
        ),
    ];
    for (key, (variable, _)) in ["accessToken", "appSecret", "verifyToken"].iter().zip(&secrets) {
        value[*key] = json!(reference(variable));
    }
    (value, secrets)
}

/// An account of e-mail.
fn email(args: &AddChannelArgs, password: &str) -> Result<Value, CliError> {
    let given = |name: &str, value: &Option<String>| {
        let missing = || {
            CliError::usage(format!(
                "{name} is missing: e-mail needs --address, --imap, --smtp and --authserv-id; docs/email.md describes them"
            ))
        };
        value.clone().ok_or_else(missing)
    };
    Ok(json!({
        "address": given("--address", &args.address)?,
        "password": password,
        "imap": {"host": given("--imap", &args.imap)?},
        "smtp": {"host": given("--smtp", &args.smtp)?},
        "authservId": given("--authserv-id", &args.authserv_id)?,
    }))
}

fn reference(variable: &str) -> String {
    format!("${{{variable}}}")
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
