//! `myclaw mcp add`, `remove` and `import`: change the config file.

use std::path::{Path, PathBuf};

use myclaw_agent::mcp::{ConfiguredServer, ImportSource, Imported, read_servers};
use myclaw_agent::{AgentError, Home, config_write::change_config};
use myclaw_config::{ConfigChange, ConfigFile, ConfigPath};
use serde_json::{Map, Value, json};

use super::{Answer, approve, find, session};
use crate::args::{AddServerArgs, ImportServersArgs, ServerNetwork};
use crate::commands::cluster::home_of_sessions;
use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;
use myclaw_front::print::{Printer, note};
use myclaw_front::runtime;
use myclaw_front::servers::unknown;

fn place(name: &str) -> ConfigPath {
    ConfigPath::default().key("mcp").key("servers").key(name)
}

fn read(home: &Home) -> Result<ConfigFile, CliError> {
    Ok(ConfigFile::read(&home.paths).map_err(AgentError::from)?)
}

fn change(home: &Home, file: &ConfigFile, changes: &[ConfigChange]) -> Result<(), CliError> {
    let written = runtime::block_on(change_config(home, file, changes))??;
    for warning in written.warnings {
        note(format_args!("myclaw: {warning}"));
    }
    Ok(())
}

pub(super) fn add(args: &AddServerArgs) -> Result<(), CliError> {
    let home = find_home()?;
    let file = read(&home)?;
    let path = place(&args.name);
    let entry = entry_of(args, &home)?;
    match file.has(&path).map_err(AgentError::from)? {
        true => {
            // The same command again approves what has changed.
            let known =
                session(None)?.mcp_servers().into_iter().find(|server| server.name == args.name);
            let is_same = known.is_some_and(|server| match &args.url {
                Some(url) => server.config.url.as_ref() == Some(url),
                None => server.shown() == args.command.join(" "),
            });
            if !is_same {
                return Err(CliError::usage(format!(
                    "{} has {path} already; remove it first with `myclaw mcp remove {}`, or choose another name",
                    file.path().display(),
                    args.name
                )));
            }
        }
        false => {
            change(&home, &file, &[ConfigChange::Set { path: path.clone(), value: entry }])?;
            let mut printer = Printer::stdout();
            printer.line(format_args!("added {path} to {}", file.path().display()))?;
            printer.finish()?;
        }
    }
    let server = find(None, &args.name)?;
    approve(&server, Answer::of(args.yes)).map_err(|error| CliError {
        message: format!(
            "{}\nIt stays in the config. When it works, `myclaw mcp approve {}` goes on; `myclaw mcp remove {}` takes it out",
            error.message, args.name, args.name
        ),
        ..error
    })
}

/// The entry for the config.
fn entry_of(args: &AddServerArgs, home: &Home) -> Result<Value, CliError> {
    if let Some(url) = &args.url {
        return address_entry(url, &args.header);
    }
    let [command, arguments @ ..] = args.command.as_slice() else {
        return Err(CliError::usage("there is no command; it comes after `--`"));
    };
    let mut entry = Map::new();
    entry.insert("command".to_owned(), json!(command));
    if !arguments.is_empty() {
        entry.insert("args".to_owned(), json!(arguments));
    }
    let mut env = Map::new();
    for given in &args.env {
        let (name, value) = match given.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None if home.environment.get(given).is_none() => {
                return Err(CliError::usage(format!(
                    "the variable {given} is not set; put it into {}, or give {given}=VALUE",
                    home.paths.state_dir().join(".env").display()
                )));
            }
            None => (given.as_str(), format!("${{{given}}}")),
        };
        env.insert(name.to_owned(), json!(value));
    }
    if !env.is_empty() {
        entry.insert("env".to_owned(), Value::Object(env));
    }
    if let Some(cwd) = &args.cwd {
        let cwd = std::path::absolute(cwd).unwrap_or_else(|_| cwd.clone());
        entry.insert("cwd".to_owned(), json!(cwd));
    }
    let mut sandbox = Map::new();
    if args.no_sandbox {
        sandbox.insert("enabled".to_owned(), json!(false));
    }
    match args.network {
        Some(ServerNetwork::Open) => drop(sandbox.insert("network".to_owned(), json!("open"))),
        Some(ServerNetwork::None) => drop(sandbox.insert("network".to_owned(), json!("none"))),
        None if !args.allow_host.is_empty() => {
            sandbox.insert("network".to_owned(), json!("allowlist"));
            sandbox.insert("allowHosts".to_owned(), json!(args.allow_host));
        }
        None => {}
    }
    for (paths, key) in [(&args.read, "readOnly"), (&args.write, "readWrite")] {
        if !paths.is_empty() {
            let absolute = |path: &String| match path.starts_with('~') {
                true => path.clone(),
                false => std::path::absolute(path)
                    .map_or_else(|_| path.clone(), |path| path.display().to_string()),
            };
            sandbox.insert(key.to_owned(), json!(paths.iter().map(absolute).collect::<Vec<_>>()));
        }
    }
    if !sandbox.is_empty() {
        entry.insert("sandbox".to_owned(), Value::Object(sandbox));
    }
    Ok(Value::Object(entry))
}

fn address_entry(url: &str, given: &[String]) -> Result<Value, CliError> {
    let mut headers = Map::new();
    for header in given {
        let Some((name, value)) = header.split_once(':') else {
            return Err(CliError::usage(format!(
                "`{header}` is no header; write it as \"NAME: VALUE\", such as \"Authorization: Bearer ${{TOKEN}}\""
            )));
        };
        headers.insert(name.trim().to_owned(), json!(value.trim()));
    }
    let mut entry = Map::from_iter([("url".to_owned(), json!(url))]);
    if !headers.is_empty() {
        entry.insert("headers".to_owned(), Value::Object(headers));
    }
    Ok(Value::Object(entry))
}

pub(super) fn remove(name: &str) -> Result<(), CliError> {
    let home = home_of_sessions()?;
    let file = read(&home)?;
    let path = place(name);
    if !file.has(&path).map_err(AgentError::from)? {
        return Err(not_in_config(name, &session(None)?.mcp_servers()));
    }
    let server = session(None)?.mcp_servers().into_iter().find(|server| server.name == name);
    change(&home, &file, &[ConfigChange::Unset { path: path.clone() }])?;
    server.map(|server| server.log_out()).transpose()?;
    home.forget_server(name).map_err(|error| {
        CliError::failure(format!(
            "{path} was removed, and what was approved of it cannot be: {error}"
        ))
    })?;
    let mut printer = Printer::stdout();
    printer.line(format_args!("removed {path} from {}", file.path().display()))?;
    printer.finish()
}

/// Why a server cannot be taken out of `mcp.servers`.
fn not_in_config(name: &str, servers: &[ConfiguredServer]) -> CliError {
    let Some(server) = servers.iter().find(|server| server.name == name) else {
        let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
        return unknown(name, &names);
    };
    CliError::usage(match server.package() {
        Some(package) => format!(
            "the server {name} belongs to the package {package}: `myclaw packages remove {package}` takes it out"
        ),
        None => format!(
            "the server {name} is not in `mcp.servers` of the config; take it out where it is: `.mcp.json` of this project, or \
             `agents.list[].mcp`"
        ),
    })
}

pub(super) fn import(args: &ImportServersArgs) -> Result<(), CliError> {
    let home = find_home()?;
    let found = found(args, &home)?;
    let file = read(&home)?;
    let mut printer = Printer::stdout();
    let mut changes: Vec<ConfigChange> = Vec::new();
    let mut added: Vec<String> = Vec::new();
    for Imported { name, file: source, entry } in found {
        let path = place(&name);
        let whence = source.display();
        let value = match entry {
            Err(why) => {
                printer.safe_lines([format!("left out  {name} ({whence}): {why}")])?;
                continue;
            }
            Ok(_) if added.contains(&name) || file.has(&path).map_err(AgentError::from)? => {
                printer.safe_lines([format!("left out  {name} ({whence}): the name is taken")])?;
                continue;
            }
            Ok(value) => value,
        };
        printer.safe_lines([format!("added     {name} ({whence})")])?;
        changes.push(ConfigChange::Set { path, value });
        added.push(name);
    }
    if changes.is_empty() {
        printer.line("there is nothing to add")?;
        return printer.finish();
    }
    if args.dry_run {
        printer.line(format_args!("nothing was changed in {}", file.path().display()))?;
        return printer.finish();
    }
    change(&home, &file, &changes)?;
    printer.line(format_args!(
        "Nothing of them is approved yet. See the tools of each with `myclaw mcp approve {}`.",
        added.first().map_or("NAME", String::as_str)
    ))?;
    printer.finish()
}

fn found(args: &ImportServersArgs, home: &Home) -> Result<Vec<Imported>, CliError> {
    let environment = &home.environment;
    let here = environment.current_dir().unwrap_or(Path::new("."));
    let unread = |file: &Path, why: String| {
        CliError::usage(format!("the servers in {} cannot be read: {why}", file.display()))
    };
    if let (Some(from), Some(file)) = (args.from, &args.file) {
        let file = here.join(file);
        return read_servers(from.source(), &file, here, environment)
            .map_err(|why| unread(&file, why));
    }
    let Some(user_home) = environment.os_home() else {
        return Err(CliError::usage("there is no home directory; name a file"));
    };
    let sources = match args.from {
        Some(from) => vec![from.source()],
        None => ImportSource::ALL.to_vec(),
    };
    let files = sources.iter().flat_map(|source| {
        let files = source.files(user_home, here).into_iter();
        files.map(|file| (*source, file))
    });
    let files: Vec<(ImportSource, PathBuf)> = files.collect();
    let mut found = Vec::new();
    for (source, file) in files.iter().filter(|(_, file)| file.is_file()) {
        match read_servers(*source, file, here, environment) {
            Ok(servers) => found.extend(servers),
            // One broken file does not keep the others out.
            Err(why) if args.from.is_none() => {
                note(format_args!("myclaw: {}", unread(file, why).message));
            }
            Err(why) => return Err(unread(file, why)),
        }
    }
    if found.is_empty() {
        let looked: Vec<String> =
            files.iter().map(|(_, file)| file.display().to_string()).collect();
        note(format_args!("there are no servers in {}", looked.join(", ")));
    }
    Ok(found)
}
