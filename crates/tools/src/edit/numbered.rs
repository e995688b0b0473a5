//! Removes line numbers that were copied together with the lines.

/// Digits of a line number; a longer one is data.
const MAX_DIGITS: usize = 7;

/// The lines without the numbers in front of them, if every line has one and they count up by one. An empty last line
/// (after a final newline) needs none.
pub(super) fn without_line_numbers(lines: &[String]) -> Option<Vec<String>> {
    let (numbered, end) = match lines {
        [rest @ .., last] if last.is_empty() && !rest.is_empty() => (rest, Some(String::new())),
        _ => (lines, None),
    };
    let parsed: Vec<(u64, &str)> =
        numbered.iter().map(|line| split_number(line)).collect::<Option<_>>()?;
    let counts_up = parsed.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1);
    counts_up.then(|| parsed.into_iter().map(|(_, rest)| rest.to_owned()).chain(end).collect())
}

/// `12: text`, `12 | text`, `12<tab>text` and `12→text`, with spaces in front.
fn split_number(line: &str) -> Option<(u64, &str)> {
    let line = line.trim_start_matches(' ');
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits == 0 || digits > MAX_DIGITS {
        return None;
    }
    let number = line[..digits].parse().ok()?;
    let rest = &line[digits..];
    if let Some(rest) = rest.strip_prefix(['\t', '→']) {
        return Some((number, rest));
    }
    let rest = rest.trim_start_matches(' ').strip_prefix(['|', ':'])?;
    Some((number, rest.strip_prefix(' ').unwrap_or(rest)))
}

#[cfg(test)]
mod tests;
