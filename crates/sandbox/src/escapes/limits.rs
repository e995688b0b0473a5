//! Attempts to use up the machine. Each stays harmless where nothing stops it.

use std::fs::{self, File};
use std::io::{self, Write};

use super::scene::LIMITS;
use super::{Attempt, Scene, calls, missed};

pub(super) const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "start many processes",
        run: |_| calls::start_processes(2 * limit(LIMITS.processes)),
    },
    Attempt { name: "take much memory", run: |_| calls::take_memory(2 * limit(LIMITS.memory)) },
    Attempt { name: "write a large file", run: large_file },
    Attempt { name: "open many files", run: many_files },
    Attempt { name: "leave a dump of memory", run: dump },
];

fn limit(limit: Option<u64>) -> usize {
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or_default()
}

fn large_file(scene: &Scene) -> io::Result<()> {
    calls::survive_size_limit();
    let path = scene.workspace.join("large");
    let mut file = File::create(&path)?;
    let written =
        (0..(2 * limit(LIMITS.file_size)) >> 20).try_for_each(|_| file.write_all(&[0; 1 << 20]));
    fs::remove_file(path)?;
    written
}

fn many_files(_: &Scene) -> io::Result<()> {
    (0..2 * limit(LIMITS.open_files))
        .map(|_| File::open("/dev/null"))
        .collect::<io::Result<Vec<_>>>()
        .map(drop)
}

fn dump(_: &Scene) -> io::Result<()> {
    match rustix::process::getrlimit(rustix::process::Resource::Core).maximum {
        Some(0) => Err(missed("the limit is 0")),
        _ => Ok(()),
    }
}
