//! `myclaw groups`: the chats that a host answers.

use myclaw_agent::config_check::load_checked;
use myclaw_config::{BindingMatch, ChatId};
use myclaw_host::{
    Access, DayUsage, ExtraMount, Folder, Group, GroupUsage, Groups, GroupsError, HostHome, Listens,
};
use serde_json::json;

use super::host::host_home;
use crate::args::{AddGroupArgs, GroupsArgs, GroupsCommand, HostDirectory};
use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;
use myclaw_front::print::{Printer, columns, note};

/// Runs one of the commands.
pub(crate) fn run(args: GroupsArgs) -> Result<(), CliError> {
    match args.command {
        GroupsCommand::Add(add) => added(add),
        GroupsCommand::List { directory, json } => {
            let groups = Groups::load(&home(directory)?).map_err(|error| failure(&error))?;
            if json { list_as_json(&groups) } else { list(&groups) }
        }
        GroupsCommand::Show { folder, directory, json } => show(&folder, &home(directory)?, json),
        GroupsCommand::Remove { folder, directory } => {
            let (folder, home) = (parsed(&folder)?, home(directory)?);
            Groups::remove(&home, &folder).map_err(|error| failure(&error))?;
            note(format_args!(
                "myclaw: removed; its files are still in {}",
                home.group(&folder).display()
            ));
            Ok(())
        }
    }
}

fn home(directory: HostDirectory) -> Result<HostHome, CliError> {
    host_home(directory, &find_home()?)
}

fn parsed(folder: &str) -> Result<Folder, CliError> {
    folder.parse().map_err(CliError::usage)
}

fn added(args: AddGroupArgs) -> Result<(), CliError> {
    let folder = parsed(&args.folder)?;
    let home = home(args.directory)?;
    let mounts = args.mounts.iter().map(|text| mount(text)).collect::<Result<_, _>>()?;
    let group = Group {
        jid: args.chat,
        name: args.name.unwrap_or(args.folder),
        folder: folder.clone(),
        trigger: args.trigger,
        listens: if args.all { Listens::All } else { Listens::Trigger },
        mounts,
    };
    Groups::add(&home, group).map_err(|error| failure(&error))?;
    note(format_args!("myclaw: added; its files are in {}", home.group(&folder).display()));
    Ok(())
}

/// A mount as `PATH`, `PATH:NAME` or `PATH:NAME:rw`.
fn mount(text: &str) -> Result<ExtraMount, CliError> {
    let mut parts = text.split(':');
    let path = parts.next().unwrap_or_default();
    let name = parts.next().filter(|name| !name.is_empty()).map(str::to_owned);
    let access = match parts.next() {
        None | Some("ro") => Some(Access::ReadOnly),
        Some("rw") => Some(Access::ReadWrite),
        Some(_) => None,
    };
    match access.filter(|_| parts.next().is_none() && path.starts_with('/')) {
        Some(access) => Ok(ExtraMount { host_path: path.into(), container_path: name, access }),
        None => Err(CliError::usage(format!(
            "the mount {text:?} cannot be read; write /PATH, /PATH:NAME or /PATH:NAME:rw"
        ))),
    }
}

fn listens(group: &Group) -> String {
    match (group.is_main(), group.listens, &group.trigger) {
        (true, _, _) | (_, Listens::All, _) => "every message".to_owned(),
        (_, Listens::Trigger, Some(word)) => word.clone(),
        (_, Listens::Trigger, None) => "@ and the assistant's name".to_owned(),
    }
}

fn list(groups: &Groups) -> Result<(), CliError> {
    let row = |group: &Group| {
        vec![group.folder.to_string(), group.name.clone(), group.jid.clone(), listens(group)]
    };
    let rows: Vec<Vec<String>> = groups.iter().map(row).collect();
    let mut printer = Printer::stdout();
    if rows.is_empty() {
        printer.line("no groups yet; add one with `myclaw groups add CHAT --folder main`")?;
    }
    printer.safe_lines(columns(&rows))?;
    printer.finish()
}

fn list_as_json(groups: &Groups) -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    for group in groups.iter() {
        printer.json(group)?;
    }
    printer.finish()
}

fn show(folder: &str, home: &HostHome, as_json: bool) -> Result<(), CliError> {
    let folder = parsed(folder)?;
    let groups = Groups::load(home).map_err(|error| failure(&error))?;
    let group = groups.of_folder(&folder).ok_or_else(|| {
        CliError::failure(format!("there is no group {folder}; `myclaw groups list` shows all"))
    })?;
    let directories = [
        ("files", home.group(&folder)),
        ("sessions", home.session(&folder)),
        ("ipc", home.ipc(&folder)),
        ("logs", home.logs(&folder)),
    ];
    let binding = binding(&folder);
    let usage = GroupUsage::load(&home.usage(&folder));
    let mut printer = Printer::stdout();
    if as_json {
        let mut value =
            serde_json::to_value(group).map_err(|error| CliError::failure(error.to_string()))?;
        value["binding"] = json!(binding);
        value["usage"] = json!(usage);
        value["isMain"] = group.is_main().into();
        value["directories"] =
            directories.iter().map(|(name, path)| (*name, json!(path))).collect();
        printer.json(&value)?;
        return printer.finish();
    }
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![
        row("folder", folder.to_string()),
        row("name", group.name.clone()),
        row("chat", group.jid.clone()),
        row("answers", listens(group)),
    ];
    rows.extend(directories.iter().map(|(name, path)| row(name, path.display().to_string())));
    if let Some(rule) = &binding {
        rows.push(row("binding", bound_to(rule)));
    }
    for (name, used) in [("today", usage.today()), ("in all", usage.total())] {
        if used.calls > 0 {
            rows.push(row(name, used_in_words(&used)));
        }
    }
    for mount in &group.mounts {
        let access = if mount.access == Access::ReadWrite { "read and write" } else { "read" };
        rows.push(row("mount", format!("{} ({access})", mount.host_path.display())));
    }
    printer.safe_lines(columns(&rows))?;
    printer.finish()
}

/// The chat of the gateway that the group answers, if the config can be read and names one.
fn binding(folder: &Folder) -> Option<BindingMatch> {
    let environment = find_home().ok()?.environment;
    let host = load_checked(&environment).ok()?.config.host.clone()?;
    let found = host.bindings.into_iter().find(|binding| binding.folder == folder.as_str());
    found.map(|binding| binding.matches)
}

fn bound_to(rule: &BindingMatch) -> String {
    let id = |id: &ChatId| match id {
        ChatId::Number(number) => number.to_string(),
        ChatId::Name(name) => name.clone(),
    };
    let mut words = vec![rule.channel.clone()];
    words.extend(rule.account.iter().map(|account| format!("account {account}")));
    words.extend(rule.peer.iter().map(|peer| format!("person {}", id(peer))));
    words.extend(rule.group.iter().map(|group| format!("group {}", id(group))));
    words.join(", ")
}

fn used_in_words(used: &DayUsage) -> String {
    let unpriced = match used.unpriced {
        0 => String::new(),
        calls => format!(", without {calls} calls of unknown price"),
    };
    format!(
        "{} model calls, {} tokens in, {} out, ${:.4}{unpriced}",
        used.calls, used.input, used.output, used.cost
    )
}

fn failure(error: &GroupsError) -> CliError {
    CliError::failure(error.to_string())
}
