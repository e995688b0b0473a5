//! The `*** Begin Patch` form.

use super::hunk::{parse_body, parse_hunk};
use super::model::{Action, BodyLine, ContentCheck, FileName, Hunk, ParseError, Role, Section};

const ADD: &str = "*** Add File:";
const UPDATE: &str = "*** Update File:";
const DELETE: &str = "*** Delete File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";
const END: &str = "*** End Patch";

/// Whether a patch is of this form.
pub(super) fn is_envelope(lines: &[&str]) -> bool {
    lines.iter().any(|line| starts_file(line))
}

/// Reads the sections.
///
/// # Errors
/// The first place where it cannot be understood.
pub(super) fn parse(lines: &[&str]) -> Result<Vec<Section>, ParseError> {
    let mut sections = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let line = lines[index];
        if line.starts_with(END) {
            break;
        }
        let (section, end) = if let Some(name) = name_behind(ADD, line) {
            parse_add(lines, index, name)?
        } else if let Some(name) = name_behind(UPDATE, line) {
            parse_update(lines, index, name)?
        } else if let Some(name) = name_behind(DELETE, line) {
            let action = Action::Delete { name: FileName::plain(name), check: ContentCheck::None };
            (Section { line: index + 1, action, hunks: Vec::new(), executable: None }, index + 1)
        } else {
            // Prose, or the line that begins the patch.
            index += 1;
            continue;
        };
        sections.push(section);
        index = end;
    }
    Ok(sections)
}

fn starts_file(line: &str) -> bool {
    [ADD, UPDATE, DELETE].iter().any(|start| line.starts_with(start))
}

fn name_behind<'l>(start: &str, line: &'l str) -> Option<&'l str> {
    line.strip_prefix(start).map(str::trim)
}

/// Whether a line cannot belong to a hunk.
fn is_boundary(lines: &[&str], index: usize) -> bool {
    let line = lines[index];
    line.starts_with("@@")
        || line.starts_with("```")
        || starts_file(line)
        || [MOVE, END_OF_FILE, END].iter().any(|start| line.starts_with(start))
}

fn parse_add(lines: &[&str], at: usize, name: &str) -> Result<(Section, usize), ParseError> {
    let end = (at + 1..lines.len())
        .find(|index| starts_file(lines[*index]) || lines[*index].starts_with(END))
        .unwrap_or(lines.len());
    let mut body = Vec::new();
    for (index, line) in lines.iter().enumerate().take(end).skip(at + 1) {
        if line.starts_with(END_OF_FILE) || (line.starts_with("```") && index + 1 == end) {
            break;
        }
        match line.strip_prefix('+') {
            Some(raw) => {
                body.push(BodyLine { role: Role::Add, raw: raw.to_owned(), no_newline: false })
            }
            None if line.trim().is_empty() => {
                body.push(BodyLine { role: Role::Add, raw: (*line).to_owned(), no_newline: false });
            }
            None => {
                return Err(ParseError::at(index, "each line of an added file starts with +"));
            }
        }
    }
    // Empty lines without a sign at the end separate sections.
    let kept = lines[at + 1..end]
        .iter()
        .rposition(|line| line.starts_with('+'))
        .map_or(0, |last| last + 1);
    body.truncate(kept);
    let hunks = if body.is_empty() {
        Vec::new()
    } else {
        vec![Hunk { line: at + 2, body, ..Hunk::default() }]
    };
    let action = Action::Create(FileName::plain(name));
    Ok((Section { line: at + 1, action, hunks, executable: None }, end))
}

fn parse_update(lines: &[&str], at: usize, name: &str) -> Result<(Section, usize), ParseError> {
    let mut index = at + 1;
    let mut action = Action::Update(FileName::plain(name));
    if let Some(to) = lines.get(index).and_then(|line| name_behind(MOVE, line)) {
        action = Action::Move { from: FileName::plain(name), to: FileName::plain(to) };
        index += 1;
    }
    let mut hunks: Vec<Hunk> = Vec::new();
    while index < lines.len() && !starts_file(lines[index]) && !lines[index].starts_with(END) {
        let line = lines[index];
        if line.starts_with(END_OF_FILE) {
            if let Some(last) = hunks.last_mut() {
                last.at_end = true;
            }
            index += 1;
        } else if line.starts_with("@@") {
            let (hunk, end) = parse_hunk(lines, index, is_boundary)?;
            hunks.push(hunk);
            index = end;
        } else if line.starts_with("--- ")
            && lines.get(index + 1).is_some_and(|next| next.starts_with("+++ "))
        {
            // The names, repeated in the form of a unified diff.
            index += 2;
        } else if is_boundary(lines, index) || line.trim().is_empty() {
            index += 1;
        } else {
            // The first hunk may be written there without `@@`.
            let (hunk, end) = parse_body(lines, index, None, is_boundary);
            if hunk.body.is_empty() {
                return Err(ParseError::at(
                    index,
                    "each line of a hunk starts with a space, - or +",
                ));
            }
            hunks.push(hunk);
            index = end;
        }
    }
    if hunks.is_empty() && matches!(action, Action::Update(_)) {
        return Err(ParseError::at(at, format!("there is no change for {name}")));
    }
    Ok((Section { line: at + 1, action, hunks, executable: None }, index))
}
