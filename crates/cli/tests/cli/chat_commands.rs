//! The commands of the chat, as a user types them in a terminal.

use std::fs;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use myclaw_testkit::{Reply, Script, Terminal};
use serde_json::{Value, json};

use crate::screen::{ROWS, ask, chat_at, chat_of, leave, prompt_after, raw, slow_tool};
use crate::{always, last_message, myclaw, run, serve};

#[test]
fn commands_say_what_there_is_and_send_nothing() {
    let (server, home) =
        serve(Script::repeat(Reply::anthropic().text("Take the train.").usage(20_000, 10)));
    let skill = "---\nname: trip\ndescription: Plans a trip.\n---\nPlan.\n";
    home.write_in_workspace("skills/trip/SKILL.md", skill);
    let mut terminal = chat_at(&home, 100);
    ask(&mut terminal, "How do I get to Rome?", "Take the train.");
    for (line, expected) in [
        ("/context", "answers and tool calls"),
        ("/config", "config: "),
        ("/skills", "Plans a trip."),
        ("/search trains", "nothing was found"),
        ("/thinking show", "what the model thinks is shown"),
        ("/thinking hide", "what the model thinks is hidden"),
        ("/cost", "this chat: 1 turn, 20000 tokens in, 10 out"),
        ("/title", "`main`: "),
        ("/sessions", "* main"),
        ("/copy", "is in the clipboard"),
        ("/clear", "the one before is kept as `main`"),
        ("/title", "is empty"),
    ] {
        ask(&mut terminal, line, expected);
    }
    let copied = format!("\x1b]52;c;{}", BASE64_STANDARD.encode("Take the train."));
    assert!(raw(&terminal).contains(&copied), "{}", raw(&terminal));
    assert_eq!(server.requests().len(), 1);
}

/// What is sent only in part counts as that part.
#[test]
fn the_context_is_what_is_sent() {
    let read = |file: &str| Reply::anthropic().tool_call(file, "read", json!({"path": file}));
    let (server, home) = serve([
        read("one.txt").usage(2_000, 10).step(),
        Reply::anthropic().text("One.").usage(14_000, 10).step(),
        read("two.txt").usage(14_100, 10).step(),
        Reply::anthropic().text("Two.").usage(15_000, 10).step(),
        Reply::anthropic().text("Three.").usage(15_500, 10).step(),
    ]);
    for file in ["one.txt", "two.txt"] {
        home.write_in_workspace(file, "a line of the file, which is long\n".repeat(1_200));
    }
    run(&home, &["config", "set", "agents.defaults.contextPruning", "aggressive"]).assert_code(0);
    let mut terminal = chat_at(&home, 100);
    let mut results = |message: &str, answer: &str| {
        ask(&mut terminal, message, answer);
        ask(&mut terminal, "/context", "counted by the provider");
        let screen = terminal.expect_screen(|screen| screen.ends_with("You:"));
        let line = screen.lines().rfind(|line| line.contains("tool results")).unwrap_or_default();
        let shares = screen.rsplit("/context").next().unwrap_or_default().lines();
        let shares =
            shares.filter_map(|line| line.trim_end().strip_suffix('%')?.rsplit(' ').next());
        let shares: Vec<f64> = shares.filter_map(|share| share.parse().ok()).collect();
        let (total, parts) = shares.split_last().expect("shares");
        assert!(parts.iter().sum::<f64>() <= total + 0.5, "{screen}");
        let mut tokens = line.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
        tokens.next_back().unwrap_or_else(|| panic!("{screen}"))
    };
    let one = results("first", "One.");
    let two = results("second", "Two.");
    let sizes: Vec<usize> = server.requests().iter().map(|request| request.body.len()).collect();
    assert!(
        one > 8_000 && two < one + 2_000,
        "of two results one is sent: {one}, {two}, {sizes:?}"
    );
    assert_eq!(results("third", "Three."), two, "the result of the last step with calls");
    leave(&mut terminal);
}

#[test]
fn a_command_of_ones_own_is_completed_suggested_and_sent_with_its_arguments() {
    let (server, home) = always("Read.");
    home.write_in_workspace("commands/review.md", "Review $1 for $ARGUMENTS!\n");
    let mut terminal = chat_at(&home, 100);
    ask(&mut terminal, "/reveiw", "did you mean `/review`?");
    terminal.send("/revi\t");
    terminal.expect_screen(|screen| screen.ends_with("You: /review"));
    ask(&mut terminal, " a.rs speed", "Read.");
    let said = last_message(&server);
    assert!(said.contains("Review a.rs for a.rs speed!"), "{said}");
    // In the workspace it is a file that is really there: a link could lead to what a session may not read.
    let leak = home.workspace().join("commands/leak.md");
    std::os::unix::fs::symlink("../../myclaw.json", leak).expect("a link");
    ask(&mut terminal, "/leak", "cannot be read: it is a symbolic link");
    // Without a text there is nothing to send.
    home.write_in_workspace("commands/bare.md", "---\ndescription: Nothing\n---\n\n");
    home.write_in_workspace("commands/empty.md", " \n");
    home.write_in_workspace("commands/echo.md", "$ARGUMENTS\n");
    ask(&mut terminal, "/bare", "has no text for the model");
    ask(&mut terminal, "/bare with words", "has no text for the model");
    ask(&mut terminal, "/empty", "has no text for the model");
    ask(&mut terminal, "/echo", "/echo needs arguments");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_command_in_a_subdirectory_works_and_its_front_matter_stays_here() {
    let (server, home) = always("Done.");
    let text = "---\ndescription: Commits: all\nallowed-tools: [Bash] [Read]\n---\nCommit $ARGUMENTS now.\n";
    home.write_in_workspace("commands/git/commit.md", text);
    home.write(".myclaw/commands/deep/er/plan.md", "\u{feff}---\r\nmodel: x\r\n---\r\nPlan it.");
    let mut terminal = chat_at(&home, 100);
    for (line, expected) in [
        ("/git:commit all", "Commit all now."),
        ("/git/commit all", "Commit all now."),
        ("/commit all", "Commit all now."),
        ("/deep:er:plan", "Plan it."),
    ] {
        ask(&mut terminal, line, "Done.");
        let said = last_message(&server);
        assert!(said.contains(expected), "{line}: {said}");
        assert!(!said.contains("---") && !said.contains("allowed-tools"), "{line}: {said}");
    }
    ask(&mut terminal, "/git:comit", "did you mean `/git:commit`?");
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn what_the_model_thinks_is_shown_from_the_key_on_also_while_it_works() {
    let thoughtful = |thought: &str, number: u32| {
        let id = format!("call_{number}");
        let wait = format!("until test -e go{number}; do sleep 0.02; done");
        Reply::anthropic().thinking(thought, "signature").tool_call(
            id,
            "bash",
            json!({"command": wait}),
        )
    };
    let (_server, home) = serve([
        thoughtful("A hidden thought.", 1),
        thoughtful("A shown thought.", 2),
        Reply::anthropic().thinking("Hidden again.", "signature").text("Done."),
    ]);
    let mut terminal = chat_at(&home, 100);
    terminal.send_line("think");
    terminal.expect_screen(|screen| screen.contains("bash until test -e go1"));
    terminal.send("\x14");
    terminal.expect("what the model thinks is shown");
    home.write_in_workspace("go1", "");
    terminal.expect_screen(|screen| screen.contains("bash until test -e go2"));
    terminal.send("\x14");
    terminal.expect("what the model thinks is hidden");
    home.write_in_workspace("go2", "");
    let screen = prompt_after(&mut terminal, "Done.");
    assert!(screen.contains("A shown thought."), "{screen}");
    assert!(!screen.contains("A hidden thought.") && !screen.contains("Hidden again."), "{screen}");
}

#[test]
fn at_the_prompt_the_thoughts_of_the_next_turns_are_shown_or_hidden() {
    let thoughtful =
        |number: u32| Reply::anthropic().thinking(format!("Thought {number}."), "signature");
    let (server, home) = serve([
        thoughtful(1).text("Answer 1."),
        thoughtful(2).text("Answer 2."),
        thoughtful(3).text("Answer 3."),
    ]);
    let mut terminal = chat_at(&home, 100);
    ask(&mut terminal, "one", "Answer 1.");
    ask(&mut terminal, "/thinking show", "what the model thinks is shown");
    ask(&mut terminal, "two", "Answer 2.");
    ask(&mut terminal, "/thinking hide", "what the model thinks is hidden");
    ask(&mut terminal, "three", "Answer 3.");
    let screen = terminal.expect_screen(|screen| screen.ends_with("You:"));
    let kept = |row: &&str| {
        ["You: ", "Answer", "Thought", "what the"].iter().any(|start| row.starts_with(start))
    };
    let rows: Vec<&str> = screen.lines().filter(kept).collect();
    assert_eq!(
        rows,
        [
            "You: one",
            "Answer 1.",
            "You: /thinking show",
            "what the model thinks is shown",
            "You: two",
            "Thought 2.",
            "Answer 2.",
            "You: /thinking hide",
            "what the model thinks is hidden",
            "You: three",
            "Answer 3.",
        ],
        "{screen}"
    );
    // The model gets all of its thoughts back.
    let said = server.last_request().body_text();
    assert!(said.contains("Thought 1.") && said.contains("Thought 2."), "{said}");
}

#[test]
fn ctrl_o_shows_the_outputs_while_the_agent_works() {
    let (server, home) = serve([
        Reply::anthropic().tool_call("call_1", "bash", json!({"command": "seq 1 60"})),
        slow_tool("call_2"),
        Reply::anthropic().text("Counted."),
    ]);
    let mut terminal = chat_at(&home, 80);
    terminal.send_line("count");
    terminal.expect_screen(|screen| screen.contains("bash until"));
    terminal.send("\x0f");
    let screen = terminal.expect_screen(|screen| screen.contains("Ctrl-O or q closes"));
    assert!(screen.contains("\n28\n"), "{screen}");
    home.write_in_workspace("go", "");
    server.wait_for_requests_blocking(3);
    terminal.send("q");
    let screen = prompt_after(&mut terminal, "Counted.");
    assert!(screen.contains("… 55 more lines (Ctrl-O)"), "{screen}");
}

#[test]
fn the_status_names_the_place_the_model_the_window_and_the_cost() {
    let (_server, home) =
        serve(Script::repeat(Reply::anthropic().text("Yes.").usage(30_000, 2_000)));
    home.write("src/thing/.git/HEAD", "ref: refs/heads/feature\n");
    let mut command = myclaw(&home, &["--thinking", "low"]);
    command.current_dir(home.path().join("src/thing"));
    let mut terminal = chat_of(&command, 200);
    terminal.send_line("hello");
    let screen = prompt_after(&mut terminal, "Yes.");
    let expected = "~/src/thing (feature) · anthropic/claude-sonnet-4-20250514 · thinking low · 16% of 200k · \
                    $0.1200 · $0.12 today";
    assert_eq!(screen.lines().rev().nth(1), Some(expected), "{screen}");
    assert!(raw(&terminal).contains("\x1b]0;● myclaw: thing\x07"), "the title says that it works");
    leave(&mut terminal);
    let drawn = raw(&terminal);
    let (_, after) = drawn.rsplit_once("\x1b]0;● myclaw: thing\x07").expect("a title");
    assert!(after.contains("\x1b]0;myclaw: thing\x07"), "it waits: {after:?}");
    assert!(after.contains("\x1b[23;0t"), "the terminal has its own title again: {after:?}");
}

#[test]
fn tab_completes_paths_and_a_message_may_begin_with_one() {
    let (server, home) = always("Read.");
    home.write_in_workspace("notes/plan.txt", "x");
    let mut terminal = chat_at(&home, 100);
    terminal.send("look at notes/pl\t");
    terminal.expect_screen(|screen| screen.ends_with("You: look at notes/plan.txt"));
    ask(&mut terminal, "", "Read.");
    ask(&mut terminal, "/etc/hosts: what is in it?", "Read.");
    let output = run(&home, &["run", "/etc/hosts: what else?"]);
    output.assert_code(0);
    let mut other = Terminal::spawn_sized(&myclaw(&home, &["/etc/hosts: why?"]), 100, ROWS);
    other.expect("You: /etc/hosts: why?");
    server.wait_for_requests_blocking(4);
    let said: Vec<String> = server
        .requests()
        .iter()
        .filter_map(|request| Some(request.messages().last()?["content"].to_string()))
        .collect();
    for (said, expected) in said.iter().zip(["plan.txt", "what is in", "what else", "why?"]) {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert_eq!(said.len(), 4);
}

#[test]
fn options_work_before_and_after_the_subcommand() {
    let (_server, home) = always("Yes.");
    fs::create_dir_all(home.path().join("place")).expect("a directory");
    for arguments in [
        ["-s", "one", "-C", "place", "run", "hello"],
        ["-s", "two", "run", "-C", "place", "hello"],
        ["run", "-s", "three", "-C", "place", "hello"],
        ["run", "hello", "-s", "four", "-C", "place"],
    ] {
        run(&home, &arguments).assert_code(0);
    }
    let listed = run(&home, &["sessions", "list", "--json"]).stdout();
    let mut listed: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    listed.sort_by_key(|session| session["name"].to_string());
    let names: Vec<&Value> = listed.iter().map(|session| &session["name"]).collect();
    assert_eq!(names, ["four", "one", "three", "two"]);
    assert!(
        listed
            .iter()
            .all(|session| session["directory"].as_str().is_some_and(|it| it.ends_with("/place")))
    );
}

#[test]
fn answers_are_laid_out_by_a_run_on_a_terminal_by_show_and_in_html() {
    let text = "# Plan\n\nTake the **train**.\nIt is fast.\n\n- one\n- two\n";
    let (_server, home) = serve(Script::repeat(Reply::anthropic().text(text)));
    for arguments in [&["run", "-q", "go"][..], &["sessions", "show", "main"]] {
        let mut terminal = Terminal::spawn_sized(&myclaw(&home, arguments), 80, ROWS);
        terminal.expect("• two");
        assert!(terminal.wait().success());
        let drawn = raw(&terminal);
        assert!(drawn.contains("\x1b[1mtrain\x1b[0m"), "{arguments:?}: {drawn:?}");
        let rows = drawn.replace('\r', "");
        assert!(rows.contains(".\nIt is fast.\n"), "{arguments:?}: {drawn:?}");
    }
    run(&home, &["sessions", "export", "main", "-o", "talk.html"]).assert_code(0);
    let html = fs::read_to_string(home.path().join("talk.html")).expect("a file");
    assert!(html.contains("<strong>train</strong>") && html.contains("<li>one</li>"), "{html}");
}
