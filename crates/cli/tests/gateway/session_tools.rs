//! The tools with which sessions see and use each other.

use myclaw_testkit::Reply;

use super::subagents::{news, offered, settle};
use super::*;

/// A model that calls the tool that the message names, as `call NAME {...}`, and then repeats the result.
pub(super) fn obedient() -> Script {
    shared(|request, number| {
        let text = news(request);
        if text.contains("tool_result") {
            // In one delta, which a terminal draws at once.
            return Reply::anthropic().repeated_text("called", 1).step();
        }
        match request.ordered_call() {
            Some((name, arguments)) => {
                Reply::anthropic().tool_call(format!("call_{number}"), name, arguments).step()
            }
            None => echo(request).step(),
        }
    })
}

impl Bench {
    pub(super) fn obedient() -> Self {
        let bench = Self::new(obedient());
        bench.unconfined(|_| {});
        bench
    }

    /// The result of a tool that the agent calls in a session.
    pub(super) fn call(&self, client: &Client, session: &str, name: &str, input: &Value) -> String {
        let id = format!("call-{}", self.model.requests().len());
        let message = client.send(session, &id, &format!("call {name} {input}")).unwrap();
        client.outcome(&message).unwrap();
        let rows = self.rows(session);
        let result = rows.iter().rev().find(|row| row["role"] == "tool").expect("a result");
        result["content"].as_str().unwrap_or_default().to_owned()
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect(text)
}

#[test]
fn the_main_session_lists_reads_and_writes_to_sessions_of_its_agent() {
    let bench = Bench::obedient();
    let gateway = bench.start();
    let client = &gateway.client;
    client.outcome(&client.send("work", "one", "hello <m1>").unwrap()).unwrap();
    let listed = parsed(&bench.call(client, "main", "sessions_list", &json!({})));
    let keys: Vec<_> =
        listed["sessions"].as_array().unwrap().iter().map(|row| &row["session"]).collect();
    assert_eq!(keys.len(), 2, "{listed}");
    let sent = json!({"session": "work", "message": "and <m2>?"});
    let reply = parsed(&bench.call(client, "main", "sessions_send", &sent));
    assert_eq!((&reply["status"], &reply["reply"]), (&json!("answered"), &json!("re: <m2>")));
    let work = bench.said("work");
    assert!(
        work[2].contains("[Message from the session agent:main:") && work[2].ends_with("and <m2>?"),
        "{work:?}"
    );
    let read = parsed(&bench.call(
        client,
        "main",
        "sessions_history",
        &json!({"session": "work", "limit": 3}),
    ));
    let texts: Vec<_> =
        read["messages"].as_array().unwrap().iter().map(|row| &row["text"]).collect();
    assert_eq!(texts.len(), 3, "{read}");
    assert_eq!(texts[2], "re: <m2>");
    let older = json!({"session": "work", "before": read["messages"][0]["id"]});
    let older = parsed(&bench.call(client, "main", "sessions_history", &older));
    assert_eq!(older["messages"][0]["text"], "hello <m1>", "{older}");
    let at_once = json!({"session": "work", "message": "later <m3>", "timeoutSeconds": 0});
    let accepted = parsed(&bench.call(client, "main", "sessions_send", &at_once));
    assert!(["accepted", "answered"].contains(&accepted["status"].as_str().unwrap()), "{accepted}");
    settle(client);
    assert_eq!(bench.said("work").last().unwrap(), "re: <m3>");
    let own =
        bench.call(client, "main", "sessions_send", &json!({"session": "main", "message": "x"}));
    assert!(own.contains("this is your own session"), "{own}");
    let agents = parsed(&bench.call(client, "main", "agents_list", &json!({})));
    assert_eq!(agents["agents"][0]["id"], "main");
    gateway.stop();
}

#[test]
fn another_session_sees_only_itself_unless_the_config_says_more() {
    let bench = Bench::obedient();
    let gateway = bench.start();
    let client = &gateway.client;
    client.outcome(&client.send("main", "one", "secret <m1>").unwrap()).unwrap();
    let listed = bench.call(client, "work", "sessions_list", &json!({}));
    assert!(!listed.contains("peer:direct:main"), "{listed}");
    for (tool, input) in [
        ("sessions_history", json!({"session": "main"})),
        ("sessions_send", json!({"session": "main", "message": "x"})),
    ] {
        let refused = bench.call(client, "work", tool, &input);
        assert!(refused.contains("there is no session main that you may use"), "{refused}");
    }
    gateway.stop();
    bench.unconfined(|config| config["tools"] = json!({"sessions": {"others": "agent"}}));
    let gateway = bench.start();
    let read = bench.call(&gateway.client, "work", "sessions_history", &json!({"session": "main"}));
    assert!(read.contains("secret <m1>"), "{read}");
    gateway.stop();
    // A sandboxed session has none of these tools, unless the list of its tools names them.
    bench.configure(|_| {});
    let gateway = bench.start();
    let id = gateway.client.send("work", "two", "hello <m2>").unwrap();
    gateway.client.outcome(&id).unwrap();
    let names = offered(&bench.model.last_request());
    assert!(!names.iter().any(|name| name.starts_with("sessions_")), "{names:?}");
    gateway.stop();
}

#[test]
fn messages_between_two_sessions_come_to_an_end() {
    // Both always ask the other one.
    let bench = Bench::new(shared(|request, number| {
        let text = news(request);
        if text.contains("tool_result") {
            return Reply::anthropic().text("asked").step();
        }
        let first = json!(request.messages().first()).to_string();
        let other = if first.contains("I am one") { "two" } else { "one" };
        let input = json!({"session": other, "message": "your turn", "timeoutSeconds": 0});
        Reply::anthropic().tool_call(format!("call_{number}"), "sessions_send", input).step()
    }));
    bench.unconfined(|config| {
        config["tools"] = json!({"sessions": {"others": "agent", "maxHops": 3}});
    });
    let gateway = bench.start();
    let client = &gateway.client;
    client.outcome(&client.send("one", "a", "I am one").unwrap()).unwrap();
    client.outcome(&client.send("two", "b", "I am two").unwrap()).unwrap();
    settle(client);
    let rows = json!([bench.rows("one"), bench.rows("two")]).to_string();
    assert!(rows.contains("3 messages between sessions have led to this one already"), "{rows}");
    assert!(bench.model.requests().len() < 40, "{} requests", bench.model.requests().len());
    gateway.stop();
}
