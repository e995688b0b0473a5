//! Reads the descriptions of programs.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::option::{Kind, OptionRule};
use super::{Body, Program};

/// The descriptions that come with MyClaw.
pub(super) static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::read(&FILES));

pub(super) const FILES: [&str; 6] = [
    include_str!("git.txt"),
    include_str!("files.txt"),
    include_str!("network.txt"),
    include_str!("system.txt"),
    include_str!("build.txt"),
    include_str!("launchers.txt"),
];

/// Families of programs that run what their arguments say: the dynamic linker, git's own programs, virtual machines.
const LAUNCHER_PREFIXES: [&str; 3] = ["ld-", "git-", "qemu-"];
/// What stands before the name of a compiler for another machine.
const CROSS_PREFIXES: [&str; 4] = ["-gnu-", "-musl-", "-gnueabihf-", "-mingw32-"];

/// All descriptions.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    programs: Vec<Program>,
    by_name: HashMap<String, usize>,
    /// Lines that are no directive. A test sees to it that there is none.
    pub(super) mistakes: Vec<&'static str>,
}

impl Catalog {
    /// Reads descriptions. What is no directive makes nothing harmless.
    pub(super) fn read(files: &[&'static str]) -> Self {
        let mut catalog = Self::default();
        for line in files.iter().flat_map(|file| file.lines()).map(str::trim) {
            if !line.is_empty() && !line.starts_with('#') && catalog.directive(line).is_none() {
                catalog.mistakes.push(line);
            }
        }
        // Nothing is harmless of this one.
        let is_launcher = true;
        catalog.programs.push(Program { is_launcher, ..Program::default() });
        catalog
    }

    /// The description for a file name. A version at the end, as in `python3.12`, is ignored, and so is case: file
    /// systems that ignore it find `Python` as well.
    pub(super) fn find(&self, file_name: &str) -> Option<&Program> {
        let name = file_name.to_ascii_lowercase();
        let after =
            |prefix: &&str| name.rfind(*prefix).and_then(|at| name.get(at + prefix.len()..));
        let name = CROSS_PREFIXES.iter().find_map(after).unwrap_or(&name);
        if LAUNCHER_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            return self.programs.last();
        }
        if let Some(program) = self.by_name.get(name) {
            return self.programs.get(*program);
        }
        let base = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
        let found = self.programs.get(*self.by_name.get(base)?)?;
        // `id3` is not `id`: what is said about all options of a program holds for that program alone.
        Some(found).filter(|program| !program.body.permits_all)
    }

    fn directive(&mut self, line: &'static str) -> Option<()> {
        let (keyword, rest) = line.split_once(' ').unwrap_or((line, ""));
        if keyword == "program" {
            for name in rest.split_whitespace() {
                let name = name.to_ascii_lowercase();
                if self.by_name.insert(name, self.programs.len()).is_some() {
                    return None;
                }
            }
            self.programs.push(Program::default());
            return Some(());
        }
        let program = self.programs.last_mut()?;
        let options = || -> Option<Vec<OptionRule>> {
            rest.split_whitespace().map(OptionRule::parse).collect()
        };
        match keyword {
            "everywhere" => program.everywhere.extend(options()?),
            "launcher" => program.is_launcher = true,
            "lines" => (program.is_launcher, program.runs_lines) = (true, true),
            "inert" => program.is_inert = true,
            "wraps" => {
                program.is_launcher = true;
                program.wraps = Some(if rest.is_empty() { 0 } else { rest.parse().ok()? });
                program.body.operands =
                    program.wraps.filter(|most| *most > 0).map(|most| (Kind::Any, most));
            }
            "obeys" => program.obeys.get_or_insert_default().extend(rest.split_whitespace()),
            "sets" => program.sets.extend(rest.split_whitespace()),
            "sed" => program.is_sed = true,
            "single" => program.is_single = true,
            "leading" => program.ends_options_early = true,
            "letters" => program.begins_with_letters = true,
            "repository" => program.uses_repository = true,
            "sub" => {
                let is_spelled_only = program.body.is_spelled_only;
                for name in rest.split_whitespace() {
                    let body = Body { is_spelled_only, ..Body::default() };
                    program.subcommands.push((name.split('.').collect(), body));
                }
                program.latest = rest.split_whitespace().count();
            }
            _ => {
                for body in program.latest_bodies() {
                    body.directive(keyword, rest)?;
                }
            }
        }
        Some(())
    }
}

impl Program {
    /// What the directives after the last `sub` describe: these subcommands, or the program itself.
    fn latest_bodies(&mut self) -> impl Iterator<Item = &mut Body> {
        let Self { body, subcommands, latest, .. } = self;
        let first = subcommands.len() - *latest;
        let own = Some(body).filter(|_| subcommands.is_empty());
        own.into_iter().chain(subcommands.iter_mut().skip(first).map(|(_, body)| body))
    }
}

impl Body {
    fn directive(&mut self, keyword: &str, rest: &'static str) -> Option<()> {
        match keyword {
            "options" if rest == "**" => self.permits_all = true,
            "options" => {
                let options: Option<Vec<OptionRule>> =
                    rest.split_whitespace().map(OptionRule::parse).collect();
                self.options.extend(options?);
            }
            "operands" if rest == "none" => self.operands = None,
            "operands" => {
                let (kind, most) = rest.split_once(' ').unwrap_or((rest, ""));
                let most = if most.is_empty() { usize::MAX } else { most.parse().ok()? };
                self.operands = Some((Kind::parse(kind), most));
            }
            "needs" => self.needs.extend(rest.split_whitespace()),
            "reads" => self.is_reading = true,
            "hooks" => self.runs_hooks = true,
            "trees" => (self.runs_hooks, self.takes_trees) = (true, true),
            "writes" => {
                for word in rest.split_whitespace() {
                    self.writes.directive(word)?;
                }
            }
            "unless" => self.writes.unless.extend(rest.split_whitespace()),
            "links" => self.writes.makes_links = true,
            "spelled" => self.is_spelled_only = true,
            _ => return None,
        }
        Some(())
    }
}
