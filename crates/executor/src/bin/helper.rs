//! Replaces the `myclaw` program in tests: started with a hidden argument, it confines itself, serves tools made for the
//! tests, or breaks the rules of the protocol.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_engine::{Tool, ToolError, ToolInvocation, ToolOutput, ToolUpdate};
use myclaw_llm::{ContentBlock, ImageContent, TextContent, ToolSchema};
use serde_json::{Value, json};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(OsStr::to_str) {
        #[cfg(target_os = "linux")]
        Some("__sandbox-exec") => myclaw_sandbox::enter_and_exec(arguments),
        Some("serve") => myclaw_executor::serve(|setup| tools(&setup)),
        Some(rule) => match break_rule(rule) {
            Ok(()) => ExitCode::from(7),
            Err(_) => ExitCode::FAILURE,
        },
        None => {
            eprintln!("this program is for tests");
            ExitCode::FAILURE
        }
    }
}

fn tools(setup: &Value) -> io::Result<Vec<Arc<dyn Tool>>> {
    let name = setup.as_str().ok_or_else(|| io::Error::other("the set-up is not a name"))?;
    let parameters = json!({"type": "object"});
    let schema = ToolSchema { name: name.to_owned(), description: String::new(), parameters };
    Ok(vec![Arc::new(TestTool(schema))])
}

/// Does what the argument `do` says.
struct TestTool(ToolSchema);

impl Tool for TestTool {
    fn schema(&self) -> &ToolSchema {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(run(invocation))
    }
}

#[expect(clippy::panic, reason = "a test wants to see it")]
async fn run(invocation: ToolInvocation<'_>) -> Result<ToolOutput, ToolError> {
    let text = |text: String| Ok(ToolOutput::text(text));
    let content = |block| Ok(ToolOutput { content: vec![block], ..ToolOutput::default() });
    let image = |data: &str, mime_type: &str| {
        ContentBlock::Image(ImageContent { data: data.to_owned(), mime_type: mime_type.to_owned() })
    };
    let action = invocation.call.arguments["do"].as_str().unwrap_or_default().to_owned();
    match action.as_str() {
        "pid" => text(std::process::id().to_string()),
        "describe" => text(format!(
            "{} {} {:?}",
            invocation.call.tool_call_id,
            invocation.context.max_result_chars,
            std::env::current_dir()
        )),
        "fail" => Err(ToolError::Failed("as demanded".to_owned())),
        "progress" => {
            for number in 0..3 {
                let details = Some(json!({"number": number}));
                (invocation.on_update)(ToolUpdate { text: format!("step {number}"), details });
                tokio::task::yield_now().await;
            }
            text("done".to_owned())
        }
        "wait" => {
            (invocation.on_update)(ToolUpdate { text: "waiting".to_owned(), details: None });
            invocation.cancel.cancelled().await;
            Err(ToolError::Aborted("cancelled".to_owned()))
        }
        "ignore" => {
            (invocation.on_update)(ToolUpdate { text: "waiting".to_owned(), details: None });
            std::future::pending().await
        }
        "die" => std::process::exit(9),
        "panic" => panic!("as demanded"),
        "start" => {
            let child = Command::new("setsid").args(["sleep", "1000"]).spawn();
            child.map_or_else(
                |error| Err(ToolError::Failed(error.to_string())),
                |child| text(child.id().to_string()),
            )
        }
        "signed" => content(ContentBlock::Text(TextContent {
            text: "words".to_owned(),
            text_signature: Some("signature of a provider".to_owned()),
            outside: Vec::new(),
        })),
        "picture" => content(image("aGVsbG8=", "image/png")),
        "strange picture" => content(image("aGVsbG8=", "text/html")),
        "broken picture" => content(image("\"><script>", "image/png")),
        "think" => content(ContentBlock::Thinking(Default::default())),
        "many" => {
            Ok(ToolOutput { content: vec![ContentBlock::text("x"); 1000], ..ToolOutput::default() })
        }
        "large details" => {
            Ok(ToolOutput { details: Some(json!("x".repeat(9 << 20))), ..ToolOutput::text("x") })
        }
        "large" => text("x".repeat(65 << 20)),
        other => Err(ToolError::Failed(format!("no such action: {other}"))),
    }
}

/// Sends the hello of a helper, and then misbehaves.
fn break_rule(rule: &str) -> io::Result<()> {
    let version = if rule == "version" { "0.0.0" } else { env!("CARGO_PKG_VERSION") };
    receive()?;
    if rule == "end" {
        eprintln!("something is missing here");
        return Ok(());
    }
    send(&json!({"ready": {"version": version}}))?;
    receive()?;
    let outcome = json!({"output": {"content": [], "details": null, "isError": false}});
    if let Some(rule) = rule.strip_prefix("command: ") {
        reply_to_command(rule)?;
    }
    match rule {
        "unknown call" => send(&json!({"result": {"number": 77, "outcome": outcome}}))?,
        "unknown progress" => {
            send(&json!({"update": {"number": 77, "text": "x", "details": null}}))?
        }
        "second result" => {
            for _ in 0..2 {
                send(&json!({"result": {"number": 1, "outcome": outcome}}))?;
            }
        }
        "twice" => send(&json!({"ready": {"version": version}}))?,
        "output of a call" => send(&json!({"output": {
            "number": 1, "skippedBytes": 0, "skippedLines": 0, "data": "eA==",
        }}))?,
        "end of a call" => send(&json!({"ended": {"number": 1, "end": "notFound"}}))?,
        "input of a call" => send(&json!({"took": {"number": 1, "isClosed": false}}))?,
        "output of nobody" => send(&json!({"output": {
            "number": 77, "skippedBytes": 0, "skippedLines": 0, "data": "eA==",
        }}))?,
        "unknown reply" => send(&json!({"surprise": {"number": 1}}))?,
        "no json" => io::stdout().write_all(b"\0\0\0\x03{]}")?,
        "too long" => io::stdout().write_all(&[0xff; 4])?,
        _ => {}
    }
    io::stdout().flush()?;
    // It would never end.
    loop {
        std::thread::park();
    }
}

/// Answers the first command in a way in which no helper does.
fn reply_to_command(rule: &str) -> io::Result<()> {
    let output = |data: &str, skipped: u64| {
        send(&json!({"output": {
            "number": 1, "skippedBytes": skipped, "skippedLines": skipped, "data": data,
        }}))
    };
    let finished = |tail: String, left: usize| {
        let left: Vec<Value> = (0..left).map(|number| json!([number, "x\n\u{1b}[2J"])).collect();
        send(&json!({"ended": {"number": 1, "end": {"finished": {
            "exit": {"code": 0}, "tail": tail, "totalBytes": u64::MAX, "totalLines": u64::MAX,
            "truncated": true, "sideFile": {"failed": "no\nroom"}, "leftRunning": left,
        }}}}))
    };
    match rule {
        "no base64" => output("!!", 0),
        "too much output" => output(&"eHh4".repeat(90_000), 0),
        "endless count" => {
            output("eA==", u64::MAX)?;
            output("eA==", u64::MAX)?;
            finished("x".to_owned(), 1)
        }
        "took twice" => {
            // All at once, so that nobody can take the first before the second is there.
            let frames = encode(&json!({"took": {"number": 1, "isClosed": false}}))?.repeat(100);
            io::stdout().write_all(&frames)
        }
        "result of a command" => send(&json!({"result": {"number": 1, "outcome": {
            "output": {"content": [], "details": null, "isError": false},
        }}})),
        "update of a command" => {
            send(&json!({"update": {"number": 1, "text": "x", "details": null}}))
        }
        "large tail" => finished("x".repeat(1 << 20), 0),
        "many left" => finished("x".to_owned(), 100),
        "ended twice" => {
            finished("x".to_owned(), 0)?;
            finished("y".to_owned(), 0)
        }
        "long failure" => send(&json!({"ended": {"number": 1, "end": {
            "failed": {"text": "\u{1b}[2Jx\n".repeat(10_000)},
        }}})),
        _ => Ok(()),
    }
}

fn receive() -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    io::stdin().read_exact(&mut length)?;
    let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
    io::stdin().read_exact(&mut bytes)?;
    Ok(bytes)
}

fn send(message: &Value) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(&encode(message)?)?;
    output.flush()
}

fn encode(message: &Value) -> io::Result<Vec<u8>> {
    let text = message.to_string();
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    Ok([&length.to_be_bytes(), text.as_bytes()].concat())
}
