//! How well searches find what was meant: 40 queries in other words over 60 workflows.
//!
//! Needs the packages of `tests/third-party`; `MYCLAW_MINILM_PYTHON` names a Python that has them, as `scripts/test` does.
//! Without it the test says that it was skipped.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use myclaw_runner::{KeywordRanker, Ranker, Registry, Weights, Workflow, semantic_ranker};
use serde::Deserialize;
use tempfile::TempDir;

/// Of the 40 queries, at least so many have what was meant among the first three results. Measured: 32 to 33 by meaning
/// with each of the files, and 4 by keywords.
const FLOOR: usize = 30;

#[derive(Deserialize)]
struct Query {
    query: String,
    wanted: String,
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// How many queries have what was meant among the first three.
fn hits(ranker: &dyn Ranker, workflows: &[Workflow]) -> usize {
    let queries = fs::read(data().join("queries.json")).unwrap();
    let queries: Vec<Query> = serde_json::from_slice(&queries).unwrap();
    let is_hit = |query: &&Query| {
        let ranking = ranker.ranking(&query.query, workflows).unwrap();
        assert_eq!(ranking.shortcoming, None);
        let mut first = ranking.ranked.iter().take(3);
        first.any(|ranked| workflows[ranked.index].name == query.wanted)
    };
    assert_eq!(queries.len(), 40);
    queries.iter().filter(is_hit).count()
}

#[test]
fn a_search_by_meaning_finds_what_keywords_do_not() {
    let Some(python) = std::env::var_os("MYCLAW_MINILM_PYTHON") else {
        myclaw_testkit::skip_without("MYCLAW_MINILM_PYTHON is not set; scripts/test sets it");
        return;
    };
    let workflows = Registry::load(&data()).unwrap().workflows;
    assert_eq!(workflows.len(), 60);
    let keywords = hits(&KeywordRanker, &workflows);
    println!("keywords: {keywords} of 40 among the first three");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/third-party/minilm.py");
    for kind in ["int8", "full", "dynamic"] {
        let directory = TempDir::new().unwrap();
        let made = Command::new(&python)
            .arg(&script)
            .args(["model", kind])
            .arg(directory.path())
            .status()
            .unwrap();
        assert!(made.success());
        let weights = Weights { directory: directory.path().to_owned(), source: None };
        let say = Arc::new(|line: &str| println!("{line}"));
        let found = hits(&*semantic_ranker(directory.path(), weights, say), &workflows);
        println!("{kind}: {found} of 40 among the first three");
        assert!(found >= FLOOR && found > keywords * 2, "{kind}: {found}");
    }
}
