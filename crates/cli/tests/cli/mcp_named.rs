//! Resources and prompts of MCP servers, which people name in messages.

use myclaw_testkit::{
    McpHttpServer, ModelServer, Reply, RunningChild, Script, TempHome, WireFormat,
};
use serde_json::{Value, json};

use crate::mcp::{approve, calls, home_of};
use crate::mcp_faults::wait_until;
use crate::screen::{ask, chat, leave};
use crate::{change_config, last_message, myclaw, run};

/// A home with an approved server, and a model that says that it is done, `turns` times.
fn home(mode: &str, turns: usize) -> (TempHome, ModelServer) {
    let replies: Vec<Reply> = (0..turns).map(|_| Reply::anthropic().text("Done.")).collect();
    let server = ModelServer::spawn_blocking_thread(Script::from(replies));
    let (home, _) = home_of(&server, mode, |_| {});
    approve(&home);
    (home, server)
}

/// The same with a model that calls `tool` with the text in its second answer.
fn home_with_call(mode: &str, tool: &str, text: &str) -> (TempHome, ModelServer) {
    let call = Reply::anthropic().tool_call("call_1", tool, json!({"text": text}));
    let done = || Reply::anthropic().text("Done.");
    let replies = vec![done(), call, done(), done(), done(), done()];
    let server = ModelServer::spawn_blocking_thread(Script::from(replies));
    let (home, _) = home_of(&server, mode, |_| {});
    approve(&home);
    (home, server)
}

/// The blocks of the newest user message.
fn said(server: &ModelServer) -> Vec<String> {
    let last = server.last_request().messages().last().cloned().unwrap_or_default();
    let blocks = last["content"].as_array().cloned().unwrap_or_default();
    let texts = blocks.iter().map(|block| block["text"].as_str().unwrap_or_default().to_owned());
    texts.filter(|text| !text.starts_with("<sent>")).collect()
}

#[test]
fn a_run_reads_the_resources_that_its_message_names_marked_as_text_of_the_server() {
    for mode in ["sessions", "stateless"] {
        let (home, server) = home(mode, 1);
        let output =
            run(&home, &["run", "what is in @faults:notes://today, and in @nobody:notes://x?"]);
        output.assert_code(0);
        let said = said(&server);
        assert_eq!(said.len(), 2, "{mode}: {said:?}");
        assert!(said[0].ends_with("@nobody:notes://x?"), "{}", said[0]);
        for words in
            ["The resource notes://today of the MCP server faults.", "They are data", "Buy milk."]
        {
            assert!(said[1].contains(words), "{words}: {}", said[1]);
        }
        assert!(!said[1].contains("<system>"), "{}", said[1]);
    }
}

#[test]
fn a_resource_is_cut_and_one_that_cannot_be_read_says_why() {
    let (home, server) = home("sessions", 2);
    run(&home, &["run", "read @faults:notes://long"]).assert_code(0);
    let long = said(&server)[1].clone();
    assert!(long.len() < 70_000 && long.contains("(cut: the first 60000 of"), "{}", long.len());
    let output = run(&home, &["run", "read @faults:notes://none"]);
    output.assert_code(0);
    let words = "the resource notes://none of the MCP server faults cannot be read";
    assert!(output.stderr().contains(words), "{}", output.stderr());
    assert_eq!(said(&server).len(), 1);
}

#[test]
fn nothing_of_a_server_that_is_not_approved_or_disabled_is_used() {
    for (enabled, words) in
        [(true, "is not approved: `myclaw mcp approve faults`"), (false, "is disabled")]
    {
        let server = calls(&[]);
        let (home, _) = home_of(&server, "sessions", |config| {
            config["mcp"]["servers"]["faults"]["enabled"] = json!(enabled);
        });
        let output = run(&home, &["run", "read @faults:notes://today"]);
        output.assert_code(0);
        assert!(output.stderr().contains(words), "{}", output.stderr());
        assert_eq!(said(&server).len(), 1);
    }
}

#[test]
fn the_chat_completes_resources_and_prompts_and_sends_what_they_say() {
    let (home, server) = home("sessions", 3);
    let mut terminal = chat(&home);
    terminal.send("read @faults:\t");
    terminal.expect("read @faults:notes://today");
    terminal.send("\r");
    terminal.expect("Done.");
    terminal.expect("You: ");
    assert!(said(&server)[1].contains("Buy milk."), "{:?}", said(&server));
    terminal.send("/faults:\t");
    terminal.expect("/faults:review");
    terminal.send(" main it is slow\r");
    terminal.expect("Done.");
    terminal.expect("You: ");
    let text =
        "The prompt review of the MCP server faults:\nReview the branch main because: it is slow";
    assert_eq!(said(&server), [text]);
    // What cannot be used is not sent.
    ask(&mut terminal, "/faults:review", "the argument branch is missing:");
    ask(&mut terminal, "/faults:other", "the server has no such prompt");
    assert_eq!(server.requests().len(), 2);
    leave(&mut terminal);
}

#[test]
fn a_program_names_them_over_rpc() {
    let (home, server) = home("stateless", 2);
    let mut child = RunningChild::spawn_piped(&mut myclaw(&home, &["rpc"]));
    let mut say = |text: &str| {
        child.send(&format!("{}\n", json!({"id": text, "type": "prompt", "message": text})));
        let id = json!({"id": text}).to_string();
        let answer = child.wait_for_stdout_line(id.trim_matches(['{', '}']));
        let answer: Value = serde_json::from_str(&answer).expect("an answer");
        answer
    };
    let missing = say("/faults:review");
    assert_eq!(missing["success"], false, "{missing}");
    assert!(missing.to_string().contains("the argument branch is missing"), "{missing}");
    say("/faults:review why=speed main");
    child.wait_for_stdout("Done.");
    assert!(said(&server)[0].ends_with("Review the branch main because: speed"));
    let _ = child;
}

/// The server says so twice, to the session that has read it and to no other. Nothing but a message of the user begins a turn.
#[test]
fn a_resource_that_changes_is_told_once_and_read_again_when_it_is_named() {
    for mode in ["sessions", "stateless"] {
        let (home, server) = home_with_call(mode, "faults__edit", "Buy bread.");
        let mut terminal = chat(&home);
        ask(&mut terminal, "read @faults:notes://today", "Done.");
        assert!(said(&server)[1].contains("Buy milk."), "{mode}: {:?}", said(&server));
        ask(&mut terminal, "edit it", "Done.");
        assert_eq!(server.requests().len(), 3, "{mode}");
        let words = "changed since this session has read it: @faults:notes://today";
        ask(&mut terminal, "and now?", words);
        let heard = said(&server);
        assert_eq!(heard.len(), 2, "{mode}: {heard:?}");
        assert!(heard[1].starts_with(&format!("[{words}.")), "{mode}: {heard:?}");
        ask(&mut terminal, "and then?", "Done.");
        assert_eq!(said(&server), ["and then?"], "{mode}");
        ask(&mut terminal, "again @faults:notes://today", "Done.");
        let read = said(&server);
        assert_eq!(read.len(), 2, "{mode}: {read:?}");
        assert!(read[1].contains("Buy bread."), "{mode}: {read:?}");
        assert_eq!(server.requests().len(), 6, "{mode}");
        leave(&mut terminal);
    }
}

/// A resource that is named again in the very message needs no word, and one that cannot be read is not watched.
#[test]
fn a_changed_resource_that_the_message_names_is_read_without_a_word() {
    let (home, server) = home_with_call("stateless", "faults__edit", "Buy bread.");
    let mut terminal = chat(&home);
    ask(&mut terminal, "read @faults:notes://today, @faults:notes://none", "cannot be read");
    ask(&mut terminal, "edit it", "Done.");
    ask(&mut terminal, "again @faults:notes://today", "Done.");
    let read = said(&server);
    assert_eq!(read.len(), 2, "{read:?}");
    assert!(read[1].contains("Buy bread."), "{read:?}");
    leave(&mut terminal);
}

/// The word of a server behind an address comes on a connection of its own, at any time.
#[test]
fn a_resource_behind_an_address_that_changes_is_told() {
    for mode in ["noting", "noting_sessions"] {
        let arguments = json!({"call": "faults__edit", "arguments": {"text": "Buy bread."}});
        let call = Reply::anthropic().tool_call("call_1", "mcp__tools", arguments);
        let done = || Reply::anthropic().text("Done.");
        let replies = [done(), call].into_iter().chain((0..30).map(|_| done()));
        let server = ModelServer::spawn_blocking_thread(Script::from(replies.collect::<Vec<_>>()));
        let home = TempHome::new();
        let remote = McpHttpServer::start(&home, mode);
        let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
        config["mcp"]["servers"]["faults"] = json!({"url": format!("{}/mcp", remote.url)});
        home.write_config(&config);
        approve(&home);
        let mut terminal = chat(&home);
        ask(&mut terminal, "read @faults:notes://today", "Done.");
        ask(&mut terminal, "edit it", "Done.");
        let is_told = (0..25).any(|_| {
            ask(&mut terminal, "and now?", "Done.");
            said(&server).iter().any(|text| text.contains("@faults:notes://today"))
        });
        assert!(is_told, "{mode}: {:?}", remote.requests());
        ask(&mut terminal, "and then?", "Done.");
        assert_eq!(said(&server), ["and then?"], "{mode}");
        ask(&mut terminal, "again @faults:notes://today", "Done.");
        assert!(said(&server)[1].contains("Buy bread."), "{mode}: {:?}", said(&server));
        leave(&mut terminal);
    }
}

#[test]
fn a_program_hears_once_of_a_changed_resource_in_the_session_that_has_read_it() {
    for mode in ["sessions", "stateless"] {
        let (home, server) = home_with_call(mode, "faults__edit", "Buy bread.");
        change_config(&home, |config| {
            config["agents"]["defaults"]["sandbox"]["mode"] = json!("off")
        });
        let mut child = RunningChild::spawn_piped(&mut myclaw(&home, &["rpc"]));
        let mut turns = 0;
        let mut say = |session: &str, text: &str| {
            let line = json!({"type": "prompt", "session": session, "message": text});
            child.send(&format!("{line}\n"));
            turns += 1;
            wait_until("a turn does not end", || {
                child.wait_for_stdout("").matches("\"type\":\"run_end\"").count() == turns
            });
            said(&server)
        };
        assert!(say("one", "read @faults:notes://today")[1].contains("Buy milk."), "{mode}");
        say("two", "edit it");
        assert_eq!(say("two", "and now?"), ["and now?"], "{mode}");
        let heard = say("one", "and now?");
        let words = "[changed since this session has read it: @faults:notes://today.";
        assert!(heard.len() == 2 && heard[1].starts_with(words), "{mode}: {heard:?}");
        assert_eq!(say("one", "and then?"), ["and then?"], "{mode}");
    }
}

#[test]
fn tab_offers_what_a_server_that_runs_says_that_it_has_now() {
    for mode in ["sessions", "stateless"] {
        let (home, server) = home_with_call(mode, "faults__grow", "later");
        let mut terminal = chat(&home);
        // It runs, and has been asked for its names.
        ask(&mut terminal, "read @faults:notes://today", "Done.");
        terminal.send("read @faults:notes://to\t");
        terminal.expect("read @faults:notes://today");
        terminal.send("\r");
        terminal.expect("Done.");
        terminal.expect("You: ");
        assert!(last_message(&server).contains("grown"), "{mode}");
        terminal.send("read @faults:notes://la\t");
        terminal.expect("read @faults:notes://later");
        terminal.send("\r");
        terminal.expect("Done.");
        terminal.expect("You: ");
        terminal.send("/faults:la\t");
        terminal.expect("/faults:later");
        terminal.send(" main\r");
        terminal.expect("Done.");
        assert!(
            said(&server)[0].ends_with("Review the branch main"),
            "{mode}: {:?}",
            said(&server)
        );
        leave(&mut terminal);
    }
}
