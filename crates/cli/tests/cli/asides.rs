//! Questions aside: answered with what the session holds, and not added to it.

use myclaw_testkit::{ModelServer, RecordedRequest, Reply, Script, Step, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::rpc::Client;
use crate::screen::{ask, chat, leave, prompt_after, slow_tool};

const MARK: &str = "[A question aside.";

fn last(request: &RecordedRequest) -> String {
    json!(request.messages().last()).to_string()
}

fn all(request: &RecordedRequest) -> String {
    json!(request.messages()).to_string()
}

fn home_with(answer: fn(&RecordedRequest, usize) -> Step) -> (TempHome, ModelServer) {
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(answer));
    let home = TempHome::new();
    home.use_server(&server, WireFormat::AnthropicMessages);
    (home, server)
}

fn log(home: &TempHome) -> Vec<u8> {
    std::fs::read(home.transcript_path("main")).expect("a log")
}

#[test]
fn a_question_aside_knows_the_session_and_leaves_no_trace_in_it() {
    let (home, server) = home_with(|request, _| {
        let text = if last(request).contains(MARK) { "It is 42." } else { "Noted." };
        Reply::anthropic().text(text).step()
    });
    let mut terminal = chat(&home);
    terminal.send_line("the number is 42");
    prompt_after(&mut terminal, "Noted.");
    let (before, of_session) = (log(&home), server.last_request());
    ask(&mut terminal, "/btw", "/btw needs a question");
    terminal.send_line("/btw which number?");
    prompt_after(&mut terminal, "It is 42.");
    assert_eq!(log(&home), before);
    let aside = server.last_request();
    assert!(all(&aside).contains("the number is 42") && last(&aside).contains("which number?"));
    assert_eq!(aside.json()["tool_choice"], json!({"type": "none"}));
    // The same bytes at the beginning, which the provider has in its cache.
    for part in ["system", "tools"] {
        assert_eq!(aside.json()[part], of_session.json()[part], "{part}");
    }
    terminal.send_line("and now?");
    terminal.expect_screen(|screen| screen.matches("Noted.").count() == 2);
    assert!(!all(&server.last_request()).contains("which number?"));
    leave(&mut terminal);

    let mut client = Client::start(&home);
    let before = log(&home);
    let reply = client.ask(json!({"type": "ask_aside", "question": "which number?"}), 1);
    assert_eq!(reply["data"]["reply"], "It is 42.", "{reply}");
    let nothing = client.ask(json!({"type": "ask_aside"}), 2);
    assert!(nothing["error"].to_string().contains("question"), "{nothing}");
    client.finish();
    assert_eq!(log(&home), before);
    assert!(all(&server.last_request()).contains("the number is 42"));
}

#[test]
fn a_question_aside_is_answered_while_the_agent_works() {
    let (home, server) = home_with(|request, number| match number {
        0 => slow_tool("call_1").step(),
        _ if last(request).contains(MARK) => Reply::anthropic().text("It is 42.").step(),
        _ => Reply::anthropic().text("Done.").step(),
    });
    let mut terminal = chat(&home);
    terminal.send_line("go");
    terminal.expect("until test -e go");
    terminal.send_line("/btw which number?");
    terminal.expect_screen(|screen| screen.contains("It is 42."));
    assert!(!String::from_utf8_lossy(&log(&home)).contains("which number"));
    home.write_in_workspace("go", "");
    prompt_after(&mut terminal, "Done.");
    leave(&mut terminal);
    assert!(!String::from_utf8_lossy(&log(&home)).contains("which number"));
    assert!(!all(&server.last_request()).contains("which number"));
}

#[test]
fn a_question_aside_runs_no_tool() {
    let (home, server) = home_with(|request, _| {
        let reply = Reply::anthropic();
        if last(request).contains(MARK) {
            return reply.tool_call("call_1", "bash", json!({"command": "touch made"})).step();
        }
        reply.text("It is 42.").step()
    });
    let mut client = Client::start(&home);
    let empty = client.ask(json!({"type": "ask_aside", "question": " "}), 2);
    assert_eq!(empty["error"], "the question is empty; say what you want to know", "{empty}");
    assert_eq!(server.requests().len(), 0);
    let reply = client.ask(json!({"type": "ask_aside", "question": "which number?"}), 1);
    client.finish();
    assert_eq!(reply["data"]["reply"], "It is 42.", "{reply}");
    assert!(!home.workspace().join("made").exists());
    let read: Value = json!(server.last_request().messages());
    assert!(read.to_string().contains("answered without tools"), "{read}");
    assert_eq!(home.transcripts().len(), 0, "a session that did not exist still does not");
}
