//! The config file changes while the gateway runs.

use super::*;

const RELOADED: &str = "the config was reloaded";
const REFUSED: &str = "the config is not reloaded";

impl Bench {
    /// Saves a config as many editors do: under another name, which is then changed.
    fn save(&self, change: impl FnOnce(&mut Value)) {
        let mut config = TempHome::config_for(self.model.url(), WireFormat::AnthropicMessages);
        config["gateway"] = json!({"port": self.port});
        change(&mut config);
        self.save_text(&format!("{config:#}"));
    }

    fn save_text(&self, text: &str) {
        let new = self.home.write(".myclaw/myclaw.json~", text);
        std::fs::rename(new, self.home.config_path()).unwrap();
    }

    fn status(&self) -> String {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        let shown = RunningChild::run(command.args(["gateway", "status"]));
        shown.assert_code(0);
        shown.stdout()
    }
}

impl Gateway {
    /// Waits until the gateway has said something `count` times.
    fn wait_for(&self, words: &str, count: usize) -> String {
        let end = std::time::Instant::now() + PATIENCE;
        loop {
            let said = self.child.wait_for_stderr(words);
            if said.matches(words).count() >= count {
                return said;
            }
            assert!(std::time::Instant::now() < end, "not {count} times {words:?}: {said}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn answer(&self, id: &str) -> Value {
        let message = self.client.send("main", id, &format!("<m{}>", &id[1..])).unwrap();
        self.client.outcome(&message).unwrap()["reply"].clone()
    }

    fn health(&self) -> Value {
        self.client.get("/health").unwrap().1["config"].clone()
    }

    fn config_state(&self) -> Value {
        self.client.get("/api/status").unwrap().1["config"].clone()
    }
}

#[test]
fn the_next_run_of_an_open_session_uses_the_new_model_and_key() {
    let bench = Bench::new(echoing());
    let other = ModelServer::spawn_blocking_thread(answering("the other model"));
    let gateway = bench.start();
    assert_eq!(gateway.answer("m1"), "re: <m1>");
    bench.save(|config| {
        config["provider"]["baseUrl"] = json!(other.url());
        config["provider"]["authProfiles"][0]["apiKey"] = json!("another-key");
    });
    gateway.wait_for(RELOADED, 1);
    assert_eq!(gateway.answer("m2"), "the other model");
    assert_eq!(other.last_request().header("x-api-key"), Some("another-key"));
    assert_eq!(bench.said("main"), ["<m1>", "re: <m1>", "<m2>", "the other model"]);
    assert_eq!(bench.model.requests().len(), 1);
    gateway.stop();
}

#[test]
fn a_run_in_progress_ends_with_the_config_it_began_with() {
    let gate = Gate::closed();
    let bench = Bench::new(echoing_after(&gate));
    let other = ModelServer::spawn_blocking_thread(answering("the other model"));
    let gateway = bench.start();
    let id = gateway.client.send("main", "one", "<m1>").unwrap();
    bench.model.wait_for_requests_blocking(1);
    bench.save(|config| config["provider"]["baseUrl"] = json!(other.url()));
    gateway.child.signal(Signal::HangUp);
    gateway.wait_for(RELOADED, 1);
    gate.open();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "re: <m1>");
    gateway.stop();
}

#[test]
fn a_file_that_cannot_be_used_changes_nothing_and_is_reported_once() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    assert_eq!(gateway.health(), "current");
    for (count, wrong) in
        ["{ agent: { maxRetries: \"3\" } }", "{ gateway: {", ""].into_iter().enumerate()
    {
        bench.save_text(wrong);
        let said = gateway.wait_for(REFUSED, count + 1);
        assert_eq!(said.matches(REFUSED).count(), count + 1, "{said}");
        assert_eq!(gateway.health(), "invalid");
        let id = format!("m{count}");
        assert_eq!(gateway.answer(&id), format!("re: <{id}>"));
    }
    std::fs::remove_file(bench.home.config_path()).unwrap();
    let said = gateway.wait_for("is gone; put it back", 1);
    assert_eq!(said.matches(REFUSED).count(), 4, "{said}");
    // The commands reach the gateway without the file, and say what is wrong.
    bench.save_text("{ gateway: { port: 0 } }");
    gateway.wait_for(REFUSED, 5);
    let shown = bench.status();
    assert!(shown.contains("NOT IN USE"), "{shown}");
    assert!(shown.contains("gateway.port"), "{shown}");
    let (_, metrics) = gateway.client.get("/metrics").unwrap();
    assert!(metrics.as_str().unwrap().contains("\nmyclaw_config_current 0\n"), "{metrics}");
    bench.save(|_| {});
    gateway.wait_for(RELOADED, 1);
    assert_eq!(
        (gateway.health(), gateway.config_state()["problem"].clone()),
        (json!("current"), Value::Null)
    );
    assert!(!bench.status().contains("NOT IN USE"));
    gateway.stop();
}

#[test]
fn a_hangup_reads_the_file_again_and_ends_nothing() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    for count in 1..=3 {
        gateway.child.signal(Signal::HangUp);
        gateway.wait_for(RELOADED, count);
    }
    assert_eq!(gateway.answer("m1"), "re: <m1>");
    gateway.stop();
}

#[test]
fn a_key_in_the_env_file_is_read_again() {
    let bench = Bench::new(echoing());
    bench.home.write(".myclaw/.env", "CLAW_KEY=first-key\n");
    let with_variable = |config: &mut Value| {
        config["provider"]["authProfiles"][0]["apiKey"] = json!("${CLAW_KEY}");
    };
    bench.configure(with_variable);
    let gateway = bench.start();
    assert_eq!(gateway.answer("m1"), "re: <m1>");
    assert_eq!(bench.model.last_request().header("x-api-key"), Some("first-key"));
    bench.home.write(".myclaw/.env", "CLAW_KEY=second-key\n");
    gateway.wait_for(RELOADED, 1);
    assert_eq!(gateway.answer("m2"), "re: <m2>");
    assert_eq!(bench.model.last_request().header("x-api-key"), Some("second-key"));
    gateway.stop();
}

#[test]
fn another_port_needs_a_restart_and_another_token_does_not() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    let (port, token) = (free_port(), "a-token-of-the-config-file");
    bench.save(|config| config["gateway"] = json!({"port": port, "token": token}));
    gateway.wait_for("restart the gateway to use the new gateway.port", 1);
    assert_eq!(gateway.client.get("/api/status").unwrap().0, 401);
    let client = Client { token: token.to_owned(), ..gateway.client };
    let (status, state) = client.get("/api/status").unwrap();
    assert_eq!((status, &state["config"]["needsRestart"]), (200, &json!(["gateway.port"])));
    // The commands find it where it is.
    let shown = bench.status();
    assert!(shown.contains("restart     needed for the new gateway.port"), "{shown}");
    bench.save(|_| {});
    gateway.wait_for(RELOADED, 2);
    assert_eq!(gateway.config_state()["needsRestart"], json!([]));
    assert_eq!(client.get("/api/status").unwrap().0, 401);
    gateway.stop();
}

#[test]
fn agents_and_heartbeats_come_and_go() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    let other = "agent:helper:channel:web:account:default:peer:direct:owner";
    let refused = gateway.client.send(other, "m1", "<m1>").unwrap_err();
    assert!(refused.to_string().contains("400"), "{refused}");
    let heartbeats = || {
        let (status, list) = gateway.client.post("/api/cron", &json!({"action": "list"})).unwrap();
        assert_eq!(status, 200, "{list}");
        list.to_string().matches("Heartbeat of").count()
    };
    assert_eq!(heartbeats(), 1);
    bench.save(|config| {
        config["agents"] = json!({
            "defaults": {"heartbeat": {"every": "0m"}, "sandbox": {"mode": "off"}},
            "list": [{"id": "main"}, {"id": "helper"}],
        });
    });
    gateway.wait_for(RELOADED, 1);
    let id = gateway.client.send(other, "m2", "<m2>").unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "re: <m2>");
    assert_eq!(heartbeats(), 0);
    bench.save(|_| {});
    gateway.wait_for(RELOADED, 2);
    assert_eq!(heartbeats(), 1);
    gateway.stop();
}
