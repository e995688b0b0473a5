//! WhatsApp, against a strict server of the Cloud API.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use myclaw_testkit::{Random, WhatsAppFault, WhatsAppMessage, WhatsAppServer, number_from};
use ring::hmac;

use super::*;

/// A person who may write.
const PERSON: &str = "16505551234";
/// People who write while the gateway is killed. Each has a session.
const PEOPLE: u64 = 2;
const APP_SECRET: &str = "app-secret-0123456789";
const VERIFY_TOKEN: &str = "verify-me";

type Desk = super::Desk<WhatsAppServer>;

impl Vendor for WhatsAppServer {
    const CHANNEL: &'static str = "whatsapp";

    fn begin() -> Self {
        Self::start()
    }

    fn config(&self) -> Value {
        json!({
            "phoneNumberId": self.numbers()[0], "accessToken": self.token(),
            "appSecret": APP_SECRET, "verifyToken": VERIFY_TOKEN, "baseUrl": self.url(), "allowFrom": [PERSON],
        })
    }
}

impl Desk {
    /// Posts what happened to the first number, as Meta does.
    fn post(&self, value: &Value) -> u16 {
        let body = payload(self.server.numbers()[0], value).to_string();
        self.post_signed(&body, &signature(&body)).unwrap_or(0)
    }

    fn post_signed(&self, body: &str, signature: &str) -> std::io::Result<u16> {
        let head = format!(
            "{}Content-Length: {}\r\nX-Hub-Signature-256: {signature}\r\n",
            self.head("POST", ""),
            body.len()
        );
        self.client().raw(&format!("{head}\r\n{body}")).map(|(status, _)| status)
    }

    fn head(&self, method: &str, query: &str) -> String {
        format!(
            "{method} /hooks/whatsapp/default{query} HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\
             Content-Type: application/json\r\n"
        )
    }

    fn client(&self) -> Client {
        Client { port: self.bench.port, token: String::new() }
    }

    fn write(&self, id: &str, text: &str) -> u16 {
        self.post(&messages(&[said(id, text)]))
    }
}

fn payload(number: &str, value: &Value) -> Value {
    let mut value = value.clone();
    value["messaging_product"] = json!("whatsapp");
    value["metadata"] = json!({"display_phone_number": "15550783881", "phone_number_id": number});
    json!({"object": "whatsapp_business_account", "entry": [{
        "id": "102290129340398", "changes": [{"field": "messages", "value": value}],
    }]})
}

fn messages(messages: &[Value]) -> Value {
    json!({"contacts": [{"profile": {"name": "Ann"}, "wa_id": PERSON}], "messages": messages})
}

fn said(id: &str, text: &str) -> Value {
    message(id, &json!({"type": "text", "text": {"body": text}}))
}

fn message(id: &str, fields: &Value) -> Value {
    let mut message =
        json!({"from": PERSON, "id": format!("wamid.{id}"), "timestamp": "1749416383"});
    for (key, value) in fields.as_object().into_iter().flatten() {
        message[key] = value.clone();
    }
    message
}

fn signature(body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, APP_SECRET.as_bytes());
    let digits = hmac::sign(&key, body.as_bytes());
    format!(
        "sha256={}",
        digits.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    )
}

#[test]
fn a_message_is_answered_once_however_often_it_is_posted() {
    let desk = Desk::new(answering("**bold** and `code`"));
    let gateway = desk.start();
    for _ in 0..3 {
        assert_eq!(desk.write("IN1", "hello"), 200);
    }
    let answer = desk.server.wait_for_text("bold");
    assert_eq!(
        (answer.text(), &answer.body["to"], &answer.body["context"]),
        ("*bold* and `code`", &json!(PERSON), &json!({"message_id": "wamid.IN1"}))
    );
    assert!(desk.server.read().contains(&"wamid.IN1".to_owned()), "it is not marked as read");
    gateway.kill();
    let gateway = desk.start();
    assert_eq!(desk.write("IN1", "hello"), 200);
    // What people say without words asks for no answer.
    let reaction =
        json!({"type": "reaction", "reaction": {"message_id": "wamid.OUT0", "emoji": "👍"}});
    assert_eq!(desk.post(&messages(&[message("IN2", &reaction)])), 200);
    assert_eq!(desk.write("IN3", "again"), 200);
    let answers = |sent: &[WhatsAppMessage]| {
        // The kill may have come before the outcome of the sending was stored.
        sent.iter().filter(|sent| !sent.text().contains("may be missing here")).count()
    };
    desk.server.wait_for("the second answer", |sent| (answers(sent) == 2).then_some(()));
    gateway.stop();
    assert_eq!((answers(&desk.server.sent()), desk.bench.model.requests().len()), (2, 2));
    assert_eq!(desk.server.refused(), [""; 0]);
}

#[test]
fn only_what_meta_signs_is_taken_and_the_rest_is_counted() {
    let desk = Desk::new(echoing());
    let gateway = desk.start();
    let body = payload(desk.server.numbers()[0], &messages(&[said("IN1", "<m1>")])).to_string();
    let right = signature(&body);
    for wrong in ["", "sha256=", &right[1..], &right.replace("sha256=", ""), &signature("other")] {
        assert_eq!(desk.post_signed(&body, wrong).unwrap(), 401, "{wrong}");
    }
    // One byte more is another body.
    assert_eq!(desk.post_signed(&format!("{body} "), &right).unwrap(), 401);
    for (query, status, answer) in [
        (
            "?hub.mode=subscribe&hub.verify_token=verify-me&hub.challenge=1158201444",
            200,
            "1158201444",
        ),
        ("?hub.mode=subscribe&hub.verify_token=verify-m&hub.challenge=1", 403, "error"),
        ("?hub.mode=other&hub.verify_token=verify-me&hub.challenge=1", 403, "error"),
        ("?hub.mode=subscribe&hub.verify_token=verify-me&hub.challenge=%3Cb%3E%0A", 400, "error"),
        ("", 403, "error"),
    ] {
        let asked = desk.client().raw(&format!("{}\r\n", desk.head("GET", query))).unwrap();
        assert!(asked.0 == status && asked.1.contains(answer), "{query}: {asked:?}");
    }
    let (_, metrics) = gateway.client.get("/metrics").unwrap();
    let count = "myclaw_hooks_refused_total{channel=\"whatsapp\"} 9";
    assert!(metrics.as_str().unwrap().contains(count), "{metrics}");
    // What is signed and makes no sense would come back for a week. The owner sees that there was something.
    for _ in 0..2 {
        assert_eq!(desk.post_signed("nonsense", &signature("nonsense")).unwrap(), 200);
    }
    let odd = [json!({"from": PERSON, "type": "text"}), message("IN8", &json!({"type": ["x"]}))];
    let unread = messages(&odd);
    let other = payload("15550000000", &messages(&[said("IN9", "for somebody else")])).to_string();
    let broken = json!({"entry": [{"changes": 7}]}).to_string();
    assert_eq!((desk.post(&unread), desk.post(&unread)), (200, 200));
    for posted in [&other, &broken] {
        assert_eq!(desk.post_signed(posted, &signature(posted)).unwrap(), 200);
    }
    let reasons = gateway.dropped(5);
    for words in ["it has no id", "15550000000, which is not in the config", "invalid type"] {
        assert!(reasons.iter().any(|reason| reason.contains(words)), "{words}: {reasons:?}");
    }
    assert_eq!(desk.post_signed(&body, &right).unwrap(), 200);
    desk.server.wait_for_text("m1");
    gateway.stop();
    assert_eq!(desk.server.sent().len(), 1);
}

#[test]
fn slow_and_oversized_requests_are_ended() {
    let desk = Desk::new(echoing());
    let gateway = desk.start();
    // Without a signature the length does not matter.
    let head = format!("{}Content-Length: 7000000\r\n", desk.head("POST", ""));
    assert_eq!(desk.client().raw(&format!("{head}\r\n")).unwrap().0, 401);
    let signed = format!("X-Hub-Signature-256: {}\r\n", signature("abc"));
    assert_eq!(desk.client().raw(&format!("{head}{signed}\r\n")).unwrap().0, 413);
    // The rest of the body never comes.
    let mut slow = TcpStream::connect(("127.0.0.1", desk.bench.port)).unwrap();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(slow, "{}{signed}Content-Length: 100\r\n\r\nabc", desk.head("POST", "")).unwrap();
    assert_eq!(desk.write("IN1", "<m1>"), 200);
    desk.server.wait_for_text("m1");
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    gateway.stop();
}

#[test]
fn each_number_gets_its_own_messages_at_one_address() {
    let desk = Desk::new(echoing());
    let numbers = desk.server.numbers();
    desk.configure(|it| it["accounts"] = json!({"sales": {"phoneNumberId": numbers[1]}}));
    let gateway = desk.start();
    for (number, mark) in [(numbers[1], "<m1>"), (numbers[0], "<m2>"), ("999", "<m3>")] {
        let body = payload(number, &messages(&[said(mark, mark)])).to_string();
        assert_eq!(desk.post_signed(&body, &signature(&body)).unwrap(), 200, "{number}");
    }
    let sent =
        desk.server.wait_for("both answers", |sent| (sent.len() == 2).then(|| sent.to_vec()));
    for (number, mark) in [(numbers[1], "m1"), (numbers[0], "m2")] {
        assert!(sent.iter().any(|it| it.number == number && it.text().contains(mark)), "{sent:?}");
    }
    gateway.stop();
}

#[test]
fn strangers_groups_and_hidden_numbers_follow_the_rules() {
    let desk = Desk::new(echoing());
    desk.configure(|it| {
        it["allowFrom"] = json!(["US.13491208655302741918", PERSON]);
        it["groups"] = json!({"Y2FwaV9ncm91cDox": {}});
    });
    let gateway = desk.start();
    let hidden = json!({
        "from": null, "from_user_id": "US.13491208655302741918", "type": "text", "text": {"body": "<m1>"},
    });
    desk.post(&messages(&[message("IN1", &hidden)]));
    assert_eq!(desk.server.wait_for_text("m1").body["recipient"], "US.13491208655302741918");
    let stranger = json!({"from": "4915100000000", "type": "text", "text": {"body": "hello"}});
    desk.post(&messages(&[message("IN2", &stranger)]));
    desk.server.wait_for("a code", |sent| {
        sent.iter().find(|it| it.body["to"] == "4915100000000").cloned()
    });
    let in_group = |id: &str, group: &str, text: &str, context: &Value| {
        let fields =
            json!({"group_id": group, "type": "text", "text": {"body": text}, "context": context});
        desk.post(&messages(&[message(id, &fields)]));
    };
    in_group("IN3", "Y2FwaV9ncm91cDox", "nobody asked", &json!({}));
    in_group("IN4", "b3RoZXI", "<m2>", &json!({"from": "15550783881", "id": "wamid.OUT0"}));
    in_group(
        "IN5",
        "Y2FwaV9ncm91cDox",
        "<m3>",
        &json!({"from": "15550783881", "id": "wamid.OUT0"}),
    );
    let answer = desk.server.wait_for_text("m3");
    assert_eq!(
        (&answer.body["recipient_type"], &answer.body["to"]),
        (&json!("group"), &json!("Y2FwaV9ncm91cDox"))
    );
    assert_eq!(gateway.dropped(3).len(), 3);
    gateway.stop();
    assert_eq!(desk.server.refused(), [""; 0]);
}

#[test]
fn long_answers_are_split_and_quotes_are_shown() {
    let desk =
        Desk::new(answering(&format!("begin\n\n```\n{}```\n\nend", "let x = 1;\n".repeat(900))));
    let gateway = desk.start();
    desk.write("IN1", "hello");
    let parts = desk.server.wait_for("the last part", |sent| {
        sent.last().is_some_and(|last| last.text().ends_with("end")).then(|| sent.to_vec())
    });
    let all: String = parts.iter().map(|part| part.text()).collect();
    assert_eq!(all.matches("let x = 1;").count(), 900);
    assert!(
        parts.len() >= 3 && parts.iter().all(|part| part.text().matches("```").count() % 2 == 0)
    );
    let answered = json!({"type": "text", "text": {"body": "why?"}, "context": {"from": PERSON, "id": "wamid.IN1"}});
    desk.post(&messages(&[message("IN2", &answered)]));
    desk.server.wait_for("more", |sent| (sent.len() > parts.len()).then_some(()));
    assert!(desk.bench.asked().contains("> > hello"), "{}", desk.bench.asked());
    gateway.stop();
    assert_eq!(desk.server.refused(), [""; 0]);
}

/// WhatsApp names what is answered by its id alone, and what was said before a restart is not kept. The model learns that
/// something was answered, and whose it was.
#[test]
fn an_answer_to_something_from_before_a_restart_says_so() {
    let desk = Desk::new(answering("noted"));
    let gateway = desk.start();
    desk.write("IN1", "lunch at noon?");
    let first = desk.server.wait_for_text("noted");
    gateway.stop();
    let gateway = desk.start();
    let own = "15550783881";
    for (number, from, answered) in [(2, PERSON, "wamid.IN1"), (3, own, first.id.as_str())] {
        let said = json!({
            "type": "text", "text": {"body": format!("yes, number {number}")},
            "context": {"from": from, "id": answered},
        });
        desk.post(&messages(&[message(&format!("IN{number}"), &said)]));
        desk.server.wait_for("an answer", |sent| (sent.len() == number).then_some(()));
        let last = json!(desk.bench.model.requests().last().unwrap().messages().last()).to_string();
        assert!(last.contains("[In reply to an earlier message"), "{number}: {last}");
        assert!(last.contains("whose text is not known here]"), "{number}: {last}");
        assert!(last.contains(&format!("yes, number {number}")), "{last}");
    }
    gateway.stop();
    assert_eq!(desk.server.refused(), [""; 0]);
}

#[test]
fn files_go_both_ways_and_the_token_goes_nowhere_else() {
    let said = "Here.\nMEDIA: report.txt\nMEDIA: chart.png\nMEDIA: code.rs\nMEDIA: app.bin";
    let desk = Desk::new(answering(said));
    for (name, text) in
        [("report.txt", "all is well"), ("chart.png", "no real picture"), ("code.rs", "fn a() {}")]
    {
        desk.bench.write_for_chats(name, text);
    }
    desk.bench.write_for_chats("app.bin", [0, 159, 146, 150]);
    let gateway = desk.start();
    let note = desk.server.keep_file("text/plain", b"line one\nline two");
    let document = json!({"id": note, "mime_type": "text/plain", "filename": "../note.txt", "caption": "look"});
    desk.post(&messages(&[message("IN1", &json!({"type": "document", "document": document}))]));
    let sent = desk.server.wait_for("the files", |sent| (sent.len() == 4).then(|| sent.to_vec()));
    assert!(desk.bench.asked().contains("> line one\\n> line two"), "{}", desk.bench.asked());
    let of = |kind: &str, at: usize| {
        let id = sent[at].body[kind]["id"].as_str().unwrap();
        (sent[at].body[kind]["filename"].clone(), desk.server.file(id))
    };
    let text = "text/plain".to_owned();
    assert_eq!(of("document", 1), (json!("report.txt"), (text.clone(), b"all is well".to_vec())));
    assert_eq!(of("image", 2).1, ("image/png".to_owned(), b"no real picture".to_vec()));
    assert_eq!(of("document", 3), (json!("code.rs"), (text, b"fn a() {}".to_vec())));
    let state = gateway.channels(|state| state["undelivered"][0].is_object());
    assert!(state.to_string().contains("takes no files of this type"), "{state}");
    // A file elsewhere: nobody there gets the token.
    let elsewhere = WhatsAppServer::start();
    desk.server.move_files(&elsewhere.url());
    desk.post(&messages(&[message("IN2", &json!({"type": "document", "document": document}))]));
    desk.server.wait_for("the second answer", |sent| (sent.len() > 4).then_some(()));
    assert!(desk.bench.asked().contains("the file is at a host"), "{}", desk.bench.asked());
    gateway.stop();
    assert_eq!(desk.server.refused(), [""; 0]);
}

#[test]
fn limits_delay_and_refusals_are_reported() {
    let desk = Desk::new(echoing());
    desk.configure(|it| it["template"] = json!({"name": "come_back", "language": "en_US"}));
    let gateway = desk.start();
    for (number, (status, code)) in
        [(429, 130_429), (400, 80_007), (400, 131_056)].into_iter().enumerate()
    {
        desk.server.fail_next(WhatsAppFault::Refuse(status, code));
        let mark = format!("<m{number}>");
        desk.write(&mark, &mark);
        desk.server.wait_for_text(&mark);
    }
    // Said at once, and said later by a status.
    desk.server.fail_next(WhatsAppFault::Refuse(400, 131_047));
    desk.write("IN8", "<m8>");
    let reason = |state: &Value| state["undelivered"][0]["state"].to_string();
    let state = gateway.channels(|state| reason(state).contains("window has closed"));
    assert_eq!(state["undelivered"][0]["state"]["state"], "failed");
    desk.server.wait_for("a template", |sent| {
        sent.iter().find(|it| it.body["template"]["name"] == "come_back").cloned()
    });
    desk.write("IN9", "<m9>");
    let late = desk.server.wait_for_text("<m9>");
    gateway.channels(|state| state["undelivered"].as_array().unwrap().len() == 1);
    let status = |status: &str| {
        json!({"statuses": [{
            "id": late.id, "status": status, "timestamp": "1", "recipient_id": PERSON,
            "biz_opaque_callback_data": late.body["biz_opaque_callback_data"],
            "errors": [{"code": 131_047, "title": "Re-engagement message"}],
        }]})
    };
    for told in ["sent", "failed", "failed"] {
        let end = Instant::now() + PATIENCE;
        // Refused while the part is still being sent.
        while desk.post(&status(told)) != 200 {
            assert!(Instant::now() < end, "{told} is not taken");
            thread::sleep(Duration::from_millis(20));
        }
    }
    let state = gateway.channels(|state| state["undelivered"].as_array().unwrap().len() == 2);
    assert!(reason(&state).contains("window has closed"), "{state}");
    gateway.stop();
    assert_eq!(desk.server.refused(), [""; 0]);
}

#[test]
fn what_may_have_been_delivered_is_confirmed_reported_or_marked() {
    for choice in ["confirmed", "report", "again"] {
        let desk = Desk::new(answering("fine"));
        if choice == "again" {
            desk.configure(|it| it["uncertain"] = json!("again"));
        }
        let gateway = desk.start();
        // The time-out is that of the gateway.
        let fault = if choice == "report" { WhatsAppFault::Hang } else { WhatsAppFault::Silence };
        desk.server.fail_next(fault);
        desk.write("IN1", "hello");
        let first = desk.server.wait_for_text("fine");
        let told;
        let texts = match choice {
            "confirmed" => {
                let status = json!({
                    "id": first.id, "status": "delivered", "recipient_id": PERSON,
                    "biz_opaque_callback_data": first.body["biz_opaque_callback_data"],
                });
                assert_eq!(desk.post(&json!({"statuses": [status]})), 200);
                desk.write("IN2", "hello");
                desk.server.wait_for("the next answer", |sent| (sent.len() == 2).then_some(()));
                let state = gateway.channels(|_| true);
                assert_eq!(state["undelivered"], json!([]), "{state}");
                vec!["fine", "fine"]
            }
            "report" => {
                gateway.channels(|state| state["undelivered"][0]["state"]["state"] == "uncertain");
                let notice = desk.server.wait_for_text("may be missing here");
                told = notice.text().to_owned();
                vec!["fine", told.as_str()]
            }
            _ => {
                desk.server.wait_for_text("possible repeat");
                vec!["fine", "(possible repeat) fine"]
            }
        };
        gateway.stop();
        let sent: Vec<String> = desk.server.sent().iter().map(|it| it.text().to_owned()).collect();
        assert_eq!(sent, texts, "{choice}");
    }
}

#[test]
fn a_wrong_token_and_a_server_that_is_down_say_so() {
    let desk = Desk::new(answering("fine"));
    desk.server.set_down(true);
    let gateway = desk.bench.start();
    gateway.channels(|state| state["channels"][0]["state"] == "waiting");
    desk.server.set_down(false);
    gateway.channels(|state| state["channels"][0]["state"] == "working");
    gateway.stop();
    desk.configure(|it| it["accessToken"] = json!("EAAwrong"));
    let probed = desk.bench.run(&["channels", "probe"]);
    probed.assert_code(1);
    let said = probed.stdout();
    assert!(said.contains("put it into accessToken") && !said.contains("EAAwrong"), "{said}");
    let gateway = desk.bench.start();
    let state = gateway.channels(|state| state["channels"][0]["state"] == "waiting");
    assert!(state["channels"][0]["reason"].as_str().unwrap().contains("accessToken"), "{state}");
    // Messages are taken all the same, and answered once the token is right.
    assert_eq!(desk.write("IN1", "hello"), 200);
    desk.configure(|_| {});
    gateway.child.signal(Signal::HangUp);
    desk.server.wait_for_text("fine");
    gateway.stop();
    let probed = desk.bench.run(&["channels", "probe"]);
    probed.assert_code(0);
    assert!(probed.stdout().contains("+1 555-078-3881 Claw"), "{}", probed.stdout());
}

#[test]
fn messages_are_answered_once_whatever_is_killed() {
    let kills = number_from("MYCLAW_GATEWAY_KILLS").unwrap_or(5);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_123);
    let mut random = Random::new(seed);
    let desk = Desk::new(echoing());
    let mut channel = desk.server.config();
    channel["dmPolicy"] = json!("open");
    desk.bench.configure(|config| {
        config["channels"] = json!({"whatsapp": channel});
        // A full queue would tell the model what was dropped, and the model would repeat that.
        config["messages"] = json!({"queue": {"cap": 1_000}});
    });
    let mut gateway = desk.start();
    let mut posted = 0;
    for _ in 0..kills {
        let end = Instant::now() + Duration::from_micros(random.below(900_000));
        while Instant::now() < end {
            // Meta repeats what was not confirmed, and so does this.
            let mark = format!("<m{posted}>");
            // Few people, so that messages come while a turn of their session runs.
            let person = json!({
                "from": format!("1650{}", posted % PEOPLE), "type": "text", "text": {"body": mark},
            });
            if desk.post(&messages(&[message(&mark, &person)])) == 200 {
                posted += 1;
            }
            thread::sleep(Duration::from_millis(60));
        }
        gateway.kill();
        gateway = desk.start();
    }
    let end = Instant::now() + PATIENCE;
    loop {
        let uncertain = gateway.undelivered().join(" ");
        let texts: Vec<String> = desk.server.sent().iter().map(|it| it.text().to_owned()).collect();
        let all = texts.join(" ");
        let count = |mark: &str| all.matches(mark).count();
        let mut open = (0..posted).map(|number| format!("<m{number}>"));
        let is_open = |mark: &String| count(mark) == 0 && !uncertain.contains(mark.as_str());
        match open.find(is_open) {
            None => {
                let twice =
                    (0..posted).map(|number| format!("<m{number}>")).find(|mark| count(mark) > 1);
                assert_eq!(twice, None, "seed {seed}: {texts:?}");
                break;
            }
            Some(mark) => assert!(Instant::now() < end, "seed {seed}: {mark} is not answered"),
        }
        thread::sleep(Duration::from_millis(100));
    }
    eprintln!("{posted} messages, {kills} kills");
    gateway.stop();
    // No model call has a message twice.
    for request in desk.bench.model.requests() {
        let mut new = marks(&request);
        new.sort();
        let count = new.len();
        new.dedup();
        assert_eq!(new.len(), count, "seed {seed}: {:#?}", request.messages());
    }
}

#[test]
fn the_first_set_up_tries_the_token() {
    let desk = Desk::new(echoing());
    let (url, id) = (desk.server.url(), format!("phoneNumberId={}", desk.server.numbers()[0]));
    let options = ["--channel-url", url.as_str(), "--channel-set", &id];
    let with = |token| {
        [
            ("WHATSAPP_ACCESS_TOKEN", token),
            ("WHATSAPP_APP_SECRET", APP_SECRET),
            ("WHATSAPP_VERIFY_TOKEN", VERIFY_TOKEN),
        ]
    };
    let (wrong, right) = (with("EAAwrong"), with(desk.server.token()));
    desk.bench.sets_up(
        "whatsapp",
        (Told { options: &options, variables: &wrong }, "put it into accessToken"),
        (Told { options: &options, variables: &right }, "+1 555-078-3881 Claw"),
    );
}
