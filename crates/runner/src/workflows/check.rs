//! Every problem of a registry at once, for its owner. The tools stop at the first one.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::Path;

use myclaw_files::portable::PermissionsExt as _;
use myclaw_files::{from_json, read_regular};
use serde_json::Value;

use super::{MAX_BYTES, REGISTRY, Registry, Workflow};

/// Signs with which a word of a command is not a plain one.
const SHELL_SIGNS: &[char] =
    &['$', '`', '"', '\'', '\\', '|', '&', ';', '<', '>', '(', ')', '*', '?', '[', '{', '~', '='];
/// Programs whose first argument is usually a script.
const INTERPRETERS: &[&str] =
    &["bash", "sh", "dash", "zsh", "python", "python3", "node", "perl", "ruby", "php", "lua"];

/// All problems of the registry in `directory`; none if it can be used as it is.
///
/// A command is examined as far as that is possible without running it: its program, and the script of an interpreter.
pub fn check_workflows(directory: &Path) -> Vec<String> {
    let path = directory.join(REGISTRY);
    let bytes = match read_regular(&path, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return vec![format!("there is no {}; write a JSON list to it", path.display())];
        }
        Err(error) => return vec![format!("{} cannot be read: {error}", path.display())],
    };
    let entries: Vec<Value> = match from_json(&bytes) {
        Ok(entries) => entries,
        Err(problem) => return vec![format!("{} is not a JSON list: {problem}", path.display())],
    };
    let mut problems = Vec::new();
    let mut names = HashSet::new();
    for (number, entry) in (1..).zip(entries) {
        let shown = match entry["name"].as_str() {
            Some(name) => format!("workflow {number} ({name})"),
            None => format!("workflow {number}"),
        };
        let found = match from_json::<Workflow>(entry.to_string().as_bytes()) {
            Ok(workflow) => problems_of(&workflow, directory, &mut names),
            Err(problem) => vec![problem],
        };
        problems.extend(found.into_iter().map(|problem| format!("{shown}: {problem}")));
    }
    // What only the whole list can break, such as too many entries.
    if problems.is_empty()
        && let Err(error) = Registry::load(directory)
    {
        problems.push(error.to_string());
    }
    problems
}

fn problems_of(workflow: &Workflow, directory: &Path, names: &mut HashSet<String>) -> Vec<String> {
    let mut problems = Vec::new();
    if workflow.name.trim().is_empty() {
        problems.push("it has no name".to_owned());
    } else if !names.insert(workflow.name.clone()) {
        problems.push("another one has the same name".to_owned());
    }
    if workflow.description.trim().is_empty() {
        problems.push("it has no description, so no search finds it".to_owned());
    }
    if workflow.run.trim().is_empty() {
        problems.push("it has nothing to run".to_owned());
    }
    problems.extend(problem_of_command(&workflow.run, directory));
    problems
}

fn problem_of_command(command: &str, directory: &Path) -> Option<String> {
    let is_plain = |word: &&str| !word.contains(SHELL_SIGNS);
    let mut words = command.split_whitespace();
    let program = words.next().filter(is_plain)?;
    if program.contains('/') {
        return problem_of_file(program, directory, IsExecuted::Yes);
    }
    let script = words.next().filter(is_plain).filter(|word| !word.starts_with('-'));
    match script {
        Some(script) if INTERPRETERS.contains(&program) => {
            problem_of_file(script, directory, IsExecuted::No)
        }
        _ => None,
    }
}

/// Whether the system starts a file itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IsExecuted {
    Yes,
    No,
}

fn problem_of_file(name: &str, directory: &Path, executed: IsExecuted) -> Option<String> {
    let path = directory.join(name);
    match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Some(format!(
            "there is no file {name}; correct `run`, which starts in the directory of the registry"
        )),
        Err(error) => Some(format!("{name} cannot be read: {error}")),
        Ok(metadata) if metadata.is_dir() => Some(format!("{name} is a directory")),
        Ok(metadata)
            if executed == IsExecuted::Yes && metadata.permissions().mode() & 0o111 == 0 =>
        {
            Some(format!("{name} is not executable; run chmod +x on it"))
        }
        Ok(_) => None,
    }
}
