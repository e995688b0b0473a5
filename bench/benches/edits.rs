//! What the record of changes adds to an edit of a large file.
//!
//! Ratios of medians within one run: `cargo bench -p myclaw-bench --bench edits`. The same edit is made where its old
//! content is kept, and where the directory for that cannot be made, so that nothing is kept.
#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up has nothing to measure")]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_engine::{PreparedCall, Tool, ToolContext, ToolInvocation, TurnId};
use myclaw_tools::{ToolOptions, builtin_tools};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// Bytes of the file.
const FILE_BYTES: usize = 1_000_000;
/// Timed edits of each kind: odd, so that the median is an edit that happened.
const RUNS: usize = 101;

/// A directory with a file, and what a call in it needs.
struct Place {
    _directory: TempDir,
    context: ToolContext,
    runtime: Runtime,
    tool: Arc<dyn Tool>,
    /// The word of the file that the next edit replaces.
    word: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeping {
    On,
    Off,
}

fn main() {
    // Cargo's test run asks every bench whether it has tests.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let (mut with, mut without) = (Place::new(Keeping::On), Place::new(Keeping::Off));
    let (mut kept, mut not_kept) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        not_kept.push(without.edit());
        kept.push(with.edit());
    }
    let (kept, not_kept) = (median(kept), median(not_kept));
    println!("edit of a file of {} kB, median of {RUNS}", FILE_BYTES / 1000);
    println!("  nothing kept          {:>8.3} ms", not_kept.as_secs_f64() * 1e3);
    println!(
        "  old content kept      {:>8.3} ms  {:.2} times as long",
        kept.as_secs_f64() * 1e3,
        kept.as_secs_f64() / not_kept.as_secs_f64()
    );
}

impl Place {
    fn new(keeping: Keeping) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let root = directory.path().canonicalize().expect("its path");
        let line = "A line of a file that is neither short nor long.\n";
        let mut content = line.repeat(FILE_BYTES / line.len() / 2);
        content.push_str("The word is one.\n");
        content.push_str(&line.repeat(FILE_BYTES / line.len() / 2));
        fs::write(root.join("file"), content).expect("room on the disk");
        fs::write(root.join("blocked"), "").expect("room on the disk");
        let artifacts: PathBuf = match keeping {
            Keeping::On => root.join("artifacts"),
            Keeping::Off => root.join("blocked/artifacts"),
        };
        Self {
            _directory: directory,
            context: ToolContext {
                working_directory: root,
                artifact_directory: artifacts,
                max_result_chars: 50_000,
                workspace_only: false,
                closed: Default::default(),
                turn: TurnId::generate(),
            },
            runtime: tokio::runtime::Builder::new_current_thread().build().expect("a runtime"),
            tool: builtin_tools(ToolOptions {
                command_timeout: Duration::from_secs(1),
                jobs: None,
                commands: Default::default(),
                memory: None,
            })
            .into_iter()
            .find(|tool| tool.schema().name == "edit")
            .expect("the tool"),
            word: "one",
        }
    }

    fn edit(&mut self) -> Duration {
        let new = if self.word == "one" { "two" } else { "one" };
        let old_text = format!("The word is {}.", self.word);
        let mut arguments = Map::new();
        arguments.insert("path".to_owned(), json!("file"));
        arguments.insert("oldText".to_owned(), Value::String(old_text));
        arguments.insert("newText".to_owned(), json!(format!("The word is {new}.")));
        self.word = new;
        let begun = Instant::now();
        let prepared =
            PreparedCall::new(&*self.tool, "call", arguments, &self.context).expect("a call");
        let call = self.tool.execute(ToolInvocation {
            call: &prepared,
            on_update: &|_| {},
            context: &self.context,
            cancel: CancellationToken::new(),
        });
        self.runtime.block_on(call).expect("an edit");
        begun.elapsed()
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
