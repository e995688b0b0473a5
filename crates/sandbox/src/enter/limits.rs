//! Resource limits and capabilities.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::Failure;
use crate::Limits;

/// What root keeps: changing files regardless of their owner, within what Landlock or the namespace leaves open.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID);

/// Applies the limits to this process and all that it starts.
pub(crate) fn apply(limits: &Limits) -> Result<(), Failure> {
    let processes = limits.processes.map(|most| most.saturating_add(tasks_of_this_user()));
    let wanted = [
        (Resource::Data, "memory", limits.memory),
        (Resource::Nproc, "processes", processes),
        (Resource::Fsize, "the size of files", limits.file_size),
        (Resource::Nofile, "open files", limits.open_files),
        (Resource::Cpu, "processor time", limits.cpu_seconds),
        // A dump of memory can be large, and is a file outside the workspace.
        (Resource::Core, "core dumps", Some(0)),
    ];
    for (resource, what, value) in wanted {
        let Some(value) = value else { continue };
        // A limit that is lower already stays.
        let value = getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
        setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })
            .map_err(|error| format!("cannot limit {what}: {error}"))?;
    }
    Ok(())
}

/// The kernel counts all threads of the user, not only those of the command.
fn tasks_of_this_user() -> u64 {
    let user = rustix::process::getuid();
    if user.is_root() {
        return 0;
    }
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    processes
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .filter_map(|entry| entry.path().join("task").metadata().ok())
        .filter(|tasks| tasks.uid() == user.as_raw())
        // A directory has one link per subdirectory, and two of its own.
        .map(|tasks| tasks.nlink().saturating_sub(2))
        .sum()
}

/// Drops every capability of root except those over files.
pub(crate) fn drop_capabilities() -> Result<(), Failure> {
    rustix::thread::set_no_new_privs(true)
        .map_err(|error| format!("cannot rule out programs that gain rights: {error}"))?;
    let Some(sets) = kept_capabilities()? else { return Ok(()) };
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        // This fails without the capability for it, and then an exec cannot gain one either. Newer ones may be unknown.
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    set_capabilities(None, sets).map_err(|error| format!("cannot give up capabilities: {error}"))
}

/// Leaves this thread the capabilities that a confined process has.
pub(crate) fn drop_capabilities_of_thread() -> Result<(), Failure> {
    let Some(sets) = kept_capabilities()? else { return Ok(()) };
    set_capabilities(None, sets).map_err(|error| format!("cannot give up capabilities: {error}"))
}

/// What is left of the capabilities of this thread; `None` if there are none.
fn kept_capabilities() -> Result<Option<CapabilitySets>, Failure> {
    let held =
        capabilities(None).map_err(|error| format!("cannot read the capabilities: {error}"))?;
    let kept = KEPT.intersection(held.permitted);
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    Ok((!held.permitted.is_empty()).then_some(sets))
}
