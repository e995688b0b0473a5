//! Finds the programs of a command as the shell will.

use std::collections::BTreeMap;
use std::path::Path;

use myclaw_exec::EnvironmentPolicy;
use myclaw_files::canonical;
use myclaw_policy::ResolvedProgram;

use crate::key_lookup::is_executable;

/// Variables that differ from one login to the next and do not change what a command does. An approval is not bound to
/// them: otherwise it would not hold in the next terminal.
const VOLATILE: [&str; 13] = [
    "TERM",
    "COLORTERM",
    "COLUMNS",
    "NO_COLOR",
    "HOSTNAME",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
    "XDG_RUNTIME_DIR",
    "XDG_SEAT",
    "XDG_VTNR",
    "XDG_ACTIVATION_TOKEN",
];
/// Families of such variables.
const VOLATILE_PREFIX: &str = "XDG_SESSION_";

/// These variables as texts, without [`VOLATILE`] ones. Values that are not UTF-8 are compared with replacement
/// characters.
pub(super) fn environment(policy: &EnvironmentPolicy) -> BTreeMap<String, String> {
    policy
        .iter()
        .map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .filter(|(name, _)| {
            !VOLATILE.contains(&name.as_str()) && !name.starts_with(VOLATILE_PREFIX)
        })
        .collect()
}

/// The program that the shell starts for `name` in `directory`: a path, or a name in the directories of `PATH`.
///
/// A relative entry of `PATH` means another directory after each `cd`. Programs behind such an entry are not found, so
/// a program of the workspace cannot pass for an installed one.
pub(super) fn resolve(
    name: &str,
    environment: &BTreeMap<String, String>,
    directory: &Path,
) -> Option<ResolvedProgram> {
    let path = if name.contains('/') {
        Some(directory.join(name)).filter(|path| is_executable(path))?
    } else {
        std::env::split_paths(environment.get("PATH")?)
            .map_while(|entry| entry.is_absolute().then(|| entry.join(name)))
            .find(|program| is_executable(program))?
    };
    let real = canonical(&path).ok()?;
    Some(ResolvedProgram { path, real })
}

#[cfg(test)]
mod tests;
