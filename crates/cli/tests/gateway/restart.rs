//! The tool `gateway`.

use super::devices::device;
use super::subagents::offered;
use super::*;

/// A model that asks for the restart, and then says what it has found.
fn restarting() -> Script {
    shared(|request, number| {
        let messages = request.messages();
        let last = json!(messages.last()).to_string();
        let wants = last.contains("restart <m1>") || last.contains("and again <m2>");
        match wants && !last.contains("tool_result") {
            true => Reply::anthropic()
                .tool_call(format!("call_{number}"), "gateway", json!({"action": "restart"}))
                .step(),
            false if last.contains("status <m3>") && !last.contains("tool_result") => {
                Reply::anthropic()
                    .tool_call(format!("call_{number}"), "gateway", json!({"action": "status"}))
                    .step()
            }
            false => Reply::anthropic().text(format!("found {last}")).step(),
        }
    })
}

#[test]
fn a_restart_parks_the_turn_and_its_answer_comes_once() {
    let bench = Bench::new(restarting());
    let gateway = bench.start();
    let process = gateway.client.get("/api/status").unwrap().1["processId"].clone();
    let id = gateway.client.send("main", "one", "restart <m1>").unwrap();
    let end = std::time::Instant::now() + PATIENCE;
    let answer = loop {
        // The server is away for a moment.
        match gateway.client.outcome(&id) {
            Ok(answer) if answer["state"] != "open" => break answer,
            _ => assert!(std::time::Instant::now() < end, "no answer"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let reply = answer["reply"].as_str().unwrap();
    assert!(reply.contains("restarted"), "{answer}");
    // The same process, as a service manager and a shell see it, and a new program in it.
    let status = gateway.client.get("/api/status").unwrap().1;
    assert_eq!(status["processId"], process);
    assert_eq!(bench.model.requests().len(), 2);
    let answers = bench.rows("main").into_iter().filter(|row| row["role"] == "assistant").count();
    assert_eq!(answers, 2, "a call and an answer");
    // A model that repeats itself does not keep the gateway from working.
    let id = gateway.client.send("main", "two", "and again <m2>").unwrap();
    let again = gateway.client.outcome(&id).unwrap();
    assert!(again["reply"].as_str().unwrap().contains("was restarted"), "{again}");
    let id = gateway.client.send("main", "three", "status <m3>").unwrap();
    let shown = gateway.client.outcome(&id).unwrap()["reply"].to_string();
    assert!(shown.contains("stateDirectory") && shown.contains("openMessages"), "{shown}");
    gateway.stop();
}

#[test]
fn only_the_owner_has_the_process() {
    let bench = Bench::new(restarting());
    let bot = TelegramServer::start();
    bench.unconfined(|config| {
        config["channels"] = json!({
            "dmScope": "main",
            "telegram": {"botToken": bot.token(), "baseUrl": bot.url(), "allowFrom": [42]},
        });
    });
    let gateway = bench.start();
    // Whoever writes from a channel shares the main session here, and still may not.
    bot.write(42, "restart <m1>");
    let answer = bot.wait_for_text("found");
    assert!(answer.text().contains("only the owner"), "{}", answer.text());
    // So does a device that is not the owner's.
    let (operator, _) = device(&bench, &gateway.client, "operator");
    let id = operator.send("main", "one", "restart <m1>").unwrap();
    let answer = operator.outcome(&id).unwrap()["reply"].to_string();
    assert!(answer.contains("only the owner"), "{answer}");
    gateway.stop();
    bench.unconfined(|config| {
        config["channels"] = json!({
            "telegram": {"botToken": bot.token(), "baseUrl": bot.url(), "allowFrom": [42]},
        });
    });
    let gateway = bench.start();
    let asked = bench.model.requests().len();
    bot.write(42, "hello <m9>");
    bot.wait_for_text("m9");
    let names = offered(&bench.model.requests()[asked]);
    assert!(!names.contains(&"gateway".to_owned()), "{names:?}");
    assert!(names.contains(&"message".to_owned()), "{names:?}");
    gateway.stop();
}
