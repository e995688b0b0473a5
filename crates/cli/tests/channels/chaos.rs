//! The gateway is killed at random moments while messages come from Telegram, a webhook and a socket at once, and while
//! it reads a changed config.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use myclaw_testkit::{Random, number_from};

use super::programs::{Receiver, post, socket_path, with_programs, with_programs_and};
use super::*;

/// Kills in a quick run.
const DEFAULT_KILLS: u64 = 15;
/// Longest life of a process.
const LONGEST_LIFE: Duration = Duration::from_millis(900);
/// Pause between two messages of a program.
const PAUSE: Duration = Duration::from_millis(60);
/// People who write on Telegram. The rate of answers to each is limited.
const PEOPLE: u64 = 20;

/// What the sources did.
#[derive(Default)]
struct Load {
    next: AtomicU64,
    is_over: AtomicBool,
    /// Numbers of the messages, by source.
    sent: Mutex<HashMap<&'static str, Vec<u64>>>,
    /// The texts of the parts that the script got, by their ids.
    heard: Mutex<HashMap<String, String>>,
}

impl Load {
    fn number(&self) -> Option<u64> {
        (!self.is_over.load(Ordering::SeqCst)).then(|| self.next.fetch_add(1, Ordering::SeqCst))
    }

    fn note(&self, source: &'static str, number: u64) {
        self.sent.lock().unwrap().entry(source).or_default().push(number);
    }

    fn of(&self, source: &str) -> Vec<u64> {
        self.sent.lock().unwrap().get(source).cloned().unwrap_or_default()
    }

    fn people(&self, bot: &TelegramServer) {
        while let Some(number) = self.number() {
            bot.write((number % PEOPLE + 1) as i64, &format!("<m{number}>"));
            self.note("telegram", number);
            thread::sleep(PAUSE * 2);
        }
    }

    fn program(&self, client: &Client) {
        while let Some(number) = self.number() {
            let body = json!({"id": format!("w{number}"), "text": format!("<m{number}>")});
            while !post(client, &body).is_ok_and(|(status, _)| status == 202) {
                thread::sleep(Duration::from_millis(10));
            }
            self.note("webhook", number);
            thread::sleep(PAUSE);
        }
    }

    /// A script that comes back after each kill, until it has all answers.
    fn script(&self, path: &Path) {
        let mut open = None;
        loop {
            let _ = self.converse(path, &mut open);
            let heard: String = self.heard.lock().unwrap().values().cloned().collect();
            let is_answered = |number: &u64| heard.contains(&format!("<m{number}>"));
            if open.is_none()
                && self.is_over.load(Ordering::SeqCst)
                && self.of("socket").iter().all(is_answered)
            {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Talks until the connection breaks, or for a while. `open` is a message that is not accepted yet.
    fn converse(&self, path: &Path, open: &mut Option<u64>) -> io::Result<()> {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(Duration::from_millis(500)))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        stream.write_all(b"{\"type\":\"listen\",\"chat\":\"script\"}\n")?;
        loop {
            if open.is_none() {
                *open = self.number();
            }
            if let Some(number) = *open {
                let line = json!({
                    "type": "message", "id": format!("s{number}"), "chat": "script", "text": format!("<m{number}>"),
                });
                stream.write_all(format!("{line}\n").as_bytes())?;
            }
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let got: Value = serde_json::from_str(&line)?;
            if got["type"] == "accepted" && open.is_some_and(|open| got["id"] == format!("s{open}"))
            {
                self.note("socket", open.take().unwrap_or_default());
                thread::sleep(PAUSE);
            }
            if let Some(part) = got["partId"].as_str() {
                let text = got["text"].as_str().unwrap().to_owned();
                let before = self.heard.lock().unwrap().insert(part.to_owned(), text.clone());
                assert!(before.is_none_or(|before| before == text), "a part changed");
                stream
                    .write_all(format!("{}\n", json!({"type": "ack", "part": part})).as_bytes())?;
            }
        }
    }
}

/// Makes the gateway read a config with which the bot is connected again.
fn reconfigure((bench, receiver, gateway): (&Bench, &Receiver, &Gateway), number: u64) {
    with_programs_and(bench, receiver, |config| {
        config["channels"]["telegram"]["mediaMaxMb"] = json!(1 + number % 20);
    });
    gateway.child.signal(Signal::HangUp);
}

/// Kills the gateway `kills` times at random moments while `write` gets one number after the other. Gives the last
/// gateway, and how many numbers there were.
pub(super) fn kill_while(
    bench: &Bench,
    (kills, seed): (u64, u64),
    write: impl Fn(u64) + Sync,
) -> (Gateway, u64) {
    let mut random = Random::new(seed);
    let mut gateway = bench.start();
    works(&gateway);
    let (is_over, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let gateway = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                write(count.fetch_add(1, Ordering::SeqCst));
            }
        });
        for kill in 0..kills {
            thread::sleep(Duration::from_micros(random.below(1_500_000)));
            gateway.kill();
            gateway = bench.start();
            eprint!("\rseed {seed}, kill {}", kill + 1);
        }
        eprintln!();
        is_over.store(true, Ordering::SeqCst);
        gateway
    });
    (gateway, count.into_inner())
}

/// Waits until each of the first `count` messages is answered. `times` says how often a word was sent: once, after any kill.
pub(super) fn answered_once(seed: u64, count: u64, times: impl Fn(&str) -> usize) {
    let times = |number: u64| times(&format!("<m{number}>"));
    until("all answers", || (0..count).all(|number| times(number) > 0));
    for number in 0..count {
        assert_eq!(times(number), 1, "seed {seed}: answers to <m{number}>");
    }
}

#[test]
fn messages_in_are_answers_out_whatever_is_killed() {
    let kills = number_from("MYCLAW_GATEWAY_KILLS").unwrap_or(DEFAULT_KILLS);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_123);
    let mut random = Random::new(seed);
    let bench = Bench::new(echoing());
    let receiver = Receiver::start();
    with_programs(&bench, &receiver);
    let load = Load::default();
    let mut gateway = bench.start();
    let client = gateway.client.clone();
    let path = socket_path(&bench);
    let gateway = thread::scope(|scope| {
        scope.spawn(|| load.people(&bench.bot));
        scope.spawn(|| load.program(&client));
        scope.spawn(|| load.script(&path));
        for kill in 0..kills {
            thread::sleep(Duration::from_micros(random.below(LONGEST_LIFE.as_micros() as u64)));
            if kill % 2 == 0 {
                reconfigure((&bench, &receiver, &gateway), kill);
                thread::sleep(Duration::from_micros(random.below(300_000)));
            }
            gateway.kill();
            gateway = bench.start();
            eprint!("\rseed {seed}, kill {}", kill + 1);
        }
        eprintln!();
        load.is_over.store(true, Ordering::SeqCst);
        gateway
    });
    // The rest is sent at Telegram's pace.
    let end = Instant::now() + PATIENCE * 2;
    let count = |texts: &[String], number: u64| {
        let marks = [format!("<m{number}>"), format!("&lt;m{number}&gt;")];
        texts.iter().filter(|text| marks.iter().any(|mark| text.contains(mark))).count()
    };
    let webhook = |receiver: &Receiver| {
        // The key says which are the same.
        let by_key: HashMap<String, Value> = receiver.got().into_iter().collect();
        by_key.values().map(|body| body["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let telegram =
        || bench.bot.sent().iter().map(|sent| sent.text().to_owned()).collect::<Vec<_>>();
    loop {
        let missing = |texts: &[String], source| {
            load.of(source)
                .into_iter()
                .filter(|number| count(texts, *number) == 0)
                .collect::<Vec<_>>()
        };
        let mut reported = gateway.undelivered();
        reported.extend(telegram());
        let open = (missing(&webhook(&receiver), "webhook"), missing(&reported, "telegram"));
        if open == (Vec::new(), Vec::new()) {
            break;
        }
        assert!(Instant::now() < end, "seed {seed}: not answered: {open:?}");
        thread::sleep(Duration::from_millis(100));
    }
    for (source, texts) in [
        ("telegram", telegram()),
        ("webhook", webhook(&receiver)),
        ("socket", load.heard.lock().unwrap().values().cloned().collect()),
    ] {
        let sent = load.of(source);
        assert!(sent.len() as u64 > kills / 4, "only {} messages of {source}", sent.len());
        for number in sent {
            let count = count(&texts, number);
            assert!(count <= 1, "seed {seed}: <m{number}> of {source} was answered {count} times");
        }
    }
    eprintln!(
        "{} messages of Telegram, {} of the webhook, {} of the socket; {} uncertain",
        load.of("telegram").len(),
        load.of("webhook").len(),
        load.of("socket").len(),
        gateway.undelivered().len()
    );
    gateway.stop();
}
