//! What an approval of a command has to know: which programs start others, and what they take for a program.

use super::{Argument, Origin, Wrapped, description};
use crate::shell::{Command, Word};

/// What a program uses of a git repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepositoryUse {
    /// Nothing.
    None,
    /// Its config.
    Config,
    /// Its config, and all of its hooks.
    Hooks,
    /// These, and the files of another commit.
    Trees,
}

impl Origin {
    /// The origin of a word about which an entry says nothing.
    pub(crate) fn of_open(word: &Word) -> Self {
        // The shell leaves such a beginning as it is, whatever it finds.
        let begins_literally =
            !word.text.starts_with(['-', '*', '?', '[', '~', '$']) && !word.text.contains('$');
        match word.is_literal() {
            true => Self::Open,
            false if begins_literally => Self::Several,
            false => Self::Expanded,
        }
    }
}

/// Whether none of the options and operands of the program starts another one, so that an approval holds although a file
/// changes that it reads.
pub fn starts_nothing(program: &str) -> bool {
    description(program).is_some_and(|it| !it.is_launcher && (it.is_inert || it.body.permits_all))
}

/// Whether the program with that file name runs what its arguments, its input or its directory say: a shell, an interpreter,
/// a tool for builds.
pub fn is_launcher(program: &str) -> bool {
    description(program).is_some_and(|it| it.is_launcher || it.body.is_spelled_only)
}

/// Whether an argument of the program with that file name may be a line for a shell.
pub fn runs_lines(program: &str) -> bool {
    description(program).is_some_and(|it| it.runs_lines)
}

/// The files that the program with that file name carries out without being told, as makefiles are. `None` if nothing says
/// that there are any; an empty list if it is not known which.
pub fn obeyed_files(program: &str) -> Option<&'static [&'static str]> {
    description(program).and_then(|it| it.obeys.as_deref())
}

/// What of a git repository the program with that file name uses if it is called with these words.
pub fn repository_use(program: &str, words: &[Word]) -> RepositoryUse {
    let Some(description) = description(program).filter(|it| it.uses_repository) else {
        return RepositoryUse::None;
    };
    description.check(&open(words)).map_or(RepositoryUse::Trees, |effects| effects.repository)
}

fn open(words: &[Word]) -> Vec<Argument<'_>> {
    words.iter().map(|word| Argument { text: &word.text, origin: Origin::of_open(word) }).collect()
}

/// Whether the command is known to run nothing of what it reads from its input.
pub fn ignores_input(command: &Command) -> bool {
    let program = command.program();
    if program.contains('/') {
        return false;
    }
    if starts_nothing(program) {
        return true;
    }
    let Some(description) = description(program) else { return false };
    let words = command.arguments();
    let arguments = open(words);
    if let Some(Wrapped::Command(index)) = description.wrapped(&arguments) {
        let words = words.get(index..).unwrap_or_default().to_vec();
        return ignores_input(&Command { words });
    }
    description.check(&arguments).is_ok()
}

/// Whether a line for a shell is known to change no file: it is plain, and so are all of its programs, which are called by their
/// names. What a repository's config starts is not looked at.
pub fn changes_no_file(line: &str) -> bool {
    let Ok(script) = crate::parse(line) else { return false };
    script.commands.into_iter().all(|command| reads_only(&command.without_time()))
}

fn reads_only(command: &Command) -> bool {
    let program = command.program();
    let Some(description) = description(program).filter(|_| !program.contains('/')) else {
        return false;
    };
    let words = command.arguments();
    let arguments = open(words);
    if let Some(Wrapped::Command(index)) = description.wrapped(&arguments) {
        let words = words.get(index..).unwrap_or_default().to_vec();
        return !description.own_effects().changes_files && reads_only(&Command { words });
    }
    description
        .check(&arguments)
        .is_ok_and(|effects| !effects.changes_files && effects.repository <= RepositoryUse::Config)
}
