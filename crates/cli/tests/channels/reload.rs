//! Channels that the config gains, changes and loses while the gateway runs.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use super::programs::{Receiver, post, socket_path, with_programs};
use super::*;

const RELOADED: &str = "the config was reloaded";

/// The states of the channels, by name.
fn states(gateway: &Gateway, wanted: &[(&str, &str)]) {
    let wanted: Vec<(&str, &str)> = wanted.to_vec();
    gateway.channels(|state| {
        let list = state["channels"].as_array().unwrap();
        let text = |channel: &Value, key: &str| channel[key].as_str().unwrap().to_owned();
        let mut found: Vec<(String, String)> =
            list.iter().map(|one| (text(one, "channel"), text(one, "state"))).collect();
        found.sort();
        let mut wanted: Vec<(String, String)> =
            wanted.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        wanted.sort();
        found == wanted
    });
}

#[test]
fn channels_come_and_go_and_others_do_not_notice() {
    let bench = Bench::new(echoing());
    let receiver = Receiver::start();
    with_programs(&bench, &receiver);
    bench.configure(|config| {
        config["channels"] = json!({"socket": {}});
    });
    let gateway = bench.start();
    states(&gateway, &[("socket", "working")]);
    let mut script = UnixStream::connect(socket_path(&bench)).unwrap();
    script.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut reader = BufReader::new(script.try_clone().unwrap());
    let mut line = |script: &mut UnixStream, text: &str| {
        script.write_all(format!("{text}\n").as_bytes()).unwrap();
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line
    };
    assert!(line(&mut script, "{\"type\":\"listen\",\"chat\":\"a\"}").contains("listening"));

    with_programs(&bench, &receiver);
    states(&gateway, &[("socket", "working"), ("telegram", "working"), ("webhook", "working")]);
    bench.bot.write(ANN, "<m1>");
    bench.bot.wait_for_text("m1");
    let (status, _) = post(&gateway.client, &json!({"id": "w1", "text": "<m2>"})).unwrap();
    assert_eq!(status, 202);
    // The script is still connected, and its answers come on the same connection.
    let accepted =
        line(&mut script, "{\"type\":\"message\",\"id\":\"s1\",\"text\":\"<m3>\",\"chat\":\"a\"}");
    assert!(accepted.contains("accepted"), "{accepted}");

    bench.configure(|config| {
        config["channels"] = json!({"webhook": {"mine": {"secret": SECRET, "url": receiver.url}}});
    });
    states(&gateway, &[("webhook", "working")]);
    // Its connection is closed, after what was still to come.
    let mut rest = String::new();
    while reader.read_line(&mut rest).is_ok_and(|read| read > 0) {}
    bench.bot.write(ANN, "<m4>");
    let (status, _) = post(&gateway.client, &json!({"id": "w2", "text": "<m5>"})).unwrap();
    assert_eq!(status, 202);

    // What was written meanwhile is not lost.
    with_programs(&bench, &receiver);
    bench.bot.wait_for_text("m4");
    gateway.stop();
}

#[test]
fn a_bot_with_a_wrong_token_works_after_the_file_is_mended() {
    let bench = Bench::new(echoing());
    bench.configure(|config| config["channels"]["telegram"]["botToken"] = json!("1:wrong"));
    let gateway = bench.start();
    states(&gateway, &[("telegram", "stopped")]);
    bench.bot.write(ANN, "<m1>");
    bench.configure(|_| {});
    states(&gateway, &[("telegram", "working")]);
    bench.bot.wait_for_text("m1");
    gateway.stop();
}

#[test]
fn who_may_write_and_which_agent_answers_changes_without_a_new_connection() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    states(&gateway, &[("telegram", "working")]);
    let stranger = ANN + 1;
    let logins =
        |bench: &Bench| bench.bot.calls().iter().filter(|(method, _)| method == "getMe").count();
    let before = logins(&bench);
    bench.configure(|config| {
        config["channels"]["telegram"]["allowFrom"] = json!([ANN, stranger]);
        config["agents"]["list"] = json!([{"id": "main"}, {"id": "second"}]);
        config["bindings"] =
            json!([{"agentId": "second", "match": {"channel": "telegram", "peer": stranger}}]);
    });
    gateway.child.wait_for_stderr(RELOADED);
    bench.bot.write(stranger, "<m1>");
    bench.bot.wait_for_text("m1");
    let sessions = gateway.client.get("/api/sessions").unwrap().1.to_string();
    assert!(sessions.contains("agent:second:"), "{sessions}");
    assert_eq!(logins(&bench), before, "the bot was connected again");
    gateway.stop();
}

#[test]
fn the_doctor_asks_the_vendors_of_the_channels() {
    let bench = Bench::new(answering("never"));
    let found = bench.run(&["doctor"]).stdout();
    assert!(found.contains("channels   telegram default: @claw_bot"), "{found}");
    bench.configure(|config| config["channels"]["telegram"]["botToken"] = json!("1:wrong"));
    let found = bench.run(&["doctor"]).stdout();
    assert!(found.contains("warn  channels   telegram default: Telegram does not know"), "{found}");
    assert!(found.contains("myclaw channels probe telegram"), "{found}");
}
