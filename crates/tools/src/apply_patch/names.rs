//! File names as diffs write them.

/// The name in a `---` or `+++` line, without the time that may follow it.
pub(super) fn clean_name(written: &str) -> String {
    let written = written.trim_end_matches('\r');
    if written.starts_with('"') {
        return unquote(written);
    }
    let name = written.split('\t').next().unwrap_or(written);
    without_time(name).trim_end().to_owned()
}

/// Both names of a `diff --git` line. Without quotes they can be separated only if they are the same.
pub(super) fn git_names(written: &str) -> Option<(String, String)> {
    let written = written.trim_end();
    if let Some(end) = quoted_end(written) {
        return Some((unquote(&written[..end]), unquote(written[end..].trim_start())));
    }
    if let Some((old, new)) = written.split_once(" \"") {
        return Some((old.to_owned(), unquote(&format!("\"{new}"))));
    }
    let spaces = || {
        written.match_indices(' ').map(|(offset, _)| (&written[..offset], &written[offset + 1..]))
    };
    let bare =
        |name: &'_ str| name.split_once('/').map_or(name.to_owned(), |(_, rest)| rest.to_owned());
    let same = spaces().find(|(old, new)| bare(old) == bare(new) || old == new);
    let (old, new) = same.or_else(|| spaces().next().filter(|_| spaces().count() == 1))?;
    Some((old.to_owned(), new.to_owned()))
}

/// A name in C quotes, as git writes one with bytes beyond ASCII; any other name as it is.
pub(super) fn unquote(written: &str) -> String {
    let Some(end) = quoted_end(written) else { return written.to_owned() };
    let mut bytes = Vec::new();
    let mut rest = written[1..end - 1].bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let Some(escaped) = rest.next() else { break };
        bytes.push(match escaped {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0C,
            b'v' => 0x0B,
            digit @ b'0'..=b'7' => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|byte| (b'0'..=b'7').contains(byte)) else {
                        break;
                    };
                    value = value * 8 + u32::from(digit - b'0');
                }
                value as u8
            }
            other => other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Length of the quoted name that `written` starts with, quotes included.
fn quoted_end(written: &str) -> Option<usize> {
    let inside = written.strip_prefix('"')?;
    let mut is_escaped = false;
    for (offset, byte) in inside.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(offset + 2),
            _ => {}
        }
    }
    None
}

/// Cuts off ` 2024-01-31 10:00...`, which some programs put there without a tab.
fn without_time(name: &str) -> &str {
    /// The shape of a date and the start of a time; `0` matches any digit.
    const SHAPE: &[u8] = b" 0000-00-00 00:00";
    let fits = |window: &[u8]| {
        window.iter().zip(SHAPE).all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            b' ' => matches!(byte, b' ' | b'T'),
            shape => byte == shape,
        })
    };
    match name.as_bytes().windows(SHAPE.len()).position(fits) {
        Some(offset) if offset > 0 && name.is_char_boundary(offset) => &name[..offset],
        _ => name,
    }
}

#[cfg(test)]
mod tests;
