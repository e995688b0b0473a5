//! What searching many sessions costs compared with a search tool for plain files, and what forking a large one writes.
//!
//! Ratios of medians within one run, as all figures here: `cargo bench -p myclaw-bench --bench branches`. ripgrep is the
//! yardstick if `rg` is on the path; else a plain scan of the same bytes.
#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up has nothing to measure")]

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use myclaw_session::{
    Case, Entry, LockWait, Role, SearchQuery, SearchScope, SessionKey, SessionStore,
    TranscriptMessage,
};
use tempfile::TempDir;

/// Sessions that are searched.
const SESSIONS: usize = 10_000;
/// Messages of each: some 15 KB, as in a session of an hour.
const MESSAGES: usize = 60;
/// One session in so many holds what is looked for.
const HIT_EVERY: usize = 500;
/// What is looked for.
const NEEDLE: &str = "a heron by the lake";
/// Timed runs: odd, so that the median is a run that happened.
const RUNS: usize = 11;
/// Bytes of the session that is forked.
const LARGE_SESSION: usize = 100_000_000;
/// Messages per append while a session is written.
const BATCH: usize = 1000;

fn main() {
    // Cargo's test run asks every bench whether it has tests.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    search();
    fork();
}

fn search() {
    let home = TempDir::new().expect("a temporary directory");
    let store = SessionStore::new(home.path());
    for number in 0..SESSIONS {
        let entries: Vec<Entry> =
            (0..MESSAGES).map(|place| message(number, place).into()).collect();
        let key = SessionKey::for_cli("main", &format!("s{number}"));
        let mut log = store.open(&key, LockWait::Fail).expect("a session");
        log.append(&entries).expect("room on the disk");
    }
    let bytes = directory_size(home.path());
    println!("search of {SESSIONS} sessions, {:.0} MB", bytes as f64 / 1e6);

    let query = SearchQuery::text(NEEDLE, Case::Sensitive).expect("a query");
    let ignoring = SearchQuery::text(NEEDLE, Case::Ignored).expect("a query");
    let expression = SearchQuery::regex("a her[o]n by", Case::Sensitive).expect("a query");
    // Nothing of it is in every match, so no line can be skipped.
    let shapeless =
        SearchQuery::regex("[Aa] [Hh][Ee][Rr][Oo][Nn]", Case::Sensitive).expect("a query");
    let ours = |query: &SearchQuery| {
        let report = store.search(query, &SearchScope::default(), 50).expect("a search");
        assert_eq!(report.matches.len(), SESSIONS / HIT_EVERY, "sessions found");
    };
    let has_ripgrep = ripgrep(home.path(), &[]).is_ok();
    let name = if has_ripgrep { "ripgrep" } else { "a plain scan" };
    let yardstick = |arguments: &[&str]| {
        let found = if has_ripgrep { ripgrep(home.path(), arguments) } else { scan(home.path()) };
        found.expect("the same sessions");
    };
    let measured = medians(&mut [
        ("yardstick", &mut || yardstick(&["--fixed-strings"])),
        ("text", &mut || ours(&query)),
        ("yardstick, ignoring case", &mut || yardstick(&["--fixed-strings", "--ignore-case"])),
        ("text, ignoring case", &mut || ours(&ignoring)),
        ("expression with a text in it", &mut || ours(&expression)),
        ("expression, every message decoded", &mut || ours(&shapeless)),
    ]);
    report(name, &measured[..2]);
    report(name, &measured[2..4]);
    report(name, &[measured[0], measured[4], measured[5]]);
}

/// The first measurement is the yardstick of the others.
fn report(yardstick: &str, measured: &[(&str, Duration)]) {
    let (_, base) = measured[0];
    for (name, time) in &measured[1..] {
        let ratio = time.as_secs_f64() / base.as_secs_f64();
        println!("  {name}: {ratio:.2} of {yardstick} ({time:.1?} to {base:.1?})");
    }
}

/// The same lines and files, found by ripgrep: as many threads as it likes, hidden and ignored files included.
fn ripgrep(directory: &Path, arguments: &[&str]) -> io::Result<()> {
    let status = Command::new("rg")
        .args(["--no-config", "--no-ignore", "--glob", "*.jsonl"])
        .args(arguments)
        .arg(NEEDLE)
        .arg(directory)
        .stdout(Stdio::null())
        .status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other("it found nothing")) }
}

fn scan(directory: &Path) -> io::Result<()> {
    let mut hits = 0;
    for found in fs::read_dir(directory)? {
        let path = found?.path();
        if path.extension() == Some(OsStr::new("jsonl")) {
            let text = fs::read_to_string(&path)?;
            hits += usize::from(text.contains(NEEDLE));
        }
    }
    assert_eq!(hits, SESSIONS / HIT_EVERY);
    Ok(())
}

fn fork() {
    let home = TempDir::new().expect("a temporary directory");
    let store = SessionStore::new(home.path());
    let parent = SessionKey::for_cli("main", "parent");
    let mut log = store.open(&parent, LockWait::Fail).expect("a session");
    let mut place = 0;
    let mut middle = None;
    while fs::metadata(log.path()).map_or(0, |found| found.len()) < LARGE_SESSION as u64 {
        let entries: Vec<Entry> = (place..place + BATCH).map(|at| message(0, at).into()).collect();
        log.append(&entries).expect("room on the disk");
        place += BATCH;
        if place == 100 * BATCH {
            middle = entries.first().and_then(Entry::id);
        }
    }
    log.sync_handle().sync().expect("a disk that syncs");
    let size = directory_size(home.path());
    println!("fork of a session of {:.0} MB, while it is open", size as f64 / 1e6);
    for (name, at) in [("at its end", None), ("at a message in the middle", middle)] {
        let before = directory_size(home.path());
        let mut times: Vec<Duration> = (0..RUNS)
            .map(|run| {
                let key = SessionKey::for_cli("main", &format!("{}-{run}", at.is_some()));
                let begun = Instant::now();
                store.fork(&parent, at, &key).expect("a fork");
                begun.elapsed()
            })
            .collect();
        times.sort_unstable();
        let written = (directory_size(home.path()) - before) / RUNS as u64;
        println!("  {name}: {written} bytes on disk, {:.1?}", times[RUNS / 2]);
    }
    let copy = home.path().join("copy");
    let begun = Instant::now();
    fs::copy(log.path(), &copy).expect("room on the disk");
    fs::File::open(&copy).and_then(|file| file.sync_all()).expect("a disk that syncs");
    println!("  a copy of the file: {size} bytes, {:.1?}", begun.elapsed());
}

/// Medians over runs that take turns, so that a slow minute of the machine meets all of them.
fn medians<'a>(jobs: &mut [(&'a str, &mut dyn FnMut())]) -> Vec<(&'a str, Duration)> {
    let mut times = vec![Vec::with_capacity(RUNS); jobs.len()];
    for (_, job) in jobs.iter_mut() {
        job();
    }
    for _ in 0..RUNS {
        for ((_, job), times) in jobs.iter_mut().zip(&mut times) {
            let begun = Instant::now();
            job();
            times.push(begun.elapsed());
        }
    }
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[RUNS / 2]
    };
    jobs.iter().zip(times).map(|((name, _), times)| (*name, median(times))).collect()
}

/// Bytes on the disk, each file once however many names it has, and without the index.
fn directory_size(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut seen = std::collections::HashSet::new();
    let mut total = 0;
    for found in fs::read_dir(directory).expect("the directory") {
        let found = found.expect("a file");
        let metadata = found.metadata().expect("a file");
        if found.file_name() != "sessions.json" && seen.insert(metadata.ino()) {
            total += metadata.len();
        }
    }
    total
}

fn message(session: usize, place: usize) -> TranscriptMessage {
    let role = if place.is_multiple_of(2) { Role::User } else { Role::Assistant };
    let needle =
        if session.is_multiple_of(HIT_EVERY) && place == MESSAGES / 2 { NEEDLE } else { "nothing" };
    let text = format!(
        "In session {session}, at place {place}, there was {needle} to be seen. \"It may rain\", they said,\nand so it did, \
         on the {place} roofs of the town and on the road that leads out of it to the north."
    );
    TranscriptMessage::new(role, text, (session * MESSAGES + place) as u64)
}
