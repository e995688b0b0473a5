//! Constructs that the parser refuses.

/// Why a command line was not parsed. Each message says what to write instead, because the model reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShellError {
    /// `$(…)` or backticks.
    #[error("it has a command substitution; run the inner command first and use its output")]
    CommandSubstitution,
    /// `$((…))` or `$[…]`.
    #[error("it has an arithmetic expansion; write the number")]
    Arithmetic,
    /// `${…}` with more than a name.
    #[error("it has a parameter expansion with an operator; use a plain `$NAME`")]
    ParameterExpansion,
    /// `$'…'` or `$\"…\"`.
    #[error("it has `$'…'` or `$\"…\"` quoting; use plain single or double quotes")]
    DollarQuote,
    /// A dollar sign whose meaning differs between shells.
    #[error("it has a `$` without the name of a variable; put it in single quotes")]
    StrayDollar,
    /// A redirection other than those to and from /dev/null, `2>&1` and `>&2`.
    #[error(
        "it has a redirection other than to or from /dev/null, `2>&1` and `>&2`; use the file tools to read and write \
         files"
    )]
    Redirection,
    /// A subshell, function or process substitution.
    #[error(
        "it has an unquoted parenthesis (subshell, function or process substitution); quote it or leave it out"
    )]
    Parenthesis,
    /// An unquoted brace.
    #[error("it has an unquoted brace (group or brace expansion); quote it or write the words out")]
    Brace,
    /// A loop, condition or another compound command.
    #[error(
        "it has a compound command (`if`, `for`, `!`, `[[`, `time`, …); run plain commands one by one"
    )]
    Compound,
    /// `NAME=value` before a command.
    #[error("it sets a variable in front of a command; leave that out")]
    Assignment,
    /// A variable, wildcard or `~` in the place of the program's name.
    #[error("the name of a program comes from an expansion; write the name itself")]
    ExpandedProgram,
    /// A backslash before a newline inside a word or quotes, or at the end.
    #[error("it has a backslash before a line end within a word; write the word on one line")]
    LineContinuation,
    /// A quote that is not closed.
    #[error("a quote is not closed")]
    UnclosedQuote,
    /// An operator without a command.
    #[error("a command is missing next to an operator, or is empty")]
    Empty,
    /// A character that could hide something.
    #[error("it has the character U+{:04X}, which could hide something; leave it out", u32::from(*.0))]
    Character(char),
    /// More than [`crate::MAX_COMMAND_BYTES`].
    #[error("it is longer than {} KiB; write a script file", crate::MAX_COMMAND_BYTES / 1024)]
    TooLong,
}

impl ShellError {
    /// A short name for notices and logs.
    pub fn code(self) -> &'static str {
        match self {
            Self::CommandSubstitution => "command-substitution",
            Self::Arithmetic => "arithmetic",
            Self::ParameterExpansion => "parameter-expansion",
            Self::DollarQuote => "dollar-quote",
            Self::StrayDollar => "stray-dollar",
            Self::Redirection => "redirection",
            Self::Parenthesis => "parenthesis",
            Self::Brace => "brace",
            Self::Compound => "compound",
            Self::Assignment => "assignment",
            Self::ExpandedProgram => "expanded-program",
            Self::LineContinuation => "line-continuation",
            Self::UnclosedQuote => "unclosed-quote",
            Self::Empty => "empty",
            Self::Character(_) => "character",
            Self::TooLong => "too-long",
        }
    }
}
