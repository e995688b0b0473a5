//! Commands that ask the agent for something in words of the program, and what the session changed.

use myclaw_testkit::Reply;
use serde_json::json;

use crate::approvals::home_asking;
use crate::rpc::Client;
use crate::screen::{ask, chat, leave, prompt_after};
use crate::{run, serve};

#[test]
fn init_and_review_are_messages_in_the_chat_and_over_rpc_and_a_file_of_the_user_comes_first() {
    let (server, home) = serve([
        Reply::anthropic().text("Made."),
        Reply::anthropic().text("Nothing found."),
        Reply::anthropic().text("Own."),
        Reply::anthropic().text("Nothing found."),
    ]);
    let last = || json!(server.last_request().messages().last()).to_string();
    let mut terminal = chat(&home);
    terminal.send_line("/init keep it short");
    prompt_after(&mut terminal, "Made.");
    assert!(last().contains("Write the file AGENTS.md") && last().contains("keep it short"));
    terminal.send_line("/review the branch parser");
    prompt_after(&mut terminal, "Nothing found.");
    let said = last();
    assert!(said.contains("What to review: the branch parser") && !said.contains("$ARGUMENTS"));
    let own = home.state_directory().join("commands");
    std::fs::create_dir_all(&own).expect("made");
    std::fs::write(own.join("review.md"), "My own words.").expect("written");
    terminal.send_line("/review");
    prompt_after(&mut terminal, "Own.");
    assert!(last().contains("My own words."));
    leave(&mut terminal);
    let mut client = Client::start(&home);
    let known = client.ask(json!({"type": "get_commands"}), 1);
    assert!(known["data"]["custom"].to_string().contains("/init"), "{known}");
    client.ask(json!({"type": "prompt", "message": "/review 17"}), 2);
    client.wait_for("Nothing found.");
    client.finish();
    assert!(last().contains("What to review: 17"));
}

#[test]
fn the_difference_of_a_session_is_that_to_its_first_change() {
    let edit = json!({"path": "notes.txt", "oldText": "old", "newText": "new"});
    let (home, _server) = home_asking(&json!({}), "edit", edit);
    let file = home.write_in_workspace("notes.txt", "one\nold\nthree\n");
    let mut terminal = chat(&home);
    ask(&mut terminal, "/diff", "nothing is different now");
    terminal.send_line("go");
    terminal.expect("Done.");
    // The words of a person count as well: it is what differs now.
    std::fs::write(&file, "one\nnew\nthree\nfour\n").expect("written");
    terminal.send_line("/diff");
    let screen = terminal.expect_screen(|screen| screen.contains("+four"));
    assert!(screen.contains("-old") && screen.contains("+new"), "{screen}");
    ask(&mut terminal, "/undo", "notes.txt");
    leave(&mut terminal);
    let mut client = Client::start(&home);
    let changes = client.ask(json!({"type": "get_changes"}), 1);
    assert_eq!(changes["data"]["files"][0]["path"], "notes.txt", "{changes}");
    client.finish();
}

#[test]
fn open_questions_are_listed_with_their_sessions() {
    let tools = json!({"exec": {"ask": "always"}});
    let (home, _server) = home_asking(&tools, "bash", json!({"command": "echo the-command"}));
    let mut terminal = chat(&home);
    ask(&mut terminal, "/questions", "no question waits");
    terminal.send_line("go");
    terminal.expect("your answer, and Enter");
    terminal.send_line("/questions");
    let screen = terminal.expect_screen(|screen| screen.matches("echo the-command").count() > 1);
    assert!(screen.contains("* main  "), "{screen}");
    terminal.send_line("n");
    terminal.expect("Done.");
    // Ctrl-D before the end of the turn does not leave.
    terminal.expect("You: ");
    leave(&mut terminal);
    run(&home, &["approvals", "list"]).assert_code(0);
}
