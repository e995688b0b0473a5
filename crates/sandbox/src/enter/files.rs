//! Landlock rules: files, TCP, signals, abstract Unix sockets.

use std::fs;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use super::Failure;
use crate::plan::{BrokerRules, FileRules, Root, Tcp};
use crate::system_files::{CONFIGURATION, DEVICES, MACHINE, PROGRAMS};

/// The first version that confines signals; it is in Linux 6.12.
pub(crate) const NEEDED: ABI = ABI::V6;

/// From now on, this process and its children can signal, and reach on abstract sockets, only each other.
pub(crate) fn scope_signals() -> Result<(), Failure> {
    // Every rule set refuses to move and link files between directories unless a rule permits it.
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)
        .and_then(|ruleset| ruleset.scope(Scope::from_all(NEEDED)))
        .and_then(Ruleset::create)
        .map_err(|error| describe(&error))?;
    let ruleset = allow(ruleset, Path::new("/"), AccessFs::Refer.into())?;
    ruleset.restrict_self().map_err(|error| describe(&error)).map(drop)
}

/// Applies the rules to this process and all that it starts.
pub(crate) fn restrict(rules: &FileRules) -> Result<(), Failure> {
    let mut ruleset = create(rules.tcp).map_err(|error| describe(&error))?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
    for path in PROGRAMS.iter().chain(CONFIGURATION) {
        ruleset = allow_if_present(ruleset, path, read)?;
    }
    for path in MACHINE {
        ruleset = allow_if_present(ruleset, path, AccessFs::ReadFile | AccessFs::ReadDir)?;
    }
    for path in DEVICES {
        let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
        ruleset = allow_if_present(ruleset, path, device)?;
    }
    if rules.root == Root::Image {
        let entries = fs::read_dir("/").map_err(|error| format!("cannot read /: {error}"))?;
        for entry in entries.flatten().filter(|entry| entry.file_name() != "proc") {
            ruleset = allow(ruleset, &entry.path(), read)?;
        }
    }
    for path in rules.own.iter().filter(|path| path.exists()) {
        ruleset = allow(ruleset, path, AccessFs::from_all(NEEDED))?;
    }
    for path in &rules.readable {
        ruleset = allow(ruleset, path, read)?;
    }
    // Devices can neither be made nor controlled: as root they would lead to the disks.
    let change = AccessFs::from_all(NEEDED)
        & !(AccessFs::MakeBlock | AccessFs::MakeChar | AccessFs::IoctlDev);
    for path in &rules.writable {
        ruleset = allow(ruleset, path, change)?;
    }
    ruleset.restrict_self().map_err(|error| describe(&error)).map(drop)
}

/// Restricts the calling thread to files, as far as this kernel can: older ones do not know every kind of access.
pub(crate) fn open_only(rules: &BrokerRules) -> Result<(), Failure> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEEDED))
        .and_then(Ruleset::create)
        .map_err(|error| describe(&error))?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    for path in rules.readable.iter().chain(&rules.brokered) {
        ruleset = allow(ruleset, path, read)?;
    }
    for path in rules.open() {
        ruleset = allow(ruleset, &path, AccessFs::from_all(NEEDED))?;
    }
    let status = ruleset.restrict_self().map_err(|error| describe(&error))?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("this kernel has no Landlock".to_owned()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}

fn create(tcp: Tcp) -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .scope(Scope::from_all(NEEDED))?;
    match tcp {
        Tcp::Closed => ruleset.handle_access(AccessNet::from_all(NEEDED))?,
        Tcp::Open => ruleset,
    }
    .create()
}

fn allow_if_present(
    ruleset: RulesetCreated,
    path: &str,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, Failure> {
    if Path::new(path).exists() { allow(ruleset, Path::new(path), access) } else { Ok(ruleset) }
}

fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, Failure> {
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEEDED) };
    let descriptor = PathFd::new(path).map_err(|error| error.to_string())?;
    ruleset
        .add_rule(PathBeneath::new(descriptor, access))
        .map_err(|error| format!("cannot allow {}: {error}", path.display()))
}

fn describe(error: &RulesetError) -> Failure {
    format!("Landlock refused its rules: {error}")
}

#[cfg(test)]
mod tests;
