use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Destination, JsonMode, Output};

/// Remembers each write on its own; fails from the `fail_from`th on.
#[derive(Clone, Default)]
struct Recorder {
    writes: Arc<Mutex<Vec<String>>>,
    fail_from: Option<usize>,
}

impl Write for Recorder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut writes = self.writes.lock().expect("lock");
        if self.fail_from.is_some_and(|limit| writes.len() >= limit) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        writes.push(String::from_utf8(bytes.to_vec()).expect("UTF-8"));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Recorder {
    fn writes(&self) -> Vec<String> {
        self.writes.lock().expect("lock").clone()
    }
}

fn output(destination: Destination, recorder: &Recorder) -> Output {
    Output::new(destination, Box::new(recorder.clone()), CancellationToken::new())
}

/// Sends `deltas` pieces in bursts of `burst`, waiting 5 ms between bursts.
async fn stream(output: &Output, deltas: usize, burst: usize) {
    let work = async {
        for delta in 0..deltas {
            if delta > 0 && delta % burst == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            output.push_text("word ");
        }
        // Several waits, because one that is over late ends the work before the buffer is looked at.
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    output.flushing(work).await;
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("runtime")
        .block_on(future);
}

#[test]
fn a_pipe_gets_few_large_writes_and_everything() {
    let recorder = Recorder::default();
    let output = output(Destination::Pipe, &recorder);
    block_on(stream(&output, 20_000, 1_000));
    let writes = recorder.writes();
    assert_eq!(writes.concat(), "word ".repeat(20_000));
    assert!(writes.len() <= 60, "{} writes for 100 kB", writes.len());
}

#[test]
fn nothing_stays_behind_when_the_stream_pauses() {
    let recorder = Recorder::default();
    let output = output(Destination::Pipe, &recorder);
    block_on(stream(&output, 3, 1));
    assert_eq!(recorder.writes().concat(), "word word word ");
}

#[test]
fn a_terminal_sees_each_piece_as_soon_as_the_engine_waits() {
    let recorder = Recorder::default();
    let output = output(Destination::Terminal, &recorder);
    block_on(stream(&output, 4, 1));
    assert_eq!(recorder.writes(), ["word ", "word ", "word ", "word "]);
}

#[test]
fn a_terminal_gets_no_raw_controls_and_a_pipe_gets_the_text_as_it_is() {
    for (destination, expected) in
        [(Destination::Terminal, "\\x1b[2J\n"), (Destination::Pipe, "\x1b[2J\n")]
    {
        let recorder = Recorder::default();
        let output = output(destination, &recorder);
        output.push_text("\x1b[2J");
        output.end_line();
        output.end_line();
        output.flush();
        assert_eq!(recorder.writes(), [expected]);
    }
}

#[test]
fn a_closed_pipe_cancels_the_turn_and_is_reported_once() {
    let recorder = Recorder { fail_from: Some(1), ..Recorder::default() };
    let closed = CancellationToken::new();
    let output = Output::new(Destination::Pipe, Box::new(recorder.clone()), closed.clone());
    output.push_text("one");
    output.flush();
    assert!(!closed.is_cancelled());
    output.push_text("two");
    output.flush();
    assert!(closed.is_cancelled());
    output.push_text("three");
    output.flush();
    assert_eq!(recorder.writes(), ["one"]);
    assert_eq!(output.take_failure().map(|error| error.kind()), Some(io::ErrorKind::BrokenPipe));
    assert!(output.take_failure().is_none());
}

#[test]
fn json_for_a_terminal_has_no_controls_and_is_the_same_value() {
    let value = json!({"text": "a\u{9b}31m\u{7f}\u{1b}\n\"é"});
    let mut safe = Vec::new();
    JsonMode::TerminalSafe.write(&value, &mut safe).expect("writes");
    let safe = String::from_utf8(safe).expect("UTF-8");
    assert!(!safe.chars().any(char::is_control), "{safe}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).expect("JSON"), value);
}
