//! The clock of the machine is set while the gateway runs. `libfaketime` (Debian's package) stands for the clock.

use std::path::PathBuf;

use myclaw_testkit::TelegramFault;

use super::*;

const LIBRARIES: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
];

/// The wall clock of a gateway. Its monotonic clock is the machine's.
struct SetClock {
    library: &'static str,
    file: PathBuf,
}

impl SetClock {
    /// `None`, with a line that says so, if the library is not installed.
    fn new(bench: &Bench) -> Option<Self> {
        let library = LIBRARIES.into_iter().find(|path| PathBuf::from(path).exists());
        let Some(library) = library else {
            myclaw_testkit::skip_without("libfaketime is not installed");
            return None;
        };
        let clock = Self { library, file: bench.home.path().join("clock") };
        clock.set("+0");
        Some(clock)
    }

    /// Sets it to this much from the machine's clock, such as `-120m`.
    fn set(&self, offset: &str) {
        std::fs::write(&self.file, offset).unwrap();
    }

    fn start(&self, bench: &Bench) -> Gateway {
        let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
        command
            .arg("gateway")
            .env("LD_PRELOAD", self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        Gateway::of(RunningChild::spawn(&mut command), &bench.home, bench.port)
    }
}

impl Bench {
    fn json(&self, arguments: &[&str]) -> Value {
        let done = self.run(arguments);
        done.assert_code(0);
        serde_json::from_str(&done.stdout()).unwrap()
    }

    fn add_job(&self, arguments: &[&str]) -> String {
        let job =
            self.json(&[&["cron", "add", "look", "--isolated", "--json"], arguments].concat());
        job["job"]["id"].as_str().unwrap().to_owned()
    }

    /// The due times of a job's occurrences with their outcomes, the oldest first, once `count` of them have ended.
    fn occurrences(&self, job: &str, count: usize) -> Vec<(u64, String)> {
        let end = Instant::now() + PATIENCE;
        loop {
            let answer = self.json(&["cron", "runs", job, "-n", "50", "--json"]);
            let runs = answer["runs"].as_array().unwrap().iter().rev();
            let ended: Vec<(u64, String)> = runs
                .filter(|run| run["state"]["state"] == "ended")
                .map(|run| {
                    let outcome = run["state"]["outcome"]["outcome"].as_str().unwrap();
                    (run["due"].as_u64().unwrap(), outcome.to_owned())
                })
                .collect();
            if ended.len() >= count {
                return ended;
            }
            assert!(Instant::now() < end, "{answer:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a job that was due after the clock was set has run, so that the others were looked at, too.
    fn let_one_pass(&self) {
        let job = self.add_job(&["--at", "1s", "--keep"]);
        assert_eq!(self.occurrences(&job, 1).len(), 1);
    }
}

impl Gateway {
    fn open_messages(&self) -> u64 {
        self.client.get("/api/status").unwrap().1["openMessages"].as_u64().unwrap()
    }
}

#[test]
fn parts_keep_their_order_when_the_clock_is_set_back_and_the_gateway_killed() {
    let long: Vec<String> = (0..6_000).map(|number| number.to_string()).collect();
    let words = long.join(" ");
    let bench = Bench::new(Script::answer_with(move |_, number| match number {
        0 => Reply::anthropic().text(&words).into(),
        1 => Reply::anthropic().text("the second answer").into(),
        _ => Reply::anthropic().text("the third answer").into(),
    }));
    let Some(clock) = SetClock::new(&bench) else { return };
    let mut gateway = clock.start(&bench);
    bench.bot.fail_next("sendMessage", TelegramFault::TooMany(3_000));
    for answers in 1..=3 {
        if answers == 3 {
            // The next process gives its parts a place behind those that wait, too.
            gateway.kill();
            bench.bot.fail_next("sendMessage", TelegramFault::TooMany(3_000));
            gateway = clock.start(&bench);
        }
        bench.bot.write(ANN, "hello");
        let end = Instant::now() + PATIENCE;
        while bench.model.requests().len() < answers || gateway.open_messages() > 0 {
            assert!(Instant::now() < end, "there is no answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        clock.set("-120m");
    }
    assert_eq!(bench.bot.sent().len(), 0);
    gateway.kill();
    let gateway = clock.start(&bench);
    let texts = bench.bot.wait_for("all answers", |sent| {
        let texts: Vec<String> = sent.iter().map(|sent| sent.text().to_owned()).collect();
        (texts.len() >= 10).then_some(texts)
    });
    let said = texts.join(" ");
    assert_eq!(
        said.split_whitespace().collect::<Vec<_>>().join(" "),
        format!("{} the second answer the third answer", long.join(" "))
    );
    gateway.stop();
}

#[test]
fn due_times_run_once_when_the_clock_is_set_forward_and_back() {
    let bench = Bench::new(answering("done"));
    let Some(clock) = SetClock::new(&bench) else { return };
    let gateway = clock.start(&bench);
    let [all, once, skip] =
        ["all", "once", "skip"].map(|policy| bench.add_job(&["--every", "1h", "--missed", policy]));
    // Nothing but the clock tells the gateway that time has passed.
    clock.set("+190m");
    let ran = bench.occurrences(&all, 3);
    let first = ran[0].0;
    let hour = 3_600_000;
    let answered = |due| (due, "answered".to_owned());
    let expected = [first, first + hour, first + 2 * hour].map(answered);
    assert_eq!(ran, expected);
    let outcomes = |job: &str, count: usize| -> Vec<String> {
        bench.occurrences(job, count).into_iter().map(|run| run.1).collect()
    };
    assert_eq!(outcomes(&once, 1), ["answered"]);
    assert_eq!(outcomes(&skip, 2), ["missed"; 2]);
    // What ran is not due again, in this process and in the next one.
    clock.set("+0");
    bench.let_one_pass();
    gateway.kill();
    let gateway = clock.start(&bench);
    bench.let_one_pass();
    assert_eq!(bench.occurrences(&all, 3), expected);
    assert_eq!(outcomes(&once, 1), ["answered"]);
    // The plan continues where it was.
    clock.set("+250m");
    let dues: Vec<u64> = bench.occurrences(&all, 4).into_iter().map(|run| run.0).collect();
    assert_eq!(dues, [0, 1, 2, 3].map(|hours| first + hours * hour));
    assert_eq!(outcomes(&once, 2), ["answered"; 2]);
    assert_eq!(outcomes(&skip, 3), ["missed"; 3]);
    gateway.stop();
}

#[test]
fn a_day_forward_and_an_hour_back_repeat_and_lose_nothing() {
    let bench = Bench::new(echoing());
    let Some(clock) = SetClock::new(&bench) else { return };
    let gateway = clock.start(&bench);
    let job = bench.add_job(&["--every", "1h", "--missed", "once"]);
    // A part waits for its next attempt while the clock is set.
    for _ in 0..2 {
        bench.bot.fail_next("sendMessage", TelegramFault::TooMany(2));
    }
    let say = |number: usize| {
        bench.bot.write(ANN, &format!("<m{number}>"));
        let mark = format!("&lt;m{number}&gt;");
        bench.bot.wait_for_text(&mark);
    };
    bench.bot.write(ANN, "<m1>");
    bench.model.wait_for_requests_blocking(1);
    clock.set("+1440m");
    assert_eq!(bench.occurrences(&job, 1).len(), 1);
    bench.bot.wait_for_text("&lt;m1&gt;");
    say(2);
    clock.set("+1380m");
    bench.let_one_pass();
    say(3);
    gateway.kill();
    let gateway = clock.start(&bench);
    bench.let_one_pass();
    say(4);
    assert_eq!(bench.occurrences(&job, 1).len(), 1);
    // Where it was before, it continues: an hour after the last time.
    clock.set("+1510m");
    let dues: Vec<u64> = bench.occurrences(&job, 2).into_iter().map(|run| run.0).collect();
    assert_eq!((dues.len(), dues[1] > dues[0]), (2, true), "{dues:?}");
    let sent = bench.bot.sent();
    for number in 1..=4 {
        let mark = format!("&lt;m{number}&gt;");
        assert_eq!(sent.iter().filter(|sent| sent.text().contains(&mark)).count(), 1, "{sent:#?}");
    }
    gateway.stop();
}
