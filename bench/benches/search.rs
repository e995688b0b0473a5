//! Searching workflows by meaning: the first search, later ones, 1,000 workflows, and the memory.
//!
//! `MYCLAW_WEIGHTS=DIR cargo bench -p myclaw-bench --bench search`, with a directory as for `myclaw runner --weights`. The
//! figures are of this process, so its memory is that of a search alone.
#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up has nothing to measure")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_runner::{KeywordRanker, Ranker, Registry, Weights, Workflow, semantic_ranker};
use tempfile::TempDir;

/// Timed later searches: odd, so that the median is one that happened.
const RUNS: usize = 101;
/// Workflows of a small and of a large registry.
const SIZES: [usize; 2] = [60, 1000];

fn main() {
    // Cargo's test run asks every bench whether it has tests.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let Some(weights) = std::env::var_os("MYCLAW_WEIGHTS").map(PathBuf::from) else {
        println!("MYCLAW_WEIGHTS is not set; it names the directory of a model");
        return;
    };
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../crates/runner/tests/data");
    let some = Registry::load(&data).expect("the registry of the tests").workflows;
    for size in SIZES {
        let workflows: Vec<Workflow> = some
            .iter()
            .cycle()
            .zip(0..size)
            .map(|(workflow, number)| Workflow {
                name: format!("{}-{number}", workflow.name),
                ..workflow.clone()
            })
            .collect();
        measure(&workflows, &weights);
    }
}

fn measure(workflows: &[Workflow], weights: &Path) {
    let directory = TempDir::new().expect("a directory");
    let ranker = || {
        let weights = Weights { directory: weights.to_owned(), source: None };
        semantic_ranker(directory.path(), weights, Arc::new(|line: &str| println!("  {line}")))
    };
    println!("{} workflows", workflows.len());
    let before = peak_megabytes();
    show("by keywords", median(&KeywordRanker, workflows));
    show("first search of all, vectors made", search(&*ranker(), workflows));
    let ranker = ranker();
    show("first search of a process", search(&*ranker, workflows));
    show("later searches, median", median(&*ranker, workflows));
    println!(
        "  peak memory {before:.0} MB before the first model, {:.0} MB after",
        peak_megabytes()
    );
}

fn search(ranker: &dyn Ranker, workflows: &[Workflow]) -> Duration {
    let start = Instant::now();
    let ranking = ranker.ranking("put some songs on in the evening", workflows).expect("a ranking");
    assert_eq!(ranking.shortcoming, None);
    start.elapsed()
}

fn median(ranker: &dyn Ranker, workflows: &[Workflow]) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS).map(|_| search(ranker, workflows)).collect();
    times.sort_unstable();
    times[RUNS / 2]
}

fn show(what: &str, time: Duration) {
    println!("  {what:<36}{:>9.2} ms", time.as_secs_f64() * 1e3);
}

/// The most memory that this process had, in megabytes of a million bytes.
fn peak_megabytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kilobytes.unwrap_or_default() * 1024.0 / 1e6
}
