//! The bare loop: the least program that does an agent's work, as the yardstick for the real one.
//!
//! One connection, server-sent events and JSON parsed, `bash -c` spawned and awaited or a file read to its end, one line
//! written a message, the final text on stdout. No TLS, config, prompt, time limits or safety: use it only for measuring.
//!
//! `bare BASE_URL MODEL MESSAGE TRANSCRIPT`: a model whose name begins with `claude` gets Anthropic's Messages format,
//! any other gets OpenAI's Chat Completions format.
#![forbid(unsafe_code)]

mod http;
mod messages;
mod stream;
mod transcript;

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use http::Connection;
use messages::Messages;
use stream::{Answer, Call};
use transcript::Transcript;

/// What fails ends the program: there is nobody to recover.
type Fallible<T> = Result<T, Box<dyn Error>>;

/// The wire formats it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Anthropic,
    OpenAi,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base_url, model, message, transcript] = arguments.as_slice() else {
        eprintln!("usage: bare BASE_URL MODEL MESSAGE TRANSCRIPT");
        return ExitCode::from(2);
    };
    match run(base_url, model, message, Path::new(transcript)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(base_url: &str, model: &str, message: &str, transcript: &Path) -> Fallible<()> {
    let format = if model.starts_with("claude") { Format::Anthropic } else { Format::OpenAi };
    let mut messages = Messages::new(format, model);
    let mut transcript = Transcript::open(transcript, |row| messages.add_row(row))?;
    let mut connection = Connection::open(base_url)?;
    transcript.user(message)?;
    messages.add_user(message);
    loop {
        let answer = ask(&mut connection, &messages)?;
        transcript.assistant(&answer)?;
        messages.add_answer(&answer);
        if answer.calls.is_empty() {
            let mut out = std::io::stdout().lock();
            out.write_all(answer.text.as_bytes())?;
            return Ok(out.write_all(b"\n")?);
        }
        for call in &answer.calls {
            let result = if call.name == "read" { read(call)? } else { bash(call)? };
            transcript.result(call, &result)?;
            messages.add_result(&call.id, &result);
        }
    }
}

fn ask(connection: &mut Connection, messages: &Messages) -> Fallible<Answer> {
    let format = messages.format();
    let path = match format {
        Format::Anthropic => "/v1/messages",
        Format::OpenAi => "/chat/completions",
    };
    connection.post(path, &messages.body())?;
    let mut answer = Answer::default();
    while let Some(line) = connection.line()? {
        if let Some(data) = line.strip_prefix(b"data:") {
            answer.take(format, data)?;
        }
    }
    answer.finished()
}

/// Runs a call's command and gives what it printed.
fn bash(call: &Call) -> Fallible<String> {
    #[derive(serde::Deserialize)]
    struct Arguments {
        command: String,
    }
    let Arguments { command } = serde_json::from_str(&call.arguments)?;
    let output = Command::new("bash").arg("-c").arg(command).stdin(Stdio::null()).output()?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    if text.trim().is_empty() {
        text = format!("(no output, {})", output.status);
    }
    Ok(text)
}

/// Gives the lines of a file that a call asks for, and how many there are.
fn read(call: &Call) -> Fallible<String> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Arguments {
        path: String,
        start_line: usize,
        end_line: usize,
    }
    let Arguments { path, start_line, end_line } = serde_json::from_str(&call.arguments)?;
    let mut shown = String::new();
    let mut number = 0;
    for line in BufReader::with_capacity(256 * 1024, File::open(path)?).split(b'\n') {
        let line = line?;
        number += 1;
        if (start_line..=end_line).contains(&number) {
            shown.push_str(std::str::from_utf8(&line)?);
            shown.push('\n');
        }
    }
    shown.push_str(&format!("({number} lines)"));
    Ok(shown)
}
