//! Decides which commands may run.
//!
//! Each level of the config gives a verdict of its own; fields that it omits are taken from the level above. The
//! strictest verdict applies, so no level can widen another.

mod advice;
mod builtins;
mod entry;
mod line;
mod place;
mod refusal;
mod written;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use myclaw_config::{ConfigPath, ExecAsk, ExecRules, ExecSecurity, SandboxRules};

use crate::shell::Command;
use crate::{Level, PolicyError, SandboxScope, SessionFacts};
pub use advice::allowlist_advice;
use builtins::Builtin;
use entry::{Entry, Program};
pub use refusal::{Refusal, RefusalKind};
pub use written::WrittenAs;

/// The rules of one level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecLevel {
    /// Which level.
    pub level: Level,
    /// Path of the rules in the config, such as `tools.exec`; shown to users.
    pub place: ConfigPath,
    /// The rules.
    pub rules: ExecRules,
}

/// The rules of all levels that apply to one session.
#[derive(Debug, Clone)]
pub struct ExecPolicy {
    levels: Vec<Effective>,
}

/// The rules of one level, with omitted fields taken from the level above.
#[derive(Debug, Clone)]
struct Effective {
    level: Level,
    place: ConfigPath,
    security: ExecSecurity,
    ask: ExecAsk,
    allowlist: Vec<Entry>,
}

/// A resolved program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedProgram {
    /// The file that the shell will start, absolute.
    pub path: PathBuf,
    /// The same path with every symbolic link followed.
    pub real: PathBuf,
}

/// A command that somebody wants to run.
#[derive(Clone, Copy)]
pub struct ExecRequest<'a> {
    /// The command line, for bash or sh.
    pub command: &'a str,
    /// Where it runs.
    pub directory: &'a Path,
    /// The directory of the session, in which relative patterns of the allowlist begin.
    pub workspace: &'a Path,
    /// Every variable that it gets.
    pub environment: &'a BTreeMap<String, String>,
    /// Names of variables that the call itself sets or changes.
    pub changed_variables: &'a [&'a str],
    /// Finds a program as the shell will: a name in the directories of the `PATH` of [`ExecRequest::environment`], a
    /// path from [`ExecRequest::directory`]. `None` if there is no such program.
    pub resolve: &'a dyn Fn(&str) -> Option<ResolvedProgram>,
    /// An absolute path with every symbolic link followed; `None` if there is no such file.
    pub real_path: &'a dyn Fn(&Path) -> Option<PathBuf>,
    /// What makes `git` start programs in that directory.
    pub repository: &'a dyn Fn(&Path) -> RepositoryPrograms,
    /// A repository in the working tree of that directory's repository, of which git starts what the config names as soon
    /// as it takes it for a part of the outer one. The text is shown to users.
    pub inner_repository: &'a dyn Fn(&Path) -> Option<String>,
    /// Why a program may be started later from that absolute path if it is written so. The text is shown to users.
    pub start_place: &'a dyn Fn(&Path, WrittenAs<'_>) -> Option<String>,
}

/// What makes `git` start programs in a directory. The texts are shown to users.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepositoryPrograms {
    /// What may make any command start one, such as a key of the repository's config that is not known to be harmless.
    pub any_command: Option<String>,
    /// A hook that commands run which change the repository.
    pub changing_command: Option<String>,
}

/// The verdict on a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecVerdict {
    /// It may run.
    Allowed,
    /// It may run if the user approves it, for this reason.
    NeedsApproval(Refusal),
    /// It may not run.
    Denied(Refusal),
}

/// The verdict on input for a running command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputVerdict {
    /// It may be passed on.
    Allowed,
    /// It may be passed on if the user approves it, for this reason.
    NeedsApproval(Refusal),
    /// It may not be passed on.
    Denied(Refusal),
}

/// The verdict of one level, the mildest first.
enum Answer {
    Allow,
    Ask(Refusal),
    Deny(Refusal),
}

impl ExecPolicy {
    /// The policy for a session: the rules of `levels`, highest first, and those of `sandbox` if `session` is sandboxed.
    /// `sandbox_place` is the path of the sandbox's rules in the config. Without any rules every command may run.
    ///
    /// # Errors
    /// Lists the entries of allowlists that can never match.
    pub fn for_session(
        levels: &[ExecLevel],
        sandbox: &SandboxRules,
        sandbox_place: &ConfigPath,
        session: SessionFacts<'_>,
    ) -> Result<Self, Vec<PolicyError>> {
        let mut errors = Vec::new();
        let mut effective: Vec<Effective> = Vec::new();
        for level in levels {
            effective.push(Effective::new(level, effective.last(), &mut errors));
        }
        let level = ExecLevel {
            level: Level::Sandbox,
            place: sandbox_place.clone().key("exec"),
            rules: sandbox.exec.clone(),
        };
        // Checked even where it does not apply, so that a mistake is reported in every session.
        let sandbox_level = Effective::new(&level, effective.last(), &mut errors);
        if session.scope(sandbox.mode) == SandboxScope::Sandboxed {
            effective.push(sandbox_level);
        }
        if errors.is_empty() { Ok(Self { levels: effective }) } else { Err(errors) }
    }

    /// Whether every command may run without a question.
    pub fn is_open(&self) -> bool {
        let is_open = |level: &Effective| {
            level.security == ExecSecurity::Full && level.ask != ExecAsk::Always
        };
        self.levels.iter().all(is_open)
    }

    /// Whether the command may run.
    pub fn check(&self, request: &ExecRequest<'_>) -> ExecVerdict {
        match strictest(self.levels.iter().map(|level| level.answer(request))) {
            Answer::Allow => ExecVerdict::Allowed,
            Answer::Deny(refusal) => ExecVerdict::Denied(refusal),
            Answer::Ask(refusal) => ExecVerdict::NeedsApproval(refusal),
        }
    }

    /// Whether input may be passed to a running command. Any program may run what it reads, a shell or an interpreter
    /// for certain, and what it makes of it depends on what it has read before. So an allowlist covers no input.
    pub fn check_input(&self) -> InputVerdict {
        match strictest(self.levels.iter().map(Effective::answer_to_input)) {
            Answer::Allow => InputVerdict::Allowed,
            Answer::Ask(refusal) => InputVerdict::NeedsApproval(refusal),
            Answer::Deny(refusal) => InputVerdict::Denied(refusal),
        }
    }
}

/// The answer that applies where several levels answer.
fn strictest(answers: impl Iterator<Item = Answer>) -> Answer {
    let mut ask = None;
    for answer in answers {
        match answer {
            Answer::Allow => {}
            Answer::Ask(refusal) => ask = ask.or(Some(refusal)),
            Answer::Deny(refusal) => return Answer::Deny(refusal),
        }
    }
    ask.map_or(Answer::Allow, Answer::Ask)
}

impl Effective {
    fn new(level: &ExecLevel, above: Option<&Self>, errors: &mut Vec<PolicyError>) -> Self {
        let ExecLevel { level, place, rules } = level;
        let allowlist = match (&rules.allowlist, above) {
            (Some(own), _) => Entry::list(own, &place.clone().key("allowlist"), errors),
            (None, above) => above.map(|above| above.allowlist.clone()).unwrap_or_default(),
        };
        Self {
            level: level.clone(),
            place: place.clone(),
            security: rules
                .security
                .or(above.map(|above| above.security))
                .unwrap_or(ExecSecurity::Full),
            ask: rules.ask.or(above.map(|above| above.ask)).unwrap_or(ExecAsk::OnMiss),
            allowlist,
        }
    }

    fn refusal(&self, kind: RefusalKind, command: Option<&Command>) -> Refusal {
        Refusal {
            kind,
            command: command.map(Command::to_string),
            level: self.level.clone(),
            place: self.place.clone(),
        }
    }

    fn answer_to_input(&self) -> Answer {
        match (self.security, self.ask) {
            (ExecSecurity::Deny, _) => Answer::Deny(self.refusal(RefusalKind::Disabled, None)),
            (ExecSecurity::Full, ExecAsk::Always) => {
                Answer::Ask(self.refusal(RefusalKind::AlwaysAsk, None))
            }
            (ExecSecurity::Full, ExecAsk::Off | ExecAsk::OnMiss) => Answer::Allow,
            (ExecSecurity::Allowlist, ExecAsk::Off) => {
                Answer::Deny(self.refusal(RefusalKind::Input, None))
            }
            (ExecSecurity::Allowlist, ExecAsk::OnMiss | ExecAsk::Always) => {
                Answer::Ask(self.refusal(RefusalKind::Input, None))
            }
        }
    }

    fn answer(&self, request: &ExecRequest<'_>) -> Answer {
        let refusal = |kind, command: Option<&Command>| self.refusal(kind, command);
        let miss = match self.security {
            ExecSecurity::Deny => return Answer::Deny(refusal(RefusalKind::Disabled, None)),
            ExecSecurity::Full => None,
            ExecSecurity::Allowlist => {
                self.miss(request).map(|(kind, command)| refusal(kind, command.as_ref()))
            }
        };
        match (miss, self.ask) {
            (Some(refusal), ExecAsk::Off) => Answer::Deny(refusal),
            (Some(refusal), ExecAsk::OnMiss | ExecAsk::Always) => Answer::Ask(refusal),
            (None, ExecAsk::Always) => Answer::Ask(refusal(RefusalKind::AlwaysAsk, None)),
            (None, ExecAsk::Off | ExecAsk::OnMiss) => Answer::Allow,
        }
    }

    /// The first problem that the allowlist finds, with its command.
    fn miss(&self, request: &ExecRequest<'_>) -> Option<(RefusalKind, Option<Command>)> {
        if let Some(name) = request.changed_variables.first() {
            return Some((RefusalKind::ChangedVariable((*name).to_owned()), None));
        }
        if let Some(name) = request.environment.keys().find(|name| steers_the_shell(name)) {
            return Some((RefusalKind::ShellVariable(name.clone()), None));
        }
        line::miss(&self.allowlist, request)
    }
}

/// Variables by which the shell itself runs other commands, or that make it read commands differently from
/// [`parse`](crate::shell::parse).
fn steers_the_shell(name: &str) -> bool {
    matches!(
        name,
        "BASH_ENV"
            | "ENV"
            | "SHELLOPTS"
            | "BASHOPTS"
            | "BASH_COMPAT"
            | "POSIXLY_CORRECT"
            | "PROMPT_COMMAND"
    ) || name.starts_with("BASH_FUNC_")
}

/// Identifies what a command's first word will start.
fn identify<'a>(
    command: &'a Command,
    request: &ExecRequest<'_>,
) -> Result<Program<'a>, RefusalKind> {
    let name = command.program();
    if !name.contains('/') {
        match builtins::of(name) {
            Some(Builtin::Plain) => return Ok(Program::Builtin(name)),
            Some(Builtin::Steering) => return Err(RefusalKind::Builtin(name.to_owned())),
            None => {}
        }
    }
    let found = (request.resolve)(name).ok_or_else(|| RefusalKind::NotFound(name.to_owned()))?;
    // A path may be permitted by the name alone only if the name leads to the same file: `/tmp/git` is not `git`.
    let is_on_path = !name.contains('/')
        || found
            .path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| (request.resolve)(name))
            .is_some_and(|by_name| by_name == found);
    Ok(Program::File { found, is_on_path })
}

#[cfg(test)]
mod tests;
