//! Streams that end too early, at a dozen places. Every place is tried in-process, in the engine's tests.

use myclaw_testkit::{Reply, RunningChild, Script, TempHome, WireFormat};
use serde_json::json;

use crate::{assert_fails, assert_goes_on, config, count, home_for, myclaw, rows, run, serve};

/// How many places are tried in each format.
const CUTS: usize = 12;

/// Where the reason stands why a message stopped. With that it is whole.
fn before_the_end(body: &[u8], format: WireFormat) -> usize {
    let reason: &[u8] = match format {
        WireFormat::AnthropicMessages | WireFormat::OpenAiCompletions => b"tool_",
        WireFormat::OpenAiResponses => b"response.completed",
        WireFormat::GoogleGenerativeAi => b"finishReason",
        WireFormat::BedrockConverse => b"messageStop",
    };
    body.windows(reason.len()).rposition(|window| window == reason).expect("the stop reason")
}

#[test]
fn a_stream_that_is_cut_is_kept_as_far_as_it_came_and_runs_nothing() {
    for format in WireFormat::ALL {
        let reply = Reply::new(format).text("I will write it down.").tool_call(
            "call_1",
            "bash",
            json!({"command": "echo ran >> runs"}),
        );
        let length = before_the_end(&reply.stream_body("a-model"), format);
        for cut in (0..CUTS).map(|part| part * length / CUTS) {
            let server = serve(reply.clone().step().cut_after(cut));
            let home = home_for(&server, format);
            let output = run(&home, &["run", "hello"]);
            // The last bytes of a stream say nothing new; before them the call is not whole.
            assert_fails(&output, 4, &["127.0.0.1", "cut off", "try again"]);
            assert!(!home.workspace().join("runs").exists(), "cut at {cut}: the command ran");
            let shown = output.stdout();
            let rows = rows(&home, "main");
            let kept: String = rows[1..].iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(rows[0], ("user".to_owned(), "hello".to_owned()), "cut at {cut}");
            assert_eq!(kept, shown.trim_end_matches('\n'), "cut at {cut}: what was shown is kept");
            assert!("I will write it down.".starts_with(&kept), "cut at {cut}: {kept}");
            let request = assert_goes_on(&home, format, "main");
            assert_eq!(count(&request, "hello"), 1, "cut at {cut}");
        }
    }
}

#[test]
fn a_connection_that_is_reset_is_the_same() {
    for format in WireFormat::ALL {
        let reply = Reply::new(format).text("Some words that come.");
        let length = reply.stream_body("a-model").len();
        let server = serve(reply.step().event_by_event().reset_after(length / 2));
        let home = home_for(&server, format);
        assert_fails(&run(&home, &["run", "hello"]), 4, &["127.0.0.1"]);
        assert_goes_on(&home, format, "main");
    }
}

#[test]
fn a_stream_that_falls_silent_is_given_up() {
    for format in WireFormat::ALL {
        let reply = Reply::new(format).text("Some words that come.");
        let length = reply.stream_body("a-model").len();
        let server = serve(reply.step().stall_after(length * 2 / 3));
        let home = TempHome::new();
        let mut config = config(server.url(), format);
        config["models"]["timeouts"] = json!({"betweenEventsSeconds": 1});
        home.write_config(&config);
        let output = run(&home, &["run", "hello"]);
        assert_fails(&output, 4, &["127.0.0.1", "no event for 1 s"]);
        assert_goes_on(&home, format, "main");
    }
}

#[test]
fn an_error_event_in_the_middle_keeps_what_came() {
    for format in WireFormat::ALL {
        let reply = Reply::new(format).text("Half of").fails_with("overloaded_error", "Overloaded");
        let server = serve(reply);
        let home = home_for(&server, format);
        let output = run(&home, &["run", "hello"]);
        assert_fails(&output, 4, &["overloaded_error", "Overloaded"]);
        assert_eq!(output.stdout(), "Half of\n");
        assert_eq!(rows(&home, "main")[1].1, "Half of");
        assert_goes_on(&home, format, "main");
    }
}

#[test]
fn a_failure_is_the_last_line_of_json_too() {
    for format in WireFormat::ALL {
        let reply = Reply::new(format).text("Half of this.");
        let length = reply.stream_body("a-model").len();
        let server = serve(reply.step().cut_after(length / 2));
        let home = home_for(&server, format);
        let output = RunningChild::run(&mut myclaw(&home, &["run", "--json", "hello"]));
        output.assert_code(4);
        let stdout = output.stdout();
        let last: serde_json::Value =
            serde_json::from_str(stdout.lines().last().expect("a line")).expect("JSON");
        assert_eq!((&last["type"], &last["class"]), (&json!("error"), &json!("network")));
        let errors = stdout.lines().filter(|line| line.starts_with(r#"{"type":"error""#)).count();
        assert_eq!(errors, 1, "{stdout}");
    }
}

#[test]
fn a_cut_after_a_tool_ran_does_not_run_it_again() {
    for format in WireFormat::ALL {
        let call = Reply::new(format).tool_call(
            "call_1",
            "bash",
            json!({"command": "echo ran >> runs; cat runs"}),
        );
        let answer = Reply::new(format).text("It ran.");
        let half = answer.stream_body("a-model").len() / 2;
        let server = serve(Script::from([call.step(), answer.step().cut_after(half)]));
        let home = home_for(&server, format);
        assert_fails(&run(&home, &["run", "hello"]), 4, &["127.0.0.1"]);
        let request = assert_goes_on(&home, format, "main");
        assert_eq!(count(&request, "\"ran\""), 1, "{request:#}");
        let runs = std::fs::read_to_string(home.workspace().join("runs")).expect("runs");
        assert_eq!(runs, "ran\n");
    }
}
