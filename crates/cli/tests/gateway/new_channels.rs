//! Channels that are added and repaired over HTTP.

use super::*;

#[test]
fn what_a_channel_lacks_is_said_and_nothing_is_written() {
    let bench = Bench::new(answering("fine"));
    let gateway = bench.start();
    let file = bench.home.state_directory().join("myclaw.json");
    let before = std::fs::read_to_string(&file).unwrap();
    let (_, listed) = gateway.client.get("/api/channels/kinds").unwrap();
    let ask = |change: &str, mut body: Value| {
        let version = body["version"].take();
        body["version"] = if version.is_null() { listed["version"].clone() } else { version };
        gateway.client.post(&format!("/api/channels/{change}"), &body).unwrap()
    };
    let kinds = listed["kinds"].as_array().unwrap();
    assert!(kinds.len() >= 11, "{listed}");
    for kind in kinds {
        let of = |list: &str| kind[list].as_array().unwrap().clone();
        let needed = |field: &Value| field["isRequired"] != false;
        let first = [of("fields"), of("secrets")].concat().into_iter().find(needed);
        // A socket needs nothing.
        let Some(first) = first else { continue };
        let account = if kind["accounts"] == "named" { "mine" } else { "" };
        let (status, answer) = ask("add", json!({"channel": kind["name"], "account": account}));
        assert_eq!((status, &answer["error"]["field"]), (400, &first["key"]), "{kind} {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("it is missing"), "{message}");
    }
    let telegram = |more: Value| {
        let mut body = json!({"channel": "telegram"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    for (change, body, status, says) in [
        ("add", json!({"channel": "nothing"}), 400, "there is no channel `nothing`"),
        ("add", telegram(json!({"values": {"botToken": "x"}})), 400, "no such value"),
        ("add", telegram(json!({"secrets": {"token": "hush"}})), 400, "no such secret"),
        ("add", telegram(json!({"secrets": {"botToken": "hush\nB=c"}})), 400, "it is one line"),
        ("add", telegram(json!({"secrets": {"botToken": 4711}})), 400, "as texts"),
        ("add", json!({"channel": "matrix", "account": "two"}), 400, "has one account"),
        ("add", json!({"channel": "webhook"}), 400, "give it a name"),
        ("repair", telegram(json!({})), 404, "the config has no channels.telegram"),
        ("test", telegram(json!({})), 404, "no channel `telegram` with the account `default`"),
        ("remove", telegram(json!({"account": "two"})), 404, "with the account `two`"),
        ("replace", telegram(json!({})), 404, "add, repair, test, remove, link and linked"),
        ("add", telegram(json!({"version": "old"})), 409, "was changed in the meantime"),
        ("link", telegram(json!({})), 400, "is not linked to a phone"),
        ("linked", telegram(json!({"address": "sgnl://x"})), 400, "is not linked to a phone"),
    ] {
        let (found, answer) = ask(change, body.clone());
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(found, status, "{change} {body}: {answer}");
        assert!(message.contains(says), "{change} {body}: {message}");
        assert!(!message.contains("hush") && !message.contains("4711"), "{message}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    assert!(!bench.home.state_directory().join(".env").exists());
    gateway.stop();
}

#[test]
fn a_secret_does_not_replace_a_variable_that_something_else_may_read() {
    let bot = TelegramServer::start();
    let bench = Bench::new(answering("fine"));
    let directory = bench.home.state_directory();
    std::fs::write(directory.join(".env"), "TELEGRAM_BOT_TOKEN=another\n").unwrap();
    let gateway = bench.start();
    let version = || gateway.client.get("/api/channels/kinds").unwrap().1["version"].clone();
    let body = |token: &str| {
        let values = json!({"baseUrl": bot.url()});
        json!({"channel": "telegram", "version": version(), "values": values, "secrets": {"botToken": token}})
    };
    let add = gateway.client.post("/api/channels/add", &body(bot.token())).unwrap();
    assert_eq!(add.0, 200, "{}", add.1);
    assert_eq!(add.1["inForce"], true, "{}", add.1);
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    assert!(read("myclaw.json").contains("${TELEGRAM_BOT_TOKEN_2}"), "{}", read("myclaw.json"));
    let variables = format!("TELEGRAM_BOT_TOKEN=another\nTELEGRAM_BOT_TOKEN_2={}\n", bot.token());
    assert_eq!(read(".env"), variables);
    // A wrong one is tried, and the right one stays.
    let (status, answer) = gateway.client.post("/api/channels/repair", &body("1:wrong")).unwrap();
    assert_eq!((status, &answer["error"]["class"]), (400, &json!("channel")), "{answer}");
    assert_eq!(read(".env"), variables);
    let test = json!({"channel": "telegram", "version": ""});
    let (status, answer) = gateway.client.post("/api/channels/test", &test).unwrap();
    assert_eq!((status, &answer["address"]), (200, &json!("https://t.me/claw_bot")), "{answer}");
    gateway.stop();
}
