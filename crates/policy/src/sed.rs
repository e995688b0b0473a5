//! Finds the calls of `sed` that run no other program and write no file: GNU sed runs commands through its `e` command and
//! the `e` flag of `s`, and writes through `w` and `-i`.

/// Letters of options without a value that only change how text is read and shown.
const PLAIN_LETTERS: &str = "nrEsuz";
/// Their long forms.
const PLAIN_OPTIONS: [&str; 6] =
    ["--quiet", "--silent", "--regexp-extended", "--separate", "--unbuffered", "--null-data"];
/// Commands without an argument that stay within what was read.
const PLAIN_COMMANDS: &str = "pdDnNgGhHxlPz=qQ";

/// Whether the arguments are options of those, scripts of a kind known to be harmless, and files.
pub(crate) fn is_plain(arguments: &[&str]) -> bool {
    let mut scripts = Vec::new();
    let mut operands = Vec::new();
    let mut rest = arguments.iter().copied();
    let mut options_ended = false;
    while let Some(argument) = rest.next() {
        let letters = argument.strip_prefix('-').filter(|letters| !letters.is_empty());
        let Some(letters) = letters.filter(|_| !options_ended) else {
            operands.push(argument);
            continue;
        };
        if let Some(script) = argument.strip_prefix("--expression=") {
            scripts.push(script);
        } else if argument == "--" {
            options_ended = true;
        } else if argument == "--expression" {
            scripts.extend(rest.next());
        } else if letters.starts_with('-') {
            if !PLAIN_OPTIONS.contains(&argument) {
                return false;
            }
        } else {
            let (before, script) = match letters.split_once('e') {
                Some((before, script)) => (before, Some(script)),
                None => (letters, None),
            };
            if !before.chars().all(|it| PLAIN_LETTERS.contains(it)) {
                return false;
            }
            match script {
                Some("") => scripts.extend(rest.next()),
                script => scripts.extend(script),
            }
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first());
    }
    !scripts.is_empty() && scripts.into_iter().all(is_plain_script)
}

/// Whether every command is one of [`PLAIN_COMMANDS`], `s` with harmless flags, or `y`, after line numbers or patterns.
fn is_plain_script(script: &str) -> bool {
    let mut reader = Reader { rest: script, depth: 0 };
    reader.script().is_some() && reader.depth == 0
}

/// Each method is `None` where something is not known to be harmless.
struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn script(&mut self) -> Option<()> {
        let mut commands = 0;
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', ';', '\n']);
            if self.rest.is_empty() {
                return (commands > 0).then_some(());
            }
            commands += 1;
            self.addresses()?;
            match self.next()? {
                '{' => {
                    self.depth += 1;
                    continue;
                }
                '}' => self.depth = self.depth.checked_sub(1)?,
                command @ ('s' | 'y') => {
                    let delimiter =
                        self.next().filter(|it| it.is_ascii_punctuation() && *it != '\\')?;
                    self.pattern(delimiter)?;
                    self.text(delimiter)?;
                    if command == 's' {
                        self.skip(|it| matches!(it, 'g' | 'p' | 'i' | 'I' | '0'..='9'));
                    }
                }
                command if PLAIN_COMMANDS.contains(command) => {
                    self.skip(|it| it == ' ');
                    if matches!(command, 'l' | 'q' | 'Q') {
                        self.skip(|it| it.is_ascii_digit());
                    }
                }
                _ => return None,
            }
            self.skip(|it| matches!(it, ' ' | '\t'));
            if !(self.rest.is_empty() || self.rest.starts_with([';', '\n', '}'])) {
                return None;
            }
        }
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = self.rest.get(next.len_utf8()..)?;
        Some(next)
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(is_skipped);
    }

    /// At most two, and `!`.
    fn addresses(&mut self) -> Option<()> {
        self.address()?;
        if let Some(rest) = self.rest.strip_prefix(',') {
            self.rest = rest.strip_prefix(['+', '~']).unwrap_or(rest);
            self.address()?;
        }
        self.skip(|it| matches!(it, ' ' | '!'));
        Some(())
    }

    fn address(&mut self) -> Option<()> {
        if let Some(rest) = self.rest.strip_prefix('/') {
            self.rest = rest;
            self.pattern('/')?;
            self.skip(|it| it == 'I');
        } else {
            self.skip(|it| it.is_ascii_digit() || matches!(it, '$' | '~'));
        }
        Some(())
    }

    /// Up to the delimiter. Within brackets it does not end a pattern in every sed, so there it must not be.
    fn pattern(&mut self, delimiter: char) -> Option<()> {
        loop {
            match self.next()? {
                it if it == delimiter => return Some(()),
                '\n' | '\r' => return None,
                '\\' => drop(self.next().filter(|it| !matches!(it, '\n' | '\r'))?),
                '[' => self.bracket(delimiter)?,
                _ => {}
            }
        }
    }

    fn bracket(&mut self, delimiter: char) -> Option<()> {
        self.rest = self.rest.strip_prefix('^').unwrap_or(self.rest);
        self.rest = self.rest.strip_prefix(']').unwrap_or(self.rest);
        loop {
            if let Some(class) = self.rest.strip_prefix("[:") {
                let (name, rest) = class.split_once(":]")?;
                name.chars().all(|it| it.is_ascii_lowercase()).then_some(())?;
                self.rest = rest;
                continue;
            }
            match self.next()? {
                ']' => return (delimiter != ']').then_some(()),
                it if it == delimiter || matches!(it, '[' | '\\' | '\n' | '\r') => return None,
                _ => {}
            }
        }
    }

    /// The replacement.
    fn text(&mut self, delimiter: char) -> Option<()> {
        loop {
            match self.next()? {
                it if it == delimiter => return Some(()),
                '\n' | '\r' => return None,
                '\\' => drop(self.next().filter(|it| !matches!(it, '\n' | '\r'))?),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
