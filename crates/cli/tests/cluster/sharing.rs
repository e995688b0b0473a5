//! What gateways that share a database do together.

use super::*;

/// Messages to each of the sessions.
const MESSAGES: usize = 12;
const SESSIONS: usize = 3;

#[test]
fn a_gateway_answers_over_postgresql_and_goes_on_after_a_restart() {
    let Some((_server, url)) = database() else { return };
    let model = model();
    let machine = Machine::new("one", &url, &model);
    let gateway = machine.start();
    let id = gateway.client.send("main", "a", "say <m1>").unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "re: <m1>");
    gateway.stop();
    let gateway = machine.start();
    let id = gateway.client.send("main", "b", "and <m2>").unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "re: <m2>");
    // The same id again is the same message.
    assert_eq!(gateway.client.send("main", "b", "and <m2>").unwrap(), id);
    let asked = model.requests();
    let last = asked.last().unwrap().messages();
    let said = json!(last).to_string();
    assert!(said.contains("<m1>") && said.contains("<m2>"), "{said}");
    gateway.stop();
    let listed = machine.run(&["sessions", "list"]);
    listed.assert_code(0);
    assert!(listed.stdout().contains("say <m1>"), "{}", listed.stdout());
    assert!(machine.home.transcripts().is_empty(), "a log in the state directory");
    assert!(!machine.home.state_directory().join("gateway/store.sqlite").exists());
    assert!(!machine.home.state_directory().join("usage.json").exists());
}

#[test]
fn two_gateways_on_one_database_answer_each_message_once() {
    let Some((_server, url)) = database() else { return };
    let model = model();
    let machines = [Machine::new("one", &url, &model), Machine::new("two", &url, &model)];
    let gateways: Vec<Gateway> = machines.iter().map(Machine::start).collect();
    let mut sent = Vec::new();
    for number in 0..MESSAGES * SESSIONS {
        let (gateway, session) = (&gateways[number % 2], format!("s{}", number % SESSIONS));
        let text = format!("say <m{number}>");
        sent.push((number, gateway.client.send(&session, &format!("id-{number}"), &text).unwrap()));
    }
    for (number, id) in &sent {
        // Whoever answered it, both know.
        for gateway in &gateways {
            let outcome = gateway.client.outcome(id).unwrap();
            assert_eq!(outcome["state"], "answered", "<m{number}>: {outcome}");
        }
    }
    gateways.into_iter().for_each(Gateway::stop);
    let logs = exported(&machines[0]);
    for (number, _) in &sent {
        let mark = format!("<m{number}>");
        for role in ["user", "assistant"] {
            assert_eq!(count(&logs, role, &mark), 1, "rows of the {role} with {mark}");
        }
    }
}

#[test]
fn what_a_killed_gateway_had_begun_is_answered_by_another_one() {
    let Some((_server, url)) = database() else { return };
    let gate = myclaw_testkit::Gate::closed();
    let held = gate.clone();
    let model =
        ModelServer::spawn_blocking_thread(Script::answer_with(
            move |request, number| match number {
                0 => echo(request).step().hold_after(0, &held),
                _ => echo(request).step(),
            },
        ));
    let machines = [Machine::new("one", &url, &model), Machine::new("two", &url, &model)];
    let first = machines[0].start();
    let id = first.client.send("main", "a", "say <m1>").unwrap();
    until("the first call", || !model.requests().is_empty());
    // Before that it could have taken the session.
    let second = machines[1].start();
    first.kill();
    assert_eq!(second.client.outcome(&id).unwrap()["reply"], "re: <m1>");
    gate.open();
    second.stop();
    let logs = exported(&machines[1]);
    assert_eq!((count(&logs, "user", "<m1>"), count(&logs, "assistant", "<m1>")), (1, 1));
}
