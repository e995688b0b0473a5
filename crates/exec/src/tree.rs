//! Finding and ending a child's descendants, and no other process.
//!
//! A process belongs to the tree if it is a descendant by parentage, if it is in a process group or session that a
//! member leads, or if it carries the tree's mark in its environment. The mark finds daemons: they forked twice and
//! started a session, so neither their parent nor their session leads to the tree. It also finds the tree of a process
//! that was killed. The root of such a tree counts only if its start time is the recorded one.
//!
//! Signals go to the child's own group as long as its exit status is not collected (the kernel keeps the group's id
//! until then), and to every other member through a process descriptor that was opened before its start time was
//! compared: a process that took over an id in between is never hit.

use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::{Instant, sleep};

use crate::mark::Mark;

/// Time between asking (`SIGTERM`) and forcing (`SIGKILL`).
const GRACE: Duration = Duration::from_millis(500);
/// First pause before checking whether all members have ended; doubled up to [`MAX_PAUSE`]. Most programs end within
/// it.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
/// A check costs a few milliseconds on a machine with hundreds of processes.
const MAX_PAUSE: Duration = Duration::from_millis(50);
/// Rounds of `SIGKILL`: a new round finds what was started during the last one.
const KILL_ROUNDS: u32 = 20;
/// The id, group and session of no process. Those of the kernel's own threads are 0.
const NO_PROCESS: i32 = -1;
/// Rounds of `SIGKILL` when there is no time to wait between them.
const KILL_ROUNDS_AT_ONCE: u32 = 4;

/// A running child with everything it started.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    root: Root,
    mark: Mark,
    /// Members seen so far by process id, with the time of their start. A member that lost its parent is still one.
    seen: Arc<Mutex<HashMap<i32, u64>>>,
}

/// The process that a tree begins with.
#[derive(Debug, Clone, Copy)]
enum Root {
    /// A child of this process. Its exit status is not collected, so its id cannot belong to another process.
    Child(Pid),
    /// A process that another process started, with its start time if that is known. Its id may belong to another
    /// process by now.
    Traced(Option<(i32, u64)>),
}

/// A live member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub pid: i32,
    pub name: String,
    group: i32,
    start: u64,
}

/// One line of the process table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    pid: i32,
    name: String,
    is_zombie: bool,
    parent: i32,
    group: i32,
    session: i32,
    /// Clock ticks since the machine started.
    start: u64,
}

impl Tree {
    /// The tree of a child whose exit status is not collected.
    pub(crate) fn new(root: Pid, mark: Mark) -> Self {
        Self { root: Root::Child(root), mark, seen: Arc::default() }
    }

    /// A tree that another process started: its root with the time of its start, if known, and its mark.
    pub(crate) fn traced(root: Option<(i32, u64)>, mark: Mark) -> Self {
        Self { root: Root::Traced(root), mark, seen: Arc::default() }
    }

    /// Whether anything is left in the child's own process group. Cheap: one system call.
    pub(crate) fn group_is_alive(&self) -> bool {
        self.group().is_some_and(|group| rustix::process::test_kill_process_group(group).is_ok())
    }

    /// Live members, by process id. Blocking.
    pub(crate) fn members(&self) -> Vec<Member> {
        self.survey().unwrap_or_default()
    }

    /// Live members other than the child itself, by process id. Blocking.
    pub(crate) fn descendants(&self) -> Vec<Member> {
        let root = self.group().map(Pid::as_raw_pid);
        let mut members = self.members();
        members.retain(|member| Some(member.pid) != root);
        members
    }

    /// The child's own group, which signals may go to as a whole.
    fn group(&self) -> Option<Pid> {
        match self.root {
            Root::Child(pid) => Some(pid),
            Root::Traced(_) => None,
        }
    }

    /// Ends all members: sends `SIGTERM`, waits up to [`GRACE`], then sends `SIGKILL`. The child's exit status must not
    /// be collected before it returns.
    pub(crate) async fn terminate(&self) {
        let forced_at = Instant::now() + GRACE;
        self.signal_group(Signal::TERM);
        let mut asked = Vec::new();
        let mut pause = FIRST_PAUSE;
        loop {
            match self.blocking(move |tree| tree.ask_escaped(&asked)).await {
                // Another check follows, because the first can miss a process that forks meanwhile.
                Some(alive) if alive.is_empty() => break,
                alive => asked = alive.unwrap_or_default(),
            }
            if Instant::now() >= forced_at {
                break;
            }
            sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
        for _ in 0..KILL_ROUNDS {
            if self.blocking(Tree::force).await == Forced::NothingLeft {
                return;
            }
            sleep(FIRST_PAUSE * 5).await;
        }
    }

    /// Ends all members by force, now. Blocking, for a few milliseconds. The child's exit status must not be
    /// collected before it returns.
    pub(crate) fn kill_now(&self) {
        for _ in 0..KILL_ROUNDS_AT_ONCE {
            if self.force() == Forced::NothingLeft {
                return;
            }
        }
    }

    async fn blocking<T: Default + Send + 'static>(
        &self,
        work: impl FnOnce(&Tree) -> T + Send + 'static,
    ) -> T {
        let tree = self.clone();
        // It fails only while the runtime shuts down; the guard of the run then ends the tree by force.
        tokio::task::spawn_blocking(move || work(&tree)).await.unwrap_or_default()
    }

    /// Asks every live member to end that the group's signal did not reach and that is not in `asked`. Returns the
    /// live members; `None` where the process table cannot be read.
    fn ask_escaped(&self, asked: &[Member]) -> Option<Vec<Member>> {
        let members = self.survey();
        let group = self.group().map(Pid::as_raw_pid);
        for member in members.iter().flatten() {
            let was_asked =
                asked.iter().any(|other| (other.pid, other.start) == (member.pid, member.start));
            if Some(member.group) != group && !was_asked {
                member.signal(Signal::TERM);
            }
        }
        members
    }

    fn force(&self) -> Forced {
        let members = self.survey();
        self.signal_group(Signal::KILL);
        match members {
            // Without a process table one signal to the group is all that can be done.
            None => Forced::NothingLeft,
            Some(members) if members.is_empty() => Forced::NothingLeft,
            Some(members) => {
                members.iter().for_each(|member| member.signal(Signal::KILL));
                Forced::Signalled
            }
        }
    }

    fn signal_group(&self, signal: Signal) {
        if let Some(group) = self.group() {
            // The only error is that the group is empty.
            let _ = kill_process_group(group, signal);
        }
    }

    /// The live members; `None` where the process table cannot be read.
    fn survey(&self) -> Option<Vec<Member>> {
        let table = process_table()?;
        let mut seen = self.seen.lock();
        let root = match self.root {
            Root::Child(pid) => pid.as_raw_pid(),
            // With another start time the id belongs to an unrelated process, and so does a group of that number.
            Root::Traced(root) => root
                .filter(|root| table.iter().any(|entry| (entry.pid, entry.start) == *root))
                .map_or(NO_PROCESS, |(pid, _)| pid),
        };
        let is_member = select_members(&table, root, &seen, |pid| self.is_marked(pid));
        let members: Vec<&Entry> = table
            .iter()
            .zip(is_member)
            .filter_map(|(entry, member)| member.then_some(entry))
            .collect();
        seen.clear();
        seen.extend(members.iter().map(|entry| (entry.pid, entry.start)));
        let alive = members.into_iter().filter(|entry| !entry.is_zombie);
        Some(
            alive
                .map(|entry| Member {
                    pid: entry.pid,
                    name: entry.name.clone(),
                    group: entry.group,
                    start: entry.start,
                })
                .collect(),
        )
    }

    fn is_marked(&self, pid: i32) -> bool {
        let wanted = self.mark.variable();
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
            environment.split(|byte| *byte == 0).any(|pair| pair == wanted.as_encoded_bytes())
        })
    }
}

/// The result of one round of `SIGKILL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Forced {
    #[default]
    NothingLeft,
    Signalled,
}

impl Member {
    #[cfg(target_os = "linux")]
    fn signal(&self, signal: Signal) {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        match pidfd_open(pid, PidfdFlags::empty()) {
            // The descriptor is bound to one process. If that process has the recorded start time, it is the member.
            Ok(descriptor) if self.is_still_there() => {
                let _ = pidfd_send_signal(&descriptor, signal);
            }
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) if self.is_still_there() => {
                let _ = rustix::process::kill_process(pid, signal);
            }
            Ok(_) | Err(_) => {}
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.is_still_there()) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    fn is_still_there(&self) -> bool {
        process_entry(self.pid).is_some_and(|entry| entry.start == self.start)
    }
}

/// For every entry of `table`, whether it belongs to the tree of `root`. `is_marked` is called for as few processes as
/// possible, and never for processes older than the root.
fn select_members(
    table: &[Entry],
    root: i32,
    seen: &HashMap<i32, u64>,
    is_marked: impl Fn(i32) -> bool,
) -> Vec<bool> {
    // The root's own entry is there until its exit status is collected.
    let oldest = table.iter().find(|entry| entry.pid == root).map_or(0, |entry| entry.start);
    let own = std::process::id().cast_signed();
    let possible = |entry: &Entry| entry.start >= oldest && entry.pid != own && entry.pid > 1;
    let mut is_member: Vec<bool> = table
        .iter()
        .map(|entry| {
            possible(entry)
                && (entry.pid == root
                    || entry.group == root
                    || entry.session == root
                    || seen.get(&entry.pid) == Some(&entry.start)
                    || is_marked(entry.pid))
        })
        .collect();
    // Children of members, and members of the groups and sessions that they lead, until no new one is found.
    loop {
        let ids: Vec<i32> = table
            .iter()
            .zip(&is_member)
            .filter(|(_, member)| **member)
            .map(|(entry, _)| entry.pid)
            .collect();
        let mut found = false;
        for (entry, member) in table.iter().zip(&mut is_member) {
            let related =
                [entry.parent, entry.group, entry.session].iter().any(|id| ids.contains(id));
            if !*member && related && possible(entry) {
                *member = true;
                found = true;
            }
        }
        if !found {
            return is_member;
        }
    }
}

/// Every process that can be seen; `None` where the system has no `/proc`.
fn process_table() -> Option<Vec<Entry>> {
    let entries = fs::read_dir("/proc").ok()?;
    let table: Vec<Entry> = entries
        .flatten()
        .filter_map(|entry| process_entry(entry.file_name().to_str()?.parse().ok()?))
        .collect();
    (!table.is_empty()).then_some(table)
}

/// When a process was started, in clock ticks since the machine started; `None` if there is none.
pub(crate) fn start_of(pid: i32) -> Option<u64> {
    process_entry(pid).map(|entry| entry.start)
}

fn process_entry(pid: i32) -> Option<Entry> {
    // Longer than any such line. The file has no length that says how much to read.
    const ROOM: usize = 2 * 1024;
    let mut line = Vec::with_capacity(ROOM);
    let file = fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    file.take(ROOM as u64).read_to_end(&mut line).ok()?;
    // A process name may be any bytes.
    parse_entry(&String::from_utf8_lossy(&line))
}

/// One `stat` line, as in proc(5): `pid (name) state parent group session …`, start time being field 22.
fn parse_entry(line: &str) -> Option<Entry> {
    // The name may itself hold parentheses and spaces.
    let (before, after) = line.rsplit_once(')')?;
    let (pid, name) = before.split_once('(')?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    Some(Entry {
        pid: pid.trim().parse().ok()?,
        name: name.to_owned(),
        is_zombie: matches!(*fields.first()?, "Z" | "X" | "x"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests;
