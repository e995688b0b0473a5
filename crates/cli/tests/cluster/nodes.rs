//! The list of nodes, and emptying one.

use super::*;

pub(super) fn status(machine: &Machine) -> Value {
    let output = machine.run(&["cluster", "status", "--json"]);
    output.assert_code(0);
    serde_json::from_str(&output.stdout()).unwrap()
}

#[test]
fn a_drained_node_hands_its_sessions_over_and_leaves_the_list() {
    let Some((_server, url)) = database() else { return };
    let model = model();
    let machines = [Machine::new("one", &url, &model), Machine::new("two", &url, &model)];
    let gateways: Vec<Gateway> = machines.iter().map(Machine::start).collect();
    until("both nodes are listed", || status(&machines[0])["nodes"].as_array().unwrap().len() == 2);
    let state = status(&machines[0]);
    let names: Vec<&Value> =
        state["nodes"].as_array().unwrap().iter().map(|node| &node["name"]).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(state["configsDiffer"], false, "{state}");
    assert_eq!(state["nodes"][0]["address"], format!("http://127.0.0.1:{}", machines[0].port));
    let shown = machines[0].run(&["cluster", "status"]);
    assert!(shown.stdout().contains("one#"), "{}", shown.stdout());
    let [first, second] = <[Gateway; 2]>::try_from(gateways).ok().unwrap();
    let drained = machines[1].run(&["cluster", "drain", "one"]);
    drained.assert_code(0);
    first.child.wait(PATIENCE).assert_code(0);
    let state = status(&machines[1]);
    assert_eq!(state["nodes"].as_array().unwrap().len(), 1, "{state}");
    let id = second.client.send("main", "a", "say <m1>").unwrap();
    assert_eq!(second.client.outcome(&id).unwrap()["reply"], "re: <m1>");
    let unknown = machines[1].run(&["cluster", "drain", "three"]);
    unknown.assert_code(1);
    assert!(unknown.stderr().contains("no gateway has the name three"), "{}", unknown.stderr());
    second.stop();
    assert_eq!(status(&machines[1])["nodes"], json!([]));
}

#[test]
fn the_status_names_the_accounts_on_which_a_node_listens() {
    let Some((_server, url)) = database() else { return };
    let (model, bot) = (model(), myclaw_testkit::TelegramServer::start());
    let machine = Machine::new("one", &url, &model);
    machine.configure("one", &model, |config| {
        config["channels"] =
            json!({"telegram": {"botToken": bot.token(), "baseUrl": bot.url(), "allowFrom": [42]}});
    });
    let gateway = machine.start();
    let accounts = || status(&machine)["nodes"][0]["accounts"].clone();
    until("the account is claimed", || accounts() == json!(["telegram/default"]));
    let shown = machine.run(&["cluster", "status"]).stdout();
    let line = shown.lines().find(|line| line.contains(" listens on ")).unwrap();
    assert!(line.starts_with("one#") && line.ends_with(" listens on telegram/default"), "{line}");
    gateway.stop();
}

#[test]
fn different_configs_are_reported() {
    let Some((_server, url)) = database() else { return };
    let model = model();
    let machines = [Machine::new("one", &url, &model), Machine::new("two", &url, &model)];
    machines[1].configure("two", &model, |config| {
        config["messages"] = json!({"queue": {"cap": 7}});
    });
    let (first, second) = (machines[0].start(), machines[1].start());
    first.child.wait_for_stderr("the config of two differs from the one here");
    assert_eq!(status(&machines[0])["configsDiffer"], true);
    first.stop();
    second.stop();
}
