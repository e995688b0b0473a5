//! What of a program is harmless: the subcommands and options that start no other program and write no file but those
//! that are the program's purpose.
//!
//! An entry for `find` must not permit every program that `find -exec` can start. A list of such options would never be
//! complete, so programs with many of them are described the other way round: what the files next to this module do not
//! name needs an approval, or an entry of the allowlist that spells it out. Programs that no file describes are permitted
//! by their name alone.
//!
//! The files have one directive per line:
//!
//! | directive | means |
//! |---|---|
//! | `program NAMES` | what follows describes these programs |
//! | `sub NAMES` | what follows describes these subcommands; `a.b` is `a b` |
//! | `options OPTIONS` | these options are harmless; before the subcommand, if there are subcommands. `**` stands for all |
//! | `everywhere OPTIONS` | these options are harmless before and after the subcommand |
//! | `operands KIND [COUNT]` | which operands are harmless, and how many; without it none |
//! | `needs OPTIONS` | without one of these the program does something else |
//! | `reads` | it changes no file |
//! | `hooks` | it runs the hooks of a repository |
//! | `repository` | it reads the config of a git repository |
//! | `launcher` | it runs what its arguments say; what follows spelled-out arguments is for that program |
//! | `wraps [COUNT]` | it runs the command after its options and COUNT operands, which is judged by itself |
//! | `sets VARIABLES` | before that command, these variables may be set |
//! | `spelled` | nothing is harmless before an entry spells out an argument |
//! | `single` | long options have one dash, and letters are not combined |
//! | `leading` | options end at the first operand |
//! | `letters` | a first argument without a dash is a group of letters |
//! | `sed` | the arguments are judged by the rules for `sed` |
//!
//! An option is `-x`, `--name`, `-x=` or `--name=` with a value, attached or in the next argument, `-x?` or `--name?` with
//! an attached value that may be absent, `-x*` with any text after it, or `-#`, a number. A word after the equals sign is
//! the kind of the value; see [`Kind`].

mod catalog;
mod option;

use crate::pattern::matches_name;
use crate::sed;
use catalog::CATALOG;
pub(crate) use option::Kind;
use option::{Found, OptionRule};

/// A program that is described.
#[derive(Debug, Default)]
pub(crate) struct Program {
    body: Body,
    /// Options that are harmless before and after the subcommand.
    everywhere: Vec<OptionRule>,
    /// The words of each subcommand, with its description.
    subcommands: Vec<(Vec<&'static str>, Body)>,
    is_launcher: bool,
    /// How many operands stand before the command that it runs, if it runs one that is judged by itself.
    wraps: Option<usize>,
    /// Variables that may be set for that command; one may end with `*`.
    sets: Vec<&'static str>,
    is_sed: bool,
    is_single: bool,
    ends_options_early: bool,
    begins_with_letters: bool,
    uses_repository: bool,
    /// How many of the subcommands the last directive named.
    latest: usize,
}

/// What is harmless of a program or of a subcommand.
#[derive(Debug, Default, Clone)]
struct Body {
    permits_all: bool,
    options: Vec<OptionRule>,
    operands: Option<(Kind, usize)>,
    needs: Vec<&'static str>,
    is_reading: bool,
    runs_hooks: bool,
    is_spelled_only: bool,
}

/// One argument of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Argument<'a> {
    pub(crate) text: &'a str,
    pub(crate) origin: Origin,
}

/// Who decided about an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The entry of the allowlist spells it out.
    Spelled,
    /// The entry spells out how it begins.
    Partly,
    /// The entry leaves it open, and the program gets this text.
    Open,
    /// The entry leaves it open, and the shell makes another text of it.
    Expanded,
}

/// What a harmless call may still do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effects {
    /// It may change files.
    pub(crate) changes_files: bool,
    /// What it runs of the repository's.
    pub(crate) repository: RepositoryUse,
}

impl Effects {
    /// The effects of a program that is described by two names.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            changes_files: self.changes_files || other.changes_files,
            repository: self.repository.max(other.repository),
        }
    }
}

/// What a program uses of a git repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RepositoryUse {
    /// Nothing.
    None,
    /// Its config.
    Config,
    /// Its config, and all of its hooks.
    Hooks,
}

/// What a program that runs another one does with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wrapped {
    /// It runs the command that begins with the argument at this index.
    Command(usize),
    /// It sets this variable, which is not known to be harmless.
    Variable(String),
}

/// Why a call is not known to be harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The program runs what it is told, or nothing of it is harmless.
    Launcher,
    /// The argument at that index is not described.
    Argument(usize),
    /// The argument at that index can become any option.
    Expanded(usize),
    /// It does something else without an argument that is missing.
    Missing,
}

/// A call of a program that no file describes.
pub(crate) const UNKNOWN: Effects =
    Effects { changes_files: true, repository: RepositoryUse::None };

/// The description of the program with that file name.
pub(crate) fn description(file_name: &str) -> Option<&'static Program> {
    CATALOG.find(file_name)
}

impl Program {
    /// Whether the arguments are harmless.
    pub(crate) fn check(&self, arguments: &[Argument<'_>]) -> Result<Effects, Doubt> {
        let has = |origin| arguments.iter().any(|argument| argument.origin == origin);
        let is_open = arguments.iter().any(|argument| argument.origin != Origin::Spelled);
        if self.is_sed {
            let texts: Vec<&str> = arguments.iter().map(|argument| argument.text).collect();
            let is_plain = !has(Origin::Expanded) && sed::is_plain(&texts);
            if !is_plain && (is_open || arguments.is_empty()) {
                return Err(Doubt::Launcher);
            }
            return Ok(Effects { changes_files: !is_plain, ..UNKNOWN });
        }
        let has_spelled = has(Origin::Spelled) || has(Origin::Partly);
        if self.is_launcher && has_spelled {
            return Ok(UNKNOWN);
        }
        if !self.is_described() {
            return Err(Doubt::Launcher);
        }
        let is_spelled_only = self.body.is_spelled_only && !has_spelled;
        let mut walk = Walk::new(self);
        let mut walked = Ok(());
        for (index, argument) in arguments.iter().enumerate() {
            walked = walked.and_then(|()| walk.take(index, argument));
        }
        match walked.and_then(|()| walk.finish(is_open || arguments.is_empty())) {
            Err(_) if self.is_launcher => Err(Doubt::Launcher),
            _ if is_spelled_only => Err(Doubt::Launcher),
            verdict => verdict,
        }
    }

    /// Whether nothing is permitted before an entry spells out an argument.
    pub(crate) fn needs_spelled_arguments(&self) -> bool {
        self.body.is_spelled_only || self.wraps.is_some() || (!self.is_described() && !self.is_sed)
    }

    /// The command within the arguments, if the program is described as one that runs it, and if what stands before it is
    /// harmless.
    pub(crate) fn wrapped(&self, arguments: &[Argument<'_>]) -> Option<Wrapped> {
        let before = self.wraps?;
        let mut walk = Walk::new(self);
        for (index, argument) in arguments.iter().enumerate() {
            // A dash alone means no variables to `env`.
            if argument.origin == Origin::Expanded || argument.text == "-" {
                return None;
            }
            if walk.expects_operand(argument.text) {
                match argument.text.split_once('=') {
                    Some((name, _)) if !self.sets.is_empty() => {
                        if !self.sets.iter().any(|known| matches_name(known, name)) {
                            return Some(Wrapped::Variable(name.to_owned()));
                        }
                        walk.options_ended = true;
                        continue;
                    }
                    _ if walk.operands == before => return Some(Wrapped::Command(index)),
                    _ => {}
                }
            }
            walk.take(index, argument).ok()?;
        }
        None
    }

    /// What it does itself while it runs a command.
    pub(crate) fn own_effects(&self) -> Effects {
        Effects { changes_files: !self.body.is_reading, repository: RepositoryUse::None }
    }

    fn is_described(&self) -> bool {
        let Body { permits_all, options, operands, .. } = &self.body;
        *permits_all || !options.is_empty() || operands.is_some() || !self.subcommands.is_empty()
    }

    /// The subcommand that the arguments from `first` on name; two words before one.
    fn subcommand(&self, first: &str, second: Option<&str>) -> Option<(&[&'static str], &Body)> {
        let named = |words: &[&str]| match words {
            [only] => *only == first,
            [one, two] => *one == first && Some(*two) == second,
            _ => false,
        };
        let mut found = None;
        for (words, body) in &self.subcommands {
            if named(words) && found.is_none_or(|(best, _): (&[&str], _)| best.len() < words.len())
            {
                found = Some((words.as_slice(), body));
            }
        }
        found
    }
}

/// Reads the arguments as the program does.
struct Walk<'a> {
    program: &'a Program,
    body: &'a Body,
    /// The first word of a subcommand, which the next argument may complete.
    first_word: Option<&'a str>,
    is_before_subcommand: bool,
    /// The kind of value that the next argument is.
    value: Option<Kind>,
    options_ended: bool,
    operands: usize,
    /// Names of the options so far; `-x` for each letter.
    seen: Vec<String>,
}

impl<'a> Walk<'a> {
    fn new(program: &'a Program) -> Self {
        Self {
            program,
            body: &program.body,
            first_word: None,
            is_before_subcommand: !program.subcommands.is_empty(),
            value: None,
            options_ended: false,
            operands: 0,
            seen: Vec::new(),
        }
    }

    /// Whether the program takes the argument neither for an option nor for the value of one.
    fn expects_operand(&self, text: &str) -> bool {
        self.value.is_none() && (self.options_ended || !has_dash(text))
    }

    fn take(&mut self, index: usize, argument: &Argument<'a>) -> Result<(), Doubt> {
        if self.body.permits_all {
            return Ok(());
        }
        if argument.origin == Origin::Expanded {
            return Err(Doubt::Expanded(index));
        }
        let (text, is_open) = (argument.text, argument.origin != Origin::Spelled);
        let doubt = Err(Doubt::Argument(index));
        if let Some(kind) = self.value.take() {
            let is_option = has_dash(text) && !option::is_number(text);
            return if is_open && (is_option || !kind.permits(text)) { doubt } else { Ok(()) };
        }
        let first_word = self.first_word.take();
        if has_dash(text) && !self.options_ended {
            if text == "--" && !self.program.is_single {
                self.options_ended = true;
                return Ok(());
            }
            return match self.option(text) {
                Found::Harmless(taken) => {
                    self.value = taken;
                    Ok(())
                }
                Found::Unknown if is_open => doubt,
                Found::Unknown => Ok(()),
            };
        }
        if index == 0 && self.program.begins_with_letters {
            return if self.letters(text).is_some() || !is_open { Ok(()) } else { doubt };
        }
        if let Some(first) = first_word
            && let Some((words, body)) = self.program.subcommand(first, Some(text))
            && words.len() == 2
        {
            self.body = body;
            return Ok(());
        }
        if self.is_before_subcommand {
            return if self.enter_subcommand(text) || !is_open { Ok(()) } else { doubt };
        }
        self.options_ended |= self.program.ends_options_early;
        self.operands += 1;
        match &self.body.operands {
            _ if !is_open => Ok(()),
            Some((kind, most)) if self.operands <= *most && kind.permits(text) => Ok(()),
            _ => doubt,
        }
    }

    /// Whether the word is, or begins, a subcommand that is described. Any other permits no open argument after it.
    fn enter_subcommand(&mut self, text: &'a str) -> bool {
        static NOTHING: Body = Body {
            permits_all: false,
            options: Vec::new(),
            operands: None,
            needs: Vec::new(),
            is_reading: false,
            runs_hooks: true,
            is_spelled_only: false,
        };
        self.is_before_subcommand = false;
        let is_first = |words: &[&str]| words.first() == Some(&text);
        let begins_one = self.program.subcommands.iter().any(|(words, _)| is_first(words));
        self.first_word = Some(text).filter(|_| begins_one);
        match self.program.subcommand(text, None) {
            Some((_, body)) => self.body = body,
            None => self.body = &NOTHING,
        }
        begins_one
    }

    fn option(&mut self, text: &str) -> Found {
        let rules = [&self.body.options, &self.program.everywhere];
        let (found, names) = if self.program.is_single {
            option::find_single(&rules, text)
        } else {
            option::find(&rules, text)
        };
        self.seen.extend(names);
        found
    }

    /// The first argument of an old-style `tar`: letters, whose values are the next arguments. `None` if one of them is
    /// not described, or if two have values: nobody needs that, and their order would have to be right.
    fn letters(&mut self, text: &str) -> Option<()> {
        for letter in text.chars() {
            match self.option(&format!("-{letter}")) {
                Found::Harmless(None) => {}
                Found::Harmless(kind) if self.value.is_none() => self.value = kind,
                Found::Harmless(_) | Found::Unknown => return None,
            }
        }
        Some(())
    }

    fn finish(self, is_open: bool) -> Result<Effects, Doubt> {
        let Self { program, body, .. } = self;
        // A word such as `list` of `ip netns list` may be missing.
        let is_complete =
            self.first_word.is_none_or(|first| program.subcommand(first, None).is_some());
        let has_needed = body.needs.is_empty()
            || body.needs.iter().any(|needed| self.seen.iter().any(|seen| seen == needed));
        if is_open && !(is_complete && has_needed) {
            return Err(Doubt::Missing);
        }
        let repository = match (program.uses_repository, body.runs_hooks) {
            (false, _) => RepositoryUse::None,
            (true, false) => RepositoryUse::Config,
            (true, true) => RepositoryUse::Hooks,
        };
        Ok(Effects { changes_files: !body.is_reading, repository })
    }
}

fn has_dash(text: &str) -> bool {
    text.starts_with('-') && text.len() > 1
}

#[cfg(test)]
mod tests;
