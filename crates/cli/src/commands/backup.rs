//! `myclaw backup` and `myclaw restore`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::path::{Path, PathBuf};

use myclaw_agent::{AgentError, Home};
use myclaw_backup::{BackupError, Contents, LeftOut, Passphrase, Source, Why, check, create};
use myclaw_config::{ConfigChange, ConfigFile, ConfigPath};
use myclaw_files::{Durability, NewFile, canonical, parent_of};
use myclaw_front::exit::CliError;
use myclaw_front::home::{find_any_home, find_home};
use myclaw_front::print::{Printer, files_and_bytes, note};
use serde_json::Value;

use super::auth::read_unseen;
use super::refuse_if_in_use;
use crate::args::backup::{BackupArgs, PassphraseArgs, RestoreArgs};

mod parts;

use parts::part_of;

/// Most lines about what is left out; the rest is counted.
const MOST_NAMED: usize = 12;

/// Makes a backup, or checks one.
pub(crate) fn run(args: &BackupArgs) -> Result<(), CliError> {
    if args.check {
        let contents = with_passphrase(&args.file, &args.passphrase, &mut |from, passphrase| {
            check(from, passphrase)
        })?;
        let mut printer = Printer::stdout();
        let made_by = printer.safe(&contents.program).into_owned();
        printer.line(format_args!("whole: {}, made by MyClaw {made_by}", size(&contents)))?;
        say_left_out(&contents.left_out);
        return printer.finish();
    }
    let home = find_home()?;
    let state = home.paths.state_dir();
    if !state.is_dir() {
        let is =
            if fs::symlink_metadata(state).is_ok() { "is no directory" } else { "does not exist" };
        return Err(CliError::usage(format!(
            "there is nothing to back up: {} {is}",
            state.display()
        )));
    }
    let passphrase = new_passphrase(args)?;
    let source = source(&home, args)?;
    if is_dash(&args.file) {
        if io::stdout().is_terminal() {
            return Err(CliError::usage(
                "standard output is a terminal; name a file, or use a pipe",
            ));
        }
        let (contents, mut to) = create(source, io::stdout().lock(), passphrase.as_ref())
            .map_err(|error| failed(&error))?;
        to.flush().map_err(|error| CliError::output(&error))?;
        report(&args.file, &contents);
        return Ok(());
    }
    refuse_place(&args.file, state)?;
    let unwritable = |error: io::Error| {
        let file = args.file.display();
        CliError::failure(format!("cannot write {file}: {error}; choose another place"))
    };
    let name = args.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let file = NewFile::in_directory(&parent_of(&args.file), &name).map_err(unwritable)?;
    let (contents, file) =
        create(source, file, passphrase.as_ref()).map_err(|error| failed(&error))?;
    file.put_at_free(&args.file, Durability::Synced).map_err(unwritable)?;
    report(&args.file, &contents);
    Ok(())
}

/// Makes a state directory of a backup.
pub(crate) fn restore(args: &RestoreArgs) -> Result<(), CliError> {
    let home = find_any_home()?;
    let state = home.paths.state_dir();
    // A link to it is allowed.
    if let Ok(real) = canonical(state) {
        refuse_if_in_use(&[real])?;
    }
    let restored = with_passphrase(&args.file, &args.passphrase, &mut |from, passphrase| {
        myclaw_backup::restore(from, passphrase, state, args.replace)
    })?;
    let mut printer = Printer::stdout();
    printer.safe_lines([format!(
        "restored {} into {}",
        size(&restored.contents),
        state.display()
    )])?;
    if let Some(before) = &restored.before {
        let line = format!("what was there before is in {}", before.display());
        printer.safe_lines([line])?;
    }
    let config = home.paths.config_file();
    if !config.starts_with(state) && !config.exists() {
        let line = format!(
            "the config of the backup is in {}, but MYCLAW_CONFIG_PATH names another file",
            state.display()
        );
        printer.safe_lines([line])?;
    }
    printer.finish()?;
    say_left_out(&restored.contents.left_out);
    Ok(())
}

/// What of this home is in a backup.
fn source<'a>(home: &'a Home, args: &BackupArgs) -> Result<Source<'a>, CliError> {
    let (state, config) = (home.paths.state_dir(), home.paths.config_file());
    let mut source = Source {
        state,
        part_of: &part_of,
        replaced: BTreeMap::new(),
        left_out: elsewhere(home),
        program: env!("CARGO_PKG_VERSION"),
        with_keys: args.with_keys,
        with_work: !args.without_workspaces,
    };
    match config.strip_prefix(state) {
        Ok(inside) if !args.with_keys && config.exists() => {
            let (text, left_out) = config_without_keys(home)?;
            source.replaced.insert(inside.to_owned(), text.into_bytes());
            source.left_out.extend(left_out);
        }
        Ok(_) => {}
        Err(_) if config.exists() => source
            .left_out
            .push(LeftOut { path: config.to_string_lossy().into_owned(), why: Why::Elsewhere }),
        Err(_) => {}
    }
    Ok(source)
}

/// The config with a variable in the place of each key.
fn config_without_keys(home: &Home) -> Result<(String, Vec<LeftOut>), CliError> {
    let unreadable = |why: String| {
        CliError::failure(format!(
            "the keys in the config cannot be found, because {why}; correct that, or give --with-keys"
        ))
    };
    let file = ConfigFile::read(&home.paths).map_err(AgentError::from)?;
    let secrets = file.values().map_err(|error| unreadable(error.to_string()))?.secrets;
    let changes: Vec<ConfigChange> = secrets
        .iter()
        .map(|path| ConfigChange::Set {
            path: path.clone(),
            value: Value::String(format!("${{{}}}", variable_of(path))),
        })
        .collect();
    let changed = file.with(&changes).map_err(|error| unreadable(error.to_string()))?;
    let left_out = secrets.iter().map(|path| LeftOut {
        path: format!("{path} of the config, which is ${{{}}} there", variable_of(path)),
        why: Why::Key,
    });
    Ok((changed.text().to_owned(), left_out.collect()))
}

/// A variable with the name of a key of the config: `channels.telegram.botToken` is `CHANNELS_TELEGRAM_BOT_TOKEN`.
fn variable_of(path: &ConfigPath) -> String {
    let mut name = String::new();
    for character in path.to_string().chars() {
        let begins_word = character.is_ascii_uppercase() || !character.is_ascii_alphanumeric();
        if begins_word && !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
        if character.is_ascii_alphanumeric() {
            name.push(character.to_ascii_uppercase());
        }
    }
    name.trim_end_matches('_').to_owned()
}

/// What the config puts outside of the state directory: workspaces and key stores of agents, and the database of several
/// gateways.
fn elsewhere(home: &Home) -> Vec<LeftOut> {
    let Ok(loaded) = myclaw_config::load_or_default(&home.environment) else { return Vec::new() };
    let config = &loaded.config;
    let agents = config.resolved_agents();
    let mut places: Vec<PathBuf> =
        agents.flat_map(|agent| [Some(agent.workspace), agent.agent_dir]).flatten().collect();
    places.sort();
    places.dedup();
    places.retain(|place| !place.starts_with(home.paths.state_dir()) && place.exists());
    let names = places.into_iter().map(|place| place.to_string_lossy().into_owned());
    let database = config.store_address(&home.environment);
    let database =
        database.map(|_| "sessions and records in the database of gateway.store".to_owned());
    names.chain(database).map(|path| LeftOut { path, why: Why::Elsewhere }).collect()
}

/// A backup in the state directory would be part of the next one, and is lost with it.
fn refuse_place(file: &Path, state: &Path) -> Result<(), CliError> {
    let parent = parent_of(file);
    let inside = [canonical(&parent), canonical(state)];
    if let [Ok(parent), Ok(state)] = inside
        && parent.starts_with(&state)
    {
        return Err(CliError::usage(format!(
            "{} is in the state directory, which is what a backup is of; choose another place",
            file.display()
        )));
    }
    if !parent.is_dir() {
        return Err(CliError::usage(format!(
            "{} is no directory, so the backup cannot be there; make it, or choose another place",
            parent.display()
        )));
    }
    if fs::symlink_metadata(file).is_ok() {
        return Err(CliError::usage(format!(
            "{} exists already; choose another name, or remove it",
            file.display()
        )));
    }
    Ok(())
}

/// What is done with an open backup.
type Reading<'a, T> = dyn FnMut(&mut dyn Read, Option<&Passphrase>) -> Result<T, BackupError> + 'a;

/// Opens a backup, and asks for its passphrase if it is encrypted and there is a terminal.
fn with_passphrase<T>(
    file: &Path,
    args: &PassphraseArgs,
    read: &mut Reading<'_, T>,
) -> Result<T, CliError> {
    let given = args.passphrase_file.as_deref().map(passphrase_in).transpose()?;
    if is_dash(file) {
        return read(&mut io::stdin().lock(), given.as_ref()).map_err(|error| failed(&error));
    }
    if file.is_dir() {
        return Err(CliError::usage(format!(
            "{} is a directory; name the file that `myclaw backup` has written",
            file.display()
        )));
    }
    let open = || {
        File::open(file)
            .map_err(|error| CliError::usage(format!("cannot open {}: {error}", file.display())))
    };
    match read(&mut open()?, given.as_ref()) {
        Err(BackupError::Encrypted) if io::stdin().is_terminal() => {
            let typed = Passphrase::new(&read_unseen("passphrase of the backup (not shown): ")?);
            read(&mut open()?, typed.as_ref()).map_err(|error| failed(&error))
        }
        done => done.map_err(|error| failed(&error)),
    }
}

/// The passphrase of a new backup, if it is to be encrypted.
fn new_passphrase(args: &BackupArgs) -> Result<Option<Passphrase>, CliError> {
    if let Some(file) = &args.passphrase.passphrase_file {
        return passphrase_in(file).map(Some);
    }
    if !args.encrypt {
        return Ok(None);
    }
    if !io::stdin().is_terminal() {
        return Err(CliError::usage(
            "there is no terminal to ask at; give the passphrase with --passphrase-file FILE",
        ));
    }
    let first = read_unseen("passphrase for the backup (not shown): ")?;
    if first != read_unseen("the same again: ")? {
        return Err(CliError::usage("the two passphrases differ; nothing was written"));
    }
    let passphrase = Passphrase::new(&first);
    passphrase
        .map(Some)
        .ok_or_else(|| CliError::usage("the passphrase is empty; nothing was written"))
}

fn passphrase_in(file: &Path) -> Result<Passphrase, CliError> {
    let text = fs::read_to_string(file)
        .map_err(|error| CliError::usage(format!("cannot read {}: {error}", file.display())))?;
    let first = text.lines().next().unwrap_or_default();
    Passphrase::new(first)
        .ok_or_else(|| CliError::usage(format!("the first line of {} is empty", file.display())))
}

fn failed(error: &BackupError) -> CliError {
    match error {
        BackupError::Occupied(_)
        | BackupError::NoDirectory(_)
        | BackupError::Mounted(_)
        | BackupError::Encrypted
        | BackupError::WrongPassphrase => CliError::usage(error.to_string()),
        _ => CliError::failure(error.to_string()),
    }
}

fn is_dash(file: &Path) -> bool {
    file == Path::new("-")
}

fn size(contents: &Contents) -> String {
    files_and_bytes(contents.files(), contents.bytes())
}

fn report(file: &Path, contents: &Contents) {
    let place = if is_dash(file) { "standard output".into() } else { file.to_string_lossy() };
    note(format_args!("wrote {} to {place}", size(contents)));
    say_left_out(&contents.left_out);
}

fn say_left_out(left_out: &[LeftOut]) {
    for LeftOut { path, why } in left_out.iter().take(MOST_NAMED) {
        let why = match why {
            Why::Key => "holds keys; --with-keys includes them".to_owned(),
            Why::Work => "a workspace".to_owned(),
            Why::LeadsTo(target) => format!("a link to {target}; only the link is in the backup"),
            Why::Elsewhere => "outside of the state directory; copy it yourself".to_owned(),
            Why::Unreadable(why) => format!("cannot be read: {why}"),
            Why::Shortened => "became shorter while it was read; its copy ends in zeros".to_owned(),
        };
        note(format_args!("left out: {path} ({why})"));
    }
    if let Some(more @ 1..) = left_out.len().checked_sub(MOST_NAMED) {
        note(format_args!("left out: {more} more"));
    }
}
