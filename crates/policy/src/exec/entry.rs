//! One entry of the allowlist.

use std::path::Path;

use myclaw_config::{CommandRule, ConfigPath, ProgramRule};

use super::{RefusalKind, ResolvedProgram};
use crate::launcher::{Launcher, is_launch_option};
use crate::pattern::{matches_name, matches_path};
use crate::sed;
use crate::shell::{Command, Word};
use crate::{PolicyError, PolicyProblem};

/// Matches any further arguments.
const REST: &str = "...";

/// What a command starts.
#[derive(Debug)]
pub(super) enum Program<'a> {
    /// A part of the shell.
    Builtin(&'a str),
    /// A file.
    File {
        found: ResolvedProgram,
        /// Its file name, looked up in `PATH`, leads to this file.
        is_on_path: bool,
    },
}

/// Whether an entry permits a command.
#[derive(Debug)]
pub(super) enum Coverage {
    /// It permits it.
    Full,
    /// It names the program, but not these arguments.
    Partial(RefusalKind),
    /// It names another program.
    Absent,
}

/// One entry of the allowlist.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    program: String,
    args: Option<Vec<String>>,
}

impl Entry {
    pub(super) fn list(
        rules: &[CommandRule],
        place: &ConfigPath,
        errors: &mut Vec<PolicyError>,
    ) -> Vec<Self> {
        let mut entries = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            match Self::new(rule) {
                Ok(entry) => entries.push(entry),
                Err(problem) => {
                    errors.push(PolicyError { place: place.clone().index(index), problem });
                }
            }
        }
        entries
    }

    fn new(rule: &CommandRule) -> Result<Self, PolicyProblem> {
        let (program, args) = match rule {
            CommandRule::Program(program) => (program, None),
            CommandRule::WithArguments(ProgramRule { program, args }) => (program, args.clone()),
        };
        let program = program.trim().to_owned();
        if program.is_empty() {
            return Err(PolicyProblem::EmptyEntry);
        }
        if program.contains('/') && !program.starts_with('/') {
            return Err(PolicyProblem::RelativeProgram { program });
        }
        let patterns = args.as_deref().unwrap_or_default();
        if patterns.iter().rev().skip(1).any(|pattern| pattern == REST) {
            return Err(PolicyProblem::RestNotLast { program });
        }
        Ok(Self { program, args })
    }

    pub(super) fn covers(&self, program: &Program<'_>, command: &Command) -> Coverage {
        if !self.names(program) {
            return Coverage::Absent;
        }
        let arguments = command.arguments();
        let free = match &self.args {
            None => Some(vec![true; arguments.len()]),
            Some(patterns) => free_arguments(patterns, arguments),
        };
        let Some(free) = free else {
            return Coverage::Partial(RefusalKind::Arguments(program.describe()));
        };
        // Arguments that the entry spells out are permitted even if they start another program, because its author
        // wants that.
        let says_nothing = self.args.as_ref().is_none_or(|patterns| patterns == &[REST]);
        for launcher in program.launchers() {
            let refused = match launcher {
                Launcher::Nothing => None,
                Launcher::Anything => {
                    says_nothing.then(|| RefusalKind::Launcher(program.describe()))
                }
                Launcher::Sed => {
                    let is_spelled_out = !free.contains(&true);
                    let texts: Vec<&str> =
                        arguments.iter().map(|word| word.text.as_str()).collect();
                    let is_plain = arguments.iter().all(Word::is_literal) && sed::is_plain(&texts);
                    (!is_spelled_out && !is_plain)
                        .then(|| RefusalKind::Launcher(program.describe()))
                }
                Launcher::WithOption(options) => {
                    launching_argument(options, arguments, &free, program)
                }
            };
            if let Some(kind) = refused {
                return Coverage::Partial(kind);
            }
        }
        Coverage::Full
    }

    fn names(&self, program: &Program<'_>) -> bool {
        match program {
            Program::Builtin(name) => {
                !self.program.contains('/') && matches_name(&self.program, name)
            }
            Program::File { found, is_on_path } => {
                let Some(path) = found.path.to_str() else { return false };
                if self.program.starts_with('/') {
                    matches_path(&self.program, path)
                } else {
                    *is_on_path
                        && path.starts_with('/')
                        && matches_name(&self.program, file_name(&found.path))
                }
            }
        }
    }
}

impl Program<'_> {
    /// The entry as messages show it.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Builtin(name) => (*name).to_owned(),
            Self::File { found, .. } => crate::escape(&found.path.to_string_lossy()),
        }
    }

    /// The launchers for the name by which the program was found and for the name of the linked file, because a link
    /// can have any name.
    fn launchers(&self) -> [Launcher; 2] {
        match self {
            Self::Builtin(name) => [Launcher::of(name), Launcher::Nothing],
            Self::File { found, .. } => {
                [Launcher::of(file_name(&found.path)), Launcher::of(file_name(&found.real))]
            }
        }
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// For each argument whether its pattern left it open; `None` if the arguments do not match.
fn free_arguments(patterns: &[String], arguments: &[Word]) -> Option<Vec<bool>> {
    let (patterns, takes_rest) = match patterns.split_last() {
        Some((last, others)) if last == REST => (others, true),
        _ => (patterns, false),
    };
    if arguments.len() < patterns.len() || (arguments.len() > patterns.len() && !takes_rest) {
        return None;
    }
    let mut free = Vec::with_capacity(arguments.len());
    for (index, word) in arguments.iter().enumerate() {
        match patterns.get(index) {
            None => free.push(true),
            Some(pattern) if word.is_literal() && argument_matches(pattern, &word.text) => {
                free.push(pattern.contains('*'));
            }
            Some(_) => return None,
        }
    }
    Some(free)
}

/// A pattern that begins with `*` does not match options, because few authors of such a pattern mean options.
fn argument_matches(pattern: &str, argument: &str) -> bool {
    matches_name(pattern, argument) && !(pattern.starts_with('*') && argument.starts_with('-'))
}

/// The first open argument that makes the program run another one, or that could become such an option.
fn launching_argument(
    options: &[&str],
    arguments: &[Word],
    free: &[bool],
    program: &Program<'_>,
) -> Option<RefusalKind> {
    let open = arguments.iter().zip(free).enumerate().filter(|(_, (_, free))| **free);
    for (index, (word, _)) in open {
        if word.is_expanded {
            return Some(RefusalKind::ExpandedArgument(program.describe()));
        }
        if is_launch_option(options, index, &word.text) {
            let argument = crate::escape(&word.text);
            return Some(RefusalKind::LaunchOption { program: program.describe(), argument });
        }
    }
    None
}
