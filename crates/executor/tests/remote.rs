//! A node and who asks it, joined in memory: the messages are those of a helper.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of this is test code, where a panic is a failed test"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_engine::{ToolError, ToolOutput, ToolUpdate};
use myclaw_executor::{
    ArrivedCall, BareCommands, CallServer, CallService, RemoteCallError, RemoteCalls, ServerLimits,
    text_of,
};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// Longest wait for something to happen, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const LIMITS: ServerLimits = ServerLimits { calls: 2, commands: BareCommands::Refused };

/// Repeats texts, fails, panics, or waits until it is cancelled.
#[derive(Default)]
struct Echo {
    cancelled: AtomicUsize,
}

impl CallService for Echo {
    fn call<'a>(
        &'a self,
        call: ArrivedCall,
        on_update: &'a (dyn Fn(ToolUpdate) + Send + Sync),
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            on_update(ToolUpdate { text: "working".to_owned(), details: None });
            match call.tool.as_str() {
                "echo" => Ok(ToolOutput::text(call.arguments["text"].as_str().unwrap())),
                "panic" => panic!("on purpose"),
                "wait" => {
                    call.cancel.cancelled().await;
                    self.cancelled.fetch_add(1, Ordering::SeqCst);
                    Err(ToolError::Aborted("ended".to_owned()))
                }
                other => Err(ToolError::Failed(format!("no {other}"))),
            }
        })
    }
}

/// Serves what `requests` has, and passes the replies to `calls`, until one of them ends.
fn join(
    service: Arc<Echo>,
    calls: Arc<RemoteCalls>,
    mut requests: mpsc::UnboundedReceiver<String>,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let (mut server, mut replies) = CallServer::new(service, LIMITS);
        loop {
            tokio::select! {
                Some(request) = requests.recv() => server.take_text(&request).await.unwrap(),
                Some(reply) = replies.recv() => calls.take_text(&text_of(reply)).unwrap(),
                () = server.ended() => {}
            }
        }
    }))
}

fn text(text: &str) -> Map<String, Value> {
    Map::from_iter([("text".to_owned(), json!(text))])
}

#[tokio::test]
async fn a_node_makes_calls_as_a_helper_does() {
    let (calls, requests) = RemoteCalls::new(2);
    let (service, calls) = (Arc::<Echo>::default(), Arc::new(calls));
    let serving = join(Arc::clone(&service), Arc::clone(&calls), requests);
    let call = |tool: &'static str| calls.call(tool, text("hello"), PATIENCE);
    assert_eq!(call("echo").await.unwrap(), ToolOutput::text("hello"));
    assert_eq!(call("other").await, Err(RemoteCallError::Failed("no other".to_owned())));
    let failed = call("panic").await.unwrap_err();
    assert!(matches!(failed, RemoteCallError::Failed(why) if why.contains("failed inside")));

    // A caller that goes away ends its call on the node, and so does one that waits for too long.
    assert!(tokio::time::timeout(Duration::from_millis(50), call("wait")).await.is_err());
    let late = calls.call("wait", Map::new(), Duration::from_millis(50)).await;
    assert_eq!(late, Err(RemoteCallError::Late));
    let both_ended = async {
        while service.cancelled.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, both_ended).await.unwrap();

    // As many calls as agreed, and all of them fail with the connection.
    let (first, second) = (tokio::spawn(wait(&calls)), tokio::spawn(wait(&calls)));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(call("echo").await, Err(RemoteCallError::Full));
    calls.end();
    assert_eq!(first.await.unwrap(), Err(RemoteCallError::Gone));
    assert_eq!(second.await.unwrap(), Err(RemoteCallError::Gone));
    assert_eq!(call("echo").await, Err(RemoteCallError::Gone));
    drop(serving);
}

/// A call that waits.
fn wait(
    calls: &Arc<RemoteCalls>,
) -> impl Future<Output = Result<ToolOutput, RemoteCallError>> + use<> {
    let calls = Arc::clone(calls);
    async move { calls.call("wait", Map::new(), PATIENCE).await }
}

/// The next reply of a server.
async fn next(server: &mut CallServer, replies: &mut mpsc::Receiver<Vec<u8>>) -> Value {
    loop {
        tokio::select! {
            reply = replies.recv() => return serde_json::from_str(&text_of(reply.unwrap())).unwrap(),
            () = server.ended() => {}
        }
    }
}

#[tokio::test]
async fn a_node_runs_no_command_that_no_tool_has_judged() {
    let (mut server, mut replies) = CallServer::new(Arc::<Echo>::default(), LIMITS);
    let marker = std::env::temp_dir().join(format!("bare-command-{}", std::process::id()));
    let run = json!({"run": {
        "number": 1, "mark": "MARK_OF_TEST=0123456789abcdef", "program": "touch", "arguments": [marker],
        "directory": "/", "variables": [], "timeout": null, "keepBytes": 1000, "keepChars": 1000, "keepLines": 10,
        "sideFile": null, "terminal": null, "hasInput": false,
    }});
    server.take_text(&run.to_string()).await.unwrap();
    let reply = next(&mut server, &mut replies).await;
    let text = reply["ended"]["end"]["failed"]["text"].as_str().unwrap();
    assert!(text.contains("calls of tools only"), "{reply}");
    assert!(!marker.exists());
    // Another request is refused as a whole, without an end of the connection that a wrong number would be.
    assert!(server.take_text(r#"{"cancel": {"number": 7}}"#).await.is_ok());
    assert!(server.take_text(r#"{"shutdown": {}}"#).await.is_err());
    let echo = json!({"call": {"number": 2, "tool": "echo", "arguments": {"text": "still here"}}});
    server.take_text(&echo.to_string()).await.unwrap();
    // Its progress comes first.
    assert_eq!(next(&mut server, &mut replies).await["update"]["text"], "working");
    let reply = next(&mut server, &mut replies).await;
    assert_eq!(reply["result"]["outcome"]["output"]["content"][0]["text"], "still here");
}

#[tokio::test]
async fn what_is_no_reply_is_an_error_and_a_late_one_is_dropped() {
    let (calls, _requests) = RemoteCalls::new(2);
    let late = json!({"result": {"number": 9, "outcome": {"failed": {"text": "too late"}}}});
    assert_eq!(calls.take_text(&late.to_string()), Ok(()));
    for wrong in [r#"{"ready": {"version": "1"}}"#, r#""idle""#, r#"{"type": "result", "id": 1}"#] {
        assert!(calls.take_text(wrong).is_err(), "{wrong}");
    }
}
