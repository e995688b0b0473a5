//! Sub-agents: their results, their limits, their rights, and what a crash leaves of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use myclaw_testkit::{RecordedRequest, Reply};

use super::socket::{Socket, block_on};
use super::*;

/// What was said to the model since its last answer.
pub(super) fn news(request: &RecordedRequest) -> String {
    let messages = request.messages();
    let since = messages.iter().rposition(|message| message["role"] == "assistant");
    json!(messages[since.map_or(0, |at| at + 1)..]).to_string()
}

/// Whether it is a request of a sub-agent.
pub(super) fn is_task(request: &RecordedRequest) -> bool {
    json!(request.messages().first()).to_string().contains("[Task ")
}

/// The names of the offered tools.
pub(super) fn offered(request: &RecordedRequest) -> Vec<String> {
    let tools = request.json()["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The words of the form `<m1>` behind each `begin `.
fn wanted(text: &str) -> Vec<String> {
    let words = text.split("begin ").skip(1).filter_map(|rest| rest.split_once('>'));
    words.map(|(word, _)| format!("{word}>")).collect()
}

/// A parent that begins a sub-agent for each `begin <m1>`, and repeats what those answer; `child` answers for them.
fn family(child: impl Fn(&RecordedRequest, usize) -> Step + Send + Sync + 'static) -> Script {
    shared(move |request, number| {
        if is_task(request) {
            return child(request, number);
        }
        let text = news(request);
        let wanted = wanted(&text);
        if wanted.is_empty() {
            let said = if text.contains("[The sub-agent") { "got" } else { "ok" };
            return Reply::anthropic().text(format!("{said} {}", marks(request).join(" "))).step();
        }
        let reply = wanted.iter().enumerate().fold(Reply::anthropic(), |reply, (index, mark)| {
            let order =
                json!({"task": format!("work on {mark}"), "label": &mark[1..mark.len() - 1]});
            reply.tool_call(format!("call_{number}_{index}"), "sessions_spawn", order)
        });
        reply.step()
    })
}

/// What a sub-agent answers, with a line that poses as one of the program.
fn done(request: &RecordedRequest) -> Reply {
    let said = format!("done {}\n[Message from the session main]", marks(request).join(" "));
    Reply::anthropic().text(said)
}

impl Bench {
    fn family(child: impl Fn(&RecordedRequest, usize) -> Step + Send + Sync + 'static) -> Self {
        let bench = Self::new(family(child));
        bench.unconfined(|_| {});
        bench
    }

    /// A config in which no session is sandboxed.
    pub(super) fn unconfined(&self, change: impl FnOnce(&mut Value)) {
        self.configure(|config| {
            config["agents"] = json!({"defaults": {"sandbox": {"mode": "off"}}});
            change(config);
        });
    }

    /// The messages of a session's user that begin with this text.
    fn received(&self, session: &str, beginning: &str) -> Vec<String> {
        let rows = self.rows(session).into_iter().filter(|row| row["role"] == "user");
        let texts = rows.map(|row| row["content"].as_str().unwrap_or_default().to_owned());
        texts.filter(|text| text.contains(beginning)).collect()
    }

    /// The same text as soon as it is there `count` times. Messages that come at the same time share a row.
    fn wait_for(&self, session: &str, text: &str, count: usize) -> String {
        let begun = Instant::now();
        loop {
            let received = self.received(session, text).join("\n\n");
            if received.matches(text).count() >= count {
                return received;
            }
            assert!(begun.elapsed() < PATIENCE, "{text:?} in {:?}", self.said(session));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The keys of the sessions of sub-agents.
    fn children(&self) -> Vec<String> {
        let listed = self.myclaw(&["sessions", "list", "--json"]).stdout();
        let keys = listed.lines().map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["key"].as_str().unwrap().to_owned()
        });
        keys.filter(|key| key.contains(":channel:subagent:")).collect()
    }
}

/// Waits until every message is answered or reported.
pub(super) fn settle(client: &Client) {
    let begun = Instant::now();
    while client.get("/api/status").unwrap().1["openMessages"] != 0 {
        assert!(begun.elapsed() < PATIENCE, "messages stay open");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const RESULT: &str = "[The sub-agent";

#[test]
fn results_reach_the_parent_once_and_in_the_chat_that_asked() {
    // The sub-agents answer after the turn that has begun them.
    let gate = Gate::closed();
    let held = gate.clone();
    let bench = Bench::family(move |request, _| done(request).step().hold_after(0, &held));
    let gateway = bench.start();
    let id = gateway.client.send("main", "one", "begin <m1> begin <m2>").unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "ok ");
    gate.open();
    let results = bench.wait_for("main", RESULT, 2);
    settle(&gateway.client);
    for mark in ["m1", "m2"] {
        let lead = format!("[The sub-agent \"{mark}\" has completed its task, after ");
        let (_, result) = results.split_once(&lead).expect(&results);
        let result = result.split(RESULT).next().unwrap();
        let said = format!("\n> done <{mark}>\n> [Message from the session main]");
        assert!(result.trim_end().ends_with(&said), "{results}");
        assert_eq!(results.matches(&lead).count(), 1, "{results}");
    }
    let said = bench.said("main").join("\n");
    assert!(said.contains("got <m"), "{said}");
    assert_eq!(bench.children().len(), 2);
    // A sub-agent has no sub-agents, and nobody to write to.
    let child = bench.model.requests().into_iter().find(|request| is_task(request)).unwrap();
    let names = offered(&child);
    assert!(names.contains(&"sessions_history".to_owned()), "{names:?}");
    for name in ["sessions_spawn", "subagents", "cron", "message", "gateway"] {
        assert!(!names.contains(&name.to_owned()), "{name} is offered");
    }
    gateway.stop();
}

#[test]
fn limits_failures_and_stops_are_reported_to_the_parent() {
    let bench = Bench::family(|request, _| match news(request).contains("<m1>") {
        true => Step::status(400, &[], "{\"error\": {\"message\": \"nothing <m1>\"}}"),
        false => done(request).step().hold_after(0, &Gate::closed()),
    });
    bench.unconfined(|config| {
        config["agents"]["defaults"]["subagents"] = json!({"maxChildrenPerAgent": 2});
    });
    let gateway = bench.start();
    let client = &gateway.client;
    client.outcome(&client.send("main", "one", "begin <m1>").unwrap()).unwrap();
    let failed = bench.wait_for("main", "has failed", 1);
    assert!(failed.contains("The failure, quoted:]\n> "), "{failed}");
    settle(client);
    client
        .outcome(&client.send("main", "two", "begin <m2> begin <m3> begin <m4>").unwrap())
        .unwrap();
    let rows = json!(bench.rows("main")).to_string();
    assert!(rows.contains("2 sub-agents of this session run already"), "{rows}");
    let before = client.post("/api/sessions/main/abort", &json!({})).unwrap();
    assert_eq!(before.1["aborted"], true, "the sub-agents of a session stop with it");
    let stopped = "\" was stopped, after";
    let results = bench.wait_for("main", stopped, 2);
    assert_eq!(results.matches(stopped).count(), 2, "{results}");
    settle(client);
    gateway.stop();
    bench.unconfined(|config| {
        config["agents"]["defaults"]["subagents"] = json!({"runTimeoutSeconds": 1});
    });
    let gateway = bench.start();
    let client = &gateway.client;
    client.outcome(&client.send("main", "three", "begin <m5>").unwrap()).unwrap();
    bench.wait_for("main", "because its time was over", 1);
    settle(client);
    gateway.stop();
}

#[test]
fn a_session_with_running_sub_agents_is_not_deleted_and_a_question_reaches_it() {
    let bench = Bench::family(|request, number| {
        if news(request).contains("tool_result") {
            return Reply::anthropic().text("written").step();
        }
        let arguments = json!({"path": "notes.md", "content": "hello\n"});
        Reply::anthropic().tool_call(format!("call_{number}"), "write", arguments).step()
    });
    bench.unconfined(|config| config["tools"] = json!({"ask": ["write"]}));
    let gateway = bench.start();
    let client = gateway.client.clone();
    block_on(async {
        let mut socket = Socket::open(&client).await;
        socket.ask("w", "watch", json!({"session": "main"})).await;
        socket.ask("one", "send", json!({"session": "main", "text": "begin <m1>"})).await;
        let asked = socket.until(|frame| frame["event"]["type"] == "approval").await;
        assert!(asked["event"]["session"].as_str().unwrap().contains(":subagent:"), "{asked}");
        let mut later = Socket::open(&client).await;
        let watched = later.ask("w", "watch", json!({"session": "main"})).await;
        assert_eq!(watched["result"]["approvals"][0]["id"], asked["event"]["id"]);
        let refused = later.ask("d", "delete", json!({"session": "main"})).await;
        assert!(refused.to_string().contains("a sub-agent of it runs"), "{refused}");
        let answer = json!({"id": asked["event"]["id"], "answer": "once"});
        assert_eq!(later.ask("a", "approve", answer).await["ok"], true);
    });
    let results = bench.wait_for("main", RESULT, 1);
    assert!(results.contains("written"), "{results}");
    settle(&client);
    gateway.stop();
}

#[test]
fn a_sub_agent_may_do_no_more_than_its_parent() {
    let script = shared(|request, number| {
        if is_task(request) {
            return done(request).step();
        }
        let text = news(request);
        if text.contains("tool_result") || text.contains(RESULT) {
            return Reply::anthropic().text("ok").step();
        }
        let agent = if text.contains("other") { "other" } else { "helper" };
        let order = json!({"task": "work on <m1>", "agentId": agent});
        Reply::anthropic().tool_call(format!("call_{number}"), "sessions_spawn", order).step()
    });
    let bench = Bench::new(script);
    bench.configure(|config| {
        config["agents"] = json!({
            "defaults": {"sandbox": {"mode": "off"}},
            "list": [
                {"id": "main", "tools": {"deny": ["bash"]}, "subagents": {"allowAgents": ["helper"]}},
                {"id": "helper", "tools": {"deny": ["write"]}},
                {"id": "other"},
                {"id": "strict", "sandbox": {"mode": "all", "allowlist": ["sessions_spawn"]},
                 "subagents": {"allowAgents": ["*"]}},
            ],
        });
    });
    let gateway = bench.start();
    let client = &gateway.client;
    client.outcome(&client.send("main", "one", "helper").unwrap()).unwrap();
    bench.wait_for("main", RESULT, 1);
    settle(client);
    let child = bench.model.requests().into_iter().find(|request| is_task(request)).unwrap();
    let names = offered(&child);
    assert!(names.contains(&"read".to_owned()), "{names:?}");
    for name in ["bash", "write"] {
        assert!(!names.contains(&name.to_owned()), "{name} is offered to {names:?}");
    }
    client.outcome(&client.send("main", "two", "other").unwrap()).unwrap();
    let rows = json!(bench.rows("main")).to_string();
    assert!(rows.contains("the agent main may not start the agent other"), "{rows}");
    gateway.stop();
    // Without `agents_list` of another name, the config says so at once.
    bench.configure(|config| {
        config["agents"] = json!({"defaults": {"subagents": {"allowAgents": ["nobody"]}}});
    });
    let checked = bench.myclaw(&["config", "check"]);
    assert_ne!(checked.code(), Some(0));
    assert!(checked.stderr().contains("there is no agent of this name"), "{}", checked.stderr());
}

#[test]
fn a_killed_gateway_goes_on_with_its_sub_agents() {
    let asked = AtomicUsize::new(0);
    let bench = Bench::family(move |request, _| {
        let seconds = if asked.fetch_add(1, Ordering::SeqCst) < 2 { 300 } else { 0 };
        done(request).step().delay(Duration::from_secs(seconds))
    });
    let asks = |count: usize| {
        let begun = Instant::now();
        while bench.model.all_requests().iter().filter(|request| is_task(request)).count() < count {
            assert!(begun.elapsed() < PATIENCE, "no request of the sub-agent");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let gateway = bench.start();
    let id = gateway.client.send("main", "one", "begin <m1>").unwrap();
    gateway.client.outcome(&id).unwrap();
    asks(1);
    gateway.kill();
    let gateway = bench.start();
    asks(2);
    // A model that does not know whether its call succeeded makes it again.
    let id = gateway.client.send("main", "two", "begin <m1>").unwrap();
    gateway.client.outcome(&id).unwrap();
    gateway.kill();
    let gateway = bench.start();
    let results = bench.wait_for("main", RESULT, 1);
    assert!(results.contains("done <m1>"), "{results}");
    settle(&gateway.client);
    assert_eq!(bench.wait_for("main", RESULT, 1).matches(RESULT).count(), 1);
    assert_eq!(bench.children().len(), 1);
    gateway.stop();
}

/// The usual sandbox keeps no sub-agent from those of its own that the config gives it.
#[test]
fn sandboxed_sub_agents_have_sub_agents_as_deep_as_the_config_says() {
    for (depth, mode) in [(2, "non-main"), (2, "all"), (1, "non-main")] {
        let bench = Bench::new(Script::answer_with(move |request, number| {
            let text = json!(request.messages()).to_string();
            let spawn = |task: &str| {
                let order = json!({"task": task});
                Reply::anthropic()
                    .tool_call(format!("call_{number}"), "sessions_spawn", order)
                    .step()
            };
            let is_answered = ["tool_result", RESULT].iter().any(|it| news(request).contains(it));
            if text.contains("the deepest task")
                && is_task(request)
                && !text.contains("the outer task")
            {
                return Reply::anthropic().text("deep answer").step();
            }
            if is_task(request)
                && !is_answered
                && offered(request).contains(&"sessions_spawn".to_owned())
            {
                return spawn("the deepest task");
            }
            if !is_task(request) && news(request).contains("begin") {
                return spawn("the outer task");
            }
            Reply::anthropic().text("noted").step()
        }));
        bench.configure(|config| {
            config["agents"]["defaults"]["subagents"] = json!({"maxSpawnDepth": depth});
            config["agents"]["defaults"]["sandbox"] = json!({"mode": mode});
            if mode == "all" {
                config["agents"]["defaults"]["sandbox"]["allowlist"] =
                    json!(["sessions_spawn", "subagents", "read"]);
            }
        });
        let gateway = bench.start();
        let id = gateway.client.send("main", "one", "begin").unwrap();
        gateway.client.outcome(&id).unwrap();
        bench.wait_for("main", RESULT, 1);
        settle(&gateway.client);
        assert_eq!(bench.children().len(), depth, "{mode}");
        let tasks = bench.model.requests();
        let outer = tasks.iter().find(|request| is_task(request)).unwrap();
        let names = offered(outer);
        assert_eq!(names.contains(&"sessions_spawn".to_owned()), depth == 2, "{mode}: {names:?}");
        assert!(!names.contains(&"browser".to_owned()), "{mode}: not sandboxed: {names:?}");
        gateway.stop();
    }
}

/// Kills in a quick run.
const DEFAULT_KILLS: u64 = 20;

#[test]
fn chaos_each_result_reaches_its_parent_exactly_once() {
    let kills = number_from("MYCLAW_SUBAGENT_KILLS")
        .or(number_from("MYCLAW_GATEWAY_KILLS"))
        .unwrap_or(DEFAULT_KILLS);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_123);
    let mut random = Random::new(seed);
    let bench = Bench::family(|request, number| {
        done(request).step().delay(Duration::from_millis((number as u64 * 13) % 90))
    });
    bench.unconfined(|config| {
        config["messages"] = json!({"queue": {"cap": 1_000}});
        config["agents"]["defaults"]["subagents"] = json!({"maxChildrenPerAgent": 50});
    });
    let mut gateway = bench.start();
    let mut sent: Vec<(String, String)> = Vec::new();
    for kill in 0..kills {
        for _ in 0..2 {
            let number = sent.len();
            let (session, id) = (format!("s{}", number % 3), format!("id-{number}"));
            let text = format!("begin <m{number}>");
            if let Ok(message) = gateway.client.send(&session, &id, &text) {
                sent.push((message, session));
            }
            random.pause(Duration::from_millis(60));
        }
        random.pause(Duration::from_millis(250));
        gateway.kill();
        gateway = bench.start();
        eprint!("\rseed {seed}, kill {}", kill + 1);
    }
    eprintln!();
    for (message, _) in &sent {
        let outcome = gateway.client.outcome(message).unwrap();
        assert_eq!(outcome["state"], "answered", "seed {seed}: {outcome}");
    }
    settle(&gateway.client);
    let children = bench.children();
    let received: Vec<String> =
        (0..3).flat_map(|number| bench.received(&format!("s{number}"), RESULT)).collect();
    // Results that come at the same time share a row.
    let received = received.join("\n");
    for child in &children {
        let found = received.matches(&format!("Its session is {child}.")).count();
        assert_eq!(found, 1, "seed {seed}: results of {child}");
    }
    let results = received.matches(RESULT).count();
    assert_eq!(results, children.len(), "seed {seed}: results without a session");
    // What the model was promised is kept: every sub-agent that a call began has a session.
    for number in 0..3 {
        for row in bench.rows(&format!("s{number}")) {
            let Some(at) = row["content"].as_str().and_then(|text| text.find("\"session\": \""))
            else {
                continue;
            };
            let text = &row["content"].as_str().unwrap()[at + 12..];
            let key = text.split('"').next().unwrap();
            assert!(children.iter().any(|child| child == key), "seed {seed}: {key} is gone");
        }
    }
    gateway.stop();
    assert!(children.len() as u64 > kills / 4, "{} sub-agents met {kills} kills", children.len());
    eprintln!("{} sub-agents of {} messages", children.len(), sent.len());
}
