//! Files that instructions name with `@path`, as Claude Code reads them.

use std::path::{Component, Path, PathBuf};

use myclaw_files::SharedDirectory;

use super::MAX_IMPORTS;

/// How a block of code begins and ends.
const FENCES: [&str; 2] = ["```", "~~~"];
/// What may stand behind a path in a sentence.
const PUNCTUATION: [char; 10] = ['.', ',', ';', ':', '!', '?', ')', ']', '"', '\''];

/// The first files that `text` names, relative to `directory`, each once and in their order: their paths below `root`,
/// without links. Code is passed over. Files outside of `root`, and those that usually hold secrets, are left out.
pub(super) fn imports(text: &str, directory: &Path, root: &SharedDirectory) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for word in prose(text).split_whitespace() {
        if found.len() >= MAX_IMPORTS {
            break;
        }
        let Some(named) = word.strip_prefix('@') else { continue };
        let shorter = named.trim_end_matches(PUNCTUATION);
        let file = [named, shorter]
            .into_iter()
            .filter(|path| !path.is_empty())
            .find_map(|path| Some(root.followed(directory.join(path)).ok()?.path));
        let Some(file) = file.filter(|file| may_be_read(file)) else { continue };
        if !found.contains(&file) {
            found.push(file);
        }
    }
    found
}

/// Whether a path below a project, which has no links, is none of those that usually hold secrets.
pub(super) fn may_be_read(path: &Path) -> bool {
    let is_secret = |part: Component<'_>| {
        let name = part.as_os_str().to_string_lossy();
        name == ".git" || name.starts_with(".env")
    };
    !path.components().any(is_secret)
}

/// The text without blocks and spans of code.
fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut fence = None;
    for line in text.lines() {
        let begin = FENCES.into_iter().find(|fence| line.trim_start().starts_with(fence));
        match (fence, begin) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => {
                // Every second part is between marks; one without an end is text.
                let parts: Vec<&str> = line.split('`').collect();
                let last = parts.len() - 1;
                let is_text = |at: usize| at.is_multiple_of(2) || at == last;
                let parts = parts.iter().enumerate().filter(|(at, _)| is_text(*at));
                parts.for_each(|(_, part)| out.extend([part, " "]));
                out.push('\n');
            }
        }
    }
    out
}
