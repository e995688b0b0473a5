//! Channels against servers that were not written for this project. `scripts/test` installs them and sets the variables
//! that name them; without one, its tests say that they were skipped.

use std::path::PathBuf;
use std::process::Command;

use super::*;

/// The directory that a variable names, if it is set.
pub(super) fn installed(variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists());
    if found.is_none() {
        myclaw_testkit::skip_without(&format!("{variable} names nothing; scripts/test sets it"));
    }
    found
}

/// A Bot API server from npm, which speaks for people over HTTP as well.
struct TestApi {
    /// It ends when its standard input does.
    child: RunningChild,
    client: Client,
}

impl TestApi {
    const TOKEN: &str = "666:third-party";

    fn start() -> Option<Self> {
        let package = installed("MYCLAW_TELEGRAM_TEST_API")?;
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/third-party/telegram-server.mjs");
        let port = free_port();
        let mut command = Command::new("node");
        let child = RunningChild::spawn_piped(
            command.arg(script).env("PACKAGE", package).env("PORT", port.to_string()),
        );
        child.wait_for_stdout("ready");
        Some(Self { child, client: Client { port, token: String::new() } })
    }

    fn write(&self, text: &str) {
        let person = json!({"id": ANN, "first_name": "Ann", "is_bot": false});
        let message = json!({
            "botToken": Self::TOKEN, "date": 1_700_000_000, "text": text, "from": person,
            "chat": {"id": ANN, "type": "private", "first_name": "Ann"},
        });
        assert_eq!(self.client.post("/sendMessage", &message).unwrap().0, 200);
    }

    /// The texts of the bot, as they are now.
    fn said(&self) -> Vec<String> {
        let asked = self.client.post("/getUpdatesHistory", &json!({"token": Self::TOKEN}));
        let (_, history) = asked.unwrap();
        let all = history["result"].as_array().unwrap().iter();
        let of_bot = all.filter(|update| update["message"]["chat_id"].is_number());
        of_bot.map(|update| update["message"]["text"].as_str().unwrap().to_owned()).collect()
    }

    fn wait_for(&self, words: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.said().iter().any(|text| text.contains(words)) {
            assert!(Instant::now() < end, "{words} did not come: {:?}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn telegram_test_api_delivers_and_shows_answers() {
    let Some(server) = TestApi::start() else { return };
    let bench = Bench::new(echoing());
    bench.configure(|config| {
        let telegram = &mut config["channels"]["telegram"];
        telegram["baseUrl"] = json!(format!("http://127.0.0.1:{}", server.client.port));
        telegram["botToken"] = json!(TestApi::TOKEN);
    });
    let probed = bench.run(&["channels", "probe"]);
    assert!(probed.stdout().contains("@TestNameBot (id 666)"), "{}", probed.stdout());
    let gateway = bench.start();
    server.write("<m1>");
    server.wait_for("&lt;m1&gt;");
    gateway.kill();
    // What is written while nothing runs waits at the server.
    server.write("<m2>");
    let gateway = bench.start();
    server.wait_for("&lt;m2&gt;");
    gateway.stop();
    let mut said = server.said();
    // It says so if it was killed before it knew that the answer had arrived.
    said.retain(|text| !text.starts_with("I do not know whether an answer arrived"));
    assert_eq!(said, ["re: &lt;m1&gt;", "re: &lt;m2&gt;"]);
    server.child.signal(Signal::Kill);
}

#[test]
fn the_first_set_up_of_telegram_tries_the_token() {
    let bench = Bench::new(echoing());
    let url = bench.bot.url();
    let options = ["--channel-url", url.as_str()];
    let right = [("TELEGRAM_BOT_TOKEN", bench.bot.token())];
    bench.sets_up(
        "telegram",
        (Told { options: &options, variables: &[("TELEGRAM_BOT_TOKEN", "1:wrong")] }, "@BotFather"),
        (Told { options: &options, variables: &right }, "@"),
    );
    let Some(server) = TestApi::start() else { return };
    let url = format!("http://127.0.0.1:{}", server.client.port);
    bench.configure(|config| config["channels"] = json!({}));
    let variables = [("TELEGRAM_BOT_TOKEN", TestApi::TOKEN)];
    let kept = bench
        .onboard("telegram", &Told { options: &["--channel-url", &url], variables: &variables });
    kept.assert_code(0);
    assert!(kept.stderr().contains("telegram: @TestNameBot (id 666)"), "{}", kept.stderr());
    server.child.signal(Signal::Kill);
}
