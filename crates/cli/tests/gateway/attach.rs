//! `myclaw attach` in a terminal of its own.

use std::path::Path;

use myclaw_testkit::Terminal;

use super::*;

impl Bench {
    pub(super) fn attach(&self, arguments: &[&str]) -> Terminal {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        let mut terminal = Terminal::spawn(command.arg("attach").args(arguments));
        terminal.expect("You: ");
        terminal
    }

    /// Attaches in vain; gives the code and what was said.
    fn attach_in_vain(&self, arguments: &[&str]) -> (i32, String) {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        let mut terminal = Terminal::spawn(command.arg("attach").args(arguments));
        let code = terminal.wait().code().unwrap();
        // Messages are broken at the width of the terminal.
        (code, terminal.text().split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// Waits for what a model says, which may be drawn in parts, and for the prompt after it.
pub(super) fn expect_answer(terminal: &mut Terminal, said: &[&str]) {
    let is_said = |screen: &str| said.iter().all(|text| screen.contains(text));
    terminal.expect_screen(|screen| is_said(screen) && screen.trim_end().ends_with("You:"));
}

fn leave(mut terminal: Terminal) {
    terminal.send_line("/quit");
    assert!(terminal.wait().success(), "{}", terminal.text());
}

#[test]
fn a_session_is_shown_as_in_the_chat_whoever_talks() {
    let bench = Bench::new(shared(|request, _| {
        let messages = json!(request.messages()).to_string();
        let last = json!(request.messages().last()).to_string();
        if last.contains("hello") && !messages.contains("tool_result") {
            let call = json!({"command": "echo x"});
            return Reply::anthropic()
                .text("I will **look**.")
                .tool_call("c1", "bash", call)
                .step();
        }
        let text = if last.contains("tool_result") {
            "# Done\n\n- one\n".to_owned()
        } else {
            format!("re: {}", marks(request).join(" "))
        };
        Reply::anthropic().text(text).step()
    }));
    let gateway = bench.start();
    let message = gateway.client.send("main", "first", "<m1>").unwrap();
    gateway.client.outcome(&message).unwrap();
    let mut terminal =
        Terminal::spawn(bench.home.command(env!("CARGO_BIN_EXE_myclaw")).arg("attach"));
    terminal.expect("the gateway of this machine, session `main`");
    // What was said before.
    terminal.expect("> <m1>");
    terminal.expect("re: <m1>");
    terminal.expect("You: ");
    terminal.send_line("hello");
    expect_answer(&mut terminal, &["I will look.", "✓ bash echo x", "# Done", "• one"]);
    // Another client of the same session.
    gateway.client.send("main", "other", "<m2> from elsewhere").unwrap();
    terminal.expect("> <m2> from elsewhere");
    expect_answer(&mut terminal, &["re: <m2>"]);
    terminal.send_line("/sessions");
    terminal.expect("* main");
    terminal.expect("You: ");
    terminal.send_line("/new second");
    terminal.expect("session `second`");
    terminal.expect("You: ");
    terminal.send_line("<m3>");
    expect_answer(&mut terminal, &["re: <m3>"]);
    assert_eq!(bench.said("second"), ["<m3>", "re: <m3>"]);
    leave(terminal);
    gateway.stop();
}

#[test]
fn questions_are_answered_and_turns_stopped() {
    let bench = Bench::new(shared(|request, number| {
        let last = json!(request.messages().last()).to_string();
        if last.contains("tool_result") {
            return Reply::anthropic().text("written").step();
        }
        let name = format!("call_{number}");
        if last.contains("sleep") {
            return Reply::anthropic()
                .tool_call(name, "bash", json!({"command": "sleep 600"}))
                .step();
        }
        let arguments = json!({"path": "notes.md", "content": "hello\n"});
        Reply::anthropic().tool_call(name, "write", arguments).step()
    }));
    bench.configure(|config| config["tools"] = json!({"ask": ["write"]}));
    let gateway = bench.start();
    let mut terminal = bench.attach(&[]);
    terminal.send_line("write");
    terminal.expect("/workspace/notes.md");
    terminal.expect("+hello");
    terminal.expect("always in this (d)irectory");
    // All of it, page by page.
    for page in ["v\r", "\u{f}"] {
        terminal.send(page);
        terminal.expect_screen(|screen| {
            screen.contains("write wants to run:") && screen.contains("Ctrl-O or q closes")
        });
        terminal.send("q");
        terminal.expect_screen(|screen| !screen.contains("Ctrl-O or q closes"));
    }
    terminal.send_line("o");
    terminal.expect("approved: once");
    terminal.expect("written");
    terminal.expect("You: ");
    assert_eq!(
        std::fs::read_to_string(bench.home.workspace().join("notes.md")).unwrap(),
        "hello\n"
    );
    for (session, stop) in [("one", "\x03"), ("two", "\x1b")] {
        terminal.send_line(&format!("/new {session}"));
        terminal.expect("You: ");
        terminal.send_line("sleep");
        // The time behind it depends on the machine.
        terminal.expect("bash sleep 600  ");
        terminal.send(stop);
        terminal.expect("stopping");
        terminal.expect("aborted");
        terminal.expect("You: ");
    }
    leave(terminal);
    gateway.stop();
}

#[test]
fn a_restart_of_the_gateway_loses_nothing_and_doubles_nothing() {
    // The gateway is killed before it has an answer.
    let bench = Bench::new(echoing_after(&Gate::closed()));
    let gateway = bench.start();
    let mut terminal = bench.attach(&[]);
    terminal.send_line("<m1>");
    bench.model.wait_for_requests_blocking(1);
    gateway.kill();
    terminal.expect("the connection to the gateway is lost; trying again");
    terminal.expect("You: ");
    terminal.send_line("<m2>");
    terminal.expect("it is sent when the gateway is back");
    terminal.expect("You: ");
    terminal.send_line("/queue");
    terminal.expect("not sent yet  <m2>");
    terminal.expect("You: ");
    let gateway = bench.start();
    terminal.expect("the gateway is back");
    expect_answer(&mut terminal, &["re: <m1>", "re: <m2>"]);
    terminal.send_line("<m3>");
    expect_answer(&mut terminal, &["re: <m3>"]);
    let said = bench.said("main");
    for mark in ["<m1>", "<m2>", "<m3>"] {
        let asked = said.iter().filter(|text| text.contains(mark) && !text.starts_with("re: "));
        assert_eq!(asked.count(), 1, "{mark}: {said:?}");
        assert!(
            said.iter().any(|text| text.starts_with("re: ") && text.contains(mark)),
            "{said:?}"
        );
    }
    leave(terminal);
    gateway.stop();
}

#[test]
fn what_cannot_be_attached_to_is_named() {
    let bench = Bench::new(answering("never"));
    let file = |name: &str, text: &str| bench.home.write(name, text).display().to_string();
    let wrong = file("wrong", "a-token-that-nobody-has\n");
    let plain = format!("ws://127.0.0.1:{}", bench.port);
    let (code, said) = bench.attach_in_vain(&[]);
    assert_eq!(
        (code, said.contains("no gateway runs; start one with `myclaw gateway`")),
        (1, true),
        "{said}"
    );
    let (code, said) = bench.attach_in_vain(&["--url", &plain, "--token-file", &wrong]);
    assert_eq!((code, said.contains("cannot be reached")), (1, true), "{said}");
    for (arguments, words) in [
        (&["--url", "ws://claw.example.org", "--token-file", &wrong][..], "would show the token"),
        (&["--url", "wss://h/?token=x", "--token-file", &wrong], "does not belong into an address"),
        (&["--url", "wss://x:y@h", "--token-file", &wrong], "does not belong into an address"),
        (&["--url", "claw", "--token-file", &wrong], "is such as wss://"),
        (&["--url", &plain], "--token-file FILE, or the variable MYCLAW_GATEWAY_TOKEN"),
        (&["--url", &plain, "--token-file", "/nowhere"], "/nowhere cannot be read"),
        (&["--token-file", &wrong], "--url"),
    ] {
        let (code, said) = bench.attach_in_vain(arguments);
        assert_eq!((code, said.contains(words)), (2, true), "{arguments:?}: {said}");
    }
    let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    let piped = RunningChild::run(command.arg("attach"));
    piped.assert_code(2);
    assert!(piped.stderr().contains("attach needs a terminal"), "{}", piped.stderr());
    let gateway = bench.start();
    let (code, said) = bench.attach_in_vain(&["--url", &plain, "--token-file", &wrong]);
    assert_eq!((code, said.contains("does not accept the token")), (1, true), "{said}");
    assert!(!said.contains("a-token-that-nobody-has"), "{said}");
    gateway.stop();
}

#[test]
fn a_gateway_elsewhere_is_recognised_by_its_certificate() {
    if !super::tls::are_installed() {
        return;
    }
    let bench = Bench::new(echoing());
    bench.make_certificate("own");
    bench.make_certificate("other");
    bench.configure_tls("own.pem", "own.key");
    let gateway = bench.start_tls();
    let (token, url) = (bench.token_path(), format!("wss://localhost:{}", bench.port));
    let path = |path: &Path| path.display().to_string();
    let (token, own, other) =
        (path(&token), path(&bench.file("own.pem")), path(&bench.file("other.pem")));
    let mut terminal = bench.attach(&["--url", &url, "--token-file", &token, "--ca", &own]);
    terminal.send_line("<m1>");
    expect_answer(&mut terminal, &["re: <m1>"]);
    leave(terminal);
    // The one of this machine needs nothing.
    leave(bench.attach(&[]));
    for arguments in [&["--ca", &other][..], &[]] {
        let all = [&["--url", &url, "--token-file", &token][..], arguments].concat();
        let (code, said) = bench.attach_in_vain(&all);
        assert_eq!((code, said.contains("there is no encrypted connection")), (1, true), "{said}");
    }
    let plain = format!("ws://localhost:{}", bench.port);
    let (code, said) = bench.attach_in_vain(&["--url", &plain, "--token-file", &token]);
    assert_eq!((code, said.contains("this gateway speaks HTTPS only")), (1, true), "{said}");
    gateway.stop();
}

/// As in the chat, lines end between words: in the first line, in what was said before, and in answers.
#[test]
fn lines_end_between_words() {
    let words: Vec<String> = (0..60).map(|at| format!("w{at:02}{}", "y".repeat(at % 11))).collect();
    let said = words.join(" ");
    let reply = Reply::anthropic().text(format!("{said} end")).in_deltas(50);
    let bench = Bench::new(Script::repeat(reply));
    let gateway = bench.start();
    for columns in [31, 44, 80] {
        let session = format!("at{columns}");
        let first = gateway.client.send(&session, &session, &said).unwrap();
        gateway.client.outcome(&first).unwrap();
        let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
        let mut terminal =
            Terminal::spawn_sized(command.args(["attach", "-s", &session]), columns, 120);
        for ends in [1, 2] {
            let screen = terminal.expect_screen(|screen| {
                let are_there = screen.split_whitespace().filter(|word| *word == "end").count();
                are_there == ends && screen.trim_end().ends_with("You:")
            });
            // Of a long message from before, the beginning is shown.
            let known = ["myclaw", env!("CARGO_PKG_VERSION"), ">", "…", "end", "You:", "hello"];
            let known = known
                .into_iter()
                .chain("the gateway of this machine, session /help for help".split(' '));
            let known: Vec<&str> = known.chain(words.iter().map(String::as_str)).collect();
            let is_known = |word: &&str| known.contains(word) || word.starts_with("`at");
            let broken = screen.split_whitespace().find(|word| !is_known(word));
            assert_eq!(broken, None, "at {columns}: {screen}");
            if ends == 1 {
                terminal.send_line("hello");
            }
        }
        leave(terminal);
    }
    gateway.stop();
}

#[test]
fn the_permission_mode_is_changed_for_everybody_and_outlives_the_gateway() {
    let bench = Bench::new(shared(|request, number| {
        let last = json!(request.messages().last()).to_string();
        if last.contains("tool_result") {
            return Reply::anthropic().text("Done.").step();
        }
        let arguments = json!({"path": "notes.md", "content": "hello\n"});
        Reply::anthropic().tool_call(format!("call_{number}"), "write", arguments).step()
    }));
    let gateway = bench.start();
    let mut terminal = bench.attach(&[]);
    terminal.send_line("/mode plann");
    terminal.expect("there is no mode `plann`");
    terminal.expect("You: ");
    // From auto to sandbox, and on to read-only.
    terminal.send("\x1b[Z");
    terminal.expect("mode sandbox: ");
    terminal.send("\x1b[Z");
    terminal.expect("mode read-only: ");
    let mut other = bench.attach(&[]);
    other.expect_screen(|screen| screen.contains("mode read-only: "));
    terminal.send_line("go");
    expect_answer(&mut terminal, &["Done."]);
    let notes = bench.home.workspace().join("notes.md");
    assert!(!notes.exists());
    other.send_line("/mode auto");
    terminal.expect("mode auto: ");
    other.send_line("/mode read-only");
    terminal.expect("mode read-only: ");
    leave(other);
    gateway.kill();
    let gateway = bench.start();
    terminal.expect("the gateway is back");
    terminal.send_line("go");
    terminal.expect("Done.");
    assert!(!notes.exists());
    leave(terminal);
    gateway.stop();
}

#[test]
fn attach_has_the_commands_of_the_chat_and_the_gateway_obeys_them() {
    let bench = Bench::new(shared(|request, _| {
        let last = json!(request.messages().last()).to_string();
        if last.contains("write it") && !last.contains("tool_result") {
            let arguments = json!({"path": "made.txt", "content": "made\n"});
            return Reply::anthropic().tool_call("c1", "write", arguments).step();
        }
        if last.contains("plan it") && !last.contains("tool_result") {
            let steps = json!({"steps": [{"text": "Look at it", "status": "in_progress"}]});
            return Reply::anthropic().tool_call("c2", "update_plan", steps).step();
        }
        Reply::anthropic().text("Done.").step()
    }));
    bench.unconfined(|_| {});
    let gateway = bench.start();
    let mut terminal = bench.attach(&[]);
    for (line, said) in [
        ("/todos", "the agent has made no plan here"),
        ("/model", "answers; /model PROVIDER/MODEL changes it"),
        ("/model nope/none", "nope"),
        ("/thinking", "the thinking level is"),
        ("/diff", "nothing is different now"),
        ("/agents", "no agents yet"),
        ("/title", "/title needs a text"),
        ("/undo", "undo"),
    ] {
        terminal.send_line(line);
        expect_answer(&mut terminal, &[said]);
    }
    terminal.send_line("write it");
    expect_answer(&mut terminal, &["Done."]);
    terminal.send_line("/diff");
    expect_answer(&mut terminal, &["+made"]);
    terminal.send_line("/undo");
    expect_answer(&mut terminal, &["removed     made.txt"]);
    terminal.send_line("/redo");
    expect_answer(&mut terminal, &["restored    made.txt"]);
    terminal.send_line("/rewind");
    expect_answer(&mut terminal, &["write it", "/rewind NUMBER goes back"]);
    terminal.send_line("/rewind 9");
    expect_answer(&mut terminal, &["`9` is none of the 1 messages"]);
    terminal.send_line("plan it");
    expect_answer(&mut terminal, &["Look at it"]);
    terminal.send_line("/todos");
    expect_answer(&mut terminal, &["[>] Look at it"]);
    for (line, said) in [
        ("/title A trip", "the title is: A trip"),
        ("/usage", "session `main`"),
        ("/context", "tool results"),
        // The model answers the request for a summary with a call.
        ("/compact", "the model gave an empty summary"),
    ] {
        terminal.send_line(line);
        expect_answer(&mut terminal, &[said]);
    }
    // Before the second message the file was there, before the first one it was not.
    let made = bench.home.workspace().join("made.txt");
    assert!(made.exists());
    terminal.send_line("/rewind 2");
    terminal.expect_screen(|screen| {
        screen.contains("`main` stays as it is") && screen.trim_end().ends_with("You: write it")
    });
    assert!(!made.exists());
    // What is typed is changed and sent in the new session.
    terminal.send_line(" not");
    terminal.expect_screen(|screen| screen.trim_end().ends_with("You:"));
    assert_eq!(bench.said("main").first().map(String::as_str), Some("write it"));
    leave(terminal);
    gateway.stop();
}

#[test]
fn commands_are_answered_while_the_agent_works() {
    let gate = Gate::closed();
    let bench = Bench::new(echoing_after(&gate));
    let gateway = bench.start();
    let mut terminal = bench.attach(&[]);
    terminal.send_line("<m1>");
    bench.model.wait_for_requests_blocking(1);
    terminal.send_line("/todos");
    terminal.expect("the agent has made no plan here");
    for work in ["/compact", "/undo"] {
        terminal.send_line(work);
        terminal.expect("is busy; wait until it is idle");
    }
    // A question aside is answered, and is no message of the session.
    terminal.send_line("/btw <m2>?");
    terminal.expect("aside: <m2>?");
    terminal.expect("re: ");
    gate.open();
    expect_answer(&mut terminal, &["re: <m1>"]);
    assert!(!json!(bench.rows("main")).to_string().contains("<m2>"));
    // What was chosen is kept with the session.
    terminal.send_line("/thinking low");
    terminal.expect_screen(|screen| screen.matches("low").count() > 1);
    leave(terminal);
    gateway.stop();
    let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    let listed = RunningChild::run(command.args(["sessions", "list", "--json"])).stdout();
    assert!(listed.contains("\"chosenThinking\":\"low\""), "{listed}");
}

#[test]
fn a_session_of_the_gateway_is_stopped_by_another_program_and_one_attaches_from_the_list() {
    let gate = Gate::closed();
    let bench = Bench::new(echoing_after(&gate));
    let gateway = bench.start();
    let sent = gateway.client.send("main", "one", "<m1>").unwrap();
    bench.model.wait_for_requests_blocking(1);
    let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    let mut list = Terminal::spawn(command.args(["sessions", "watch"]));
    list.expect_screen(|screen| screen.contains("› main"));
    list.send("a");
    list.expect("the gateway of this machine, session `main`");
    list.send_line("/quit");
    assert!(list.wait().success(), "{}", list.text());
    let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    RunningChild::run(command.args(["sessions", "stop", "main"])).assert_code(0);
    let report = gateway.client.outcome(&sent).unwrap();
    assert_eq!((&report["state"], &report["class"]), (&json!("reported"), &json!("aborted")));
    // The next message has its answer.
    let next = gateway.client.send("main", "two", "<m2>").unwrap();
    gateway.client.outcome(&next).unwrap();
    gate.open();
    gateway.stop();
}

#[test]
fn attach_works_on_a_goal_with_which_the_gateway_goes_on_by_itself_and_changes_the_theme() {
    let bench = Bench::new(shared(|request, _| {
        let all = json!(request.messages()).to_string();
        let turns = all.matches("Work until this").count() + all.matches("not reached yet").count();
        let text = if turns % 3 == 0 { "All there.\nGOAL REACHED" } else { "One more." };
        Reply::anthropic().text(text).step()
    }));
    bench.unconfined(|_| {});
    let gateway = bench.start();
    let mut terminal = bench.attach(&[]);
    terminal.send_line("/goal");
    terminal.expect("there is no goal; /goal CONDITION");
    terminal.send_line("/goal !");
    terminal.expect("needs a condition");
    terminal.send_line("/goal three lines");
    terminal.expect("works until this holds: three lines");
    terminal.expect("the goal is not reached yet, 18 turns left");
    terminal.expect("the goal is reached: three lines");
    terminal.expect("You: ");
    terminal.send_line("/goal");
    terminal.expect("there is no goal");
    // Nobody is attached, and it goes on until its turns are used up.
    terminal.send_line("/goal !false");
    terminal.expect("19 turns left");
    terminal.send_line("/quit");
    terminal.wait();
    // Three turns of the first goal, and all twenty of this one.
    bench.model.wait_for_requests_blocking(23);
    let mut terminal = bench.attach(&[]);
    let is_paused = |screen: &str| screen.contains("false (paused");
    for _ in 0..20 {
        terminal.send_line("/goal");
        std::thread::sleep(Duration::from_millis(500));
        if is_paused(&terminal.text()) {
            break;
        }
    }
    assert!(is_paused(&terminal.text()), "{}", terminal.text());
    terminal.send_line("/theme plain");
    terminal.expect("theme: plain, for the next chats too");
    terminal.send_line("/theme blue");
    terminal.expect("there is no theme `blue`");
    leave(terminal);
    let config = std::fs::read_to_string(bench.home.config_path()).unwrap();
    assert!(config.contains("plain"), "{config}");
    gateway.stop();
}
