//! Attempts on other processes and on the kernel.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, kill_process, pidfd_open, pidfd_send_signal, prlimit,
};

use super::files::{contains_secret, has_secret};
use super::scene::SECRET;
use super::{Attempt, Scene, calls, missed};

/// Programs that the kernel starts, and what else root may change without a capability.
const SETTINGS: [&str; 6] = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hotplug",
    "/proc/sys/vm/panic_on_oom",
    "/proc/irq/default_smp_affinity",
    "/proc/sysrq-trigger",
];

pub(super) const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "read another process's environment",
        run: |scene| has_secret(&scene.of_victim("environ")),
    },
    Attempt {
        name: "read another process's command line",
        run: |scene| has_secret(&scene.of_victim("cmdline")),
    },
    Attempt { name: "open a file through another process's root", run: through_root },
    Attempt {
        name: "list another process's descriptors",
        run: |scene| fs::read_dir(scene.of_victim("fd")).map(drop),
    },
    Attempt { name: "read another process's memory file", run: memory_file },
    Attempt { name: "process_vm_readv on another process", run: read_memory },
    Attempt { name: "ptrace another process", run: |scene| calls::trace(scene.victim) },
    Attempt { name: "ptrace a process of its own", run: |_| calls::trace_own_child() },
    Attempt {
        name: "take a descriptor of another process",
        run: |scene| calls::take_descriptor(scene.victim),
    },
    Attempt { name: "signal another process", run: signal },
    Attempt { name: "signal another process by descriptor", run: signal_by_descriptor },
    Attempt { name: "change the limits of another process", run: change_limits },
    Attempt {
        name: "change the priority of another process",
        run: |scene| calls::change_priority(scene.victim),
    },
    Attempt {
        name: "change the disk priority of another process",
        run: |scene| calls::change_disk_priority(scene.victim),
    },
    Attempt {
        name: "choose the processors of another process",
        run: |scene| calls::choose_processors(scene.victim),
    },
    Attempt {
        name: "enter another process's namespace",
        run: |scene| calls::enter_namespace(&scene.of_victim("ns/net")),
    },
    Attempt { name: "change a setting of the kernel", run: change_settings },
    Attempt { name: "mount a file system", run: |scene| calls::mount(&scene.workspace) },
    Attempt {
        name: "change the root directory",
        run: |scene| calls::change_root(&scene.workspace),
    },
    Attempt { name: "user namespace by unshare", run: |_| calls::unshare_user() },
    Attempt { name: "user namespace by clone", run: |_| calls::clone_user() },
    Attempt { name: "user namespace by clone3", run: |_| calls::clone3_user() },
    Attempt { name: "io_uring", run: |_| calls::io_uring() },
    Attempt { name: "bpf", run: |_| calls::bpf() },
    Attempt { name: "perf_event_open", run: |_| calls::perf_event() },
    Attempt { name: "userfaultfd", run: |_| calls::userfaultfd() },
    Attempt { name: "kernel keyring", run: |_| calls::keyring() },
    Attempt {
        name: "System V shared memory",
        run: |scene| calls::find_shared_memory(scene.shared_memory),
    },
    Attempt { name: "TIOCSTI", run: |_| calls::terminal_input(libc::TIOCSTI) },
    Attempt { name: "TIOCLINUX", run: |_| calls::terminal_input(libc::TIOCLINUX) },
];

/// Opened and not written, so that nothing changes if it is possible.
fn change_settings(_: &Scene) -> io::Result<()> {
    let mut refused = None;
    for path in SETTINGS {
        match fs::OpenOptions::new().write(true).open(path) {
            Ok(_) => return Ok(()),
            Err(error) => refused = Some(error),
        }
    }
    refused.map_or(Ok(()), Err)
}

fn through_root(scene: &Scene) -> io::Result<()> {
    let below = scene.secret_file();
    has_secret(&scene.of_victim("root").join(below.strip_prefix("/").unwrap_or(&below)))
}

fn memory_file(scene: &Scene) -> io::Result<()> {
    let mut bytes = [0; SECRET.len()];
    fs::File::open(scene.of_victim("mem"))?
        .read_exact_at(&mut bytes, scene.secret_address as u64)?;
    contains_secret(&bytes)
}

fn read_memory(scene: &Scene) -> io::Result<()> {
    contains_secret(&calls::read_memory(scene.victim, scene.secret_address, SECRET.len())?)
}

fn victim(scene: &Scene) -> io::Result<Pid> {
    Pid::from_raw(scene.victim).ok_or_else(|| missed("no process to attack"))
}

/// A signal without effect on a process that runs.
fn signal(scene: &Scene) -> io::Result<()> {
    Ok(kill_process(victim(scene)?, Signal::CONT)?)
}

fn signal_by_descriptor(scene: &Scene) -> io::Result<()> {
    let descriptor = pidfd_open(victim(scene)?, PidfdFlags::empty())?;
    Ok(pidfd_send_signal(descriptor, Signal::CONT)?)
}

fn change_limits(scene: &Scene) -> io::Result<()> {
    let none = Rlimit { current: Some(0), maximum: None };
    Ok(prlimit(Some(victim(scene)?), Resource::Core, none).map(drop)?)
}
