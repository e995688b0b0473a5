//! Parses the text of a model into the sections of a patch.

use super::envelope;
use super::model::{ParseError, Section};
use super::unified;

/// Beginnings of lines that belong to the patch itself and not to a file.
const HEADERS: [&str; 5] = ["--- ", "+++ ", "@@", "diff --git ", "*** "];

/// Parses a unified diff or the `*** Begin Patch` form, with prose and code fences around it.
///
/// # Errors
/// The first place where it cannot be understood.
pub(super) fn parse(text: &str) -> Result<Vec<Section>, ParseError> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut lines: Vec<&str> = text.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    if came_with_returns(&lines) {
        for line in &mut lines {
            *line = line.strip_suffix('\r').unwrap_or(line);
        }
    }
    let sections = if envelope::is_envelope(&lines) {
        envelope::parse(&lines)?
    } else {
        unified::parse(&lines)?
    };
    if sections.is_empty() {
        return Err(ParseError::at(
            0,
            "there is no change in it. Send a unified diff (--- a/file, +++ b/file, @@ and lines that start with a \
             space, - or +)",
        ));
    }
    Ok(sections)
}

/// Whether all lines of the patch end with `\r\n`. If only lines of files do, those files have such endings.
fn came_with_returns(lines: &[&str]) -> bool {
    let mut headers = lines
        .iter()
        .filter(|line| HEADERS.iter().any(|header| line.starts_with(header)))
        .peekable();
    headers.peek().is_some() && headers.all(|line| line.ends_with('\r'))
}
