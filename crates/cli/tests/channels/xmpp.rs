//! XMPP, against Prosody, with a second client made with slixmpp. `scripts/test` installs both; `MYCLAW_SLIXMPP_PYTHON` names
//! a Python that has slixmpp.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use myclaw_testkit::{Random, number_from};

use super::third_party::installed;
use super::*;

/// Kills in a quick run.
const DEFAULT_KILLS: u64 = 5;
/// Longest life of a process.
const LONGEST_LIFE: Duration = Duration::from_millis(1_500);
const PROSODY: &str = "/usr/bin/prosody";
const ROOM: &str = "team@rooms.localhost";

/// How the server encrypts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Encryption {
    None,
    StartTls,
}

/// A server that ends with this value.
pub(super) struct Prosody {
    child: RunningChild,
    home: TempHome,
    python: PathBuf,
    pub(super) port: u16,
    files_port: u16,
    encryption: Encryption,
}

impl Prosody {
    pub(super) fn start(encryption: Encryption) -> Option<Self> {
        let python = installed("MYCLAW_SLIXMPP_PYTHON")?;
        if !Path::new(PROSODY).exists() {
            myclaw_testkit::skip_without("Prosody is not installed; scripts/test installs it");
            return None;
        }
        let (home, port, files_port) = (TempHome::new(), free_port(), free_port());
        let root = home.path().to_path_buf();
        fs::create_dir_all(root.join("data")).unwrap();
        let tls = match encryption {
            Encryption::None => "c2s_require_encryption = false\n".to_owned(),
            Encryption::StartTls => {
                super::email::make_certificate(&root);
                format!(
                    "c2s_require_encryption = true\nssl = {{ key = \"{0}/server.key\"; certificate = \"{0}/server.pem\" }}\n",
                    root.display()
                )
            }
        };
        let root = root.display();
        let config = format!(
            "run_as_root = true\npidfile = \"{root}/pid\"\ndata_path = \"{root}/data\"\nlog = {{ debug = \"{root}/log\" }}\n\
             interfaces = {{ \"127.0.0.1\" }}\nc2s_ports = {{ {port} }}\ns2s_ports = {{ }}\nhttp_ports = {{ {files_port} }}\n\
             http_interfaces = {{ \"127.0.0.1\" }}\nhttps_ports = {{ }}\nauthentication = \"internal_hashed\"\n{tls}\
             modules_enabled = {{ \"roster\", \"saslauth\", \"tls\", \"disco\", \"ping\", \"smacks\", \"mam\", \"carbons\", \"posix\" }}\n\
             modules_disabled = {{ \"s2s\" }}\nVirtualHost \"localhost\"\n\
             Component \"rooms.localhost\" \"muc\"\n  modules_enabled = {{ \"muc_mam\" }}\n  muc_room_locking = false\n\
             Component \"files.localhost\" \"http_file_share\"\n  http_host = \"127.0.0.1\"\n\
               http_external_url = \"http://127.0.0.1:{files_port}/\"\n"
        );
        let file = home.write("prosody.cfg.lua", config);
        for person in ["claw", "ann", "bob"] {
            let mut command = Command::new("/usr/bin/prosodyctl");
            command.arg("--config").arg(&file).args([
                "--root",
                "register",
                person,
                "localhost",
                SECRET,
            ]);
            let made = command.output().unwrap();
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
        }
        let child = Self::spawn(&file, port);
        Some(Self { child, home, python, port, files_port, encryption })
    }

    fn spawn(file: &Path, port: u16) -> RunningChild {
        let child = RunningChild::spawn(Command::new(PROSODY).arg("--config").arg(file).arg("-F"));
        let end = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "Prosody does not start");
            thread::sleep(Duration::from_millis(20));
        }
        child
    }

    fn restart(&mut self) {
        self.child = Self::spawn(&self.home.path().join("prosody.cfg.lua"), self.port);
    }

    pub(super) fn configure(&self, bench: &Bench, change: impl FnOnce(&mut Value)) {
        let security = if self.encryption == Encryption::None { "none" } else { "starttls" };
        bench.configure(|config| {
            // The files of the server are on this machine.
            let files = format!("127.0.0.1:{}", self.files_port);
            config["tools"] = json!({"web": {"fetch": {"allowHosts": [files]}}});
            config["channels"] = json!({"xmpp": {
                "address": "claw@localhost", "password": SECRET, "host": "127.0.0.1", "port": self.port,
                "security": security, "dmPolicy": "open", "groups": {ROOM: {}},
            }});
            change(&mut config["channels"]["xmpp"]);
        });
    }
}

/// Somebody at the server.
struct Person {
    child: Child,
    input: ChildStdin,
    events: mpsc::Receiver<Value>,
    seen: Vec<Value>,
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Person {
    fn join(server: &Prosody, name: &str) -> Self {
        Self::join_as(server, name, name)
    }

    /// With another name in the room.
    fn join_as(server: &Prosody, name: &str, nick: &str) -> Self {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/third-party/xmpp-client.py");
        let options = json!({
            "address": format!("{name}@localhost/test"), "password": SECRET, "host": "127.0.0.1",
            "port": server.port, "room": ROOM, "nick": nick,
        });
        let mut command = Command::new(&server.python);
        command.arg(script).arg(options.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, events) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take().unwrap();
        let mut person = Self { child, input, events, seen: Vec::new() };
        person.wait_for("ready", |event| event["event"] == "ready");
        person
    }

    fn run(&mut self, command: &Value) {
        writeln!(self.input, "{command}").unwrap();
    }

    fn write(&mut self, text: &str) {
        self.run(&json!({"do": "send", "to": "claw@localhost", "text": text}));
    }

    fn write_in_room(&mut self, text: &str) {
        self.run(&json!({"do": "send", "to": ROOM, "text": text, "kind": "groupchat"}));
    }

    fn wait_for(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let event = self.events.recv_timeout(left);
            assert!(event.is_ok(), "{what} did not come: {:#?}", self.seen);
            let event = event.unwrap();
            self.seen.push(event.clone());
            if is_it(&event) {
                return event;
            }
        }
    }

    /// The next message of `kind` with these words.
    fn hear(&mut self, kind: &str, words: &str) -> Value {
        self.wait_for(words, |event| {
            event["event"] == "message"
                && event["kind"] == kind
                && event["sender"].as_str().unwrap_or_default().contains("claw")
                && event["text"].as_str().unwrap_or_default().contains(words)
        })
    }

    fn sees_agent(&mut self) {
        self.wait_for("the agent in the room", |event| {
            event["event"] == "presence" && event["sender"] == format!("{ROOM}/claw")
        });
    }
}

#[test]
fn people_are_answered_in_rooms_and_directly() {
    let Some(mut server) = Prosody::start(Encryption::None) else { return };
    let bench = Bench::new(echoing());
    server.configure(&bench, |_| {});
    let mut ann = Person::join(&server, "ann");
    // What was said before the first start is not answered, then or later.
    ann.write("<m0>");
    ann.write_in_room("claw, <m99>");
    let probed = bench.run(&["channels", "probe"]);
    let words = "ok      xmpp default: claw@localhost at 127.0.0.1:";
    assert!(probed.stdout().contains(words), "{}", probed.stdout());
    let gateway = bench.start();
    ann.sees_agent();
    works(&gateway);
    ann.write("*hi* <m1>");
    assert_eq!(ann.hear("chat", "re: ")["text"], "re: <m1>");
    let is_typing =
        |event: &Value| event["xml"].as_str().unwrap_or_default().contains("<composing");
    assert!(ann.seen.iter().any(is_typing), "{:#?}", ann.seen);
    ann.write_in_room("an aside");
    ann.write_in_room("Claw: <m2>");
    ann.hear("groupchat", "re: <m2>");
    let asked = bench.asked();
    assert!(asked.contains("> an aside") && asked.contains("in the group \\\"team\\\""), "{asked}");
    // A forged copy, and what is encrypted between people.
    ann.run(&json!({"do": "raw", "xml": "<message to='claw@localhost'><received xmlns='urn:xmpp:carbons:2'>\
        <forwarded xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client' from='bob@localhost/x' type='chat'>\
        <body>&lt;m3&gt;</body></message></forwarded></received></message>"}));
    ann.run(&json!({"do": "raw", "xml": "<message to='claw@localhost' type='chat'><body>&lt;m4&gt;</body>\
        <encrypted xmlns='eu.siacs.conversations.axolotl'/></message>"}));
    gateway.channels(|state| state["dropped"].to_string().contains("encrypted between people"));
    // An edit refers to what was said.
    ann.run(&json!({"do": "send", "to": "claw@localhost", "text": "<m5>", "id": "five"}));
    ann.hear("chat", "re: <m5>");
    ann.run(&json!({"do": "raw", "xml": "<message to='claw@localhost' type='chat' id='six'><body>&lt;m6&gt;</body>\
        <replace xmlns='urn:xmpp:message-correct:0' id='five'/></message>"}));
    ann.hear("chat", "re: <m6>");
    assert!(bench.asked().contains("edited an earlier message"), "{}", bench.asked());
    assert_eq!(bench.model.requests().len(), 4);
    // What is said while the gateway is away is answered when it is back.
    gateway.stop();
    ann.write("<m7>");
    ann.write_in_room("claw, <m8>");
    let gateway = bench.start();
    while answers(&ann, 7) == 0 || answers(&ann, 8) == 0 {
        ann.wait_for("the answers", |event| {
            event["text"].as_str().unwrap_or_default().starts_with("re: ")
        });
    }
    // The server goes away and comes back.
    server.child.signal(Signal::Kill);
    gateway.channels(|state| state["channels"][0]["state"] == "waiting");
    server.restart();
    let mut ann = Person::join(&server, "ann");
    ann.write("<m9>");
    ann.hear("chat", "re: <m9>");
    gateway.stop();
    let asked: Vec<String> = bench
        .model
        .requests()
        .iter()
        .map(|request| json!(request.messages().last()).to_string())
        .collect();
    assert_eq!(asked.len(), 7, "{asked:?}");
}

/// Somebody else has its name in the room: the state says so, both names are heard, and it takes its own back.
#[test]
fn a_name_that_somebody_has_in_a_room_is_shown_and_taken_back() {
    let Some(server) = Prosody::start(Encryption::None) else { return };
    let bench = Bench::new(echoing());
    server.configure(&bench, |_| {});
    let other = Person::join_as(&server, "bob", "claw");
    let mut ann = Person::join(&server, "ann");
    let gateway = bench.start();
    let is_degraded = |state: &Value| {
        state["channels"][0]["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("is claw_, because somebody else has claw"))
    };
    let state = gateway.channels(is_degraded);
    assert_eq!(state["channels"][0]["state"], "working");
    let shown = bench.run(&["channels", "status"]);
    assert!(shown.stdout().contains("claw_"), "{}", shown.stdout());
    ann.write_in_room("claw_, <m1>");
    ann.hear("groupchat", "re: <m1>");
    ann.write_in_room("claw: <m2>");
    ann.hear("groupchat", "re: <m2>");
    drop(other);
    gateway.channels(|state| state["channels"][0]["reason"].is_null());
    ann.write_in_room("claw: <m3>");
    let heard = ann.hear("groupchat", "re: <m3>");
    assert_eq!(heard["sender"], format!("{ROOM}/claw"));
    // It hears nothing of its own: an echo of itself under either name is no message.
    assert_eq!(bench.model.requests().len(), 3);
    gateway.stop();
}

#[test]
fn strangers_get_a_code_and_become_contacts() {
    let Some(mut server) = Prosody::start(Encryption::None) else { return };
    let bench = Bench::new(echoing());
    let files = Tap::before(server.files_port);
    server.files_port = files.port;
    server.configure(&bench, |xmpp| xmpp["dmPolicy"] = json!("pairing"));
    let mut ann = Person::join(&server, "ann");
    let gateway = bench.start();
    works(&gateway);
    ann.run(&json!({"do": "raw", "xml": "<presence to='claw@localhost' type='subscribe'/>"}));
    ann.wait_for("the contact", |event| event["event"] == "subscribed");
    let url = format!("http://127.0.0.1:{}/x.txt", files.port);
    let file = json!({"do": "send", "to": "claw@localhost", "text": url, "url": url});
    ann.run(&file);
    let asked = ann.hear("chat", "pairing approve")["text"].as_str().unwrap().to_owned();
    let code = asked.split("pairing approve ").nth(1).unwrap();
    let code: String = code.chars().take_while(char::is_ascii_alphanumeric).collect();
    bench.run(&["pairing", "approve", &code]).assert_code(0);
    ann.write("<m1>");
    ann.hear("chat", "re: <m1>");
    // Only now are files of hers downloaded.
    assert_eq!(files.take(), "");
    ann.run(&file);
    until("the download", || files.take().contains("GET /x.txt"));
    // Behind a nickname of a room can be anybody.
    ann.run(&json!({"do": "send", "to": format!("{ROOM}/claw"), "text": "<m2>"}));
    gateway.channels(|state| state["dropped"].to_string().contains("through a room"));
    gateway.stop();
}

#[test]
fn files_go_both_ways() {
    let Some(server) = Prosody::start(Encryption::None) else { return };
    let bench = Bench::new(answering("Here.\n\nMEDIA: out.txt"));
    server.configure(&bench, |_| {});
    bench.write_for_chats("out.txt", "from the agent");
    let mut ann = Person::join(&server, "ann");
    let gateway = bench.start();
    ann.sees_agent();
    works(&gateway);
    ann.run(&json!({"do": "upload", "text": "from ann"}));
    let uploaded = ann.wait_for("the file", |event| event["event"] == "uploaded");
    let url = uploaded["url"].as_str().unwrap().to_owned();
    ann.run(&json!({"do": "send", "to": "claw@localhost", "text": url, "url": url}));
    ann.hear("chat", "Here.");
    let url = ann.hear("chat", "/out.txt")["text"].as_str().unwrap().to_owned();
    let path = url.strip_prefix(&format!("http://127.0.0.1:{}", server.files_port)).unwrap();
    let files = Client { port: server.files_port, token: String::new() };
    let request = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
    let (status, file) = files.raw(&request).unwrap();
    assert_eq!((status, file.ends_with("from the agent")), (200, true), "{file}");
    assert!(bench.asked().contains("note.txt"), "{}", bench.asked());
    // An address of this machine that the config does not permit.
    let url = format!("http://127.0.0.1:{}/x.txt", server.port);
    ann.run(&json!({"do": "send", "to": "claw@localhost", "text": url, "url": url}));
    ann.hear("chat", "Here.");
    assert!(bench.asked().contains("is an address of this machine"), "{}", bench.asked());
    gateway.stop();
}

#[test]
fn what_cannot_work_is_one_clear_message() {
    let Some(server) = Prosody::start(Encryption::StartTls) else { return };
    let bench = Bench::new(echoing());
    let ca = server.home.path().join("ca.pem");
    let probe = || {
        let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
        RunningChild::run(command.args(["channels", "probe"]).env("SSL_CERT_FILE", &ca))
    };
    server.configure(&bench, |_| {});
    let probed = probe();
    assert!(probed.stdout().contains("ok      xmpp"), "{}", probed.stdout());
    for (key, value, words) in [
        ("port", json!(free_port()), "cannot be reached"),
        ("password", json!("wrong"), "refused the login: The response provided by the client"),
        ("address", json!("nobody@localhost"), "refused the login"),
        ("address", json!("claw@other.example"), "check"),
        ("security", json!("none"), "offers no login that can be used"),
    ] {
        server.configure(&bench, |xmpp| xmpp[key] = value);
        let probed = probe();
        probed.assert_code(1);
        assert!(probed.stdout().contains(words), "{key}: {}", probed.stdout());
    }
    // Without the authority, the certificate is not trusted.
    server.configure(&bench, |_| {});
    let probed = bench.run(&["channels", "probe"]);
    probed.assert_code(1);
    assert!(probed.stdout().contains("no certificate that is trusted"), "{}", probed.stdout());
    // A gateway with the wrong password works on and says what is wrong.
    server.configure(&bench, |xmpp| {
        xmpp["password"] = json!("wrong");
    });
    let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    let child = RunningChild::spawn(command.arg("gateway").env("SSL_CERT_FILE", &ca));
    let gateway = Gateway::of(child, &bench.home, bench.port);
    let state = gateway.channels(|state| state["channels"][0]["state"] == "waiting");
    assert!(state.to_string().contains("check `address` and `password`"), "{state:#}");
    gateway.stop();
}

#[test]
fn the_first_set_up_tries_an_account_before_it_is_kept() {
    let Some(server) = Prosody::start(Encryption::None) else { return };
    let bench = Bench::new(echoing());
    let port = format!("port={}", server.port);
    let values = ["host=127.0.0.1", &port, "security=none", "address=claw@localhost"];
    let options: Vec<&str> =
        values.into_iter().flat_map(|value| ["--channel-set", value]).collect();
    let missing = bench.onboard("xmpp", &Told { options: &options[..6], ..Told::default() });
    missing.assert_code(2);
    let words = "--channel-set address=… is missing: the account's own address";
    assert!(missing.stderr().contains(words), "{}", missing.stderr());
    let right = [("XMPP_PASSWORD", SECRET)];
    bench.sets_up(
        "xmpp",
        (Told { options: &options, variables: &[("XMPP_PASSWORD", "wrong")] }, "refused the login"),
        (Told { options: &options, variables: &right }, "claw@localhost at 127.0.0.1:"),
    );
}

#[test]
fn a_server_that_is_down_at_the_start_is_waited_for() {
    let Some(mut server) = Prosody::start(Encryption::None) else { return };
    let bench = Bench::new(echoing());
    server.configure(&bench, |_| {});
    server.child.signal(Signal::Kill);
    until("the end of the server", || {
        std::net::TcpStream::connect(("127.0.0.1", server.port)).is_err()
    });
    let gateway = bench.start();
    let state = gateway.channels(|state| state["channels"][0]["state"] == "waiting");
    assert!(state.to_string().contains("cannot be reached"), "{state:#}");
    server.restart();
    works(&gateway);
    let mut ann = Person::join(&server, "ann");
    ann.write("<m1>");
    ann.hear("chat", "re: <m1>");
    gateway.stop();
}

#[test]
fn messages_in_are_answers_out_whatever_is_killed() {
    let kills = number_from("MYCLAW_XMPP_KILLS").unwrap_or(DEFAULT_KILLS);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_123);
    let mut random = Random::new(seed);
    let Some(server) = Prosody::start(Encryption::None) else { return };
    let bench = Bench::new(echoing());
    server.configure(&bench, |_| {});
    let mut ann = Person::join(&server, "ann");
    let mut gateway = bench.start();
    ann.sees_agent();
    works(&gateway);
    let mut number = 0;
    for kill in 0..kills {
        ann.write(&format!("<m{number}>"));
        ann.write_in_room(&format!("claw: <m{}>", number + 1));
        ann.write(&format!("<m{}>", number + 2));
        number += 3;
        thread::sleep(Duration::from_micros(random.below(LONGEST_LIFE.as_micros() as u64)));
        gateway.kill();
        gateway = bench.start();
        eprint!("\rseed {seed}, kill {}", kill + 1);
    }
    eprintln!();
    let end = Instant::now() + PATIENCE + Duration::from_secs(3 * kills);
    while (0..number).any(|number| answers(&ann, number) == 0) {
        let left = end.saturating_duration_since(Instant::now());
        let event = ann.events.recv_timeout(left);
        let missing: Vec<_> = (0..number).filter(|number| answers(&ann, *number) == 0).collect();
        assert!(event.is_ok(), "seed {seed}: no answer to {missing:?}");
        ann.seen.push(event.unwrap());
    }
    // What is delivered twice comes before the answer to one more message.
    ann.write("<m999999>");
    ann.hear("chat", "<m999999>");
    for number in 0..number {
        assert_eq!(answers(&ann, number), 1, "seed {seed}: answers to <m{number}>");
    }
    gateway.stop();
}

/// How many answers of the agent hold the word of a message.
fn answers(ann: &Person, number: u64) -> usize {
    let word = format!("<m{number}>");
    let is_answer = |event: &&Value| {
        let text = event["text"].as_str().unwrap_or_default();
        event["event"] == "message" && text.starts_with("re: ") && text.contains(&word)
    };
    ann.seen.iter().filter(is_answer).count()
}
