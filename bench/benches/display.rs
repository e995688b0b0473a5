//! The chat in a terminal while an answer streams in: how fast a key is echoed, what a delta costs compared with one that goes to a
//! pipe, and how much memory a long stream leaves. And how soon the list of 10,000 sessions stands on the screen, and follows a key.
//!
//! The program is `target/release/myclaw`, or the one that `MYCLAW_BENCH_BINARY` names.
#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has nothing to report")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use myclaw_session::SessionKey;
use myclaw_testkit::{ModelServer, Reply, Script, Step, TempHome, Terminal, WireFormat};
use serde_json::json;

/// Deltas of the stream during which keys are pressed: 20 seconds of it.
const ECHO_DELTAS: usize = 40_000;
/// Bytes of a part of the answer, about.
const PART_BYTES: usize = 624;
/// Keys that are pressed.
const KEYS: usize = 60;
/// Deltas of the stream whose cost is counted.
const COST_DELTAS: usize = 20_000;
/// Deltas of an hour at 50 a second, as a fast model sends them.
const HOUR_DELTAS: usize = 180_000;
/// Time between two writes of the server.
const PAUSE: Duration = Duration::from_millis(2);
/// Bytes of one write: about four events, so that at most 2,000 arrive in a second.
const WRITE_BYTES: usize = 440;
/// The same while keys are typed: more, because a pause takes longer than it should, so that about 2,000 do arrive.
const ECHO_WRITE_BYTES: usize = 770;
/// Sessions in the list.
const SESSIONS: u64 = 10_000;
/// Times that the list is opened.
const PICKER_RUNS: usize = 11;
/// Ticks of the kernel's clock in a second, as on every Linux of today.
const TICKS: f64 = 100.0;

fn main() {
    // Cargo's test run asks every bench whether it has tests.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    // The name of a part runs that part alone.
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let parts: [(&str, fn()); 4] =
        [("echo", echo), ("cost", cost), ("memory", memory), ("picker", picker)];
    for (name, measure) in parts {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            measure();
        }
    }
}

fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("MYCLAW_BENCH_BINARY") {
        return PathBuf::from(path);
    }
    let this = std::env::current_exe().expect("the path of this program");
    this.ancestors().nth(2).expect("target/release/deps").join("myclaw")
}

/// Numbered parts of an answer of so many deltas.
fn parts(deltas: usize) -> usize {
    (deltas * 9 / 2).div_ceil(PART_BYTES)
}

/// An answer of numbered parts with paragraphs, lists and code, four to five bytes a delta.
fn answer(deltas: usize) -> Reply {
    let paragraph =
        "The function reads one line at a time, and keeps what follows for the next call. ";
    let part = format!(
        "{}\n\n- one item of a list\n- another one\n\n```rust\nfn main() {{\n    let text = \"some words\"; // why\n    println!(\"{{text}}\");\n}}\n```\n\n",
        paragraph.repeat(6)
    );
    let text: String = (0..parts(deltas)).map(|number| format!("Part {number}. {part}")).collect();
    Reply::anthropic().text(text + "\n\nThe end.").in_deltas(deltas)
}

fn chat(step: Step) -> (ModelServer, TempHome, Terminal) {
    let server = ModelServer::spawn_blocking_thread(Script::from(step));
    let home = TempHome::new();
    home.use_server(&server, WireFormat::AnthropicMessages);
    let mut command = home.command(binary());
    command.env("MYCLAW_LOCAL_SERVERS", "none").env("TERM", "xterm-256color");
    let mut terminal = Terminal::spawn_sized(&command, 100, 40);
    terminal.expect("You: ");
    (server, home, terminal)
}

/// From a key press until the screen shows the key.
fn echo() {
    let step = answer(ECHO_DELTAS).step().chunked_by(ECHO_WRITE_BYTES).pause(PAUSE);
    let (_server, _home, mut terminal) = chat(step);
    terminal.send_line("stream");
    terminal.expect("Part 0.");
    let began = Instant::now();
    let mut typed = String::new();
    let mut times = Vec::new();
    for number in 0..KEYS {
        // The keys are spread over the whole stream.
        let wanted = number * parts(ECHO_DELTAS) / KEYS;
        let begun = |line: &str| line.strip_prefix("Part ")?.split('.').next()?.parse().ok();
        terminal.expect_screen(|screen| {
            screen.lines().filter_map(begun).any(|part: usize| part >= wanted)
        });
        let key = char::from(b'a' + u8::try_from(number % 26).expect("a letter"));
        typed.push(key);
        let row = format!("> {typed}");
        let pressed = Instant::now();
        terminal.send(&key.to_string());
        terminal.expect_screen(|screen| screen.lines().any(|line| line == row));
        times.push(pressed.elapsed());
    }
    let typed_for = began.elapsed().as_secs_f64();
    terminal.expect("The end.");
    let rate = ECHO_DELTAS as f64 / began.elapsed().as_secs_f64();
    let shown = terminal.text().len();
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "key press to echo beside {rate:.0} deltas a second: median {:.1} ms, 95% {:.1} ms, most {:.1} ms ({KEYS} keys in {typed_for:.1} s, \
         {shown} characters drawn)",
        ms(times[times.len() / 2]),
        ms(times[times.len() * 95 / 100]),
        ms(times[times.len() - 1]),
    );
}

/// Processor time of a delta, on a terminal and to a pipe.
fn cost() {
    let stream = || answer(COST_DELTAS).step().chunked_by(WRITE_BYTES).pause(PAUSE);
    let (_server, _home, mut terminal) = chat(stream());
    let before = cpu(terminal.id());
    terminal.send_line("stream");
    let began = Instant::now();
    terminal.expect_screen(|screen| screen.contains("The end.") && screen.ends_with("You:"));
    let rate = COST_DELTAS as f64 / began.elapsed().as_secs_f64();
    let on_terminal = (cpu(terminal.id()) - before) / COST_DELTAS as f64;
    let plain = piped(Reply::anthropic().text("The end.").step());
    let to_pipe = (piped(stream()) - plain) / COST_DELTAS as f64;
    println!(
        "processor time of a delta at {rate:.0} a second: {:.1} µs on a terminal, {:.1} µs to a pipe, {:.1} times (aim: 3)",
        on_terminal * 1e6,
        to_pipe * 1e6,
        on_terminal / to_pipe
    );
}

/// Processor seconds of a run whose output goes to a pipe.
fn piped(step: Step) -> f64 {
    let server = ModelServer::spawn_blocking_thread(Script::from(step));
    let home = TempHome::new();
    home.use_server(&server, WireFormat::AnthropicMessages);
    let mut command: Command = home.command(binary());
    command.args(["run", "--quiet", "stream"]).env("MYCLAW_LOCAL_SERVERS", "none");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program");
    let mut output = child.stdout.take().expect("its output");
    std::io::copy(&mut output, &mut std::io::sink()).expect("its output");
    // All is said; the process is a zombie soon, whose times can still be read.
    let id = child.id();
    let gone =
        |id| fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    while !gone(id) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let seconds = cpu(id);
    child.wait().expect("its end");
    seconds
}

/// Memory after the stream of an hour, sent as fast as it is taken.
fn memory() {
    let step = answer(HOUR_DELTAS).step();
    let (_server, _home, mut terminal) = chat(step);
    let of = |terminal: &Terminal, field| kilobytes(terminal.id(), field) / 1e3;
    let before = (of(&terminal, "VmRSS:"), of(&terminal, "RssAnon:"));
    terminal.send_line("stream");
    terminal.expect_screen(|screen| screen.contains("The end.") && screen.ends_with("You:"));
    println!(
        "memory: {:.1} MB before, {:.1} MB after {HOUR_DELTAS} deltas, {:.1} MB at most (aim: less than 30 MB); without pages of \
         the program's file {:.1} and {:.1} MB",
        before.0,
        of(&terminal, "VmRSS:"),
        of(&terminal, "VmHWM:"),
        before.1,
        of(&terminal, "RssAnon:"),
    );
}

/// The list of many sessions: from the start of the program until it stands on the screen, and from a key until it has
/// narrowed down.
fn picker() {
    let home = TempHome::new();
    let sessions = home.sessions_directory();
    fs::create_dir_all(&sessions).expect("a directory");
    let entries = (0..SESSIONS).map(|number| {
        let key = SessionKey::for_cli("main", &format!("s{number}"));
        let entry = json!({
            "sessionId": format!("01234567-89ab-4def-8123-{number:012}"),
            "updatedAt": 1_763_760_000_000_u64 + number,
            "sessionFile": format!("{}.jsonl", key.slug()),
            "lastChannel": "cli",
            "chatType": "direct",
            "model": "builtin/demo",
            "totalTokens": 100,
            "messages": 4,
            "microDollars": 1_200,
            "directory": format!("/home/someone/src/project-{}", number % 20),
            "extra": {
                "firstWords": format!("Please look at the parser of module {number} and say why it loses the last line"),
                "automaticTitle": format!("look at the parser of module {number} and say why"),
            },
        });
        (key.to_string(), entry)
    });
    let index: serde_json::Map<String, serde_json::Value> = entries.collect();
    let text = serde_json::to_string_pretty(&index).expect("an index");
    fs::write(sessions.join("sessions.json"), text).expect("room on the disk");
    let mut command = home.command(binary());
    command.arg("--resume").env("MYCLAW_LOCAL_SERVERS", "none").env("TERM", "xterm-256color");
    let (mut opened, mut narrowed) = (Vec::new(), Vec::new());
    for _ in 0..PICKER_RUNS {
        let began = Instant::now();
        let mut terminal = Terminal::spawn_sized(&command, 100, 40);
        terminal.expect_screen(|screen| screen.contains("Enter chooses"));
        opened.push(began.elapsed());
        let pressed = Instant::now();
        terminal.send("7");
        terminal.expect_screen(|screen| screen.contains(" of 10000"));
        narrowed.push(pressed.elapsed());
        terminal.send("\x1b");
        terminal.wait();
    }
    let plain = (0..PICKER_RUNS).map(|_| {
        let mut command = home.command(binary());
        let began = Instant::now();
        command.arg("--version").stdout(Stdio::null()).status().expect("the program");
        began.elapsed()
    });
    let plain = median(plain.collect());
    println!(
        "list of {SESSIONS} sessions: on the screen after {:.1} ms (aim: 100), a key after {:.1} ms; `--version` takes {:.1} ms",
        median(opened),
        median(narrowed),
        plain
    );
}

/// The median in milliseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// Processor seconds of a process, those of ended children not included.
fn cpu(id: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("a running process");
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks = |at: usize| -> f64 {
        fields.split(' ').nth(at).and_then(|field| field.parse().ok()).unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) / TICKS
}

fn kilobytes(id: u32, field: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0.0)
}
