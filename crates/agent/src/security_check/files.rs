//! Files that hold keys, and files that the program obeys: who else on this machine can read or change them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use myclaw_files::canonical_or_same;

use super::access::texts;
use super::{SecurityFinding, Setup, Severity, finding, quoted_path};

/// Directories of programs that copy files to other machines.
const SYNCED: [&str; 13] = [
    "Dropbox",
    "OneDrive",
    "Google Drive",
    "GoogleDrive",
    "iCloud Drive",
    "Mobile Documents",
    "CloudStorage",
    "Nextcloud",
    "ownCloud",
    "Syncthing",
    "MEGA",
    "pCloudDrive",
    "Box Sync",
];
/// What such a program puts into a directory that it copies.
const SYNC_MARKS: [&str; 2] = [".stfolder", ".dropbox.cache"];

/// Others than the owner may read.
const READ_BY_OTHERS: u32 = 0o044;
/// Others than the owner may write.
const WRITTEN_BY_OTHERS: u32 = 0o022;

/// Files and directories that only the owner should read.
pub(super) fn private_files(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let paths = &setup.home.paths;
    let state = paths.state_dir();
    let mut files: Vec<PathBuf> =
        [".env", "gateway/token", "gateway/store.sqlite", "approvals.json"]
            .iter()
            .map(|name| state.join(name))
            .collect();
    files.push(paths.config_file().to_owned());
    for id in setup.config.agent_ids() {
        if let Ok(agent) = setup.config.resolve_agent(Some(id.as_str())) {
            files.extend(setup.home.keys_of(&agent).file().map(Path::to_owned));
        }
    }
    let tls = setup.config.gateway.tls.as_ref();
    files.extend(tls.and_then(|tls| paths.resolve_in_config(&tls.key).ok()));
    let mut found = Vec::new();
    for path in files {
        let mode = mode_of(&path);
        if mode & (READ_BY_OTHERS | WRITTEN_BY_OTHERS) != 0 {
            let what = if mode & WRITTEN_BY_OTHERS != 0 { "change" } else { "read" };
            found.push(finding(
                "file-open-to-others",
                Severity::High,
                format!(
                    "other users of this machine can {what} {}, which may hold keys",
                    path.display()
                ),
                format!("chmod 600 {}", quoted_path(&path)),
            ));
        }
    }
    for path in [state.to_owned(), paths.sessions_dir(), paths.logs_dir()] {
        if mode_of(&path) & (READ_BY_OTHERS | WRITTEN_BY_OTHERS) != 0 {
            found.push(finding(
                "directory-open-to-others",
                Severity::Medium,
                format!(
                    "other users of this machine can look into {}, which holds what was said",
                    path.display()
                ),
                format!("chmod 700 {}", quoted_path(&path)),
            ));
        }
    }
    found
}

/// Files and directories that decide what the program does, which others can change.
pub(super) fn files_that_are_obeyed(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let paths = &setup.home.paths;
    let mut places: Vec<PathBuf> = vec![paths.state_dir().join("skills")];
    places.extend(setup.home.paths.home().map(|home| home.join(".agents/skills")));
    for directory in texts(setup.at("skills.load.extraDirs")) {
        places.extend(paths.resolve_in_config(directory).ok());
    }
    places.extend(hook_programs(setup));
    let mut synced = Vec::new();
    for id in setup.config.agent_ids() {
        if let Ok(agent) = setup.config.resolve_agent(Some(id.as_str())) {
            synced.push(agent.workspace.clone());
            places.push(agent.workspace);
        }
    }
    places.dedup();
    let mut found: Vec<SecurityFinding> = Vec::new();
    for path in places {
        let parent = path.parent().map(Path::to_owned);
        for place in std::iter::once(path).chain(parent) {
            let mode = mode_of(&place);
            // In a directory with the sticky bit nobody can replace what others own.
            let is_sticky = mode & 0o1000 != 0;
            let fix = format!("chmod go-w {}", quoted_path(&place));
            if mode & WRITTEN_BY_OTHERS != 0
                && !is_sticky
                && !found.iter().any(|finding| finding.fix == fix)
            {
                let message = format!(
                    "other users of this machine can change {}, and what is in it decides what your agent does",
                    place.display()
                );
                found.push(finding("obeyed-file-open-to-others", Severity::High, message, fix));
            }
        }
    }
    for workspace in synced {
        if is_synced(&workspace) && setup.at("agent.workspaceDir").is_string() {
            found.push(finding(
                "synced-workspace",
                Severity::Low,
                format!("{} is copied to other machines, and who can write there writes into the prompt", workspace.display()),
                super::unset("agent.workspaceDir"),
            ));
        }
    }
    found
}

/// A state directory that another program copies to other machines, with keys and sessions.
pub(super) fn synced_state_directory(setup: &Setup<'_>) -> Vec<SecurityFinding> {
    let paths = &setup.home.paths;
    let state = paths.state_dir();
    let real = canonical_or_same(state);
    if !is_synced(&real) && !is_synced(state) {
        return Vec::new();
    }
    let name = real.file_name().unwrap_or(real.as_os_str());
    let elsewhere = Path::new("/var/lib").join(name);
    let target = paths.home().filter(|home| !is_synced(home)).map(|home| home.join(".myclaw"));
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    // A link in the usual place gives way.
    let first =
        if is_link(state) { format!("rm {} && ", quoted_path(state)) } else { String::new() };
    let is_free = |target: &PathBuf| {
        (is_link(state) && *target == state) || target.symlink_metadata().is_err()
    };
    let target = target.filter(is_free).unwrap_or(elsewhere);
    vec![finding(
        "synced-state-directory",
        Severity::High,
        format!("{} is copied to other machines, with your keys and sessions", state.display()),
        format!("{first}mv {} {}", quoted_path(&real), quoted_path(&target)),
    )]
}

/// Whether a program copies what is at the path to other machines.
fn is_synced(path: &Path) -> bool {
    let is_name = |part: &OsStr| SYNCED.iter().any(|name| part.eq_ignore_ascii_case(name));
    path.iter().any(is_name)
        || path.ancestors().any(|at| SYNC_MARKS.iter().any(|mark| at.join(mark).exists()))
}

/// The programs that hooks name by their path.
fn hook_programs(setup: &Setup<'_>) -> Vec<PathBuf> {
    let hooks = setup.at("hooks").as_object().into_iter().flatten();
    let commands = hooks.filter_map(|(_, list)| list.as_array()).flatten();
    let words = commands.filter_map(|hook| {
        let command = &hook["command"];
        let line = command.as_str().or_else(|| command[0].as_str())?;
        line.split_whitespace().next().map(str::to_owned)
    });
    let paths = &setup.home.paths;
    words
        .filter(|word| word.contains('/'))
        .filter_map(|word| paths.resolve_in_config(&word).ok())
        .collect()
}

/// The permissions of a file or directory; 0 if there is none, or where files have no such permissions.
fn mode_of(path: &Path) -> u32 {
    #[cfg(unix)]
    {
        use myclaw_files::portable::MetadataExt as _;
        path.metadata().map(|metadata| metadata.mode()).unwrap_or(0)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        0
    }
}
