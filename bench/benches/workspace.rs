//! Measures reading the bootstrap files of a workspace: through one open directory, in which no link is followed, and path by
//! path, as if nobody else could change them. A turn does it once.
#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has nothing to report")]

use std::path::Path;

use divan::{Bencher, black_box};
use myclaw_files::{SharedDirectory, read_regular};
use tempfile::TempDir;

/// The files of the prompt. Only the first of them exist in most workspaces.
const NAMES: [&str; 9] = [
    "AGENTS.md",
    "SOUL.md",
    "USER.md",
    "TOOLS.md",
    "SYSTEM.md",
    "IDENTITY.md",
    "MEMORY.md",
    "HEARTBEAT.md",
    "BOOTSTRAP.md",
];
/// Most bytes of a file that are read.
const MOST_BYTES: u64 = 200_004;
/// Numbers of files that exist.
const EXISTING: [usize; 2] = [4, 9];

fn main() {
    divan::main();
}

#[divan::bench(args = EXISTING)]
fn in_an_open_directory(bencher: Bencher<'_, '_>, existing: usize) {
    let directory = workspace(existing);
    bencher.bench_local(|| {
        let shared = SharedDirectory::open(directory.path()).expect("a directory");
        NAMES.iter().filter_map(|name| shared.read(black_box(name), MOST_BYTES).ok()).count()
    });
}

#[divan::bench(args = EXISTING)]
fn path_by_path(bencher: Bencher<'_, '_>, existing: usize) {
    let directory = workspace(existing);
    let read = |name: &&str| read_regular(&directory.path().join(Path::new(name)), MOST_BYTES).ok();
    bencher.bench_local(|| NAMES.iter().filter_map(|name| read(black_box(name))).count());
}

fn workspace(existing: usize) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for name in &NAMES[..existing] {
        std::fs::write(directory.path().join(name), "A line of it.\n".repeat(100)).expect("a file");
    }
    directory
}
