//! The scripts that a file names which a program carries out: what they say counts as much as what the file says.
//!
//! A file is read as words, whatever its language. What a program finds by rules of its own is not found here, but for the
//! [`modules`] next to a script.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use myclaw_files::portable::PermissionsExt as _;
use myclaw_files::{canonical, canonical_or_same, open_regular, read_regular};

use super::modules;

/// Longest file that is looked through.
const MAX_BYTES: u64 = 1024 * 1024;
/// Words before the name of a file that counts as a part of this one.
const INCLUDING: [&str; 9] =
    ["include", "-include", "sinclude", "source", ".", "import", "mod", "extends", "file"];
/// The first of them, whose next word is a path and nothing else.
const INCLUDING_A_PATH: usize = 5;
/// Endings of the names of scripts and of files that name programs.
const ENDINGS: [&str; 24] = [
    "sh", "bash", "zsh", "fish", "py", "rb", "pl", "lua", "php", "awk", "js", "cjs", "mjs", "ts",
    "cts", "mts", "mk", "make", "cmake", "just", "yml", "yaml", "gradle", "kts",
];

/// What a file says about others.
#[derive(Debug, Default)]
pub(super) struct Carried {
    pub(super) scripts: BTreeSet<PathBuf>,
    /// Why it cannot be said which they are.
    pub(super) gap: Option<String>,
}

/// Reads the file at `path`. Relative names begin in its directory or in one of `directories`.
pub(super) fn read(path: &Path, directories: &[PathBuf]) -> Carried {
    let mut found = Carried::default();
    // The state of the file says that it cannot be read.
    let Ok(bytes) = read_regular(path, MAX_BYTES) else { return found };
    if bytes.contains(&0) {
        return found;
    }
    if bytes.len() as u64 == MAX_BYTES {
        found.gap = Some(format!("{} is too long to be looked through", path.display()));
        return found;
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut bases: Vec<&Path> = directories.iter().map(PathBuf::as_path).collect();
    bases.extend(path.parent());
    let mut seen = BTreeSet::new();
    for line in text.lines() {
        let modules = modules::of_line(path, line).into_iter();
        found.scripts.extend(modules.map(canonical_or_same));
        let mut is_included = false;
        for word in line.split_whitespace() {
            let including = INCLUDING.iter().position(|it| *it == word.trim_end_matches(':'));
            if is_included && word.contains(['$', '*', '`']) && takes_path(line) {
                let path = path.display();
                found.gap.get_or_insert_with(|| {
                    format!("which files {path} includes is only known when it runs")
                });
            }
            for name in word.split(is_no_part_of_names).filter(|name| !name.is_empty()) {
                if !seen.insert((name, is_included)) {
                    continue;
                }
                let files = bases.iter().map(|base| base.join(name)).filter(|it| it.is_file());
                let counted = files.filter(|file| is_included || is_script(file));
                found.scripts.extend(counted.filter_map(|file| canonical(file).ok()));
            }
            is_included |= including.is_some();
        }
    }
    found
}

/// Whether the line begins with a word that only a path follows.
fn takes_path(line: &str) -> bool {
    line.split_whitespace()
        .next()
        .is_some_and(|first| INCLUDING[..INCLUDING_A_PATH].contains(&first))
}

fn is_no_part_of_names(char: char) -> bool {
    !(char.is_alphanumeric() || matches!(char, '.' | '_' | '-' | '/' | '+' | '@' | '~'))
}

fn is_script(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if ENDINGS.contains(&ending) {
        return true;
    }
    let is_executable = path.metadata().is_ok_and(|it| it.permissions().mode() & 0o111 != 0);
    is_executable || begins_with_interpreter(path)
}

fn begins_with_interpreter(path: &Path) -> bool {
    use std::io::Read as _;
    let mut start = [0; 2];
    open_regular(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok()) && &start == b"#!"
}
