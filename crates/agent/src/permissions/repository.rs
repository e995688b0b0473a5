//! What in a git repository makes git start programs: keys of its config, hooks, and repositories inside it, whose config
//! git reads as well.
//!
//! git finds the repository of a directory in it or above it. So this looks where git looks, at every place that git might
//! take, and names what is not known to be harmless. It reads the files in their plainest form only: what it does not
//! understand counts as a program.

mod hidden;
mod index;

use std::fs;
use std::path::{Path, PathBuf};

use myclaw_files::portable::PermissionsExt as _;
use myclaw_files::{canonical, read_regular};
use myclaw_policy::RepositoryPrograms;

pub(crate) use self::hidden::hidden_repositories;
use super::tree::{Met, Tree};

/// Longest config and longest file with one path that are read. Usual ones have less than a kilobyte.
const MAX_CONFIG_BYTES: u64 = 256 * 1024;
const MAX_PATH_BYTES: u64 = 8 * 1024;
/// Most hooks and samples in a directory.
const MAX_HOOKS: usize = 1_000;
/// Most entries of a working tree that are looked through for other repositories.
const MAX_ENTRIES: usize = 100_000;
/// The hook that commands run which only read, when they store what they found in the index.
const READING_HOOK: &str = "post-index-change";

/// Keys of a config that start no program, by section. `section "x"` stands for a section with any subsection. A key may
/// end with `*`.
const HARMLESS_KEYS: &[(&str, &str)] = &[
    (
        "core",
        "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol",
    ),
    (
        "core",
        "safecrlf quotepath abbrev compression loosecompression trustctime checkstat untrackedcache preloadindex",
    ),
    (
        "core",
        "sharedrepository protectntfs protecthfs sparsecheckout sparsecheckoutcone excludesfile bigfilethreshold",
    ),
    (
        "core",
        "longpaths whitespace commentchar commitgraph multipackindex hidedotfiles warnambiguousrefs notesref",
    ),
    ("extensions", "preciousobjects noop relativeworktrees worktreeconfig refstorage"),
    ("user", "name email signingkey useconfigonly"),
    ("author", "name email"),
    ("committer", "name email"),
    (
        "remote \"x\"",
        "url pushurl fetch push prune prunetags tagopt mirror skipdefaultupdate skipfetchall gh-resolved",
    ),
    ("remote", "pushdefault"),
    ("branch \"x\"", "remote merge rebase pushremote description vscode-* github-* gh-* gk-*"),
    ("branch", "autosetupmerge autosetuprebase sort"),
    ("pull", "rebase ff"),
    ("push", "default autosetupremote followtags gpgsign"),
    ("fetch", "prune prunetags parallel all writecommitgraph"),
    ("rebase", "autosquash autostash updaterefs stat"),
    ("merge", "ff conflictstyle renames renamelimit log autostash stat tool"),
    (
        "diff",
        "algorithm renames renamelimit noprefix mnemonicprefix colormoved colormovedws context interhunkcontext",
    ),
    (
        "diff",
        "ignoresubmodules indentheuristic statgraphwidth suppressblankempty wserrorhighlight tool wordregex",
    ),
    ("status", "short branch relativepaths showstash showuntrackedfiles aheadbehind renames"),
    (
        "log",
        "date decorate follow abbrevcommit showroot mailmap excludedecoration graphcolors diffmerges",
    ),
    ("color", "*"),
    ("color \"x\"", "*"),
    ("column", "*"),
    ("advice", "*"),
    ("i18n", "*"),
    ("pretty", "*"),
    ("gui", "wmstate geometry"),
    ("init", "defaultbranch"),
    ("gc", "auto autodetach"),
    ("maintenance", "auto"),
    ("pack", "threads window depth windowmemory packsizelimit compression"),
    ("index", "version threads"),
    ("feature", "manyfiles"),
    ("submodule \"x\"", "url active branch"),
    ("submodule", "active fetchjobs"),
    ("tag", "sort gpgsign"),
    ("commit", "template gpgsign verbose status cleanup"),
    ("rerere", "enabled autoupdate"),
    ("format", "pretty"),
    ("http", "postbuffer version"),
    ("lfs", "repositoryformatversion"),
    ("lfs \"x\"", "access locksverify"),
];

/// What makes git start programs in that directory.
pub(super) fn programs(directory: &Path) -> RepositoryPrograms {
    let mut found = RepositoryPrograms::default();
    let Ok(real) = canonical(directory) else {
        found.any_command = Some(format!("{}, which does not exist", directory.display()));
        return found;
    };
    for level in real.ancestors() {
        if look_at(level, &mut found) == Search::Ended || found.any_command.is_some() {
            break;
        }
    }
    found
}

/// Whether git looks further up for a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Search {
    /// It takes the one that was found.
    Ended,
    /// It may.
    GoesOn,
}

fn look_at(level: &Path, found: &mut RepositoryPrograms) -> Search {
    let inner = level.join(".git");
    match fs::metadata(&inner) {
        Ok(metadata) if metadata.is_file() => {
            match path_in(&inner, "gitdir: ") {
                Some(path) => inspect(&level.join(path), found),
                None => found.any_command = Some(shown("the unusual file", &inner)),
            }
            return Search::Ended;
        }
        Ok(metadata) if metadata.is_dir() => {
            inspect(&inner, found);
            if is_surely_a_repository(&inner) {
                return Search::Ended;
            }
        }
        // git takes nothing else for a repository.
        _ => {}
    }
    if fs::symlink_metadata(level.join("HEAD")).is_ok() {
        inspect(level, found);
        if is_surely_a_repository(level) {
            return Search::Ended;
        }
    }
    Search::GoesOn
}

/// Whether git takes the directory for a repository. Where git might see it differently, this says no.
fn is_surely_a_repository(directory: &Path) -> bool {
    let head = directory.join("HEAD");
    let is_file = fs::symlink_metadata(&head).is_ok_and(|it| it.is_file());
    let text = read_regular(&head, MAX_PATH_BYTES).ok().and_then(|it| String::from_utf8(it).ok());
    let is_plain = |text: &str| {
        let name = text.strip_prefix("ref: refs/heads/").and_then(|it| it.strip_suffix('\n'));
        name.is_some_and(|name| !name.is_empty() && name.bytes().all(|it| it.is_ascii_graphic()))
            || (text.len() == 41 && text.trim_end().bytes().all(|it| it.is_ascii_hexdigit()))
    };
    let has = |name: &str| fs::metadata(directory.join(name)).is_ok_and(|it| it.is_dir());
    is_file && text.is_some_and(|text| is_plain(&text)) && has("objects") && has("refs")
}

/// Looks for programs in a repository's own directory.
fn inspect(directory: &Path, found: &mut RepositoryPrograms) {
    let common = match fs::symlink_metadata(directory.join("commondir")) {
        Err(_) => directory.to_owned(),
        Ok(_) => match path_in(&directory.join("commondir"), "") {
            Some(path) => directory.join(path),
            None => {
                found.any_command = Some(shown("the unusual file", &directory.join("commondir")));
                return;
            }
        },
    };
    let configs =
        [common.join("config"), common.join("config.worktree"), directory.join("config.worktree")];
    for config in configs {
        found.any_command = found.any_command.take().or_else(|| program_in_config(&config));
    }
    if let Some(path) = index::inner_repository(&directory.join("index")) {
        found.any_command.get_or_insert(path);
    }
    for name in hooks(&common.join("hooks")) {
        let hook = format!("the hook {name} in {}", common.display());
        if name == READING_HOOK {
            found.any_command.get_or_insert(hook);
        } else {
            found.changing_command.get_or_insert(hook);
        }
    }
}

/// A repository in the working tree of the one of that directory. git takes it for a part of the outer one when a commit
/// says so, which is not looked up here: such a commit can be made with other files than those that are there.
pub(super) fn inner_repository(directory: &Path) -> Option<String> {
    let real = canonical(directory).ok()?;
    // The outermost tree holds those of all repositories that git may choose.
    let tree =
        real.ancestors().filter(|level| level.join(".git").symlink_metadata().is_ok()).last()?;
    let mut walk = Tree::new(tree, MAX_ENTRIES);
    while let Some(met) = walk.next() {
        match met {
            Met::Entry(entry) if entry.file_name().eq_ignore_ascii_case(".git") => {
                let inside = entry.path();
                let repository = inside.parent().unwrap_or(tree);
                if repository != tree {
                    return Some(format!("the repository {} inside it", repository.display()));
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    walk.leave_out();
                }
            }
            Met::Entry(_) | Met::Unreadable(_) => {}
            Met::TooMany => {
                return Some(format!(
                    "a repository that may be in {}, which holds more files than are looked through",
                    tree.display()
                ));
            }
        }
    }
    None
}

/// The path in a file of one line.
fn path_in(file: &Path, prefix: &str) -> Option<PathBuf> {
    let text = String::from_utf8(read_regular(file, MAX_PATH_BYTES).ok()?).ok()?;
    let path = text.strip_prefix(prefix)?.trim_end_matches(['\n', '\r']);
    (!path.is_empty() && !path.contains(['\n', '\r', '\0'])).then(|| PathBuf::from(path))
}

fn hooks(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let is_executable = |path: &Path| {
        fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let mut names: Vec<String> = entries
        .take(MAX_HOOKS)
        .flatten()
        .filter(|entry| is_executable(&entry.path()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.ends_with(".sample"))
        .collect();
    names.sort();
    names
}

/// The first line of a config that is not known to be harmless.
fn program_in_config(path: &Path) -> Option<String> {
    if fs::symlink_metadata(path).is_err() {
        return None;
    }
    let unreadable = || Some(shown("what cannot be read of", path));
    let Ok(bytes) = read_regular(path, MAX_CONFIG_BYTES) else { return unreadable() };
    if bytes.len() as u64 == MAX_CONFIG_BYTES {
        return unreadable();
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut section = String::new();
    for line in text.split('\n').map(|line| line.trim_matches([' ', '\t', '\r'])) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            match section_name(name) {
                Some(name) => section = name,
                None => return Some(shown(&format!("the section `[{name}` in"), path)),
            }
            continue;
        }
        let key = line.split('=').next().unwrap_or_default().trim_end().to_ascii_lowercase();
        // A backslash at the end continues the value in the next line.
        if line.ends_with('\\') || !is_harmless(&section, &key) {
            let section = section.replace("\"x\"", "…");
            return Some(shown(&format!("`{section}.{key}` in"), path));
        }
    }
    None
}

/// `section`, or `section "x"` for any subsection.
fn section_name(text: &str) -> Option<String> {
    let text = text.strip_suffix(']')?;
    let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
    let is_name =
        !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
    let subsection = rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let name = name.to_ascii_lowercase();
    match subsection {
        _ if !is_name => None,
        Some(subsection) if !subsection.contains(['"', '\\', ']']) => Some(format!("{name} \"x\"")),
        None if rest.is_empty() => Some(name),
        _ => None,
    }
}

fn is_harmless(section: &str, key: &str) -> bool {
    let mut keys = HARMLESS_KEYS
        .iter()
        .filter(|(name, _)| *name == section)
        .flat_map(|(_, keys)| keys.split(' '));
    let is_key = !key.is_empty() && key.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
    is_key && keys.any(|known| myclaw_policy::matches_name(known, key))
}

fn shown(what: &str, path: &Path) -> String {
    format!("{what} {}", path.display())
}

#[cfg(test)]
mod tests;
