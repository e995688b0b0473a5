//! Signal, against a strict daemon of signal-cli.

use std::thread;

use myclaw_testkit::{Random, SignalFault, SignalServer, Terminal, number_from};

use super::*;

/// A person who may write, and one who may not.
const PERSON: &str = "+16505551234";
const STRANGER: &str = "+4915100000000";
const GROUP: &str = "Pmpi+EfPWmsxiomLe9Nx2XF9HOE483p6iKiFj65iMwI=";

type Desk = super::Desk<SignalServer>;

impl Vendor for SignalServer {
    const CHANNEL: &'static str = "signal";

    fn begin() -> Self {
        Self::start()
    }

    fn config(&self) -> Value {
        json!({
            "account": self.account(), "baseUrl": self.url(), "allowFrom": [PERSON], "groups": {GROUP: {}},
        })
    }
}

#[test]
fn a_message_is_answered_with_styles_a_quote_and_a_receipt() {
    let desk = Desk::new(answering("🙂 **bold** `code`"));
    let gateway = desk.start();
    desk.server.say(PERSON, 7, "hello", &json!({}));
    let answer = desk.server.wait_for_text("bold");
    let expected = json!({
        "account": desk.server.account(), "recipient": [PERSON], "message": "🙂 bold code",
        "textStyles": ["3:4:BOLD", "8:4:MONOSPACE"],
        "quoteTimestamp": 7, "quoteAuthor": PERSON, "quoteMessage": "hello",
    });
    assert_eq!(answer, expected);
    assert_eq!(desk.server.calls("sendReceipt")[0]["targetTimestamp"], 7);
    assert_eq!(desk.server.calls("sendTyping")[0]["recipient"], json!([PERSON]));
    // The same again, and what nobody says.
    desk.server.say(PERSON, 7, "hello", &json!({}));
    desk.server.say(desk.server.account(), 8, "mine", &json!({}));
    desk.server.deliver(PERSON, 9, &json!({"receiptMessage": {"isRead": true, "timestamps": [1]}}));
    desk.server.deliver(PERSON, 10, &json!({"syncMessage": {"sentMessage": {"message": "mine"}}}));
    desk.server.say(PERSON, 11, "again", &json!({}));
    desk.server.wait_for("the second answer", |sent| (sent.len() == 2).then_some(()));
    gateway.stop();
    assert_eq!((desk.bench.model.requests().len(), desk.server.refused()), (2, Vec::new()));
}

#[test]
fn groups_strangers_and_edits_follow_the_rules() {
    let desk = Desk::new(echoing());
    let gateway = desk.start();
    let group = json!({"groupId": GROUP, "groupName": "Team", "revision": 1, "type": "DELIVER"});
    desk.server.say(PERSON, 1, "nobody asked", &json!({"groupInfo": group}));
    let mention = json!([{"name": "Claw", "number": desk.server.account(), "uuid": "u", "start": 0, "length": 1}]);
    desk.server.say(PERSON, 2, "\u{fffc} <m1>", &json!({"groupInfo": group, "mentions": mention}));
    assert_eq!(desk.server.wait_for_text("m1")["groupId"], GROUP);
    let asked = desk.bench.asked();
    assert!(asked.contains("> <m1>") && !asked.contains("@Claw"), "{asked}");
    desk.server.say(STRANGER, 3, "hello", &json!({}));
    desk.server.wait_for("a code", |sent| {
        sent.iter().find(|it| it["recipient"] == json!([STRANGER])).cloned()
    });
    desk.server.say(PERSON, 4, "<m2>", &json!({}));
    desk.server.wait_for_text("m2");
    let later =
        json!({"targetSentTimestamp": 4, "dataMessage": {"timestamp": 5, "message": "<m3>"}});
    desk.server.deliver(PERSON, 5, &json!({"editMessage": later}));
    desk.server.wait_for_text("m3");
    assert!(desk.bench.asked().contains("edited an earlier message"), "{}", desk.bench.asked());
    // The same text again. Some apps name the version before, and others the first one.
    for (number, edited) in [(6, 4), (7, 5)] {
        let later = json!({"targetSentTimestamp": edited, "dataMessage": {"timestamp": number, "message": "<m3>"}});
        desk.server.deliver(PERSON, number, &json!({"editMessage": later}));
    }
    let same = "the edit changes nothing";
    assert_eq!(gateway.dropped(4)[2..], [same, same]);
    gateway.stop();
    assert_eq!(desk.server.refused(), [""; 0]);
}

#[test]
fn files_go_both_ways_and_long_answers_are_split() {
    let long = format!("{}\n\nend\nMEDIA: chart.png", "a long answer. ".repeat(300));
    let desk = Desk::new(answering(&long));
    desk.bench.write_for_chats("chart.png", "no real picture");
    let gateway = desk.start();
    let file = desk.server.keep_file("bGluZSBvbmU=");
    let attachments =
        json!([{"contentType": "text/plain", "filename": "note.txt", "id": file, "size": 8}]);
    // The files of a stranger are not loaded.
    desk.server.say(STRANGER, 6, "look", &json!({"attachments": attachments}));
    desk.server.say(PERSON, 7, "look", &json!({"attachments": attachments}));
    let sent = desk.server.wait_for("the picture", |sent| {
        let sent: Vec<_> =
            sent.iter().filter(|it| it["recipient"] != json!([STRANGER])).cloned().collect();
        sent.last().is_some_and(|last| last["attachments"].is_array()).then(|| sent.to_vec())
    });
    assert!(desk.bench.asked().contains("> line one"), "{}", desk.bench.asked());
    let loaded = desk.server.calls("getAttachment");
    assert_eq!((loaded.len(), &loaded[0]["recipient"]), (1, &json!([PERSON])), "{loaded:?}");
    let texts: String = sent.iter().filter_map(|it| it["message"].as_str()).collect();
    assert!(sent.len() >= 4 && texts.matches("answer.").count() == 300, "{sent:?}");
    let picture = "data:image/png;filename=chart%2Epng;base64,bm8gcmVhbCBwaWN0dXJl";
    assert_eq!(sent.last().unwrap()["attachments"], json!([picture]));
    gateway.stop();
    assert_eq!(desk.server.refused(), [""; 0]);
}

#[test]
fn limits_delay_and_refusals_are_reported() {
    let desk = Desk::new(echoing());
    let gateway = desk.start();
    desk.server.fail_next(SignalFault::Outcome("RATE_LIMIT_FAILURE"));
    desk.server.fail_next(SignalFault::Outcome("NETWORK_FAILURE"));
    desk.server.say(PERSON, 1, "<m1>", &json!({}));
    desk.server.wait_for_text("m1");
    for (time, fault, words) in [
        (2, SignalFault::Outcome("IDENTITY_FAILURE"), "safety number"),
        (3, SignalFault::Refuse(-1, "Invalid group"), "Invalid group"),
        (4, SignalFault::Refuse(-3, "Failed to send message"), "uncertain"),
        (5, SignalFault::Silence, "uncertain"),
    ] {
        desk.server.fail_next(fault);
        desk.server.say(PERSON, time, "<m2>", &json!({}));
        let state = gateway
            .channels(|state| state["undelivered"].as_array().unwrap().len() as u64 == time - 1);
        assert!(state["undelivered"][0]["state"].to_string().contains(words), "{words}: {state}");
        if time == 4 {
            // The chat is told, before the next fault.
            desk.server.wait_for_text("/again");
        }
    }
    gateway.stop();
    assert_eq!(desk.server.refused(), [""; 0]);
}

/// The first answer may be missing; the person learns it once, and gets the answer again when asked for.
#[test]
fn what_may_be_missing_is_told_once_and_sent_again_when_asked_for() {
    let desk = Desk::new(echoing());
    let gateway = desk.start();
    desk.server.fail_next(SignalFault::Silence);
    desk.server.say(PERSON, 1, "<m1>", &json!({}));
    desk.server.wait_for_text("may be missing here");
    gateway.stop();
    let gateway = desk.start();
    desk.server.say(PERSON, 2, "<m2>", &json!({}));
    desk.server.wait_for_text("m2");
    desk.server.say(PERSON, 3, "/again", &json!({}));
    let texts = |sent: &[Value]| -> Vec<String> {
        sent.iter().filter_map(|it| it["message"].as_str()).map(str::to_owned).collect()
    };
    let sent = desk.server.wait_for("the answer again", |sent| {
        let sent = texts(sent);
        (sent.iter().filter(|text| text.contains("m1")).count() == 2).then_some(sent)
    });
    assert_eq!(sent.iter().filter(|text| text.contains("may be missing")).count(), 1, "{sent:?}");
    gateway.stop();
    assert_eq!(desk.server.refused(), [""; 0]);
}

#[test]
fn a_daemon_that_is_down_or_does_not_know_the_account_says_so() {
    let desk = Desk::new(echoing());
    desk.server.set_down(true);
    let gateway = desk.bench.start();
    gateway.channels(|state| state["channels"][0]["state"] == "waiting");
    desk.server.set_down(false);
    gateway.channels(|state| state["channels"][0]["state"] == "working");
    desk.server.say(PERSON, 1, "<m1>", &json!({}));
    desk.server.wait_for_text("m1");
    // Messages that arrive between two connections are read by the next one, because the stream continues where it was read.
    desk.server.set_down(true);
    gateway.channels(|state| state["channels"][0]["state"] == "waiting");
    desk.server.say(PERSON, 2, "<m2>", &json!({}));
    desk.server.set_down(false);
    desk.server.wait_for_text("m2");
    gateway.stop();
    assert_eq!(desk.server.calls("send").len(), 2);
    let probed = desk.bench.run(&["channels", "probe"]);
    probed.assert_code(0);
    assert!(probed.stdout().contains("through signal-cli 0.13.18"), "{}", probed.stdout());
    desk.configure(|it| it["account"] = json!("+1999"));
    let probed = desk.bench.run(&["channels", "probe"]);
    probed.assert_code(1);
    assert!(probed.stdout().contains("account does not exist"), "{}", probed.stdout());
}

#[test]
fn messages_are_answered_once_whatever_is_killed() {
    let kills = number_from("MYCLAW_GATEWAY_KILLS").unwrap_or(5);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_123);
    let mut random = Random::new(seed);
    let desk = Desk::new(echoing());
    desk.configure(|it| it["dmPolicy"] = json!("open"));
    let mut gateway = desk.start();
    // From here on the gateway knows where it has read to.
    desk.server.say(PERSON, 1, "<m0>", &json!({}));
    desk.server.wait_for_text("m0");
    let mut said = 1;
    for _ in 0..kills {
        let end = Instant::now() + Duration::from_micros(random.below(900_000));
        while Instant::now() < end {
            // Each person has a session, so that no turn has two messages.
            let person = format!("+1650{said}");
            desk.server.say(&person, 1 + said, &format!("<m{said}>"), &json!({}));
            said += 1;
            thread::sleep(Duration::from_millis(60));
        }
        gateway.kill();
        gateway = desk.start();
    }
    let end = Instant::now() + PATIENCE;
    loop {
        let uncertain = gateway.channels(|_| true)["undelivered"].to_string();
        let sent = desk.server.calls("send");
        let count = |mark: &str| {
            sent.iter()
                .filter(|it| it["message"].as_str().is_some_and(|text| text.contains(mark)))
                .count()
        };
        let marks: Vec<String> = (0..said).map(|number| format!("<m{number}>")).collect();
        let open = marks.iter().find(|mark| count(mark) == 0 && !uncertain.contains(mark.as_str()));
        let Some(open) = open else {
            assert_eq!(marks.iter().find(|mark| count(mark) > 1), None, "seed {seed}");
            break;
        };
        assert!(Instant::now() < end, "seed {seed}: {open} is not answered");
        thread::sleep(Duration::from_millis(100));
    }
    eprintln!("{said} messages, {kills} kills");
    gateway.stop();
}

#[test]
fn the_first_set_up_tries_the_number() {
    let desk = Desk::new(echoing());
    let (url, number) = (desk.server.url(), format!("account={}", desk.server.account()));
    let with = |number| ["--channel-url", url.as_str(), "--channel-set", number];
    let (wrong, right) = (with("account=+1999"), with(&number));
    desk.bench.sets_up(
        "signal",
        (Told { options: &wrong, ..Told::default() }, "account does not exist"),
        (
            Told { options: &right, ..Told::default() },
            &format!("{} through", desk.server.account()),
        ),
    );
}

/// Begins `channels add signal --link`; gives the program when its code is shown, and what the code says.
fn linking(server: &SignalServer, home: &TempHome, number: usize) -> (RunningChild, String) {
    let mut command = home.command(env!("CARGO_BIN_EXE_myclaw"));
    command.args(["channels", "add", "signal", "--link", "--url", &server.url()]);
    let child = RunningChild::spawn(command.args(["--allow-from", PERSON]));
    let address = server.wait_for_address(number);
    let shown = child.wait_for_stdout(&address);
    assert!(shown.lines().filter(|line| line.starts_with("████")).count() > 10, "{shown}");
    (child, address)
}

#[test]
fn a_phone_is_linked_by_a_code_in_the_terminal() {
    let server = SignalServer::start_without_account();
    let home = TempHome::new();
    let file = home.state_directory().join("myclaw.json");
    // A code that nobody takes, and one of an account that is there already, change nothing.
    let (child, address) = linking(&server, &home, 0);
    server.scan(&address, &json!({"error": "The user +49151 already exists"}));
    let refused = child.wait(PATIENCE);
    assert_eq!(refused.code(), Some(1), "{}", refused.stderr());
    assert!(refused.stderr().contains("The user +49151 already exists"), "{}", refused.stderr());
    assert!(refused.stderr().contains("Nothing was written"), "{}", refused.stderr());
    assert!(!file.exists());
    let (child, address) = linking(&server, &home, 1);
    server.scan(&address, &json!({"number": server.account(), "aci": "a"}));
    let linked = child.wait(PATIENCE);
    linked.assert_code(0);
    assert!(linked.stderr().contains("linked to +4915112345678"), "{}", linked.stderr());
    assert_eq!(server.linked_names(), ["MyClaw"]);
    let written = std::fs::read_to_string(&file).unwrap();
    for text in [server.account(), &server.url(), PERSON] {
        assert!(written.contains(text), "{text}: {written}");
    }
    // The daemon for several accounts is asked for this one.
    let mut command = home.command(env!("CARGO_BIN_EXE_myclaw"));
    let probed = RunningChild::spawn(command.args(["channels", "probe", "signal"])).wait(PATIENCE);
    probed.assert_code(0);
}

#[test]
fn the_first_set_up_links_a_phone() {
    let server = SignalServer::start_without_account();
    let bench = Bench::new(echoing());
    bench.configure(|config| config["channels"] = json!({}));
    let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    command.args(["onboard", "--channel", "signal", "--channel-url", &server.url()]);
    let mut terminal = Terminal::spawn_sized(&command, 200, 60);
    terminal.expect("Keep it?");
    terminal.send("y\r");
    terminal.expect("Directory in which it works");
    terminal.send("\r");
    // A code that nobody takes does not end the wizard.
    terminal.expect("press Enter to link a phone");
    terminal.send("\r");
    server.scan(&server.wait_for_address(0), &json!({"error": "The user +49151 already exists"}));
    terminal.expect("signal cannot be used: ");
    terminal.expect("Try the channel again?");
    terminal.send("\r");
    terminal.expect("press Enter to link a phone");
    terminal.send("\r");
    let address = server.wait_for_address(1);
    server.scan(&address, &json!({"number": server.account(), "aci": "a"}));
    terminal.expect("linked to +4915112345678");
    terminal.expect("channel     signal: ");
    terminal.expect("Start the gateway with your session");
    terminal.send("\r");
    terminal.expect("myclaw gateway");
    assert!(terminal.wait().success());
    let written = std::fs::read_to_string(bench.home.config_path()).unwrap();
    for text in [server.account(), &server.url()] {
        assert!(written.contains(text), "{text}: {written}");
    }
    // Without a person there is nobody with a phone.
    let other = Bench::new(echoing());
    other.configure(|config| config["channels"] = json!({}));
    let options = ["--channel-url", &server.url()];
    let refused = other.onboard("signal", &Told { options: &options, ..Told::default() });
    refused.assert_code(2);
    assert!(
        refused.stderr().contains("leave --yes out, to scan a QR code"),
        "{}",
        refused.stderr()
    );
}

#[test]
fn what_cannot_be_linked_says_what_to_do() {
    let alone = SignalServer::start();
    let home = TempHome::new();
    let run = |arguments: &[&str]| {
        let mut command = home.command(env!("CARGO_BIN_EXE_myclaw"));
        let ended = RunningChild::spawn(command.args(["channels", "add"]).args(arguments));
        let ended = ended.wait(PATIENCE);
        (ended.code(), ended.stderr())
    };
    let url = alone.url();
    for (arguments, code, says) in [
        (vec!["signal", "--link", "--url", &url], 1, "start its daemon without `-a`"),
        (vec!["signal", "--link", "--url", "http://127.0.0.1:9"], 1, "cannot be reached"),
        (vec!["socket", "--link"], 2, "--link has no meaning for socket"),
        (vec!["signal", "--link", "--id", "+49151"], 2, "cannot be used with"),
        (vec!["signal"], 2, "or --link, to scan a QR code"),
    ] {
        let (found, said) = run(&arguments);
        assert!(found == Some(code) && said.contains(says), "{arguments:?}: {found:?} {said}");
    }
    assert!(!home.state_directory().join("myclaw.json").exists());
}

#[test]
fn an_account_without_a_number_is_linked_by_its_id() {
    let server = SignalServer::start_without_account();
    let home = TempHome::new();
    let (child, address) = linking(&server, &home, 0);
    let id = "11111111-1111-4111-8111-111111111111";
    server.scan(&address, &json!({"number": null, "aci": id}));
    child.wait(PATIENCE).assert_code(0);
    let written = std::fs::read_to_string(home.state_directory().join("myclaw.json")).unwrap();
    assert!(written.contains(id), "{written}");
}
