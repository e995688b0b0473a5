//! `myclaw packages`: packages of others, as the owner approved them.

use std::path::Path;

use myclaw_agent::packages::{
    CANNOT_KNOW, Fetched, FileChange, LoadedPackage, PackageApproval, PackageState, Wanted,
    differences, fetch_package, plain_name, scan,
};
use myclaw_agent::{SessionConfig, SessionOptions, did_you_mean};
use serde_json::json;

use super::confirm;
use crate::args::{ApprovalArgs, PackagesArgs, PackagesCommand};
use myclaw_front::exit::CliError;
use myclaw_front::home::{find_home, load_session};
use myclaw_front::print::{Printer, columns};
use myclaw_front::runtime;

/// Most lines of differences that are shown.
const MAX_LINES: usize = 400;

/// Runs one of the commands.
pub(crate) fn run(args: &PackagesArgs) -> Result<(), CliError> {
    match &args.command {
        PackagesCommand::Add { source, subdirectory, name, approval } => {
            add(source, subdirectory.as_deref(), name.as_deref(), approval)
        }
        PackagesCommand::List { json } => list(*json),
        PackagesCommand::Show { name } => show(name),
        PackagesCommand::Update { name, approval } => update(name, approval),
        PackagesCommand::Remove { name } => remove(name),
        PackagesCommand::Verify { name } => verify(name.as_deref()),
    }
}

fn session() -> Result<SessionConfig, CliError> {
    load_session(find_home()?, &SessionOptions::default())
}

fn fetch(
    session: &SessionConfig,
    wanted: &Wanted,
    subdirectory: Option<&str>,
) -> Result<Fetched, CliError> {
    Ok(runtime::block_on(fetch_package(session, wanted, subdirectory))??)
}

fn add(
    source: &str,
    subdirectory: Option<&str>,
    name: Option<&str>,
    approval: &ApprovalArgs,
) -> Result<(), CliError> {
    let session = session()?;
    let here = session.home.environment.current_dir().unwrap_or(Path::new("."));
    let wanted = Wanted::parse(source, here)?;
    if let Some(name) = name.filter(|name| plain_name(name).as_deref() != Some(*name)) {
        return Err(CliError::usage(format!(
            "`{name}` is no name of a package: use up to 40 lower-case letters, digits and hyphens"
        )));
    }
    let fetched = fetch(&session, &wanted, subdirectory)?;
    let Some(name) = name.or(fetched.name.as_deref()) else {
        return Err(CliError::usage("the package has no name; give one with --name"));
    };
    if session.home.packages().locked().map_err(myclaw_agent::AgentError::from)?.contains_key(name)
    {
        return Err(CliError::usage(format!(
            "there is a package {name} already: `myclaw packages update {name}` fetches it again, and --name gives this one another \
             name"
        )));
    }
    let mut printer = Printer::stdout();
    printer.safe_lines([format!(
        "package   {name}{}",
        version(fetched.contents.version.as_deref())
    )])?;
    describe(&mut printer, &fetched)?;
    printer.finish()?;
    if is_approved(&fetched, approval, &format!("Add the package {name}?"))? {
        put(&session, name, &fetched, subdirectory)?;
        return added(&session, name, &fetched);
    }
    Ok(())
}

fn version(version: Option<&str>) -> String {
    version.map(|version| format!(" {version}")).unwrap_or_default()
}

/// Everything that an approval is about.
fn describe(printer: &mut Printer, fetched: &Fetched) -> Result<(), CliError> {
    let bytes: usize = fetched.tree.files().map(|(_, entry)| entry.bytes.len()).sum();
    printer.safe_lines([
        format!("source    {}", fetched.source),
        format!("digest    {}", fetched.tree.digest()),
        format!("files     {}, {bytes} bytes", fetched.tree.files().len()),
        String::new(),
        "It holds and asks for:".to_owned(),
    ])?;
    printer.safe_lines(fetched.contents.wishes().iter().map(|wish| format!("  {wish}")))?;
    section(printer, "Not used here:", &fetched.contents.unused)?;
    section(printer, "Look at this first:", &scan(&fetched.tree))?;
    printer.safe_lines([String::new(), CANNOT_KNOW.to_owned()])
}

fn section(printer: &mut Printer, title: &str, lines: &[String]) -> Result<(), CliError> {
    if lines.is_empty() {
        return Ok(());
    }
    printer.safe_lines([String::new(), title.to_owned()])?;
    printer.safe_lines(lines.iter().map(|line| format!("  {line}")))
}

/// Whether the owner approves exactly this. Without a terminal the digest has to say it.
fn is_approved(
    fetched: &Fetched,
    approval: &ApprovalArgs,
    question: &str,
) -> Result<bool, CliError> {
    let digest = fetched.tree.digest();
    match &approval.digest {
        Some(given) if *given == digest => Ok(true),
        Some(given) => Err(CliError::usage(format!(
            "nothing was changed: you approve {given}, and the package is {digest}; look at what it holds, above"
        ))),
        None if confirm(question)? => Ok(true),
        None => Err(CliError::failure(format!(
            "nothing was changed. To approve exactly this, answer at a terminal, or add --yes --digest {digest}"
        ))),
    }
}

fn put(
    session: &SessionConfig,
    name: &str,
    fetched: &Fetched,
    subdirectory: Option<&str>,
) -> Result<(), CliError> {
    let Fetched { tree, contents, source, .. } = fetched;
    let approval = PackageApproval { name, tree, contents, source, subdirectory };
    Ok(session.home.packages().put(&approval).map_err(myclaw_agent::AgentError::from)?)
}

fn added(session: &SessionConfig, name: &str, fetched: &Fetched) -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    printer.line(format_args!("the package {name} is kept as you approved it"))?;
    if !fetched.contents.servers.is_empty() {
        let servers =
            session.mcp_servers().into_iter().filter(|server| server.package() == Some(name));
        for server in servers {
            printer.safe_lines([format!(
                "the tools of its MCP server need an approval of their own: `myclaw mcp approve {}`",
                server.name
            )])?;
        }
    }
    printer.finish()
}

fn states(session: &SessionConfig) -> Result<Vec<PackageState>, CliError> {
    Ok(session.home.packages().load().map_err(myclaw_agent::AgentError::from)?)
}

fn find(session: &SessionConfig, name: &str) -> Result<PackageState, CliError> {
    let states = states(session)?;
    let names: Vec<String> = states.iter().map(|state| state.name.clone()).collect();
    states.into_iter().find(|state| state.name == name).ok_or_else(|| {
        let suggestion = did_you_mean(name, names.iter().map(String::as_str));
        CliError::usage(format!(
            "there is no package `{name}`{suggestion} `myclaw packages list` lists them"
        ))
    })
}

fn list(as_json: bool) -> Result<(), CliError> {
    let session = session()?;
    let states = states(&session)?;
    let mut printer = Printer::stdout();
    if as_json {
        for PackageState { name, locked, loaded } in &states {
            printer.json(&json!({
                "name": name,
                "version": locked.version,
                "source": locked.source,
                "digest": locked.digest,
                "enabled": session.config.packages.is_enabled(name),
                "off": loaded.as_ref().err().map(ToString::to_string),
            }))?;
        }
        return printer.finish();
    }
    if states.is_empty() {
        printer.line("no packages yet; `myclaw packages add` takes one")?;
    }
    let rows: Vec<Vec<String>> = states
        .iter()
        .map(|PackageState { name, locked, loaded }| {
            let state = match loaded {
                Err(why) => format!("off: {why}"),
                Ok(_) if !session.config.packages.is_enabled(name) => "disabled".to_owned(),
                Ok(_) => "approved".to_owned(),
            };
            vec![
                name.clone(),
                locked.version.clone().unwrap_or_default(),
                state,
                locked.source.to_string(),
            ]
        })
        .collect();
    printer.safe_lines(columns(&rows))?;
    printer.finish()
}

fn show(name: &str) -> Result<(), CliError> {
    let session = session()?;
    let PackageState { locked, loaded, .. } = find(&session, name)?;
    let mut printer = Printer::stdout();
    printer.safe_lines([
        format!("package   {name}{}", version(locked.version.as_deref())),
        format!("source    {}", locked.source),
        format!("digest    {}", locked.digest),
        match &loaded {
            Ok(_) => "state     as you approved it".to_owned(),
            Err(why) => format!("state     off: {why}"),
        },
    ])?;
    section(&mut printer, "It holds and asked for:", &locked.wishes)?;
    if let Ok(LoadedPackage { contents, tree, directory, .. }) = &loaded {
        section(&mut printer, "Not used here:", &contents.unused)?;
        let files: Vec<String> = tree.files().map(|(path, _)| path.clone()).collect();
        section(&mut printer, &format!("Files in {}:", directory.display()), &files)?;
    }
    printer.finish()
}

fn update(name: &str, approval: &ApprovalArgs) -> Result<(), CliError> {
    let session = session()?;
    let before = find(&session, name)?;
    let subdirectory = before.locked.subdirectory.as_deref();
    let fetched = fetch(&session, &Wanted::again(&before.locked.source)?, subdirectory)?;
    let is_same = fetched.tree.digest() == before.locked.digest
        && fetched.contents.wishes() == before.locked.wishes;
    let mut printer = Printer::stdout();
    if is_same {
        if before.loaded.is_err() || before.locked.source != fetched.source {
            put(&session, name, &fetched, subdirectory)?;
        }
        printer.line(match before.loaded {
            Ok(_) => format!("the package {name} has not changed"),
            Err(_) => format!("the package {name} is restored as you approved it"),
        })?;
        return printer.finish();
    }
    printer.safe_lines([format!(
        "package   {name}{} -> {}",
        version(before.locked.version.as_deref()),
        version(fetched.contents.version.as_deref()).trim()
    )])?;
    describe(&mut printer, &fetched)?;
    let (old, new) = (&before.locked.wishes, fetched.contents.wishes());
    let gone = old.iter().filter(|wish| !new.contains(wish)).map(|wish| format!("- {wish}"));
    let more = new.iter().filter(|wish| !old.contains(wish)).map(|wish| format!("+ {wish}"));
    let wishes: Vec<String> = gone.chain(more).collect();
    section(&mut printer, "What it asks for differs from what you approved:", &wishes)?;
    let files: Vec<String> = before
        .locked
        .changes_to(&fetched.tree)
        .into_iter()
        .map(|(path, change)| match change {
            FileChange::New => format!("+ {path}"),
            FileChange::Gone => format!("- {path}"),
            FileChange::Changed => format!("~ {path}"),
        })
        .collect();
    section(&mut printer, "Its files differ:", &files)?;
    if let Ok(loaded) = &before.loaded {
        let mut lines = differences(&loaded.tree, &fetched.tree);
        if lines.len() > MAX_LINES {
            let more = lines.len() - MAX_LINES;
            lines.truncate(MAX_LINES);
            lines.push(format!("… {more} more lines"));
        }
        section(&mut printer, "In detail:", &lines)?;
    }
    printer.finish()?;
    if is_approved(&fetched, approval, &format!("Take the package {name} as it is now?"))? {
        put(&session, name, &fetched, subdirectory)?;
        return added(&session, name, &fetched);
    }
    Ok(())
}

fn remove(name: &str) -> Result<(), CliError> {
    let session = session()?;
    // Also one that is off can be removed.
    find(&session, name)?;
    session.home.packages().remove(name).map_err(myclaw_agent::AgentError::from)?;
    let mut printer = Printer::stdout();
    printer.line(format_args!("removed the package {name}"))?;
    printer.finish()
}

fn verify(name: Option<&str>) -> Result<(), CliError> {
    let session = session()?;
    let states = match name {
        Some(name) => vec![find(&session, name)?],
        None => states(&session)?,
    };
    let mut printer = Printer::stdout();
    for state in &states {
        printer.safe_lines([match &state.loaded {
            Ok(loaded) => format!("ok   {}: {} files", state.name, loaded.tree.files().len()),
            Err(why) => format!("off  {}: {why}", state.name),
        }])?;
    }
    if states.is_empty() {
        printer.line("there are no packages")?;
    }
    printer.finish()?;
    match states.iter().find(|state| state.loaded.is_err()) {
        None => Ok(()),
        Some(state) => Err(CliError::failure(format!(
            "a package that differs is not used; `myclaw packages update {}` fetches it again and shows what has changed",
            state.name
        ))),
    }
}
