//! What the person sees when the server of a model fails: in each front-end, for each failure.

use myclaw_testkit::Terminal;

use super::failing::{Failure, KEY, failures};
use super::*;

/// A home and a server for a failure.
fn bench(failure: &Failure) -> Bench {
    let bench = Bench::new(failure.script());
    bench.configure(|config| failure.configure(config));
    bench
}

/// Checks what the owner reads.
fn assert_is_for_owner(failure: &Failure, text: &str) {
    assert!(text.contains(failure.owner), "{}: {text}", failure.name);
    assert!(!text.contains(KEY), "{}: {text}", failure.name);
}

#[test]
fn a_run_ends_with_the_reason() {
    for failure in failures() {
        let output = bench(&failure).run(&["run", "hello"]);
        output.assert_code(4);
        assert_is_for_owner(&failure, &output.stderr());
        assert!(!output.stdout().contains(KEY), "{}", failure.name);
    }
}

#[test]
fn a_chat_in_the_terminal_shows_the_reason_and_goes_on() {
    for failure in failures() {
        let bench = bench(&failure);
        let command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
        let mut terminal = Terminal::spawn_sized(&command, 300, 24);
        terminal.expect("You: ");
        terminal.send_line("hello");
        terminal.expect("hello");
        terminal.expect(failure.owner);
        terminal.expect("You: ");
        terminal.send_line("/quit");
        terminal.wait();
        assert_is_for_owner(&failure, &terminal.text());
    }
}

#[test]
fn a_program_gets_the_class_and_the_reason() {
    for failure in failures() {
        let bench = bench(&failure);
        let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
        let input = json!({"id": 1, "type": "prompt", "message": "hello"});
        let output = RunningChild::run_with_input(command.arg("rpc"), format!("{input}\n"));
        let lines = output.stdout();
        assert_is_for_owner(&failure, &lines);
        let class = format!("\"{}\"", failure.class);
        assert!(lines.contains(&class), "{}: {class} in {lines}", failure.name);
    }
}

#[test]
fn a_chat_gets_one_sentence_without_anything_of_the_owner() {
    for failure in failures() {
        let bench = bench(&failure);
        let gateway = bench.start();
        bench.bot.write(ANN, "hello");
        let report = bench.bot.wait_for("a report", |sent| sent.last().cloned());
        assert_eq!(report.text(), failure.chat, "{}", failure.name);
        bench.bot.write(ANN, "/status");
        let status = bench.bot.wait_for_text("agent main");
        gateway.stop();
        failure.assert_is_for_others(status.text());
        assert_eq!(bench.bot.sent().len(), 2, "{}", failure.name);
    }
}

/// Calls as text, of a tool that there is and of one that there is not, with and without words before them.
const WRITTEN_CALLS: [&str; 4] = [
    "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call>",
    "I look.\n<function=launch><parameter=path>.</parameter></function>",
    "[TOOL_CALLS]launch[ARGS]{\"path\": \".\"}",
    "{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}",
];

#[test]
fn a_chat_goes_on_after_calls_as_text() {
    for call in WRITTEN_CALLS {
        let written = || Reply::anthropic().text(call);
        let script = Script::from([written(), written(), Reply::anthropic().text("All is well.")]);
        let bench = Bench::new(script);
        let gateway = bench.start();
        bench.bot.write(ANN, "hello");
        let report = bench.bot.wait_for("a report", |sent| sent.last().cloned());
        assert!(report.text().starts_with("I cannot answer"), "{call}: {}", report.text());
        bench.bot.write(ANN, "and now?");
        bench.bot.wait_for_text("All is well.");
        gateway.stop();
        let texts: Vec<_> = bench.bot.sent().iter().map(|sent| sent.text().to_owned()).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert_eq!(bench.model.requests().len(), 3, "{call}");
    }
}

#[test]
fn a_program_that_asks_the_gateway_gets_no_calls_as_text() {
    for call in WRITTEN_CALLS {
        let bench = Bench::new(Script::repeat(Reply::anthropic().text(call)));
        let gateway = bench.start();
        let messages = json!([{"role": "user", "content": "hello"}]);
        for (path, body) in [
            ("/v1/chat/completions", json!({"messages": messages})),
            ("/v1/responses", json!({"input": "hello"})),
        ] {
            let (status, answer) = gateway.client.post(path, &body).unwrap();
            assert!(status >= 500, "{path} {call}: {status} {answer}");
            assert!(answer.to_string().contains("needs a tool parser"), "{path}: {answer}");
        }
        gateway.stop();
    }
}

#[test]
fn a_job_of_a_host_ends_with_an_error() {
    // The time for a first event is five minutes for a job.
    for failure in failures().into_iter().filter(|failure| failure.class != "timeout") {
        let bench = bench(&failure);
        for directory in ["w/group", "w/global", "w/ipc/input", "h"] {
            std::fs::create_dir_all(bench.home.path().join(directory)).unwrap();
        }
        let address = match failure.server {
            failing::Server::IsAt(address) => address,
            failing::Server::Does(_) => bench.model.url(),
        };
        let job = json!({
            "group": {"name": "Family"}, "groupFolder": "family", "chatJid": "1@g.us", "isMain": false,
            "assistantName": "Andy", "prompt": "hello",
            "secrets": {
                "OPENROUTER_API_KEY": KEY, "MODEL_NAME": "test/model",
                "OPENROUTER_BASE_URL": format!("{address}/v1"),
            },
        });
        let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
        command.arg("runner").arg("--workspace").arg(bench.home.path().join("w"));
        command.arg("--home").arg(bench.home.path().join("h"));
        let output = RunningChild::run_with_input(&mut command, job.to_string());
        let blocks = output.stdout();
        eprintln!("{}: {:?}\n{blocks}\n{}", failure.name, output.code(), output.stderr());
        assert!(blocks.contains("\"status\":\"error\""), "{}: {blocks}", failure.name);
        assert!(!(blocks + &output.stderr()).contains(KEY), "{}", failure.name);
    }
}
