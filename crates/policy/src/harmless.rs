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
//! | `trees` | it runs hooks, and takes the files of another commit into the working tree |
//! | `writes WORDS` | the operands that it writes, `all` without this line: `none`, `first`, `last`, or `stem`, each operand also without its last ending; with `here` files with names that the line does not say, in the directory in which it runs |
//! | `unless OPTIONS` | with one of these it writes nothing `here` |
//! | `links` | it may make symbolic links |
//! | `inert` | none of its options and operands starts a program |
//! | `obeys FILES` | it carries out these files of its directory, of those above, or of the home directory; none of them: it is not known which |
//! | `repository` | it reads the config of a git repository |
//! | `launcher` | it runs what its arguments say; what follows spelled-out arguments is for that program |
//! | `lines` | as `launcher`, and an argument may be a line for a shell |
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
mod started;
mod writes;

use crate::pattern::matches_name;
use crate::sed;
use catalog::CATALOG;
pub(crate) use option::Kind;
use option::{Found, OptionRule, Reading};
pub use started::{
    RepositoryUse, changes_no_file, ignores_input, is_launcher, obeyed_files, repository_use,
    runs_lines, starts_nothing,
};
pub(crate) use writes::{Form, Written, WrittenPath, anything};
use writes::{Noted, Writes};

/// A program that is described.
#[derive(Debug, Default)]
pub(crate) struct Program {
    body: Body,
    /// Options that are harmless before and after the subcommand.
    everywhere: Vec<OptionRule>,
    /// The words of each subcommand, with its description.
    subcommands: Vec<(Vec<&'static str>, Body)>,
    is_launcher: bool,
    /// An argument may be a line for a shell.
    runs_lines: bool,
    /// None of its options and operands starts a program.
    is_inert: bool,
    /// How many operands stand before the command that it runs, if it runs one that is judged by itself.
    wraps: Option<usize>,
    /// Variables that may be set for that command; one may end with `*`.
    sets: Vec<&'static str>,
    is_sed: bool,
    is_single: bool,
    ends_options_early: bool,
    begins_with_letters: bool,
    uses_repository: bool,
    /// Files that it carries out without being told. Empty if it is not known which.
    obeys: Option<Vec<&'static str>>,
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
    takes_trees: bool,
    writes: Writes,
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
    /// The entry spells out an option and leaves its value open.
    Valued,
    /// The entry spells out how it begins.
    Partly,
    /// The entry leaves it open, and the program gets this text.
    Open,
    /// The entry leaves it open, and the shell makes names of files of it. None of them can be an option.
    Several,
    /// The entry leaves it open, and the shell makes another text of it.
    Expanded,
}

impl Origin {
    /// Whether the author of the entry decided that the program gets this option or operand.
    fn is_spelled(self) -> bool {
        matches!(self, Self::Spelled | Self::Valued)
    }
}

/// What a harmless call may still do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Effects {
    /// It may change files.
    pub(crate) changes_files: bool,
    /// The files that it may write, as far as the entry leaves them open.
    pub(crate) written: Vec<Written>,
    /// It may make symbolic links with names and targets that the line does not say.
    pub(crate) makes_links: bool,
    /// What it runs of the repository's.
    pub(crate) repository: RepositoryUse,
}

impl Effects {
    /// The effects of a program that is described by two names.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.written.extend(other.written);
        Self {
            changes_files: self.changes_files || other.changes_files,
            written: self.written,
            makes_links: self.makes_links || other.makes_links,
            repository: self.repository.max(other.repository),
        }
    }
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

/// A call of a program about whose files nothing is said.
pub(crate) const UNKNOWN: Effects = Effects {
    changes_files: true,
    written: Vec::new(),
    makes_links: false,
    repository: RepositoryUse::None,
};

/// The description of the program with that file name.
pub(crate) fn description(file_name: &str) -> Option<&'static Program> {
    CATALOG.find(file_name)
}

impl Program {
    /// Whether the arguments are harmless.
    pub(crate) fn check(&self, arguments: &[Argument<'_>]) -> Result<Effects, Doubt> {
        let has = |origin| arguments.iter().any(|argument| argument.origin == origin);
        let is_open = arguments.iter().any(|argument| !argument.origin.is_spelled());
        if self.is_sed {
            let texts: Vec<&str> = arguments.iter().map(|argument| argument.text).collect();
            // A script is spelled out.
            let is_script = |at: usize| at == 0 || texts[at - 1].starts_with('-');
            let is_known = |(at, argument): (usize, &Argument<'_>)| match argument.origin {
                Origin::Expanded => false,
                Origin::Several => !is_script(at),
                _ => true,
            };
            let is_plain = arguments.iter().enumerate().all(is_known) && sed::is_plain(&texts);
            if !is_plain && (is_open || arguments.is_empty()) {
                return Err(Doubt::Launcher);
            }
            return Ok(Effects { changes_files: !is_plain, ..UNKNOWN });
        }
        let has_spelled = has(Origin::Spelled) || has(Origin::Valued) || has(Origin::Partly);
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
            if matches!(argument.origin, Origin::Expanded | Origin::Several) || argument.text == "-"
            {
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
        Effects { changes_files: !self.body.is_reading, ..UNKNOWN }
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
    noted: Noted<'a>,
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
            noted: Noted::default(),
            seen: Vec::new(),
        }
    }

    /// Whether the program takes the argument neither for an option nor for the value of one.
    fn expects_operand(&self, text: &str) -> bool {
        self.value.is_none() && (self.options_ended || !has_dash(text))
    }

    fn take(&mut self, index: usize, argument: &Argument<'a>) -> Result<(), Doubt> {
        self.noted.arguments.push(*argument);
        if self.body.permits_all {
            return Ok(());
        }
        if argument.origin == Origin::Expanded {
            return Err(Doubt::Expanded(index));
        }
        if argument.origin == Origin::Several {
            return self.take_several(index, argument);
        }
        let (text, is_open) = (argument.text, !argument.origin.is_spelled());
        let doubt = Err(Doubt::Argument(index));
        if let Some(kind) = self.value.take() {
            let is_option = has_dash(text) && !option::is_number(text);
            if is_open && (is_option || !kind.permits(text)) {
                return doubt;
            }
            self.noted.value(kind, text, argument.origin);
            return Ok(());
        }
        let first_word = self.first_word.take();
        if has_dash(text) && !self.options_ended {
            if text == "--" && !self.program.is_single {
                self.options_ended = true;
                return Ok(());
            }
            return match self.option(text, argument.origin) {
                Found::Harmless(taken) => {
                    self.value = taken;
                    Ok(())
                }
                Found::Unknown if is_open => doubt,
                Found::Unknown => {
                    self.noted.is_beyond = true;
                    Ok(())
                }
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
        self.noted.operands.push(*argument);
        match &self.body.operands {
            _ if !is_open => Ok(()),
            Some((kind, most)) if self.operands <= *most && kind.permits(text) => Ok(()),
            _ => doubt,
        }
    }

    /// Names of files that the shell finds. They are operands, if any number of them may be there.
    fn take_several(&mut self, index: usize, argument: &Argument<'a>) -> Result<(), Doubt> {
        let is_operand = self.value.is_none()
            && self.first_word.take().is_none()
            && !self.is_before_subcommand
            && !(index == 0 && self.program.begins_with_letters);
        self.options_ended |= self.program.ends_options_early;
        self.noted.operands.push(*argument);
        match self.body.operands {
            Some((Kind::Any, usize::MAX)) if is_operand => Ok(()),
            _ => Err(Doubt::Expanded(index)),
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
            takes_trees: true,
            writes: Writes::ALL,
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

    fn option(&mut self, text: &'a str, origin: Origin) -> Found {
        let rules = [&self.body.options, &self.program.everywhere];
        let Reading { found, names, value } = if self.program.is_single {
            option::find_single(&rules, text)
        } else {
            option::find(&rules, text)
        };
        self.seen.extend(names);
        if let Some((kind, value)) = value {
            self.noted.value(kind, value, origin);
        }
        found
    }

    /// The first argument of an old-style `tar`: letters, whose values are the next arguments. `None` if one of them is
    /// not described, or if two have values: nobody needs that, and their order would have to be right.
    fn letters(&mut self, text: &str) -> Option<()> {
        for letter in text.chars() {
            let rules = [&self.body.options, &self.program.everywhere];
            let reading = option::find(&rules, &format!("-{letter}")).into_parts();
            self.seen.extend(reading.1);
            match reading.0 {
                Found::Harmless(None) => {}
                Found::Harmless(kind) if self.value.is_none() => self.value = kind,
                Found::Harmless(_) | Found::Unknown => return None,
            }
        }
        Some(())
    }

    fn finish(self, is_open: bool) -> Result<Effects, Doubt> {
        let (program, body) = (self.program, self.body);
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
            (true, true) if body.takes_trees => RepositoryUse::Trees,
            (true, true) => RepositoryUse::Hooks,
        };
        let changes_files = !body.is_reading || self.noted.is_beyond;
        let written = match changes_files {
            true if body.permits_all || self.noted.is_beyond => self.noted.anything(&body.writes),
            true => self.noted.written(&body.writes, &self.seen),
            false => Vec::new(),
        };
        let makes_links = changes_files && body.writes.makes_links;
        Ok(Effects { changes_files, written, makes_links, repository })
    }
}

fn has_dash(text: &str) -> bool {
    text.starts_with('-') && text.len() > 1
}

#[cfg(test)]
mod tests;
