//! Why a command may not run.

use std::fmt;

use myclaw_config::ConfigPath;

use crate::{Level, ShellError};

/// Why a command may not run, or only with approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The kind of problem.
    pub kind: RefusalKind,
    /// The simple command with the problem, its special characters escaped; `None` if the whole line is meant.
    pub command: Option<String>,
    /// The level whose rules refuse it.
    pub level: Level,
    /// Path of the rules in the config.
    pub place: ConfigPath,
}

/// The problem with a command. The texts in it are safe to show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefusalKind {
    /// No command may run.
    #[error("commands are turned off")]
    Disabled,
    /// Every command needs approval.
    #[error("every command needs an approval")]
    AlwaysAsk,
    /// The line is not made of plain commands.
    #[error("the command is not plain enough to be checked: {0}")]
    Syntax(ShellError),
    /// A builtin of the shell that runs other commands, or changes what they mean.
    #[error("the shell builtin `{0}` can run other commands or change what they mean")]
    Builtin(String),
    /// There is no such program.
    #[error("there is no program `{}`", crate::escape(.0))]
    NotFound(String),
    /// The program is in no entry.
    #[error("`{0}` is not in the allowlist")]
    Unlisted(String),
    /// The program is in an entry, with other arguments.
    #[error("the allowlist permits `{0}` only with other arguments")]
    Arguments(String),
    /// The program runs other programs, with any arguments.
    #[error(
        "`{0}` runs other programs or code, so its entry in the allowlist has to list the arguments"
    )]
    Launcher(String),
    /// An argument that is not known to be harmless.
    #[error(
        "`{argument}` is not among the arguments of `{program}` that are known to start no other program; an entry of \
         the allowlist may spell it out"
    )]
    NotHarmless {
        /// The program.
        program: String,
        /// The argument.
        argument: String,
    },
    /// The arguments are harmless, but one is missing without which the program does something else.
    #[error("`{0}` does more than it is known to do harmlessly without a further argument")]
    Incomplete(String),
    /// `*` in a pattern stays within one directory.
    #[error(
        "the allowlist permits `{program}` with `{pattern}`, in which `*` stays within one directory and links count as \
         the files that they lead to; `**` crosses directories"
    )]
    Star {
        /// The program.
        program: String,
        /// The pattern.
        pattern: String,
    },
    /// The repository makes git start programs.
    #[error("`{program}` may start another program because of {what}")]
    Repository {
        /// The program.
        program: String,
        /// What starts the other one, and where it is named.
        what: String,
    },
    /// Another command of the line may change the repository that was looked at.
    #[error(
        "`{0}` obeys the config of a repository, which another command of the line may change; run it in a call of its \
         own"
    )]
    BesideChange(String),
    /// It writes where programs are started later.
    #[error("`{program}` may write {path}, which may start a program later: {why}")]
    StartPlace {
        /// The program.
        program: String,
        /// The path.
        path: String,
        /// Why it starts a program.
        why: String,
    },
    /// What it writes is known to the shell only.
    #[error("which files `{0}` writes is only known when it runs; write their names out")]
    UnknownTarget(String),
    /// An earlier command may make a link where this one writes.
    #[error(
        "`{0}` writes files, and an earlier command of the line may put a link in their place; run it in a call of its own"
    )]
    BesideLink(String),
    /// `cd` leads to a directory that is not known.
    #[error("`{0}` runs in a directory that is not known; write it out after `cd`")]
    UnknownDirectory(String),
    /// A variable or wildcard could become an option.
    #[error(
        "an expansion among the arguments of `{0}` could become an option that runs another program"
    )]
    ExpandedArgument(String),
    /// A relative path after `cd`.
    #[error("`{0}` is a relative path after `cd`; write the absolute path")]
    RelativeAfterCd(String),
    /// The call sets a variable.
    #[error("the call sets the variable `{}`, which can change what a program does", crate::escape(.0))]
    ChangedVariable(String),
    /// Input for a running program, which may read it as commands.
    #[error("input for a running program cannot be checked: the program may run it as commands")]
    Input,
    /// The environment steers the shell.
    #[error("the variable `{}` changes how the shell reads commands", crate::escape(.0))]
    ShellVariable(String),
}

impl RefusalKind {
    /// A short name for notices and logs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::AlwaysAsk => "always-ask",
            Self::Syntax(error) => error.code(),
            Self::Builtin(_) => "builtin",
            Self::NotFound(_) => "not-found",
            Self::Unlisted(_) => "unlisted",
            Self::Arguments(_) => "arguments",
            Self::Launcher(_) => "launcher",
            Self::NotHarmless { .. } => "not-harmless",
            Self::Incomplete(_) => "incomplete",
            Self::Star { .. } => "star",
            Self::Repository { .. } => "repository",
            Self::BesideChange(_) => "beside-change",
            Self::StartPlace { .. } => "start-place",
            Self::UnknownTarget(_) => "unknown-target",
            Self::BesideLink(_) => "beside-link",
            Self::UnknownDirectory(_) => "unknown-directory",
            Self::ExpandedArgument(_) => "expanded-argument",
            Self::RelativeAfterCd(_) => "relative-after-cd",
            Self::ChangedVariable(_) => "changed-variable",
            Self::Input => "input",
            Self::ShellVariable(_) => "shell-variable",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, command, level, place } = self;
        if let Some(command) = command {
            write!(formatter, "`{command}`: ")?;
        }
        write!(formatter, "{kind} (`{place}`, for {level})")
    }
}
