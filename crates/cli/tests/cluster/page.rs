//! The gateways of a cluster on the page, in a real browser, and over HTTP.

use std::path::Path;
use std::process::Command;

use super::*;

#[test]
fn the_page_shows_the_gateways_and_drains_one() {
    let Some((server, url)) = database() else { return };
    let _standby = server.standby();
    let model = model();
    let machines = [Machine::new("one", &url, &model), Machine::new("two", &url, &model)];
    let [first, second] = machines.each_ref().map(Machine::start);
    until("both nodes are listed", || {
        nodes::status(&machines[0])["nodes"].as_array().unwrap().len() == 2
    });
    let package = |name: &str| std::env::var_os(name);
    let Some((playwright, axe)) = package("MYCLAW_PLAYWRIGHT").zip(package("MYCLAW_AXE")) else {
        myclaw_testkit::skip_without("MYCLAW_PLAYWRIGHT or MYCLAW_AXE is not set");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/third-party/web-ui.mjs");
    let mut command = Command::new("node");
    command.arg(script).arg("cluster").env("PLAYWRIGHT", playwright).env("AXE", axe);
    command.env("GATEWAY", format!("http://127.0.0.1:{}", machines[0].port));
    command.env("TOKEN", first.client.token.clone());
    RunningChild::spawn(&mut command).wait(PATIENCE * 4).assert_code(0);
    second.child.wait(PATIENCE).assert_code(0);
    first.stop();
}

#[test]
fn a_gateway_shows_and_drains_the_cluster_for_its_owner_only() {
    let Some((server, url)) = database() else { return };
    let _standby = server.standby();
    let model = model();
    let machines = [Machine::new("one", &url, &model), Machine::new("two", &url, &model)];
    let [first, second] = machines.each_ref().map(Machine::start);
    until("both nodes are listed", || {
        first.client.get("/api/cluster").unwrap().1["nodes"].as_array().unwrap().len() == 2
    });
    let state = first.client.get("/api/cluster").unwrap().1;
    let of_command = nodes::status(&machines[1]);
    for key in ["database", "tenant", "tenants", "configsDiffer", "openMessages", "leaseMs"] {
        assert_eq!(state[key], of_command[key], "{key}");
    }
    until("the standby is listed", || {
        let state = first.client.get("/api/cluster").unwrap().1;
        let standbys = state["standbys"].as_array().unwrap();
        standbys.len() == 1 && standbys[0]["sync"] == "sync" && standbys[0]["lagBytes"].is_i64()
    });
    let shown = machines[1].run(&["cluster", "status"]).stdout();
    assert!(shown.contains("walreceiver (sync), "), "{shown}");
    let drain = |client: &Client, node: &str| {
        client.post("/api/cluster/drain", &json!({"node": node})).unwrap()
    };
    let code = first.client.post("/api/devices/code", &json!({"scope": "operator"})).unwrap().1;
    let asked = json!({"code": code["code"], "name": "phone"});
    let device = first.client.post("/api/devices/pair", &asked).unwrap().1;
    let approved = first.client.post("/api/devices/approve", &json!({"name": device["id"]}));
    assert_eq!(approved.unwrap().0, 200);
    let phone =
        Client { port: machines[0].port, token: device["token"].as_str().unwrap().to_owned() };
    assert_eq!(phone.get("/api/status").unwrap().0, 200);
    assert_eq!(phone.get("/api/cluster").unwrap().0, 403);
    assert_eq!(drain(&phone, "two").0, 403);
    assert_eq!(drain(&first.client, "three").0, 404);
    let (status, answer) = drain(&first.client, "two");
    assert_eq!((status, answer["asked"].as_array().unwrap().len()), (200, 1), "{answer}");
    second.child.wait(PATIENCE).assert_code(0);
    first.stop();
}
