//! `myclaw sessions watch`, `answer` and `stop`: sessions of other programs on the same state directory.

use myclaw_testkit::{
    ModelServer, Reply, RunningChild, Script, Signal, TempHome, Terminal, WireFormat,
};
use serde_json::{Value, json};

use crate::screen::{chat_of, leave, slow_tool};
use crate::{always, myclaw, run};

/// `write it` is asked about; `slow` runs a command until the workspace has a file `go`.
fn home_of_two() -> (TempHome, ModelServer) {
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(|request, number| {
        let last = json!(request.messages().last()).to_string();
        if last.contains("tool_result") {
            return Reply::anthropic().text("Done.").step();
        }
        if last.contains("slow") {
            return slow_tool(&format!("call_{number}")).step();
        }
        let arguments = json!({"path": "notes.txt", "content": "hello"});
        Reply::anthropic().tool_call(format!("call_{number}"), "write", arguments).step()
    }));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["tools"] = json!({"ask": ["write"]});
    home.write_config(&config);
    (home, server)
}

/// A chat in the session `asks`, which has asked.
fn asking(home: &TempHome) -> Terminal {
    let mut terminal = chat_of(&myclaw(home, &["chat", "--session", "asks"]), 100);
    terminal.send_line("write it");
    terminal.expect("or (n)o?");
    terminal
}

fn working(home: &TempHome) -> RunningChild {
    RunningChild::spawn(&mut myclaw(home, &["run", "--session", "works", "slow"]))
}

/// The line of a watch for programs about this session in which the text is.
fn line_of(watch: &RunningChild, name: &str, text: &str) -> Value {
    let wanted = format!("\"name\":\"{name}\"");
    for _ in 0..3_000 {
        let all = watch.wait_for_stdout(text);
        let whole = all.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let found = whole.filter(|line| line.contains(&wanted)).find(|line| line.contains(text));
        if let Some(line) = found {
            return serde_json::from_str(line).expect("JSON");
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{name} {text}: {}", watch.wait_for_stdout(text))
}

fn said(home: &TempHome, arguments: &[&str]) -> (i32, String) {
    let output = run(home, arguments);
    (output.code().expect("a code"), format!("{}{}", output.stdout(), output.stderr()))
}

#[test]
fn sessions_of_other_programs_are_watched_answered_and_stopped() {
    let (home, server) = home_of_two();
    let mut chat = asking(&home);
    let works = working(&home);
    let watch = RunningChild::spawn(&mut myclaw(&home, &["sessions", "watch", "--json"]));
    let asks = line_of(&watch, "asks", "\"state\":\"asking\"");
    assert_eq!(asks["questions"][0]["tool"], "write", "{asks}");
    assert_eq!(asks["doing"]["calls"][0]["arguments"]["path"], "notes.txt", "{asks}");
    let slow = line_of(&watch, "works", "until test -e go");
    assert_eq!((&slow["state"], &slow["doing"]["what"]), (&json!("working"), &json!("tools")));
    assert!(slow["microDollars"].as_u64().is_some_and(|cost| cost > 0), "{slow}");
    assert!(slow["since"].as_u64().is_some_and(|since| since > 0), "{slow}");
    let (code, list) = said(&home, &["sessions", "watch", "--once"]);
    assert!(
        code == 0 && list.contains("asks: write") && list.contains("bash until test"),
        "{list}"
    );
    // What is no answer leaves the question open.
    let (code, refused) = said(&home, &["sessions", "answer", "asks", "perhaps"]);
    assert!(code == 2 && refused.contains("did not take the answer `perhaps`"), "{refused}");
    let (code, answered) = said(&home, &["sessions", "answer", "asks", "no,", "use", "other.txt"]);
    assert!(code == 0 && answered.contains("answered `asks`: write"), "{answered}");
    chat.expect("Done.");
    chat.expect_screen(|screen| screen.ends_with("You:"));
    line_of(&watch, "asks", "\"state\":\"ended\"");
    let last = json!(server.last_request().messages().last()).to_string();
    assert!(last.contains("the user said no: use other.txt"), "{last}");
    assert!(!home.workspace().join("notes.txt").exists());
    let (code, stopped) = said(&home, &["sessions", "stop", "works"]);
    assert!(code == 0 && stopped.contains("`works` is stopped"), "{stopped}");
    let stopped = works.wait(std::time::Duration::from_secs(60));
    assert_eq!(stopped.code(), Some(130), "{}", stopped.stderr());
    let ended = line_of(&watch, "works", "\"state\":\"ended\"");
    assert_eq!(ended["session"], slow["session"]);
    // The stop was for that turn, and the session goes on.
    home.write_in_workspace("go", "");
    run(&home, &["run", "--session", "works", "slow"]).assert_code(0);
    watch.signal(Signal::Kill);
    leave(&mut chat);
}

#[test]
fn keys_answer_and_stop_in_the_list_of_a_terminal() {
    let (home, _server) = home_of_two();
    let mut chat = asking(&home);
    let works = working(&home);
    let mut list = Terminal::spawn(&myclaw(&home, &["sessions", "watch"]));
    list.expect_screen(|screen| {
        screen.contains("Sessions that work (2)")
            && screen.contains("asks: write")
            && screen.contains("bash until test")
    });
    // The latest is marked first; the other one asks.
    let at = |screen: &str, name: &str| {
        screen.lines().any(|line| line.starts_with(&format!("› {name}")))
    };
    if !at(&list.expect_screen(|_| true), "asks") {
        list.send("j");
        list.expect_screen(|screen| at(screen, "asks"));
    }
    list.send("a");
    list.expect_screen(|screen| screen.contains("nobody can attach"));
    list.send("y");
    chat.expect("Done.");
    list.expect_screen(|screen| screen.contains("Sessions that work (1)") && at(screen, "works"));
    assert_eq!(std::fs::read_to_string(home.workspace().join("notes.txt")).unwrap(), "hello");
    list.send("n");
    list.expect_screen(|screen| screen.contains("it asks nothing"));
    list.send("s");
    list.expect_screen(|screen| screen.contains("nothing works at this moment"));
    assert_eq!(works.wait(std::time::Duration::from_secs(60)).code(), Some(130));
    // What is typed to a question that is answered elsewhere goes nowhere.
    chat.send_line("write it");
    list.expect_screen(|screen| screen.contains("asks: write"));
    list.send("\r");
    list.send("no, bec");
    list.expect_screen(|screen| screen.contains("): no, bec"));
    let (code, answered) = said(&home, &["sessions", "answer", "asks", "no"]);
    assert_eq!(code, 0, "{answered}");
    list.expect_screen(|screen| {
        screen.contains("answered already; nothing was sent")
            && screen.contains("Sessions that work (0)")
    });
    chat.expect_screen(|screen| screen.ends_with("You:"));
    // An answer in words.
    chat.send_line("write it");
    list.expect_screen(|screen| screen.contains("asks: write"));
    list.send("\r");
    list.send("no, not now\r");
    list.expect_screen(|screen| screen.contains("answered no, not now"));
    list.expect_screen(|screen| screen.contains("Sessions that work (0)"));
    chat.expect_screen(|screen| screen.ends_with("You:"));
    list.send("q");
    assert!(list.wait().success(), "{}", list.text());
    leave(&mut chat);
}

#[test]
fn what_does_not_work_cannot_be_stopped_or_answered() {
    let (server, home) = always("Hello.");
    let (code, list) = said(&home, &["sessions", "watch", "--once"]);
    assert!(code == 0 && list.contains("nothing works at this moment"), "{list}");
    assert_eq!(said(&home, &["sessions", "watch", "--once", "--json"]), (0, String::new()));
    run(&home, &["run", "hi"]).assert_code(0);
    drop(server);
    for (arguments, code, words) in [
        (&["stop", "main"][..], 2, "`main` does nothing at this moment"),
        (&["answer", "main", "yes"], 2, "`main` does nothing at this moment"),
        (&["stop", "nowhere"], 1, "there is no session `nowhere`"),
        (&["answer", "nowhere", "yes"], 1, "there is no session `nowhere`"),
        (&["answer", "main"], 2, "ANSWER"),
        (&["stop"], 2, "NAME"),
    ] {
        let all = [&["sessions"][..], arguments].concat();
        let (found, text) = said(&home, &all);
        assert!(text.contains(words), "{all:?}: {text}");
        assert_eq!(found, code, "{all:?}: {text}");
    }
}

#[test]
fn a_turn_whose_program_was_killed_is_not_on_the_list() {
    let (home, _server) = home_of_two();
    let works = working(&home);
    let watch = RunningChild::spawn(&mut myclaw(&home, &["sessions", "watch"]));
    watch.wait_for_stdout("until test -e go");
    let (code, quiet) = said(&home, &["sessions", "answer", "works", "yes"]);
    assert!(code == 2 && quiet.contains("`works` asks nothing at this moment"), "{quiet}");
    works.signal(Signal::Kill);
    watch.wait_for_stdout("works  ended");
    assert_eq!(said(&home, &["sessions", "watch", "--once", "--json"]), (0, String::new()));
    watch.signal(Signal::Kill);
    home.write_in_workspace("go", "");
}

/// The marks of turns in the state directory.
fn marks(home: &TempHome) -> Vec<std::path::PathBuf> {
    let listing = std::fs::read_dir(home.state_directory().join("turns")).expect("the marks");
    listing.filter_map(Result::ok).map(|found| found.path()).collect()
}

#[test]
fn a_look_at_what_works_touches_no_other_session() {
    let (home, _server) = home_of_two();
    home.write_in_workspace("go", "");
    run(&home, &["run", "--session", "idle", "slow"]).assert_code(0);
    std::fs::remove_file(home.workspace().join("go")).expect("a file");
    // Whoever looks at this session fails.
    std::fs::create_dir(home.transcript_path("idle").with_extension("lock")).expect("a file");
    let works = working(&home);
    let watch = RunningChild::spawn(&mut myclaw(&home, &["sessions", "watch", "--json"]));
    line_of(&watch, "works", "until test -e go");
    watch.signal(Signal::Kill);
    let (code, list) = said(&home, &["sessions", "watch", "--once"]);
    assert!(code == 0 && list.contains("bash until test") && !list.contains("idle"), "{list}");
    // A killed process works at nothing, and what it leaves is removed when nobody can be about to use it.
    works.signal(Signal::Kill);
    works.wait(std::time::Duration::from_secs(60));
    let (code, list) = said(&home, &["sessions", "watch", "--once"]);
    assert!(code == 0 && list.contains("nothing works at this moment"), "{list}");
    let left = marks(&home);
    assert_eq!(left.len(), 1, "{left:?}");
    let hour = std::time::Duration::from_secs(3_600);
    let mark = std::fs::File::options().write(true).open(&left[0]).expect("a file");
    mark.set_modified(std::time::SystemTime::now() - hour).expect("a file");
    said(&home, &["sessions", "watch", "--once"]);
    assert_eq!(marks(&home), [""; 0].map(std::path::PathBuf::from));
    home.write_in_workspace("go", "");
}
