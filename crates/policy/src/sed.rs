//! Finds the calls of `sed` that run no other program: GNU sed runs commands through its `e` command and the `e` flag
//! of `s`.

/// Letters of options without a value that only change how text is read and shown.
const PLAIN_LETTERS: &str = "nrEsuz";

/// Whether the arguments are options of those letters, one script of a kind known to be harmless, and files.
pub(crate) fn is_plain(arguments: &[&str]) -> bool {
    let mut script = None;
    for argument in arguments {
        let letters = argument.strip_prefix('-').filter(|letters| !letters.is_empty());
        if letters.is_some_and(|letters| !letters.chars().all(|it| PLAIN_LETTERS.contains(it))) {
            return false;
        }
        if letters.is_none() && script.is_none() {
            script = Some(*argument);
        }
    }
    script.is_some_and(is_plain_script)
}

/// One command: `p`, `d`, `q`, `=` or `s/…/…/` with harmless flags, after at most two line numbers or `$`.
fn is_plain_script(script: &str) -> bool {
    let command = script.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '$'));
    let Some(body) = command.strip_prefix('s') else {
        return matches!(command, "p" | "d" | "q" | "=");
    };
    let mut characters = body.chars();
    let Some(delimiter) = characters.next().filter(|c| c.is_ascii_punctuation() && *c != '\\')
    else {
        return false;
    };
    let mut delimiters = 0;
    let mut is_escaped = false;
    for character in characters {
        match character {
            '\n' | '\r' => return false,
            // Within brackets the delimiter does not end a pattern in every sed, so leave brackets out.
            '[' if delimiters == 0 => return false,
            _ if delimiters == 2 && !matches!(character, 'g' | 'p' | 'i' | 'I' | '0'..='9') => {
                return false;
            }
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if character == delimiter => delimiters += 1,
            _ => {}
        }
    }
    delimiters == 2
}

#[cfg(test)]
mod tests;
