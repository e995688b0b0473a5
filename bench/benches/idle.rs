//! What a process keeps of sessions that nobody runs: one engine serves a turn in each of many sessions, and holds an
//! inbox for each of them, as a gateway does.
//!
//! Memory is what the kernel counts as the process's own (`RssAnon`), after a warm-up, so that what every process needs
//! once does not count.
#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has nothing to report")]

use std::sync::Arc;

use myclaw_agent::{Home, SessionConfig, SessionOptions, engine, models::configured_model};
use myclaw_config::{Config, Environment, Paths};
use myclaw_engine::{Engine, SessionInbox, SystemClock};
use myclaw_llm::{ContentBlock, HttpOptions, parse_model_ref};
use tempfile::TempDir;

/// Sessions before the first look at the memory.
const WARM_UP: usize = 200;

/// Sessions that are counted.
const SESSIONS: usize = 1_000;

fn main() {
    // Cargo's test run asks every bench whether it has tests.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure());
}

async fn measure() {
    let home = TempDir::new().expect("a temporary directory");
    let paths = Paths::in_state_dir(home.path().join("state"));
    let home = Home::new(Environment::default(), paths);
    let engine = engine(HttpOptions::default());
    let mut inboxes = Vec::with_capacity(WARM_UP + SESSIONS);
    for number in 0..WARM_UP {
        inboxes.push(turn(&engine, &home, number).await);
    }
    let Some(before) = own_memory() else {
        println!("this system does not tell what memory a process has of its own");
        return;
    };
    for number in WARM_UP..WARM_UP + SESSIONS {
        inboxes.push(turn(&engine, &home, number).await);
    }
    let after = own_memory().unwrap_or(before);
    let each = after.saturating_sub(before) as f64 / SESSIONS as f64;
    println!(
        "{SESSIONS} idle sessions: {:.2} kB each ({:.1} MB before, {:.1} MB after; aim: less than 20 kB each)",
        each / 1e3,
        before as f64 / 1e6,
        after as f64 / 1e6
    );
    drop(inboxes);
}

/// One turn in a session of its own, with the built-in model. Returns the session's inbox.
async fn turn(engine: &Engine, home: &Home, number: usize) -> SessionInbox {
    let reference = parse_model_ref("builtin/demo").expect("the name of a model");
    let options =
        SessionOptions { session: Some(format!("session-{number}")), ..SessionOptions::default() };
    let config = Arc::new(Config { paths: Some(home.paths.clone()), ..Config::default() });
    let session = SessionConfig::new(home.clone(), config, &options).expect("a session");
    let mut params = session.bare_run(vec![configured_model(&session.config, &reference)]);
    params.user_message.push(ContentBlock::text("hello"));
    engine.run(params).await.expect("a reply");
    SessionInbox::new(Arc::clone(home.sessions()), session.session_key, Arc::new(SystemClock))
}

/// Bytes of this process that are no file's.
fn own_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
