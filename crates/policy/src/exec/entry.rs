//! One entry of the allowlist.

use std::path::Path;

use myclaw_config::{CommandRule, ConfigPath, ProgramRule};

use super::place::Place;
use super::{RefusalKind, ResolvedProgram};
use crate::harmless::{self, Argument, Doubt, Effects, Origin, UNKNOWN, Wrapped, anything};
use crate::pattern::{matches_name, matches_path};
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
    Full(Effects),
    /// It names the program, but not these arguments.
    Partial(RefusalKind),
    /// It names another program.
    Absent,
}

/// What a program such as `timeout` runs.
#[derive(Debug)]
pub(super) enum Inner {
    /// A command, and what the program itself does.
    Command { inner: Command, own: Effects },
    /// A command with this variable, which is not known to be harmless.
    Variable(String),
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

    pub(super) fn covers(
        &self,
        program: &Program<'_>,
        command: &Command,
        place: &Place<'_>,
    ) -> Coverage {
        if !self.names(program) {
            return Coverage::Absent;
        }
        let words = command.arguments();
        let origins = match &self.args {
            None => words.iter().map(Origin::of_open).collect(),
            Some(patterns) => match origins(patterns, words, place) {
                Ok(origins) => origins,
                Err(pattern) => return Coverage::Partial(mismatch(program, pattern)),
            },
        };
        let arguments: Vec<Argument<'_>> = words
            .iter()
            .zip(origins)
            .map(|(word, origin)| Argument { text: &word.text, origin })
            .collect();
        let mut effects: Option<Effects> = None;
        for description in program.descriptions().into_iter().flatten() {
            match description.check(&arguments) {
                Ok(others) => {
                    effects = Some(match effects {
                        Some(own) => own.and(others),
                        None => others,
                    });
                }
                Err(doubt) => return Coverage::Partial(refusal(doubt, program, words)),
            }
        }
        let effects =
            effects.unwrap_or_else(|| Effects { written: anything(&arguments), ..UNKNOWN });
        match place.check_written(command.program(), &effects.written) {
            Ok(()) => Coverage::Full(effects),
            Err(kind) => Coverage::Partial(kind),
        }
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

    /// The command that the program runs, if it is one that does nothing else, and if it is found in `PATH`.
    pub(super) fn wrapped(&self, command: &Command) -> Option<Inner> {
        let Self::File { is_on_path: true, .. } = self else { return None };
        let [Some(description), None] = self.descriptions() else { return None };
        let words = command.arguments();
        let arguments: Vec<Argument<'_>> = words
            .iter()
            .map(|word| Argument { text: &word.text, origin: Origin::of_open(word) })
            .collect();
        match description.wrapped(&arguments)? {
            Wrapped::Command(index) => {
                let inner = Command { words: words.get(index..)?.to_vec() };
                // What the shell would make of the name is not known here.
                inner.words.first()?.is_literal().then_some(())?;
                Some(Inner::Command { inner, own: description.own_effects() })
            }
            Wrapped::Variable(name) => Some(Inner::Variable(name)),
        }
    }

    /// What is known of the name by which the program was found, and of the linked file, because a link can have any name.
    fn descriptions(&self) -> [Option<&'static harmless::Program>; 2] {
        match self {
            Self::Builtin(name) => [harmless::description(name), None],
            Self::File { found, .. } => {
                let (name, real) = (file_name(&found.path), file_name(&found.real));
                let other = Some(real).filter(|real| *real != name);
                [harmless::description(name), other.and_then(harmless::description)]
            }
        }
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Who decided about each argument; if the arguments do not match, the pattern that would match if `*` crossed `/`.
fn origins<'a>(
    patterns: &'a [String],
    words: &[Word],
    place: &Place<'_>,
) -> Result<Vec<Origin>, Option<&'a str>> {
    let (patterns, takes_rest) = match patterns.split_last() {
        Some((last, others)) if last == REST => (others, true),
        _ => (patterns, false),
    };
    if words.len() < patterns.len() || (words.len() > patterns.len() && !takes_rest) {
        return Err(None);
    }
    let mut origins = Vec::with_capacity(words.len());
    let mut stopped = None;
    for (index, word) in words.iter().enumerate() {
        match patterns.get(index) {
            None => origins.push(Origin::of_open(word)),
            Some(pattern) if !word.is_literal() || !begins_alike(pattern, &word.text) => {
                return Err(None);
            }
            Some(pattern) if place.matches(pattern, &word.text) => {
                origins.push(origin_of(pattern));
            }
            // It matched until `*` stayed within a directory.
            Some(pattern) if matches_name(pattern, &word.text) => {
                stopped = stopped.or(Some(pattern.as_str()));
            }
            Some(_) => return Err(None),
        }
    }
    if stopped.is_some() { Err(stopped) } else { Ok(origins) }
}

/// A pattern that begins with `*` does not match options, because few authors of such a pattern mean options.
fn begins_alike(pattern: &str, argument: &str) -> bool {
    !(pattern.starts_with('*') && argument.starts_with('-'))
}

fn origin_of(pattern: &str) -> Origin {
    let Some((start, _)) = pattern.split_once('*') else { return Origin::Spelled };
    match start {
        "" => Origin::Open,
        // The author named the option and leaves its value open.
        _ if start.starts_with('-') && start.contains('=') => Origin::Valued,
        _ if start.starts_with('-') => Origin::Open,
        _ => Origin::Partly,
    }
}

fn mismatch(program: &Program<'_>, stopped: Option<&str>) -> RefusalKind {
    let program = program.describe();
    match stopped {
        Some(pattern) => RefusalKind::Star { program, pattern: crate::escape(pattern) },
        None => RefusalKind::Arguments(program),
    }
}

fn refusal(doubt: Doubt, program: &Program<'_>, words: &[Word]) -> RefusalKind {
    let text = |index: usize| words.get(index).map(|word| crate::escape(&word.text));
    let program = program.describe();
    match doubt {
        Doubt::Launcher => RefusalKind::Launcher(program),
        Doubt::Missing => RefusalKind::Incomplete(program),
        Doubt::Expanded(_) => RefusalKind::ExpandedArgument(program),
        Doubt::Argument(index) => {
            RefusalKind::NotHarmless { program, argument: text(index).unwrap_or_default() }
        }
    }
}
