//! What the approval of a command is bound to in addition to its words: the programs and the files that it may run, by identity
//! and content.

mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use myclaw_engine::{BoundFact, CommandLine};
use myclaw_policy::{
    Command, LooseCommand, Word, ignores_input, is_launcher, loose_commands, runs_lines,
    starts_nothing,
};

use super::programs;
use state::{FileState, Text};

/// Variables that decide which program a name means.
const SEARCH_VARIABLES: [&str; 2] = ["PATH=", "CDPATH="];
/// Files that programs run without being told so, by the names of the programs.
const UNSAID: [(&str, &[&str]); 12] = [
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("gmake", &["GNUmakefile", "makefile", "Makefile"]),
    ("npm", &["package.json", ".npmrc"]),
    ("npx", &["package.json", ".npmrc"]),
    ("pnpm", &["package.json", ".npmrc"]),
    ("yarn", &["package.json", ".yarnrc.yml"]),
    ("bun", &["package.json", "bunfig.toml"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("rake", &["Rakefile"]),
    ("cargo", &["Cargo.toml", "build.rs", ".cargo/config.toml"]),
    ("pytest", &["conftest.py", "pytest.ini", "pyproject.toml"]),
    ("tox", &["tox.ini", "pyproject.toml"]),
];
/// Why a line with an input that is run is asked about each time.
const RUNS_INPUT: &str = "a program in it may run what it reads";
/// Most files of a command. One that names more cannot be approved for good.
const MAX_FILES: usize = 200;
/// Most bytes of all files of a command that are read. Of further ones the size and the times of the last change count.
const MAX_BYTES: u64 = 1024 * 1024 * 1024;
/// Most command lines within command lines.
const MAX_DEPTH: usize = 3;

/// What the approval of a command is bound to.
#[derive(Debug, Default)]
pub(super) struct Bound {
    /// The programs and files.
    pub(super) facts: Vec<BoundFact>,
    /// Why it cannot be said what the command runs, so that it cannot be approved for good.
    pub(super) gap: Option<String>,
}

/// Finds what the approval of `command` is bound to. `environment` has all its variables. Reads the files. The texts of
/// files are kept only below `texts`, so that nobody is shown a file that the session itself may not read.
pub(super) fn bound(
    command: &CommandLine,
    environment: &BTreeMap<String, String>,
    texts: &Path,
) -> Bound {
    let mut finder = Finder {
        environment,
        texts,
        directories: vec![command.directory.clone()],
        programs: BTreeSet::new(),
        files: BTreeSet::new(),
        gap: None,
    };
    finder.line(&command.command, MAX_DEPTH, Reading::Line);
    for value in command.environment.values() {
        finder.operand(value);
    }
    finder.finish()
}

/// The file name of a word.
fn file_name(word: &str) -> &str {
    Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or(word)
}

/// How a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// A shell runs it.
    Line,
    /// It may be a line, or any other text.
    Text,
}

/// Whether the command is more than a reader, such as `grep xargs`.
fn reads_more(command: &Command) -> bool {
    !starts_nothing(command.program())
}

/// Whether a word names a program that makes command lines of what it reads, or of a file.
fn is_xargs(word: &Word) -> bool {
    ["xargs", "parallel"].contains(&file_name(&word.text))
}

struct Finder<'a> {
    environment: &'a BTreeMap<String, String>,
    texts: &'a Path,
    /// Where relative paths may begin: the directory of the command, and those that it goes to.
    directories: Vec<PathBuf>,
    programs: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
    gap: Option<String>,
}

impl Finder<'_> {
    fn line(&mut self, line: &str, depth: usize, reading: Reading) {
        let Some(commands) = loose_commands(line) else {
            if reading == Reading::Line {
                self.miss("what it runs is only known when it runs");
            }
            return;
        };
        let gap = self.gap.clone();
        for LooseCommand { command, .. } in &commands {
            self.command(command, depth);
        }
        if reading == Reading::Text {
            // It may as well be no line, so what is only known when it runs is no gap.
            self.gap = gap;
        }
        // The file after `<` is bound.
        let runs_input = |LooseCommand { command, is_piped }: &LooseCommand| {
            let takes_it = match reading {
                Reading::Line => !ignores_input(command),
                Reading::Text => is_launcher(file_name(command.program())),
            };
            (*is_piped && takes_it) || (command.words.iter().any(is_xargs) && reads_more(command))
        };
        if commands.iter().any(runs_input) {
            self.miss(RUNS_INPUT);
        }
    }

    fn miss(&mut self, why: &str) {
        self.gap.get_or_insert_with(|| why.to_owned());
    }

    fn command(&mut self, command: &Command, depth: usize) {
        let searches =
            |word: &Word| SEARCH_VARIABLES.iter().any(|name| word.text.starts_with(name));
        if command.words.iter().any(searches) {
            self.miss("it changes where programs are looked for");
        }
        let is_assignment =
            |word: &&Word| word.text.contains('=') && !word.text.starts_with(['/', '.']);
        let assignments = command.words.iter().take_while(is_assignment).count();
        let (assignments, words) = command.words.split_at(assignments);
        for word in assignments {
            self.word(word);
        }
        let Some((program, operands)) = words.split_first() else { return };
        if program.is_expanded {
            self.miss("its program is only known when it runs");
        }
        self.program(&program.text);
        let name = Path::new(&program.text).file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        if let (true, [to, ..]) = (["cd", "pushd"].contains(&name), operands) {
            self.go(to);
        }
        // `/tmp/cat` may be anything.
        if starts_nothing(&program.text) {
            return;
        }
        let takes_line = |word: &Word| runs_lines(file_name(&word.text));
        let reading = if words.iter().any(takes_line) { Reading::Line } else { Reading::Text };
        for word in operands {
            self.word(word);
            self.nested(word, reading, depth);
        }
        let unsaid = UNSAID.iter().find(|(program, _)| *program == name);
        for file in unsaid.map_or(&[][..], |(_, files)| files) {
            for directory in self.directories.clone() {
                self.add_file(directory.join(file));
            }
        }
    }

    /// An operand may be a command line of its own.
    fn nested(&mut self, word: &Word, reading: Reading, depth: usize) {
        if !word.text.contains([' ', '\n', ';', '|', '&']) {
            return;
        }
        match depth.checked_sub(1) {
            Some(depth) => self.line(&word.text, depth, reading),
            None => self.miss("it has command lines within command lines"),
        }
    }

    fn go(&mut self, to: &Word) {
        if to.is_expanded {
            self.miss("the directory that it goes to is only known when it runs");
        }
        let joined = self.directories.iter().map(|directory| directory.join(&to.text));
        self.directories.extend(joined.collect::<Vec<_>>());
        self.directories.dedup();
        self.directories.truncate(MAX_DEPTH * MAX_DEPTH);
    }

    fn word(&mut self, word: &Word) {
        if word.is_expanded {
            self.miss("some of its words are only known when it runs");
        }
        self.operand(&word.text);
    }

    /// The file that an operand may name: by all of it, after each `=`, or after the letter of an option.
    fn operand(&mut self, text: &str) {
        let mut candidates = vec![text];
        candidates.extend(text.match_indices('=').map(|(at, sign)| &text[at + sign.len()..]));
        let option = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        candidates.extend(option.and_then(|rest| rest.get(1..)));
        for candidate in candidates.into_iter().filter(|text| !text.is_empty()) {
            if candidate.contains('/') || self.exists(candidate) {
                self.add(candidate);
            }
            if !candidate.contains('/') && candidate.len() > 1 {
                self.program(candidate);
            }
        }
    }

    fn exists(&self, name: &str) -> bool {
        self.directories.iter().any(|directory| directory.join(name).is_file())
    }

    /// A program by its name or path.
    fn program(&mut self, name: &str) {
        if name.contains('/') {
            self.add(name);
            return;
        }
        let found = self.directories.iter().find_map(|directory| {
            programs::resolve(name, self.environment, directory).map(|found| found.real)
        });
        self.programs.extend(found);
    }

    /// A file by its path. Of a path that leads nowhere it is remembered that nothing is there.
    fn add(&mut self, path: &str) {
        for directory in self.directories.clone() {
            let path = directory.join(path);
            if !path.is_dir() {
                self.add_file(path);
            }
        }
    }

    fn add_file(&mut self, path: PathBuf) {
        self.files.insert(path.canonicalize().unwrap_or(path));
    }

    fn finish(mut self) -> Bound {
        let mut facts = Vec::new();
        let mut known = BTreeSet::new();
        let mut left = MAX_BYTES;
        let files = std::mem::take(&mut self.files).into_iter().map(|path| (path, "file"));
        let programs = std::mem::take(&mut self.programs).into_iter().map(|path| (path, "program"));
        let mut waiting: Vec<(PathBuf, &str)> = files.chain(programs).collect();
        while let Some((path, kind)) = waiting.pop() {
            if known.len() > MAX_FILES {
                self.miss("it names too many files");
                break;
            }
            if !known.insert(path.clone()) {
                continue;
            }
            let is_shown = kind == "file" && path.starts_with(self.texts);
            let text = if is_shown { Text::Kept } else { Text::Dropped };
            let FileState { state, text, interpreter, read } = state::of(&path, text, left);
            left = left.saturating_sub(read);
            // A script is run by another program, which its first line names.
            for name in interpreter {
                let found = programs::resolve(&name, self.environment, Path::new("/"));
                waiting.extend(found.map(|found| (found.real, "program")));
            }
            facts.push(BoundFact { label: format!("{kind} {}", path.display()), state, text });
        }
        facts.sort_by(|one, other| one.label.cmp(&other.label));
        Bound { facts, gap: self.gap }
    }
}
