//! What a turn costs with many other sessions, and during many other turns.
//!
//! The program itself runs turns of the built-in model in homes with 1 to 100,000 sessions, alone and eight at a time;
//! then one process runs 50 to 1,000 turns at once. All figures are ratios to the first of their line, within one run:
//! `cargo bench -p myclaw-bench --bench scale`, after `cargo build --release`. `MYCLAW_BENCH_BINARY` names another
//! program to measure, `MYCLAW_BENCH_SESSIONS` a smaller largest home.
#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has nothing to report")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_agent::{SessionConfig, SessionOptions, engine, models::configured_model};
use myclaw_config::{Config, Environment, Paths};
use myclaw_engine::Engine;
use myclaw_llm::{ContentBlock, HttpOptions, parse_model_ref};
use myclaw_session::{SessionKey, SessionStore};
use myclaw_testkit::peak_memory;
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

/// Sessions of the homes.
const HOMES: [usize; 4] = [1, 1_000, 10_000, 100_000];
/// Timed turns in each home: odd, so that the median is a run that happened.
const RUNS: usize = 21;
/// Names that the chat suggests at once.
const SUGGESTIONS: usize = 100;
/// Processes at once.
const PROCESSES: usize = 8;
/// Turns of each of these.
const TURNS_EACH: usize = 5;
/// Pause between two looks at the memory of a process.
const LOOK_PAUSE: Duration = Duration::from_micros(200);
/// Turns at once in one process.
const CONCURRENT: [usize; 3] = [50, 200, 1_000];

fn main() {
    // Cargo's test run asks every bench whether it has tests.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    concurrent_turns();
    let binary = binary();
    if !binary.exists() {
        println!("no program at {}; build it, or set MYCLAW_BENCH_BINARY", binary.display());
        return;
    }
    let most = std::env::var("MYCLAW_BENCH_SESSIONS").ok().and_then(|text| text.parse().ok());
    let homes: Vec<Home> = HOMES
        .into_iter()
        .filter(|count| most.is_none_or(|most: usize| *count <= most))
        .map(|count| Home::new(&binary, count))
        .collect();
    one_at_a_time(&homes);
    many_at_a_time(&homes);
    lists(&homes);
}

/// The program that was built with this benchmark.
fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os("MYCLAW_BENCH_BINARY") {
        return PathBuf::from(named);
    }
    let this = std::env::current_exe().expect("the path of this program");
    this.ancestors().nth(2).expect("target/release/deps").join("myclaw")
}

/// A home with many sessions.
struct Home {
    directory: TempDir,
    binary: PathBuf,
    count: usize,
}

impl Home {
    fn new(binary: &Path, count: usize) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let home = Self { directory, binary: binary.to_path_buf(), count };
        let sessions = home.sessions();
        fs::create_dir_all(&sessions).expect("a directory");
        let mut index = String::from("{");
        for number in 0..count {
            let key = SessionKey::for_cli("main", &format!("s{number}"));
            let slug = key.slug();
            let log = format!(
                "{{\"type\":\"session\",\"version\":1,\"sessionKey\":\"{key}\",\"createdAt\":1763760000000}}\n\
                 {{\"id\":\"a\",\"role\":\"user\",\"content\":\"hello\",\"ts\":1763760000000}}\n\
                 {{\"id\":\"b\",\"role\":\"assistant\",\"content\":\"hello\",\"ts\":1763760000001}}\n"
            );
            fs::write(sessions.join(format!("{slug}.jsonl")), log).expect("room on the disk");
            let comma = if number == 0 { "" } else { "," };
            let _infallible = write!(
                index,
                "{comma}\n  \"{key}\": {{\n    \"sessionId\": \"01234567-89ab-4def-8123-{number:012}\",\n    \
                 \"updatedAt\": {},\n    \"sessionFile\": \"{slug}.jsonl\",\n    \"lastChannel\": \"cli\",\n    \
                 \"lastTo\": \"s{number}\",\n    \"chatType\": \"direct\",\n    \"model\": \"builtin/demo\",\n    \
                 \"totalTokens\": 100\n  }}",
                1_763_760_000_000_u64 + number as u64
            );
        }
        index.push_str("\n}\n");
        fs::write(sessions.join("sessions.json"), index).expect("room on the disk");
        // Otherwise the first turns would wait until the disk has all these files.
        rustix::fs::sync();
        home
    }

    fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    fn sessions(&self) -> PathBuf {
        self.state().join("sessions")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments).current_dir(self.directory.path()).env_clear();
        command.env("HOME", self.directory.path()).env("MYCLAW_STATE_DIR", self.state());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn turn(&self, session: &str) -> Command {
        self.command(&["run", "--model", "builtin/demo", "--session", session, "hello"])
    }
}

/// Wall time of a command.
fn measure(mut command: Command) -> Duration {
    let begun = Instant::now();
    let status = command.status().expect("starts");
    let time = begun.elapsed();
    assert!(status.success(), "the program failed");
    time
}

/// Peak memory of a command, read from the running process. `wait4` would begin at the peak of this process.
fn peak(mut command: Command) -> u64 {
    let mut child = command.spawn().expect("starts");
    let mut peak = 0;
    loop {
        peak = peak.max(peak_memory(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().expect("a child") {
            assert!(status.success(), "the program failed");
            return peak;
        }
        std::thread::sleep(LOOK_PAUSE);
    }
}

fn one_at_a_time(homes: &[Home]) {
    let mut times = vec![Vec::new(); homes.len()];
    let mut memory = vec![Vec::new(); homes.len()];
    // In turns, so that a busy machine slows all of them; the first round warms up.
    for round in 0..=RUNS {
        for (place, home) in homes.iter().enumerate() {
            let turn = || home.turn(&format!("s{}", round % home.count));
            let time = measure(turn());
            if round > 0 {
                times[place].push(time.as_secs_f64());
                memory[place].push(peak(turn()) as f64);
            }
        }
    }
    println!("a turn in a process of its own");
    for (place, home) in homes.iter().enumerate() {
        let (time, peak) = (median(&mut times[place]), median(&mut memory[place]));
        let (first, first_peak) = (median(&mut times[0]), median(&mut memory[0]));
        println!(
            "  {} sessions: time {:.2} ({:.1} ms), memory {:.2} ({:.1} MB)",
            home.count,
            time / first,
            time * 1e3,
            peak / first_peak,
            peak / 1e6
        );
    }
}

fn many_at_a_time(homes: &[Home]) {
    println!("{PROCESSES} processes at once");
    let mut first = None;
    for home in homes {
        let begun = Instant::now();
        for round in 0..TURNS_EACH {
            let started: Vec<_> = (0..PROCESSES)
                .map(|number| home.turn(&format!("p{round}-{number}")).spawn().expect("starts"))
                .collect();
            for mut child in started {
                assert!(child.wait().expect("ends").success(), "the program failed");
            }
        }
        let each = begun.elapsed().as_secs_f64() / (PROCESSES * TURNS_EACH) as f64;
        let first = *first.get_or_insert(each);
        println!(
            "  {} sessions: {:.2} ({:.1} turns per second)",
            home.count,
            each / first,
            1.0 / each
        );
    }
}

fn lists(homes: &[Home]) {
    println!("lists (aim: less than 100 ms)");
    for home in homes {
        let mut times: Vec<f64> =
            (0..RUNS).map(|_| measure(home.command(&["sessions", "list"])).as_secs_f64()).collect();
        let mut names: Vec<f64> = (0..RUNS)
            .map(|_| {
                let begun = Instant::now();
                let index = SessionStore::new(home.sessions()).index();
                let keys = index.latest_keys(SUGGESTIONS, |key| key.starts_with("agent:main:"));
                let keys = keys.expect("an index");
                assert!(keys.len() >= home.count.min(SUGGESTIONS), "keys of the latest sessions");
                begun.elapsed().as_secs_f64()
            })
            .collect();
        println!(
            "  {} sessions: `sessions list` {:.1} ms, names to complete {:.1} ms",
            home.count,
            median(&mut times) * 1e3,
            median(&mut names) * 1e3
        );
    }
}

/// CPU time of a turn when many run at once in one process.
fn concurrent_turns() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    println!("turns at once in one process, CPU time of each");
    let mut first = None;
    for count in CONCURRENT {
        let directory = TempDir::new().expect("a temporary directory");
        let paths = Paths::in_state_dir(directory.path().join("state"));
        let home = myclaw_agent::Home::new(Environment::default(), paths);
        let mut config = Config { paths: Some(home.paths.clone()), ..Config::default() };
        config.agents.defaults.lanes.main = count;
        let config = Arc::new(config);
        let engine = Arc::new(engine(HttpOptions::default()));
        runtime.block_on(turns(&engine, &home, &config, 50, "warm"));
        let before = cpu();
        runtime.block_on(turns(&engine, &home, &config, count, "timed"));
        let each = (cpu() - before).as_secs_f64() / count as f64;
        let first = *first.get_or_insert(each);
        println!("  {count} turns: {:.2} ({:.2} ms)", each / first, each * 1e3);
    }
}

async fn turns(
    engine: &Arc<Engine>,
    home: &myclaw_agent::Home,
    config: &Arc<Config>,
    count: usize,
    prefix: &str,
) {
    let reference = parse_model_ref("builtin/demo").expect("the name of a model");
    let running: Vec<_> = (0..count)
        .map(|number| {
            let name = Some(format!("{prefix}-{number}"));
            let options = SessionOptions { session: name, ..SessionOptions::default() };
            let session = SessionConfig::new(home.clone(), Arc::clone(config), &options);
            let session = session.expect("a session");
            let mut params = session.bare_run(vec![configured_model(&session.config, &reference)]);
            params.user_message.push(ContentBlock::text("hello"));
            let engine = Arc::clone(engine);
            tokio::spawn(async move { engine.run(params).await })
        })
        .collect();
    for run in running {
        run.await.expect("no panic").expect("a reply");
    }
}

/// CPU time that this process has used.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
