//! Takes a command line apart for the question what it may start. Unlike [`super::parse`] it also reads loops,
//! parentheses and redirections, because it decides nothing: an approval is bound to the files of all words that could
//! be a program or a script.

use super::{Command, RESERVED, Word, word};

/// A command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LooseCommand {
    /// Its words.
    pub command: Command,
    /// What another command writes may be its input.
    pub is_piped: bool,
}

/// The commands of a line, as far as its words say what they are. Words of the shell's own language in front of a command
/// are left out, and so are the files that output goes to.
///
/// `None` if it has a construct whose words are known only when it runs, such as `$(…)` or a here-document.
pub fn loose_commands(line: &str) -> Option<Vec<LooseCommand>> {
    if line.len() > super::MAX_COMMAND_BYTES {
        return None;
    }
    let mut reader = Reader { rest: line, ..Reader::default() };
    reader.run()?;
    reader.end();
    Some(reader.commands)
}

#[derive(Default)]
struct Reader<'a> {
    rest: &'a str,
    commands: Vec<LooseCommand>,
    words: Vec<Word>,
    is_piped: bool,
    /// A group or a compound command has the output of another command as its input. Where it ends is not looked for.
    is_group_piped: bool,
}

impl Reader<'_> {
    fn run(&mut self) -> Option<()> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            if let Some(rest) = self.rest.strip_prefix("\\\n") {
                self.rest = rest;
                continue;
            }
            let Some(next) = self.rest.chars().next() else { return Some(()) };
            match next {
                '|' if !self.rest.starts_with("||") => {
                    self.take(if self.rest.starts_with("|&") { 2 } else { 1 });
                    self.end();
                    self.is_piped = true;
                }
                '(' => {
                    self.take(1);
                    self.end();
                    self.is_group_piped |= self.is_piped;
                }
                '|' => {
                    self.take(2);
                    self.end();
                }
                '\n' | ';' | ')' => {
                    self.take(1);
                    self.end();
                }
                '&' if !self.rest.starts_with("&>") => {
                    self.take(1);
                    self.end();
                }
                '#' => self.take(self.rest.find('\n').unwrap_or(self.rest.len())),
                '&' | '>' => self.output()?,
                '<' => {
                    // A here-document, or a process.
                    if self.rest.starts_with("<<") || self.rest.starts_with("<(") {
                        return None;
                    }
                    // What is read counts as an operand: a shell may run it.
                    self.take(1);
                }
                '{' | '}' if self.is_alone() => {
                    self.take(1);
                    self.end();
                    self.is_group_piped |= self.is_piped;
                }
                _ => {
                    let word = self.word()?;
                    let is_descriptor = !word.is_quoted
                        && self.rest.starts_with(['<', '>'])
                        && word.text.bytes().all(|byte| byte.is_ascii_digit());
                    if !is_descriptor {
                        self.words.push(word);
                    }
                }
            }
        }
    }

    /// Whether the brace that comes next is a word of its own.
    fn is_alone(&self) -> bool {
        let rest = self.rest.get(1..).unwrap_or_default();
        rest.is_empty() || rest.starts_with([' ', '\t', '\n', ';', '&', '|', ')'])
    }

    fn take(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn word(&mut self) -> Option<Word> {
        let (word, rest) = word::read(self.rest).ok()?;
        if rest.len() == self.rest.len() {
            return None;
        }
        self.rest = rest;
        Some(word)
    }

    /// Skips `>`, `>>`, `>|`, `&>` or `>&` with its file.
    fn output(&mut self) -> Option<()> {
        self.rest = self.rest.trim_start_matches(['&', '>', '|', ' ', '\t']);
        if self.rest.starts_with('(') {
            return None;
        }
        self.word().map(drop)
    }

    fn end(&mut self) {
        let words = std::mem::take(&mut self.words);
        if words.is_empty() {
            return;
        }
        let is_reserved = |word: &Word| !word.is_quoted && RESERVED.contains(&word.text.as_str());
        self.is_group_piped |= self.is_piped && words.first().is_some_and(is_reserved);
        let is_piped = std::mem::take(&mut self.is_piped) || self.is_group_piped;
        let words: Vec<Word> = words.into_iter().skip_while(is_reserved).collect();
        if !words.is_empty() {
            self.commands.push(LooseCommand { command: Command { words }, is_piped });
        }
    }
}

#[cfg(test)]
mod tests;
