//! Commands that the user has written: Markdown files whose text becomes the message.

use std::io;
use std::path::{Path, PathBuf};

use myclaw_files::{EntryKind, SharedDirectory, read_regular, text_of_bytes};
use myclaw_skills::{front_matter_fields, without_front_matter};

use crate::SessionConfig;
use crate::command_text::filled;
use crate::requests;

pub mod library;

/// The directory with the files, in the state directory and in the workspace.
const DIRECTORY: &str = "commands";
/// Most commands of a directory that are known.
const MOST_NAMES: usize = 500;
/// Most directories between that of the commands and one of them.
const MOST_DEPTH: usize = 4;
/// Largest file, in bytes.
const MOST_BYTES: u64 = 256 * 1024;

/// The message that a line asks for, if its first word is the name of such a command and no command of the program.
///
/// # Errors
/// The command has no text, needs arguments, or cannot be read: a sentence for the user.
pub fn expand(
    config: &SessionConfig,
    line: &str,
    is_builtin: impl Fn(&str) -> bool,
) -> Option<Result<String, String>> {
    // A space before the slash makes it a message.
    let line = line.trim_end();
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let word = name.strip_prefix('/')?;
    if is_builtin(name) || !word.split([':', '/']).all(is_name) {
        return None;
    }
    let Some((directory, file)) = find(config, word) else {
        return of_package(config, word, arguments);
    };
    let shown = directory.path().join(&file);
    Some(match read(config, &directory, &file) {
        Ok(bytes) => {
            let text = text_of_bytes(&bytes);
            let template = without_front_matter(&text).trim();
            let shown = shown.display();
            match filled(template, arguments.trim()) {
                _ if template.is_empty() => Err(format!(
                    "{shown} has no text for the model: write it below the front matter"
                )),
                said if said.trim().is_empty() => {
                    Err(format!("{name} needs arguments: {shown} has no other text"))
                }
                said => Ok(said),
            }
        }
        Err(error) => Err(format!("{} cannot be read: {error}", shown.display())),
    })
}

fn read(config: &SessionConfig, directory: &SharedDirectory, file: &Path) -> io::Result<Vec<u8>> {
    match is_own(config, directory) {
        true => read_regular(&directory.path().join(file), MOST_BYTES),
        false => directory.read(file, MOST_BYTES),
    }
}

/// The message of a command of a package: `PACKAGE:COMMAND`.
fn of_package(
    config: &SessionConfig,
    word: &str,
    arguments: &str,
) -> Option<Result<String, String>> {
    let (_, text) = config.package_commands().into_iter().find(|(name, _)| name == word)?;
    let said = filled(without_front_matter(&text).trim(), arguments.trim());
    Some(match said.trim().is_empty() {
        true => Err(format!("/{word} needs arguments, or has no text")),
        false => Ok(said),
    })
}

/// The directory and the file of the command that `word` names: `git:commit` and `git/commit` are the file `git/commit.md`, and
/// so is `commit` if no other file of that place has this name.
fn find(config: &SessionConfig, word: &str) -> Option<(SharedDirectory, PathBuf)> {
    let wanted = PathBuf::from(format!("{}.md", word.replace(':', "/")));
    let directories: Vec<SharedDirectory> = places(config).into_iter().flatten().collect();
    let is_there = |directory: &SharedDirectory| match is_own(config, directory) {
        true => directory.path().join(&wanted).exists(),
        false => matches!(directory.facts(&wanted), Ok(Some(_))),
    };
    if let Some(index) = directories.iter().position(is_there) {
        return directories.into_iter().nth(index).map(|directory| (directory, wanted));
    }
    directories.into_iter().find_map(|directory| {
        let mut same = files(&directory)
            .into_iter()
            .filter(|file| file.file_name() == Some(wanted.as_os_str()));
        let only = same.next().filter(|_| same.next().is_none())?;
        Some((directory, only))
    })
}

/// Whether a directory is that of the state directory, in which links are followed.
fn is_own(config: &SessionConfig, directory: &SharedDirectory) -> bool {
    directory.path() == config.home.paths.state_dir().join(DIRECTORY)
}

/// The names of the commands, with the slash; a command in a subdirectory as `/git:commit`. Those that the program words are
/// among them.
pub fn names(config: &SessionConfig) -> Vec<String> {
    let mut names: Vec<String> = places(config)
        .iter()
        .flatten()
        .flat_map(files)
        .filter_map(|file| name_of(&file).map(|name| format!("/{name}")))
        .chain(config.package_commands().into_iter().map(|(name, _)| format!("/{name}")))
        .chain(requests::names())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The commands, each with the `description` of its front matter, if it has one. Blocks.
pub fn described(config: &SessionConfig) -> Vec<(String, Option<String>)> {
    let packaged = config.package_commands();
    let text_of = |word: &str| match find(config, word) {
        Some((directory, file)) => {
            read(config, &directory, &file).ok().map(|bytes| text_of_bytes(&bytes))
        }
        None => packaged.iter().find(|(name, _)| name == word).map(|(_, text)| text.clone()),
    };
    let described = names(config).into_iter().map(|name| {
        let text = text_of(name.trim_start_matches('/'));
        (name, text.and_then(|text| description_of(&text)))
    });
    described.collect()
}

/// What the front matter of a file says that it is for.
fn description_of(text: &str) -> Option<String> {
    let (fields, _) = front_matter_fields(text)?;
    let field = fields.into_iter().find(|field| field.name == "description")?;
    Some(field.line_of_text()).filter(|line| !line.is_empty())
}

/// The name of the command of a file, without the slash.
fn name_of(file: &Path) -> Option<String> {
    Some(file.to_str()?.strip_suffix(".md")?.replace('/', ":"))
}

/// The files of commands below a directory.
fn files(directory: &SharedDirectory) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![(PathBuf::new(), 0)];
    while let Some((below, depth)) = waiting.pop() {
        let Ok(opened) = directory.directory(&below) else { continue };
        let Ok(listed) = opened.names(MOST_NAMES, |name| name.to_str().is_some_and(is_listed))
        else {
            continue;
        };
        for name in listed.names {
            let path = below.join(&name);
            let is_directory = || {
                opened.facts(&name).is_ok_and(|facts| {
                    facts.is_some_and(|facts| facts.kind == EntryKind::Directory)
                })
            };
            if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            } else if depth < MOST_DEPTH && is_directory() {
                waiting.push((path, depth + 1));
            }
        }
        if found.len() >= MOST_NAMES {
            break;
        }
    }
    found.sort();
    found
}

fn is_listed(name: &str) -> bool {
    is_name(name.strip_suffix(".md").unwrap_or(name))
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|char| char.is_alphanumeric() || matches!(char, '-' | '_'))
}

/// The directories with commands: that of the state directory counts before that of the workspace, where confined tools may have
/// put anything, so that no link is followed.
fn places(config: &SessionConfig) -> [io::Result<SharedDirectory>; 2] {
    let own = SharedDirectory::open(&config.home.paths.state_dir().join(DIRECTORY));
    let workspace = SharedDirectory::open(&config.agent.workspace);
    [own, workspace.and_then(|workspace| workspace.directory(DIRECTORY))]
}
