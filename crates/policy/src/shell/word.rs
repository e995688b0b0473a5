//! Reads one word: quotes, escapes, and the expansions that an argument may contain.

use super::ShellError;

/// A word of a command, without its quotes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// The text that the program gets; for a word that the shell expands, the text before expansion.
    pub text: String,
    /// Any part of it is quoted or escaped.
    pub is_quoted: bool,
    /// The shell expands a variable, wildcard or `~` in it, so the program gets other text, several words, or no word.
    pub is_expanded: bool,
}

impl Word {
    /// True if the program gets exactly [`Word::text`].
    pub fn is_literal(&self) -> bool {
        !self.is_expanded
    }
}

/// How the place of a dollar sign is quoted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Unquoted,
    Double,
}

/// Reads the word at the start of `text`, which begins with neither a blank nor an operator. Returns what follows it.
pub(super) fn read(text: &str) -> Result<(Word, &str), ShellError> {
    let mut reader = Reader { rest: text, word: Word::default() };
    let mut has_bracket = false;
    while let Some(next) = reader.rest.chars().next() {
        match next {
            ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
            '\'' => reader.single_quotes()?,
            '"' => reader.double_quotes()?,
            '\\' => reader.escaped()?,
            '$' => reader.dollar(Quoting::Unquoted)?,
            '`' => return Err(ShellError::CommandSubstitution),
            '{' | '}' => return Err(ShellError::Brace),
            _ => {
                has_bracket |= next == '[';
                reader.word.is_expanded |= matches!(next, '*' | '?') || reader.is_tilde(next);
                reader.push(next);
            }
        }
    }
    let Reader { rest, mut word } = reader;
    // A lone bracket is the command `[`; the closing one alone never is a wildcard.
    word.is_expanded |= has_bracket && word.text != "[";
    Ok((word, rest))
}

struct Reader<'a> {
    rest: &'a str,
    word: Word,
}

impl Reader<'_> {
    fn push(&mut self, character: char) {
        self.word.text.push(character);
        self.skip(character);
    }

    fn skip(&mut self, character: char) {
        self.rest = self.rest.strip_prefix(character).unwrap_or(self.rest);
    }

    /// True if `next` is a `~` that means a home directory: at the start, or where bash takes the word for an
    /// assignment.
    fn is_tilde(&self, next: char) -> bool {
        let before = self.word.text.chars().next_back();
        next == '~' && before.is_none_or(|before| matches!(before, '=' | ':'))
    }

    fn single_quotes(&mut self) -> Result<(), ShellError> {
        self.word.is_quoted = true;
        self.skip('\'');
        let (quoted, rest) = self.rest.split_once('\'').ok_or(ShellError::UnclosedQuote)?;
        self.word.text.push_str(quoted);
        self.rest = rest;
        Ok(())
    }

    fn double_quotes(&mut self) -> Result<(), ShellError> {
        self.word.is_quoted = true;
        self.skip('"');
        loop {
            match self.rest.chars().next().ok_or(ShellError::UnclosedQuote)? {
                '"' => {
                    self.skip('"');
                    return Ok(());
                }
                '`' => return Err(ShellError::CommandSubstitution),
                '$' => self.dollar(Quoting::Double)?,
                '\\' => {
                    self.skip('\\');
                    match self.rest.chars().next().ok_or(ShellError::UnclosedQuote)? {
                        '\n' => return Err(ShellError::LineContinuation),
                        next @ ('$' | '`' | '"' | '\\') => self.push(next),
                        next => {
                            self.word.text.push('\\');
                            self.push(next);
                        }
                    }
                }
                next => self.push(next),
            }
        }
    }

    fn escaped(&mut self) -> Result<(), ShellError> {
        self.word.is_quoted = true;
        self.skip('\\');
        match self.rest.chars().next() {
            None | Some('\n') => Err(ShellError::LineContinuation),
            Some(next) => {
                self.push(next);
                Ok(())
            }
        }
    }

    fn dollar(&mut self, quoting: Quoting) -> Result<(), ShellError> {
        self.push('$');
        let Some(next) = self.rest.chars().next() else { return Ok(()) };
        match next {
            '(' if self.rest.starts_with("((") => Err(ShellError::Arithmetic),
            '(' => Err(ShellError::CommandSubstitution),
            '[' => Err(ShellError::Arithmetic),
            '{' => self.braced_name(),
            '\'' | '"' if quoting == Quoting::Unquoted => Err(ShellError::DollarQuote),
            '"' => Ok(()),
            ' ' | '\t' | '\n' => Ok(()),
            ';' | '&' | '|' | '<' | '>' | ')' if quoting == Quoting::Unquoted => Ok(()),
            '?' | '$' | '!' | '#' | '@' | '*' | '-' | '0'..='9' => {
                self.word.is_expanded = true;
                self.push(next);
                Ok(())
            }
            _ if is_name_start(next) => {
                self.word.is_expanded = true;
                self.name();
                Ok(())
            }
            '\\' if self.rest.starts_with("\\\n") => Err(ShellError::LineContinuation),
            _ => Err(ShellError::StrayDollar),
        }
    }

    /// `${NAME}`, and nothing more inside the braces.
    fn braced_name(&mut self) -> Result<(), ShellError> {
        self.push('{');
        if !self.rest.starts_with(is_name_start) {
            return Err(ShellError::ParameterExpansion);
        }
        self.name();
        if !self.rest.starts_with('}') {
            return Err(ShellError::ParameterExpansion);
        }
        self.push('}');
        self.word.is_expanded = true;
        Ok(())
    }

    fn name(&mut self) {
        while let Some(next) = self.rest.chars().next()
            && (is_name_start(next) || next.is_ascii_digit())
        {
            self.push(next);
        }
    }
}

fn is_name_start(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_'
}
