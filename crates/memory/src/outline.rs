//! The list of what is known, as the prompt holds it: the facts that hold, the newest of them if there are too many, and
//! the names of the other notes.

use std::path::Path;

use myclaw_files::SharedDirectory;

use crate::fact::Fact;

/// Most bytes of the list.
pub const MOST_OUTLINE_BYTES: usize = 2_000;
/// Of these, those that facts may take if there are other notes.
const MOST_FACT_BYTES: usize = 1_600;
/// Most bytes of a fact here; the search shows all of it.
const MOST_LINE_BYTES: usize = 200;
/// The directory of the notes, and the file of the facts in it.
const DIRECTORY: &str = "memory";
const FACTS: &str = "facts.md";
/// Most names of other notes.
const MOST_NAMES: usize = 20;

/// The list of the facts and the other notes in `workspace`; empty if there is nothing.
pub fn outline(facts: &[Fact], workspace: &Path) -> String {
    let notes = other_notes(workspace);
    let notes = match notes.is_empty() {
        true => String::new(),
        false => cut(&format!("Other notes in memory/: {}", notes.join(", ")), MOST_LINE_BYTES * 2),
    };
    let room = if notes.is_empty() { MOST_OUTLINE_BYTES } else { MOST_FACT_BYTES };
    let current: Vec<&Fact> = facts.iter().filter(|fact| fact.is_current()).collect();
    let mut lines = Vec::new();
    // A line about those that are left out needs room too.
    let mut left = room - 60;
    for fact in current.iter().rev() {
        let line = line_of(fact);
        if line.len() + 1 > left {
            break;
        }
        left -= line.len() + 1;
        lines.push(line);
    }
    let left_out = current.len() - lines.len();
    if left_out > 0 {
        lines.push(format!("- {left_out} older facts: memory_search finds them"));
    }
    lines.reverse();
    if !notes.is_empty() {
        lines.push(notes);
    }
    lines.join("\n")
}

fn line_of(fact: &Fact) -> String {
    let text = cut(&fact.text, MOST_LINE_BYTES);
    let origin = fact.origin.as_ref();
    let outside = origin.filter(|origin| !origin.after.is_empty());
    let mark = outside.map(|origin| cut(&format!(", after {}", origin.after.join(", ")), 60));
    format!("- {text} ({}{})", fact.id, mark.unwrap_or_default())
}

fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(most - '…'.len_utf8())])
}

fn other_notes(workspace: &Path) -> Vec<String> {
    let names = SharedDirectory::open(workspace)
        .and_then(|workspace| workspace.directory(DIRECTORY))
        .and_then(|notes| {
            notes.names(MOST_NAMES, |name| {
                let name = name.to_string_lossy();
                name.ends_with(".md") && !name.starts_with('.') && name != FACTS
            })
        });
    let names = names.map(|found| found.names).unwrap_or_default();
    names.iter().map(|name| name.to_string_lossy().replace(char::is_control, "_")).collect()
}

#[cfg(test)]
mod tests;
