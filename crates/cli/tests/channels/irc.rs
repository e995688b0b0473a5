//! IRC, against ngIRCd, which `scripts/test` installs.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use myclaw_testkit::{Gate, Random, number_from};

use super::*;

mod sasl;

/// Kills in a quick run.
const DEFAULT_KILLS: u64 = 4;

/// A server that ends with this value.
pub(super) struct Ngircd {
    child: RunningChild,
    pub(super) port: u16,
    tls_port: u16,
    home: TempHome,
}

impl Ngircd {
    /// A server that reads at once whatever comes.
    pub(super) fn start() -> Option<Self> {
        Self::start_with(&format!("Password = {SECRET}\n"), 0)
    }

    /// The same without a password.
    pub(super) fn start_open() -> Option<Self> {
        Self::start_with("", 0)
    }

    /// A server that reads nothing of somebody for at most `seconds` after each line, as servers do by default.
    fn start_with_penalty(seconds: u8) -> Option<Self> {
        Self::start_with(&format!("Password = {SECRET}\n"), seconds)
    }

    fn start_with(password: &str, seconds: u8) -> Option<Self> {
        if !std::path::Path::new("/usr/sbin/ngircd").exists() {
            myclaw_testkit::skip_without("ngIRCd is not installed; scripts/test installs it");
            return None;
        }
        let (home, port, tls_port) = (TempHome::new(), free_port(), free_port());
        super::email::make_certificate(home.path());
        let root = home.path().display();
        let file = home.write(
            "ngircd.conf",
            format!(
                "[Global]\nName = irc.example.org\nAdminInfo1 = x\nInfo = x\nListen = 127.0.0.1\nPorts = {port}\n\
                 MotdPhrase = hi\n{password}[Options]\nDNS = no\nIdent = no\nPAM = no\n\
                 [Limits]\nMaxConnectionsIP = 0\nMaxNickLength = 20\nMaxPenaltyTime = {seconds}\n\
                 [SSL]\nCertFile = {root}/server.pem\nKeyFile = {root}/server.key\nPorts = {tls_port}\n"
            ),
        );
        let child = Self::spawn(&file, port);
        Some(Self { child, port, tls_port, home })
    }

    fn spawn(file: &std::path::Path, port: u16) -> RunningChild {
        let child =
            RunningChild::spawn(Command::new("/usr/sbin/ngircd").arg("-n").arg("-f").arg(file));
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "ngIRCd does not start");
            thread::sleep(Duration::from_millis(20));
        }
        child
    }

    fn restart(&mut self) {
        self.child = Self::spawn(&self.home.path().join("ngircd.conf"), self.port);
    }

    pub(super) fn configure(&self, bench: &Bench, change: impl FnOnce(&mut Value)) {
        bench.configure(|config| {
            config["channels"] = json!({"irc": {
                "host": "127.0.0.1", "port": self.port, "tls": false, "nick": "claw", "serverPassword": SECRET,
                "dmPolicy": "open", "groups": {"#team": {}},
            }});
            change(&mut config["channels"]["irc"]);
        });
    }
}

/// Somebody at the server.
pub(super) struct Person {
    stream: TcpStream,
    lines: mpsc::Receiver<String>,
    /// What has come so far.
    pub(super) seen: Vec<String>,
}

impl Person {
    pub(super) fn join(server: &Ngircd, nick: &str) -> Self {
        Self::connect(server.port, nick)
    }

    fn connect(port: u16, nick: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (sender, lines) = mpsc::channel();
        let mut answers = stream.try_clone().unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        thread::spawn(move || {
            for line in reader.lines().map_while(Result::ok) {
                if let Some(word) = line.strip_prefix("PING ") {
                    let _ = answers.write_all(format!("PONG {word}\r\n").as_bytes());
                }
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut person = Self { stream, lines, seen: Vec::new() };
        person.send(&format!("PASS {SECRET}\r\nNICK {nick}\r\nUSER {nick} 0 * :{nick}"));
        person.wait_for(" 001 ");
        person.send("JOIN #team");
        person.wait_for(" 366 ");
        person
    }

    pub(super) fn send(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }

    /// The next line that holds `words`.
    pub(super) fn wait_for(&mut self, words: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            assert!(line.is_ok(), "{words} did not come: {:#?}", self.seen);
            let line = line.unwrap();
            self.seen.push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
    }
}

#[test]
fn people_are_answered_in_channels_and_directly() {
    let Some(mut server) = Ngircd::start() else { return };
    let bench = Bench::new(echoing());
    server.configure(&bench, |_| {});
    let probed = bench.run(&["channels", "probe"]);
    assert!(
        probed.stdout().contains("ok      irc default: claw at 127.0.0.1:"),
        "{}",
        probed.stdout()
    );
    let mut ann = Person::join(&server, "ann");
    let gateway = bench.start();
    ann.wait_for(":claw!");
    works(&gateway);
    ann.send("PRIVMSG claw :\u{2}<m1>\u{2}");
    assert!(ann.wait_for("re: <m1>").contains(" PRIVMSG ann :re: <m1>"));
    ann.send("PRIVMSG #team :an aside");
    ann.send("PRIVMSG #team :Claw: <m2>");
    assert!(ann.wait_for("re: <m2>").contains(" PRIVMSG #team :re: <m2>"));
    let asked = bench.asked();
    assert!(
        asked.contains("in the group \\\"#team\\\"") && asked.contains("> an aside"),
        "{asked}"
    );
    ann.send("PRIVMSG claw :\u{1}ACTION waves <m3>\u{1}");
    ann.wait_for("re: <m3>");
    assert!(bench.asked().contains("* waves <m3>"), "{}", bench.asked());
    // A notice is never answered, so two programs do not talk forever.
    ann.send("NOTICE claw :<m4>");
    ann.send("PRIVMSG claw :\u{1}TIME\u{1}");
    ann.send("PRIVMSG claw :<m5>");
    ann.wait_for("re: <m5>");
    assert_eq!(bench.model.requests().len(), 4);
    // The server goes away and comes back.
    server.child.signal(Signal::Kill);
    gateway.channels(|state| state["channels"][0]["state"] == "waiting");
    server.restart();
    let mut ann = Person::join(&server, "ann");
    works(&gateway);
    ann.send("PRIVMSG claw :<m6>");
    ann.wait_for("re: <m6>");
    gateway.stop();
}

#[test]
fn a_long_answer_is_cut_into_lines_that_arrive_whole() {
    let Some(server) = Ngircd::start() else { return };
    let words: Vec<String> = (0..120).map(|number| format!("größe{number}€")).collect();
    let text = format!("**Here**:\n\n```\n  code\n```\n{}", words.join(" "));
    let bench = Bench::new(answering(&text));
    server.configure(&bench, |_| {});
    // Somebody else has the name.
    let mut other = Person::join(&server, "claw");
    let mut ann = Person::join(&server, "ann");
    let gateway = bench.start();
    ann.wait_for(":claw_!");
    works(&gateway);
    ann.send("PRIVMSG claw_ :hello");
    ann.wait_for(&words[119]);
    let mut heard = Vec::new();
    for line in ann.seen.iter().filter(|line| line.contains(" PRIVMSG ann :")) {
        assert!(line.len() <= 510, "{line}");
        heard.push(line.split_once(" PRIVMSG ann :").unwrap().1.to_owned());
    }
    assert_eq!(heard[..2], ["Here:", "  code"]);
    assert_eq!(heard[2..].join(" "), words.join(" "));
    // Nobody has this name: the refusal says so.
    ann.send("PRIVMSG claw_ :hello");
    ann.send("QUIT");
    let state = gateway.channels(|state| !state["undelivered"].as_array().unwrap().is_empty());
    assert!(state["undelivered"][0]["state"].to_string().contains("No such nick"), "{state:#}");
    gateway.stop();
    other.send("QUIT");
}

#[test]
fn what_cannot_work_is_one_clear_message() {
    let Some(server) = Ngircd::start() else { return };
    let bench = Bench::new(echoing());
    for (key, value, words) in [
        ("port", json!(free_port()), "cannot be reached"),
        ("serverPassword", json!("wrong"), "the IRC server"),
        (
            "sasl",
            json!({"user": "u", "password": "p"}),
            "refused the login: it offers no SASL; check `sasl`",
        ),
    ] {
        server.configure(&bench, |irc| irc[key] = value);
        let probed = bench.run(&["channels", "probe"]);
        probed.assert_code(1);
        assert!(probed.stdout().contains(words), "{key}: {}", probed.stdout());
    }
}

#[test]
fn tls_is_used_and_the_certificate_counts() {
    let Some(server) = Ngircd::start() else { return };
    let bench = Bench::new(echoing());
    server.configure(&bench, |irc| {
        (irc["host"], irc["port"]) = (json!("localhost"), json!(server.tls_port));
        irc["tls"] = json!(true);
    });
    let probed = bench.run(&["channels", "probe"]);
    probed.assert_code(1);
    let said = probed.stdout();
    assert!(
        said.contains("has no certificate that is trusted") && said.contains(AUTHORITY),
        "{said}"
    );
    let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    command.arg("gateway").env(AUTHORITY, server.home.path().join("ca.pem"));
    let gateway = Gateway::of(RunningChild::spawn(&mut command), &bench.home, bench.port);
    works(&gateway);
    let mut ann = Person::join(&server, "ann");
    ann.send("PRIVMSG claw :<m1>");
    ann.wait_for("re: <m1>");
    gateway.stop();
}

#[test]
fn the_first_set_up_tries_the_server_and_keeps_its_password_out_of_the_config() {
    let Some(server) = Ngircd::start() else { return };
    let bench = Bench::new(echoing());
    let (port, password) = (format!("port={}", server.port), format!("serverPassword={SECRET}"));
    let options = |password| {
        let values = ["host=127.0.0.1", port.as_str(), "tls=false", "nick=claw", password];
        values.into_iter().flat_map(|value| ["--channel-set", value]).collect::<Vec<_>>()
    };
    let (wrong, right) = (options("serverPassword=wrong"), options(&password));
    bench.sets_up(
        "irc",
        (Told { options: &wrong, ..Told::default() }, "the IRC server"),
        (Told { options: &right, ..Told::default() }, "claw at 127.0.0.1:"),
    );
    let read = |path| std::fs::read_to_string(path).unwrap();
    let (config, variables) =
        (read(bench.home.config_path()), read(bench.home.state_directory().join(".env")));
    assert!(config.contains("${IRC_SERVER_PASSWORD}") && !config.contains(SECRET), "{config}");
    assert_eq!(variables, format!("IRC_SERVER_PASSWORD={SECRET}\n"));
    // Every later command reads it from there.
    bench.run(&["channels", "probe"]).assert_code(0);
}

/// A server that stands still has an answer that nobody confirms. The person learns it once, and gets the answer again when
/// asked for.
#[test]
fn what_may_be_missing_is_told_once_and_sent_again_when_asked_for() {
    let Some(server) = Ngircd::start() else { return };
    let gate = Gate::closed();
    let held = gate.clone();
    let bench = Bench::new(Script::answer_with(move |request, number| {
        let answer = echo(request).step();
        if number == 0 { answer.hold_after(0, &held) } else { answer }
    }));
    let tap = Tap::before(server.port);
    server.configure(&bench, |irc| irc["port"] = json!(tap.port));
    let mut ann = Person::join(&server, "ann");
    let gateway = bench.start();
    ann.wait_for(":claw!");
    works(&gateway);
    ann.send("PRIVMSG claw :<m1>");
    until("the question", || bench.model.requests().len() == 1);
    server.child.signal(Signal::Pause);
    gate.open();
    until("the answer on its way", || tap.take().contains("re: <m1>"));
    gateway.kill();
    server.child.signal(Signal::Continue);
    ann.wait_for(" QUIT ");
    let gateway = bench.start();
    ann.wait_for("may be missing here");
    gateway.stop();
    ann.wait_for(" QUIT ");
    let gateway = bench.start();
    ann.wait_for(" JOIN ");
    works(&gateway);
    ann.send("PRIVMSG claw :!again");
    ann.send("PRIVMSG claw :<m2>");
    ann.wait_for("re: <m2>");
    let count = |words: &str| ann.seen.iter().filter(|line| line.contains(words)).count();
    assert_eq!(count("may be missing here"), 1, "{:#?}", ann.seen);
    assert_eq!(count("re: <m1>"), 2, "{:#?}", ann.seen);
    gateway.stop();
}

/// What was said while no gateway was there is lost, so the model decides what has arrived: each of that is answered once,
/// or reported once.
#[test]
fn what_arrived_is_answered_or_reported_whatever_is_killed() {
    let kills = number_from("MYCLAW_IRC_KILLS").unwrap_or(DEFAULT_KILLS);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_123);
    let mut random = Random::new(seed);
    let Some(server) = Ngircd::start_with_penalty(2) else { return };
    let bench = Bench::new(echoing());
    server.configure(&bench, |_| {});
    let mut ann = Person::join(&server, "ann");
    let mut gateway = bench.start();
    ann.wait_for(":claw!");
    let mut number = 0;
    for kill in 0..kills {
        for _ in 0..2 {
            ann.send(&format!("PRIVMSG claw :<m{number}>"));
            number += 1;
        }
        thread::sleep(Duration::from_micros(random.below(1_000_000)));
        gateway.kill();
        gateway = bench.start();
        ann.wait_for("claw!");
        ann.wait_for(" JOIN ");
        works(&gateway);
        eprint!("\rseed {seed}, kill {}", kill + 1);
    }
    eprintln!();
    ann.send("PRIVMSG claw :<m999999>");
    ann.wait_for("<m999999>");
    let state = gateway.channels(|_| true);
    let asked: String = bench
        .model
        .requests()
        .iter()
        .map(|request| json!(request.messages()).to_string())
        .collect();
    for number in 0..number {
        let word = format!("<m{number}>");
        let answers = ann
            .seen
            .iter()
            .filter(|line| line.contains(" PRIVMSG ann :re: ") && line.contains(&word))
            .count();
        let reports = state["undelivered"].as_array().unwrap().iter();
        let reports = reports.filter(|part| part.to_string().contains(&word)).count();
        assert!(answers <= 1, "seed {seed}: {word} was answered {answers} times");
        let has_arrived = asked.contains(&word);
        assert!(!has_arrived || answers + reports >= 1, "seed {seed}: {word} is lost: {state:#}");
    }
    gateway.stop();
}
