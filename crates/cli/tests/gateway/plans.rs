//! Plans of sessions of the gateway: approved, refused, and changed, over HTTP and in `attach`.

use super::attach::expect_answer;
use super::*;

/// A model that proposes a plan, and again after a no, and makes a file when it is approved.
fn planning() -> Script {
    shared(|request, number| {
        let last = json!(request.messages().last()).to_string();
        let (id, reply) = (format!("call_{number}"), Reply::anthropic());
        let reply = if last.contains("has approved the plan") {
            reply.tool_call(id, "write", json!({"path": "made.txt", "content": "x"}))
        } else if last.contains("plan it") || last.contains("approval for this call was denied") {
            let steps = json!([{"text": "Look"}, {"text": "Change"}]);
            reply.tool_call(id, "update_plan", json!({ "steps": steps }))
        } else if last.contains("run it") {
            reply.tool_call(id, "bash", json!({"command": "echo x > made.txt"}))
        } else {
            reply.text("Done.")
        };
        reply.step()
    })
}

fn is_made(bench: &Bench, name: &str) -> bool {
    bench.home.workspace().join(name).exists()
}

#[test]
fn a_plan_is_changed_over_http_and_a_command_is_not() {
    let bench = Bench::new(planning());
    bench.configure(|config| config["tools"] = json!({"exec": {"ask": "always"}}));
    let gateway = bench.start();
    let client = &gateway.client;
    let first = |text: &str| {
        let body = json!({"session": "main", "id": text, "text": text});
        client.post("/api/messages", &body).unwrap().1["messageId"].as_str().unwrap().to_owned()
    };
    let mut terminal = bench.attach(&[]);
    terminal.send_line("/plan");
    terminal.expect("mode plan: ");
    terminal.send("\u{4}");
    assert!(terminal.wait().success());
    let message = first("plan it");
    let asked = super::approvals::question(client);
    assert_eq!((&asked["toolName"], &asked["always"]), (&json!("update_plan"), &json!(null)));
    let path = format!("/api/approvals/{}", asked["id"].as_str().unwrap());
    for refused in [json!({"answer": "instead"}), json!({"answer": "instead", "words": " "})] {
        assert_eq!(client.post(&path, &refused).unwrap().0, 400, "{refused}");
    }
    let steps = json!({"answer": "instead", "words": "Read it\nTest it"});
    let (status, answered) = client.post(&path, &steps).unwrap();
    assert_eq!((status, &answered["answer"]), (200, &json!("instead")));
    assert_eq!(client.outcome(&message).unwrap()["reply"], "Done.");
    assert!(is_made(&bench, "made.txt"));
    let sent = json!(bench.model.last_request().messages()).to_string();
    assert!(sent.contains("The user changed the plan:\\n[ ] Read it\\n[ ] Test it"), "{sent}");
    // Who may answer may not run what they like: the agent hears of it and asks.
    std::fs::remove_file(bench.home.workspace().join("made.txt")).unwrap();
    let message = first("run it");
    let asked = super::approvals::question(client);
    let path = format!("/api/approvals/{}", asked["id"].as_str().unwrap());
    let other = json!({"answer": "instead", "words": "echo y > other.txt"});
    assert_eq!(client.post(&path, &other).unwrap().0, 200);
    // It plans again, which the mode permits.
    assert_eq!(client.outcome(&message).unwrap()["reply"], "Done.");
    let sent = json!(bench.model.last_request().messages()).to_string();
    assert!(sent.contains("run this in its place: echo y > other.txt"), "{sent}");
    assert!(!is_made(&bench, "other.txt") && !is_made(&bench, "made.txt"));
    let kept = client.get("/api/approvals").unwrap().1["answered"].clone();
    let kept: Vec<&Value> = kept.as_array().unwrap().iter().map(|one| &one["answer"]).collect();
    assert_eq!(kept, ["instead", "no"]);
    gateway.stop();
}

#[test]
fn a_plan_is_changed_on_the_page() {
    let variable = |name: &str| std::env::var_os(name);
    let (Some(playwright), Some(axe)) = (variable("MYCLAW_PLAYWRIGHT"), variable("MYCLAW_AXE"))
    else {
        myclaw_testkit::skip_without(
            "MYCLAW_PLAYWRIGHT or MYCLAW_AXE is not set; scripts/test does",
        );
        return;
    };
    let bench = Bench::new(planning());
    let gateway = bench.start();
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/third-party/web-ui-plans.mjs");
    let mut command = std::process::Command::new("node");
    command.arg(script).env("PLAYWRIGHT", playwright).env("AXE", axe);
    command.env("GATEWAY", format!("http://127.0.0.1:{}", bench.port));
    command.env("TOKEN", &gateway.client.token);
    RunningChild::run(&mut command).assert_code(0);
    assert!(is_made(&bench, "made.txt"));
    let sent = json!(bench.model.last_request().messages()).to_string();
    assert!(sent.contains("The user changed the plan:\\n[ ] Read it\\n[ ] Test it"), "{sent}");
    gateway.stop();
}

#[test]
fn a_plan_is_changed_where_one_attaches() {
    let bench = Bench::new(planning());
    let gateway = bench.start();
    let mut terminal = bench.attach(&[]);
    terminal.send_line("/plan");
    terminal.expect("mode plan: ");
    terminal.send_line("plan it");
    terminal.expect_screen(|screen| {
        screen.contains("!STEP; STEP in its place") && !screen.contains("(a)lways")
    });
    terminal.send_line("no, with a test");
    terminal.expect("not approved: the user said no: with a test");
    terminal.expect_screen(|screen| screen.matches("!STEP; STEP in its place").count() == 2);
    terminal.send_line("!Read it; Test it");
    expect_answer(&mut terminal, &["[ ] Read it", "[ ] Test it", "Done."]);
    assert!(is_made(&bench, "made.txt"));
    terminal.send("\u{4}");
    assert!(terminal.wait().success());
    gateway.stop();
}
