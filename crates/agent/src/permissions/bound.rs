//! What the approval of a command is bound to in addition to its words: the programs and the files that it may run, by identity
//! and content.

mod carried;
mod modules;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use myclaw_engine::{BoundFact, CommandLine};
use myclaw_files::{canonical, canonical_or_same};
use myclaw_policy::{
    Command, LooseCommand, RepositoryUse, Word, ignores_input, is_launcher, loose_commands,
    obeyed_files, repository_use, runs_lines, starts_nothing,
};

use super::{programs, repository};
use state::{FileState, Text};

/// Variables that decide which program a name means.
const SEARCH_VARIABLES: [&str; 2] = ["PATH=", "CDPATH="];
/// Words of git's arguments that name a config or a directory of programs.
const CONFIG_PLACES: [&str; 4] = ["include", "hookspath", "--exec-path", "--config-env"];
/// Why a line with an input that is run is asked about each time.
const RUNS_INPUT: &str = "a program in it may run what it reads";
/// Most files of a command. One that names more cannot be approved for good.
const MAX_FILES: usize = 1_000;
/// Most directories that a command names.
const MAX_PLACES: usize = 16;
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
        places: BTreeSet::new(),
        programs: BTreeSet::new(),
        files: BTreeMap::new(),
        obeyed: BTreeSet::new(),
        repository: RepositoryUse::None,
        gap: None,
    };
    finder.line(&command.command, MAX_DEPTH, Reading::Line);
    for value in command.environment.values() {
        finder.operand(value, Use::Named);
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

/// What a command may do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// It is an operand.
    Named,
    /// The command carries out what it says, so the scripts that it names count as well.
    CarriedOut,
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
    /// Directories that the command names, in which a program may look for files that it obeys.
    places: BTreeSet<PathBuf>,
    programs: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, Use>,
    /// Names of files that a program of the command obeys wherever it finds them.
    obeyed: BTreeSet<&'static str>,
    /// What it uses of the git repositories in these directories.
    repository: RepositoryUse,
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
            self.word(word, Use::Named);
        }
        let Some((program, operands)) = words.split_first() else { return };
        if program.is_expanded {
            self.miss("its program is only known when it runs");
        }
        self.program(&program.text);
        let name = file_name(&program.text);
        if let (true, [to, ..]) = (["cd", "pushd"].contains(&name), operands) {
            self.go(to);
        }
        // `/tmp/cat` may be anything.
        if starts_nothing(&program.text) {
            return;
        }
        let takes_line = |word: &Word| runs_lines(file_name(&word.text));
        let reading = if words.iter().any(takes_line) { Reading::Line } else { Reading::Text };
        let operands_are = if is_launcher(name) { Use::CarriedOut } else { Use::Named };
        for word in operands {
            self.word(word, operands_are);
            self.nested(word, reading, depth);
        }
        // Each word may be a program that another one starts.
        for (at, word) in words.iter().enumerate() {
            self.obeying(&word.text, words.get(at + 1..).unwrap_or_default());
        }
    }

    /// Notes what a program obeys besides its arguments.
    fn obeying(&mut self, program: &str, arguments: &[Word]) {
        let name = file_name(program);
        match obeyed_files(name) {
            None => {}
            Some([]) => self.miss(&format!("{name} carries out what the files of a directory say")),
            Some(files) => self.obeyed.extend(files),
        }
        if name.starts_with("py") {
            self.module(arguments);
        }
        let repository = repository_use(name, arguments);
        self.repository = self.repository.max(repository);
        let names_config = |word: &Word| {
            let text = word.text.to_ascii_lowercase();
            CONFIG_PLACES.iter().any(|place| text.contains(place))
        };
        if repository != RepositoryUse::None && arguments.iter().any(names_config) {
            self.miss("git starts what another file or directory says");
        }
    }

    /// The module of `python -m`, which Python looks for in the directory before anywhere else.
    fn module(&mut self, arguments: &[Word]) {
        let mut texts = arguments.iter().map(|word| word.text.as_str());
        let Some(option) = texts.find(|text| text.starts_with("-m")) else { return };
        let module = Some(&option[2..]).filter(|attached| !attached.is_empty()).or(texts.next());
        let Some(module) = module.map(|module| module.replace('.', "/")) else { return };
        for directory in self.directories.clone() {
            for file in [".py", "/__main__.py", "/__init__.py"] {
                let file = directory.join(format!("{module}{file}"));
                self.add_file(canonical_or_same(file), Use::CarriedOut);
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

    fn word(&mut self, word: &Word, used: Use) {
        if word.is_expanded {
            self.miss("some of its words are only known when it runs");
        }
        self.operand(&word.text, used);
    }

    /// The file or directory that an operand may name: by all of it, after each `=`, or after the letter of an option.
    fn operand(&mut self, text: &str, used: Use) {
        let mut candidates = vec![text];
        candidates.extend(text.match_indices('=').map(|(at, sign)| &text[at + sign.len()..]));
        let option = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        candidates.extend(option.and_then(|rest| rest.get(1..)));
        for candidate in candidates.into_iter().filter(|text| !text.is_empty()) {
            if candidate.contains('/') || self.exists(candidate) {
                self.add(candidate, used);
            }
            if !candidate.contains('/') && candidate.len() > 1 {
                self.program(candidate);
            }
        }
    }

    fn exists(&self, name: &str) -> bool {
        self.directories.iter().any(|directory| directory.join(name).exists())
    }

    /// A program by its name or path.
    fn program(&mut self, name: &str) {
        if name.contains('/') {
            self.add(name, Use::CarriedOut);
            return;
        }
        let found = self.directories.iter().find_map(|directory| {
            programs::resolve(name, self.environment, directory).map(|found| found.real)
        });
        self.programs.extend(found);
    }

    /// A file or directory by its path. Of a path that leads nowhere it is remembered that nothing is there.
    fn add(&mut self, path: &str, used: Use) {
        for directory in self.directories.clone() {
            let path = directory.join(path);
            let real = canonical_or_same(path);
            if real.is_dir() {
                self.places.insert(real);
                continue;
            }
            let parent = real.parent().and_then(|parent| canonical(parent).ok());
            self.places.extend(parent.filter(|parent| parent.is_dir()));
            self.add_file(real, used);
        }
    }

    fn add_file(&mut self, path: PathBuf, used: Use) {
        let known = self.files.entry(path).or_insert(used);
        *known = used.max(*known);
    }

    /// Adds what programs of the command find in its directories.
    fn look_around(&mut self) {
        if self.obeyed.is_empty() && self.repository == RepositoryUse::None {
            return;
        }
        let mut places = std::mem::take(&mut self.places);
        let directories = self.directories.iter();
        places.extend(directories.map(canonical_or_same));
        if places.len() > MAX_PLACES {
            self.miss("it names too many directories");
            return;
        }
        for place in &places {
            self.look_at_repository(place);
        }
        let home = self.environment.get("HOME").map(PathBuf::from);
        let levels = places.iter().flat_map(|place| place.ancestors()).chain(home.as_deref());
        for level in levels.map(Path::to_owned).collect::<BTreeSet<_>>() {
            for name in self.obeyed.clone() {
                let file = level.join(name);
                self.add_file(canonical_or_same(file), Use::CarriedOut);
            }
        }
    }

    /// What a repository says can change, and name other files. So a harmless one is looked at again for each command, and
    /// with any other an answer counts once.
    fn look_at_repository(&mut self, place: &Path) {
        if self.repository == RepositoryUse::None {
            return;
        }
        let found = repository::programs(place);
        let hook = found.changing_command.filter(|_| self.repository >= RepositoryUse::Hooks);
        let inner = || {
            let takes_trees = self.repository == RepositoryUse::Trees;
            takes_trees.then(|| repository::inner_repository(place)).flatten()
        };
        if let Some(what) = found.any_command.or(hook).or_else(inner) {
            self.miss(&format!("git may start what this says: {what}"));
        }
    }

    fn finish(mut self) -> Bound {
        self.look_around();
        let mut facts = Vec::new();
        let mut known = BTreeSet::new();
        let mut left = MAX_BYTES;
        let programs = std::mem::take(&mut self.programs).into_iter();
        let programs = programs.map(|path| (path, "program", Use::Named));
        let files = std::mem::take(&mut self.files).into_iter();
        let mut waiting: Vec<(PathBuf, &str, Use)> =
            programs.chain(files.map(|(path, used)| (path, "file", used))).collect();
        while let Some((path, kind, used)) = waiting.pop() {
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
                waiting.extend(found.map(|found| (found.real, "program", Use::Named)));
            }
            if used == Use::CarriedOut {
                let carried = carried::read(&path, &self.directories);
                let named = carried.scripts.into_iter();
                waiting.extend(named.map(|path| (path, "file", Use::CarriedOut)));
                if let Some(gap) = carried.gap {
                    self.miss(&gap);
                }
            }
            facts.push(BoundFact { label: format!("{kind} {}", path.display()), state, text });
        }
        facts.sort_by(|one, other| one.label.cmp(&other.label));
        Bound { facts, gap: self.gap }
    }
}
