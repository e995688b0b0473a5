//! The texts of commands that are messages: the arguments go into their places.

/// Stands for everything behind the name of the command.
const ALL_ARGUMENTS: &str = "$ARGUMENTS";

/// `text` with the arguments in their places: `$ARGUMENTS`, and `$1` to `$9` for single words. Without a place they
/// come last.
pub(crate) fn filled(text: &str, arguments: &str) -> String {
    let text = text.trim();
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let mut out = String::with_capacity(text.len() + arguments.len());
    let mut has_place = false;
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let digit = rest[1..].chars().next().and_then(|char| char.to_digit(10));
        let (value, length) = match digit {
            _ if rest.starts_with(ALL_ARGUMENTS) => (arguments, ALL_ARGUMENTS.len()),
            Some(number @ 1..) => (words.get(number as usize - 1).copied().unwrap_or(""), 2),
            _ => ("$", 1),
        };
        has_place |= length > 1;
        out.push_str(value);
        rest = &rest[length..];
    }
    out.push_str(rest);
    if !has_place && !arguments.is_empty() {
        out.push_str("\n\n");
        out.push_str(arguments);
    }
    out
}

#[cfg(test)]
mod tests;
