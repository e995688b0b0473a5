//! Hunks: their headers and their lines.

use super::model::{BodyLine, Hunk, ParseError, Role};

/// Largest line number or count; larger ones are reduced to it. No file that can be patched has this many lines, and
/// sums of such numbers cannot overflow.
const MAX_NUMBER: usize = 1_000_000_000;

/// The parsed header of a hunk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Header {
    old_start: Option<usize>,
    /// Lines on the old and the new side, if the header has them.
    counts: Option<(usize, usize)>,
    /// The text after the second `@@`, or after the first where there are no numbers.
    heading: Option<String>,
}

/// Whether a line ends a hunk in the form of patch that is being read.
pub(super) type IsBoundary = fn(&[&str], usize) -> bool;

/// Reads the hunk at `lines[at]`, which starts with `@@`, and says where it ends.
///
/// # Errors
/// It has no lines, or is a diff of a merge.
pub(super) fn parse_hunk(
    lines: &[&str],
    at: usize,
    is_boundary: IsBoundary,
) -> Result<(Hunk, usize), ParseError> {
    if lines[at].starts_with("@@@") {
        return Err(ParseError::at(
            at,
            "diffs of merges (@@@) cannot be applied; send one against one side",
        ));
    }
    let header = parse_header(lines[at]);
    let mut anchors: Vec<String> = header.heading.into_iter().collect();
    let mut start = at + 1;
    // `@@ class A` and `@@ def b` below it narrow the place down step by step.
    while header.old_start.is_none() && lines.get(start).is_some_and(|line| line.starts_with("@@ "))
    {
        let next = parse_header(lines[start]);
        if next.old_start.is_some() {
            break;
        }
        anchors.extend(next.heading);
        start += 1;
    }
    let (mut hunk, end) = parse_body(lines, start, header.counts, is_boundary);
    if hunk.body.is_empty() {
        return Err(ParseError::at(
            at,
            "this hunk has no lines. Each line of one starts with a space, - or +",
        ));
    }
    hunk.line = at + 1;
    hunk.old_start = header.old_start;
    hunk.anchors = anchors;
    Ok((hunk, end))
}

/// Reads the lines of a hunk: by its counts if they fit, else up to the first line that cannot belong to it.
pub(super) fn parse_body(
    lines: &[&str],
    start: usize,
    counts: Option<(usize, usize)>,
    is_boundary: IsBoundary,
) -> (Hunk, usize) {
    let counted = counts.and_then(|counts| take_counted(lines, start, counts, is_boundary));
    let (body, end) = counted.unwrap_or_else(|| take_marked(lines, start, is_boundary));
    let at_end = body.iter().any(|line| line.no_newline && line.role != Role::Add);
    (Hunk { line: start + 1, body, at_end, ..Hunk::default() }, end)
}

/// The lines that the counts name; `None` if a line does not fit them or the hunk clearly continues after them.
fn take_counted(
    lines: &[&str],
    start: usize,
    (mut old, mut new): (usize, usize),
    is_boundary: IsBoundary,
) -> Option<(Vec<BodyLine>, usize)> {
    let mut body = Vec::new();
    let mut index = start;
    while old > 0 || new > 0 {
        let line = lines.get(index)?;
        index += 1;
        if line.starts_with('\\') {
            mark_no_newline(&mut body);
            continue;
        }
        let line = signed_line(line)?;
        let (takes_old, takes_new) = match line.role {
            Role::Context => (1, 1),
            Role::Remove => (1, 0),
            Role::Add => (0, 1),
        };
        old = old.checked_sub(takes_old)?;
        new = new.checked_sub(takes_new)?;
        body.push(line);
        let names_next_file = index + 1 < lines.len() && is_git_file_header(lines, index);
        if names_next_file && (old > 0 || new > 0) {
            return None;
        }
    }
    if lines.get(index).is_some_and(|line| line.starts_with('\\')) {
        mark_no_newline(&mut body);
        index += 1;
    }
    let next = (index..lines.len()).find(|next| !lines[*next].trim().is_empty());
    let goes_on = next.is_some_and(|next| {
        !is_boundary(lines, next) && lines[next].starts_with([' ', '+', '-', '\\'])
    });
    (!goes_on).then_some((body, index))
}

/// All lines up to a boundary. Lines without a sign count as context lines that lost their space, except at the end,
/// where they are prose after the patch.
fn take_marked(lines: &[&str], start: usize, is_boundary: IsBoundary) -> (Vec<BodyLine>, usize) {
    let mut body = Vec::new();
    let mut certain = 0;
    let mut index = start;
    while index < lines.len() && !is_boundary(lines, index) {
        let line = lines[index];
        index += 1;
        if line.starts_with("\\ ") {
            mark_no_newline(&mut body);
        } else if let Some(signed) = signed_line(line) {
            let has_sign = !line.trim_end_matches('\r').is_empty();
            body.push(signed);
            if has_sign {
                certain = body.len();
            }
        } else {
            body.push(BodyLine { role: Role::Context, raw: line.to_owned(), no_newline: false });
        }
    }
    body.truncate(certain);
    (body, index)
}

/// A line with its sign, or an empty line, which means an empty context line whose space was lost.
fn signed_line(line: &str) -> Option<BodyLine> {
    let (role, raw) = match line.as_bytes().first() {
        None => (Role::Context, line),
        Some(b'\r') if line.len() == 1 => (Role::Context, line),
        Some(b' ') => (Role::Context, &line[1..]),
        Some(b'-') => (Role::Remove, &line[1..]),
        Some(b'+') => (Role::Add, &line[1..]),
        Some(_) => return None,
    };
    Some(BodyLine { role, raw: raw.to_owned(), no_newline: false })
}

fn mark_no_newline(body: &mut [BodyLine]) {
    if let Some(last) = body.last_mut() {
        last.no_newline = true;
    }
}

/// Whether the names of another file start here, in a form that a line of a file does not have.
fn is_git_file_header(lines: &[&str], index: usize) -> bool {
    let is = |index: usize, starts: [&str; 2]| {
        lines.get(index).is_some_and(|line| starts.iter().any(|start| line.starts_with(start)))
    };
    is(index, ["--- a/", "--- /dev/null"]) && is(index + 1, ["+++ b/", "+++ /dev/null"])
}

/// Parses `@@ -1,2 +3,4 @@ heading`, `@@ heading`, `@@`, and the variants that models write.
fn parse_header(line: &str) -> Header {
    let rest = line.trim_start_matches('@').trim_start();
    let Some((ranges, heading)) = split_ranges(rest) else {
        let heading = rest.trim_end().trim_end_matches('@').trim();
        let says_nothing =
            heading.is_empty() || heading.chars().all(|c| matches!(c, '.' | '…' | '-' | '+' | ','));
        return Header {
            heading: (!says_nothing).then(|| heading.to_owned()),
            ..Header::default()
        };
    };
    let (old, new) = ranges;
    let counts = new.map(|new| (old.1, new.1));
    Header { old_start: Some(old.0), counts, heading }
}

/// Start and count of each side, and the heading.
type Ranges = (((usize, usize), Option<(usize, usize)>), Option<String>);

fn split_ranges(rest: &str) -> Option<Ranges> {
    let (old, rest) = split_range(rest.strip_prefix('-')?)?;
    let rest = rest.trim_start();
    let (new, rest) = match rest.strip_prefix('+').and_then(split_range) {
        Some((new, rest)) => (Some(new), rest),
        None => (None, rest),
    };
    let heading = rest.trim_start().trim_start_matches('@').trim();
    Some(((old, new), (!heading.is_empty()).then(|| heading.to_owned())))
}

/// `12,3` or `12`, and the text after it.
fn split_range(text: &str) -> Option<((usize, usize), &str)> {
    let (start, rest) = split_number(text)?;
    match rest.strip_prefix(',').and_then(split_number) {
        Some((count, rest)) => Some(((start, count), rest)),
        None => Some(((start, 1), rest)),
    }
}

fn split_number(text: &str) -> Option<(usize, &str)> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: usize = text[..digits].parse().ok()?;
    Some((number.min(MAX_NUMBER), &text[digits..]))
}
