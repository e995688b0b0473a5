//! The commands in the state directory as a library of prompts, which their owner reads and changes from elsewhere.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use myclaw_files::{
    Durability, NewFile, SharedDirectory, canonical_or_same, create_private_directory,
    read_regular, remove_if_there, text_of_bytes,
};
use myclaw_skills::{front_matter_fields, without_front_matter};
use serde::{Deserialize, Serialize};

use super::{
    DIRECTORY, MOST_BYTES, MOST_DEPTH, MOST_NAMES, description_of, files, is_name, name_of,
};
use crate::Home;

/// Longest text, in bytes.
const MOST_TEXT: usize = 64 * 1024;
/// Longest description, in characters.
const MOST_DESCRIPTION: usize = 200;
/// Longest part of a name, in characters.
const MOST_PART: usize = 64;
/// Characters of a text that a list shows.
const BEGINNING: usize = 160;

/// A prompt: a message with places for arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prompt {
    /// What it is for, in a line. May be empty.
    #[serde(default)]
    pub description: String,
    /// The message.
    pub text: String,
}

/// A prompt in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedPrompt {
    /// The name of its command, without the slash.
    pub name: String,
    /// What it is for. May be empty.
    pub description: String,
    /// How it begins.
    pub beginning: String,
}

/// Why a prompt was not read or changed.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The name or the text cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// There is none of this name.
    #[error("there is no prompt `{0}` any more; it was deleted elsewhere")]
    Gone(String),
    /// It is not as it was read.
    #[error("the prompt `{0}` was changed elsewhere meanwhile; open it again")]
    Changed(String),
    /// There is one of this name.
    #[error("there is a prompt `{0}` already; change it, or choose another name")]
    Exists(String),
    /// A file cannot be read or written.
    #[error("{} cannot be used: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
}

/// The directory of the prompts.
pub fn prompts_directory(home: &Home) -> PathBuf {
    home.paths.state_dir().join(DIRECTORY)
}

/// The prompts that have `search` in their names, descriptions or texts, in any case, by name. Blocks.
pub fn list_prompts(home: &Home, search: &str) -> Vec<ListedPrompt> {
    let directory = prompts_directory(home);
    let Ok(opened) = SharedDirectory::open(&directory) else { return Vec::new() };
    let wanted = search.trim().to_lowercase();
    let listed = files(&opened).into_iter().filter_map(|file| {
        let name = name_of(&file)?;
        let Prompt { description, text } = read(&directory.join(&file)).ok()?;
        let is_wanted =
            [&name, &description, &text].iter().any(|it| it.to_lowercase().contains(&wanted));
        let beginning = text.chars().take(BEGINNING).collect();
        is_wanted.then_some(ListedPrompt { name, description, beginning })
    });
    listed.take(MOST_NAMES).collect()
}

/// A prompt. Blocks.
///
/// # Errors
/// There is none of this name, or it cannot be read.
pub fn read_prompt(home: &Home, name: &str) -> Result<Prompt, PromptError> {
    let path = path_of(home, name)?;
    read(&path).map_err(|error| failed(name, &path, error))
}

/// Writes a prompt: a new one, or in the place of `before`, if it still is so. What else is in the front matter of its file
/// stays. Blocks; callers call it one at a time.
///
/// # Errors
/// It cannot be used, or something else was written meanwhile.
pub fn write_prompt(
    home: &Home,
    name: &str,
    new: &Prompt,
    before: Option<&Prompt>,
) -> Result<(), PromptError> {
    let path = path_of(home, name)?;
    check(new)?;
    let old = match read_regular(&path, MOST_BYTES) {
        Ok(bytes) => Some(text_of_bytes(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(PromptError::File { path, source }),
    };
    match (&old, before) {
        (None, None) => {
            let opened = SharedDirectory::open(&prompts_directory(home));
            if opened.is_ok_and(|opened| files(&opened).len() >= MOST_NAMES) {
                let why = format!("there are {MOST_NAMES} prompts already; delete some first");
                return Err(PromptError::Unusable(why));
            }
        }
        (None, Some(_)) => return Err(PromptError::Gone(name.to_owned())),
        (Some(_), None) => return Err(PromptError::Exists(name.to_owned())),
        (Some(text), Some(before)) if prompt_of(text) != *before => {
            return Err(PromptError::Changed(name.to_owned()));
        }
        (Some(_), Some(_)) => {}
    }
    put(&path, &written(old.as_deref(), new)).map_err(|source| PromptError::File { path, source })
}

/// Deletes a prompt. Blocks.
///
/// # Errors
/// There is none of this name, or its file cannot be removed.
pub fn delete_prompt(home: &Home, name: &str) -> Result<(), PromptError> {
    let path = path_of(home, name)?;
    match remove_if_there(&path) {
        Ok(true) => Ok(()),
        Ok(false) => Err(PromptError::Gone(name.to_owned())),
        Err(source) => Err(PromptError::File { path, source }),
    }
}

fn read(path: &Path) -> io::Result<Prompt> {
    Ok(prompt_of(&text_of_bytes(&read_regular(path, MOST_BYTES)?)))
}

fn failed(name: &str, path: &Path, source: io::Error) -> PromptError {
    match source.kind() {
        io::ErrorKind::NotFound => PromptError::Gone(name.to_owned()),
        _ => PromptError::File { path: path.to_owned(), source },
    }
}

fn prompt_of(text: &str) -> Prompt {
    let description = description_of(text).unwrap_or_default();
    Prompt { description, text: without_front_matter(text).trim().to_owned() }
}

fn path_of(home: &Home, name: &str) -> Result<PathBuf, PromptError> {
    let parts: Vec<&str> = name.split(':').collect();
    let is_part = |part: &&str| is_name(part) && part.chars().count() <= MOST_PART;
    if !parts.iter().all(is_part) || parts.len() > MOST_DEPTH + 1 {
        return Err(PromptError::Unusable(format!(
            "the name of a prompt is made of letters, digits, `-` and `_`, with `:` between at most {} parts of at most {MOST_PART} characters",
            MOST_DEPTH + 1
        )));
    }
    Ok(prompts_directory(home).join(format!("{}.md", parts.join("/"))))
}

fn check(prompt: &Prompt) -> Result<(), PromptError> {
    let Prompt { description, text } = prompt;
    let why = if text.trim().is_empty() {
        "write the text of the prompt".to_owned()
    } else if text.len() > MOST_TEXT {
        format!("a prompt has at most {} KiB", MOST_TEXT / 1024)
    } else if description.chars().any(char::is_control)
        || description.chars().count() > MOST_DESCRIPTION
    {
        format!("a description is one line of at most {MOST_DESCRIPTION} characters")
    } else {
        return Ok(());
    };
    Err(PromptError::Unusable(why))
}

/// The text of a file, with what the front matter of the old one says otherwise.
fn written(old: Option<&str>, new: &Prompt) -> String {
    let Prompt { description, text } = new;
    let (description, text) = (description.trim(), text.trim());
    let mut front = old.map(others).unwrap_or_default();
    if !description.is_empty() {
        // A text of JSON is one of YAML.
        front.push(format!("description: {}", serde_json::Value::from(description)));
    }
    // A text that looks like front matter needs an empty one before it.
    match front.is_empty() && !text.starts_with("---") {
        true => format!("{text}\n"),
        false => format!(
            "---\n{}---\n\n{text}\n",
            front.iter().map(|line| format!("{line}\n")).collect::<String>()
        ),
    }
}

/// The lines of the front matter that do not belong to the description.
fn others(text: &str) -> Vec<String> {
    let Some((fields, body)) = front_matter_fields(text) else { return Vec::new() };
    let head = &text[..text.len() - body.len()];
    let lines: Vec<&str> = head.lines().collect();
    // The first and the last line are the marks.
    let last = lines.len().saturating_sub(1);
    let is_description = |number: usize| {
        let field = fields.iter().rev().find(|field| field.line <= number);
        field.is_some_and(|field| field.name == "description")
    };
    let between = lines[..last].iter().enumerate().skip(1);
    between
        .filter(|(index, _)| !is_description(index + 1))
        .map(|(_, line)| (*line).to_owned())
        .collect()
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    // A link of the owner stays one.
    let path = canonical_or_same(path);
    let directory = path.parent().unwrap_or(Path::new("/"));
    create_private_directory(directory)?;
    let mut file = NewFile::in_directory(directory, ".prompt-")?;
    file.write_all(text.as_bytes())?;
    file.put_at(&path, Durability::Synced).map(drop)
}

#[cfg(test)]
mod tests;
