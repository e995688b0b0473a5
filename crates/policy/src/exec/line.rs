//! Whether an allowlist covers every command of a line.

use std::path::PathBuf;

use super::entry::{Coverage, Entry, Inner, Program};
use super::place::Place;
use super::{ExecRequest, RefusalKind, identify};
use crate::harmless::{Effects, RepositoryUse};
use crate::shell::{Command, parse};

/// Variables that make `git` use another repository than the one of its directory.
const REPOSITORY_VARIABLES: [&str; 5] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"];

/// The first problem, with its command.
pub(super) fn miss(
    allowlist: &[Entry],
    request: &ExecRequest<'_>,
) -> Option<(RefusalKind, Option<Command>)> {
    let commands: Vec<Command> = match parse(request.command) {
        Ok(script) => script.commands.into_iter().map(Command::without_time).collect(),
        Err(error) => return Some((RefusalKind::Syntax(error), None)),
    };
    let mut place = Place::new(request);
    let mut effects = Vec::with_capacity(commands.len());
    for command in &commands {
        match check(allowlist, command, request, &place) {
            Ok(own) => effects.push(own),
            Err(kind) => return Some((kind, Some(command.clone()))),
        }
        if command.program() == "cd" {
            place.follow(command);
        }
    }
    // A link that an earlier command makes leads a later one elsewhere.
    let mut may_have_links = false;
    for (command, own) in commands.iter().zip(&effects) {
        if may_have_links && !own.written.is_empty() {
            let kind = RefusalKind::BesideLink(command.program().to_owned());
            return Some((kind, Some(command.clone())));
        }
        may_have_links |= own.makes_links;
    }
    let changes = effects.iter().filter(|own| own.changes_files).count();
    for (command, own) in commands.into_iter().zip(&effects) {
        let others = changes - usize::from(own.changes_files);
        if own.repository != RepositoryUse::None && others > 0 {
            let kind = RefusalKind::BesideChange(command.program().to_owned());
            return Some((kind, Some(command)));
        }
    }
    None
}

fn check(
    allowlist: &[Entry],
    command: &Command,
    request: &ExecRequest<'_>,
    place: &Place<'_>,
) -> Result<Effects, RefusalKind> {
    let program = identify(command, request)?;
    let name = command.program();
    // `cd` may have moved to another directory, in which the path names another file.
    let is_relative = name.contains('/') && !name.starts_with('/');
    if place.has_moved() && is_relative && matches!(program, Program::File { .. }) {
        return Err(RefusalKind::RelativeAfterCd(name.to_owned()));
    }
    let effects = match cover(allowlist, &program, command, place) {
        Ok(effects) => effects,
        // What it runs is judged instead, unless an entry says more about the program itself.
        Err(why) => match program.wrapped(command) {
            Some(Inner::Command { inner, own }) => {
                return Ok(check(allowlist, &inner, request, place)?.and(own));
            }
            Some(Inner::Variable(name)) => return Err(RefusalKind::ChangedVariable(name)),
            None => return Err(why),
        },
    };
    if effects.repository != RepositoryUse::None {
        check_repository(effects.repository, command, request, place)?;
    }
    Ok(effects)
}

/// What the first entry that covers the command permits, or the reason of the entry that comes nearest.
fn cover(
    allowlist: &[Entry],
    program: &Program<'_>,
    command: &Command,
    place: &Place<'_>,
) -> Result<Effects, RefusalKind> {
    let mut nearest: Option<RefusalKind> = None;
    for entry in allowlist {
        match entry.covers(program, command, place) {
            Coverage::Full(effects) => return Ok(effects),
            Coverage::Partial(kind) => {
                // An entry whose patterns match comes nearer than one for other arguments.
                let is_far = |known: &RefusalKind| matches!(known, RefusalKind::Arguments(_));
                if nearest.as_ref().is_none_or(is_far) {
                    nearest = Some(kind);
                }
            }
            Coverage::Absent => {}
        }
    }
    Err(nearest.unwrap_or_else(|| RefusalKind::Unlisted(program.describe())))
}

/// Refuses a command in a repository that names programs, wherever the command may run.
fn check_repository(
    uses: RepositoryUse,
    command: &Command,
    request: &ExecRequest<'_>,
    place: &Place<'_>,
) -> Result<(), RefusalKind> {
    let refuse = |what| RefusalKind::Repository { program: command.program().to_owned(), what };
    let has = |name: &&&str| request.environment.contains_key(**name);
    if let Some(name) = REPOSITORY_VARIABLES.iter().find(has) {
        return Err(refuse(format!("the variable {name}")));
    }
    let directories = place
        .directories()
        .ok_or_else(|| RefusalKind::UnknownDirectory(command.program().to_owned()))?;
    for directory in directories.iter().flat_map(|start| named_directories(start, command)) {
        let found = (request.repository)(&directory);
        let hook = found.changing_command.filter(|_| uses >= RepositoryUse::Hooks);
        let inner = || (request.inner_repository)(&directory);
        let inner = if uses == RepositoryUse::Trees { inner() } else { None };
        if let Some(what) = found.any_command.or(hook).or(inner) {
            return Err(refuse(crate::escape(&what)));
        }
    }
    Ok(())
}

/// The directory in which git looks for its repository, and those that options before the subcommand name. Only an entry
/// that spells them out permits these options.
fn named_directories(start: &std::path::Path, command: &Command) -> Vec<PathBuf> {
    let mut directory = start.to_owned();
    let mut others = Vec::new();
    let mut words = command.arguments().iter().map(|word| word.text.as_str());
    while let Some(word) = words.next().filter(|word| word.starts_with('-')) {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        if !matches!(name, "-C" | "--git-dir" | "--work-tree" | "-c" | "--exec-path") {
            continue;
        }
        let Some(value) = value.or_else(|| words.next()) else { break };
        match name {
            "-C" => directory.push(value),
            "--git-dir" | "--work-tree" => others.push(directory.join(value)),
            _ => {}
        }
    }
    others.push(directory);
    others
}
