//! Reads shell commands in the plainest form only.
//!
//! Simple commands of literal words, joined by `|`, `&&`, `||`, `;`, `&` and newlines, are read exactly as bash and
//! dash read them; tests compare the result with both. Everything else is refused by name. A parser that knows the
//! whole language would have to agree with the shell about all of it; each disagreement would be a way around the
//! allowlist. This one is short enough to be checked by eye.
//!
//! Locales in which a byte of a multi-byte character can be a quote or a backslash are not supported: commands run
//! with a UTF-8 or C locale.

mod error;
mod loose;
mod word;

pub use error::ShellError;
pub use loose::{LooseCommand, loose_commands};
pub use word::Word;

use crate::escape::is_deceptive;

/// Longest command that is read, in bytes. Longer ones are scripts, which nobody can review in a prompt.
pub const MAX_COMMAND_BYTES: usize = 64 * 1024;

/// Words with a meaning of their own where a command is expected.
const RESERVED: [&str; 21] = [
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "until", "while",
];
/// In bash a word that times the command behind it, elsewhere a program that runs it. Either way that command counts.
const TIME: &str = "time";

/// A parsed command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    /// The simple commands, in the order in which they are written.
    pub commands: Vec<Command>,
}

/// A simple command: a program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Command {
    /// The program's word, then the arguments. Never empty.
    pub words: Vec<Word>,
}

impl Command {
    /// The program, as it is written.
    pub fn program(&self) -> &str {
        self.words.first().map_or("", |word| word.text.as_str())
    }

    /// The arguments.
    pub fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The command without `time` in front of it.
    #[must_use]
    pub fn without_time(mut self) -> Self {
        self.words.drain(..self.words.iter().take_while(|word| is_time(word)).count());
        self
    }
}

impl std::fmt::Display for Command {
    /// The words with a space between, for messages; not to be run.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, word) in self.words.iter().enumerate() {
            if index > 0 {
                formatter.write_str(" ")?;
            }
            formatter.write_str(&crate::escape(&word.text))?;
        }
        Ok(())
    }
}

/// Parses a command line.
///
/// # Errors
/// The first construct that is not a plain command. See [`ShellError`].
pub fn parse(command: &str) -> Result<Script, ShellError> {
    if command.len() > MAX_COMMAND_BYTES {
        return Err(ShellError::TooLong);
    }
    let deceptive = |c: &char| is_deceptive(*c) && !matches!(c, '\n' | '\t');
    if let Some(character) = command.chars().find(deceptive) {
        return Err(ShellError::Character(character));
    }
    let mut parser =
        Parser { rest: command, script: Script::default(), current: Pending::default() };
    parser.run()?;
    if parser.script.commands.is_empty() { Err(ShellError::Empty) } else { Ok(parser.script) }
}

/// The text that remains, and the commands that were read so far.
struct Parser<'a> {
    rest: &'a str,
    script: Script,
    current: Pending,
}

/// The command being read.
#[derive(Default)]
struct Pending {
    words: Vec<Word>,
    is_redirected: bool,
    /// It follows `|`, `&&` or `||`, so it must not be missing.
    is_required: bool,
}

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// A newline or the end of the text: there may be no command before it.
    Line,
    /// `;` or `&`: there must be one.
    Separator,
    /// `|`, `&&` or `||`: there must be one on both sides.
    Joint,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<(), ShellError> {
        loop {
            self.skip_blanks();
            let Some(next) = self.rest.chars().next() else {
                self.end_command(End::Line)?;
                return if self.current.is_required { Err(ShellError::Empty) } else { Ok(()) };
            };
            match next {
                '\n' => {
                    self.take(1);
                    self.end_command(End::Line)?;
                }
                '#' => {
                    let end = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.take(end);
                }
                ';' | '&' | '|' => self.operator()?,
                '<' | '>' => self.redirection(None)?,
                '(' | ')' => return Err(ShellError::Parenthesis),
                _ => self.word()?,
            }
        }
    }

    fn take(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Skips blanks, and after a blank also a backslash with a newline, which the shell removes. Elsewhere the pair
    /// would join its two neighbours, so it is left for [`word::read`] to refuse.
    fn skip_blanks(&mut self) {
        let mut follows_blank = false;
        loop {
            let trimmed = self.rest.trim_start_matches([' ', '\t']);
            follows_blank |= trimmed.len() < self.rest.len();
            self.rest = trimmed;
            match trimmed.strip_prefix("\\\n") {
                Some(rest) if follows_blank => self.rest = rest,
                _ => return,
            }
        }
    }

    fn operator(&mut self) -> Result<(), ShellError> {
        const OPERATORS: [(&str, Result<End, ShellError>); 9] = [
            ("&&", Ok(End::Joint)),
            ("||", Ok(End::Joint)),
            ("|&", Err(ShellError::Redirection)),
            ("&>", Err(ShellError::Redirection)),
            (";;", Err(ShellError::Compound)),
            (";&", Err(ShellError::Compound)),
            (";", Ok(End::Separator)),
            ("&", Ok(End::Separator)),
            ("|", Ok(End::Joint)),
        ];
        for (text, end) in OPERATORS {
            if self.rest.starts_with(text) {
                self.take(text.len());
                return self.end_command(end?);
            }
        }
        Err(ShellError::Compound)
    }

    fn end_command(&mut self, end: End) -> Result<(), ShellError> {
        let Pending { words, is_redirected, is_required } = std::mem::take(&mut self.current);
        if words.is_empty() {
            if is_redirected {
                return Err(ShellError::Redirection);
            }
            if end != End::Line {
                return Err(ShellError::Empty);
            }
            // Newlines may precede the command that `|`, `&&` or `||` requires.
            self.current.is_required = is_required;
            return Ok(());
        }
        if words.iter().all(is_time) {
            return Err(ShellError::Compound);
        }
        self.script.commands.push(Command { words });
        self.current.is_required = end == End::Joint;
        Ok(())
    }

    fn word(&mut self) -> Result<(), ShellError> {
        let (word, rest) = word::read(self.rest)?;
        self.rest = rest;
        if rest.starts_with(['<', '>'])
            && !word.is_quoted
            && word.text.bytes().all(|byte| byte.is_ascii_digit())
        {
            return self.redirection(Some(&word.text));
        }
        if self.current.words.iter().all(is_time) && !is_time(&word) {
            check_program(&word)?;
            // An option of `time`, which some shells and programs have.
            if !self.current.words.is_empty() && word.text.starts_with('-') {
                return Err(ShellError::Compound);
            }
        }
        self.current.words.push(word);
        Ok(())
    }

    /// Reads a redirection. Only those that discard output, give no input, or join the two outputs are known.
    fn redirection(&mut self, number: Option<&str>) -> Result<(), ShellError> {
        let is_output = self.rest.starts_with('>');
        self.take(1);
        let descriptor = number.unwrap_or(if is_output { "1" } else { "0" });
        let known: &[&str] = if is_output { &["1", "2"] } else { &["0"] };
        if !known.contains(&descriptor) {
            return Err(ShellError::Redirection);
        }
        self.current.is_redirected = true;
        if is_output && let Some(target) = self.rest.strip_prefix('&') {
            // dash reads the digit in `>&1>` as the number of the second redirection.
            let rest = target.strip_prefix(['1', '2']).ok_or(ShellError::Redirection)?;
            if !rest.is_empty() && !rest.starts_with([' ', '\t', '\n', ';', '&', '|']) {
                return Err(ShellError::Redirection);
            }
            self.rest = rest;
            return Ok(());
        }
        if is_output && self.rest.starts_with('>') {
            self.take(1);
        }
        self.skip_blanks();
        if self.rest.is_empty()
            || self.rest.starts_with(['\n', ';', '&', '|', '<', '>', '(', ')', '#'])
        {
            return Err(ShellError::Redirection);
        }
        let (word, rest) = word::read(self.rest)?;
        self.rest = rest;
        if word.is_literal() && word.text == "/dev/null" {
            Ok(())
        } else {
            Err(ShellError::Redirection)
        }
    }
}

fn is_time(word: &Word) -> bool {
    !word.is_quoted && word.text == TIME
}

/// Refuses a name that the shell would not run as a program.
fn check_program(word: &Word) -> Result<(), ShellError> {
    if !word.is_quoted && RESERVED.contains(&word.text.as_str()) {
        return Err(ShellError::Compound);
    }
    if word.text.contains('=') {
        return Err(ShellError::Assignment);
    }
    if !word.is_literal() {
        return Err(ShellError::ExpandedProgram);
    }
    let plain = |c: char| c.is_ascii_graphic() || c == ' ';
    match word.text.chars().find(|c| !plain(*c)) {
        _ if word.text.is_empty() => Err(ShellError::Empty),
        Some(character) => Err(ShellError::Character(character)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
