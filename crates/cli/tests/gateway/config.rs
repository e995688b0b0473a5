//! The config over HTTP: values without secrets, changes by path, and a model that is tried before it is kept.

use super::*;

const SECRET: &str = "sk-ant-the-real-secret-9a8b7c6d";

impl Client {
    pub(super) fn patch(&self, headers: &str, body: &Value) -> (u16, Value) {
        let (head, body) = (self.head("PATCH", "/api/config"), body.to_string());
        let length = body.len();
        let request = format!(
            "{head}{headers}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let (status, body) = self.raw(&request).unwrap();
        (status, serde_json::from_str(&body).unwrap_or_else(|_| json!(body)))
    }

    fn config(&self) -> Value {
        let (status, answer) = self.get("/api/config").unwrap();
        assert_eq!(status, 200, "{answer}");
        answer
    }
}

fn set(version: &Value, path: &Value, value: &Value) -> Value {
    json!({"version": version, "changes": [{"op": "set", "path": path, "value": value}]})
}

fn file(bench: &Bench) -> std::path::PathBuf {
    bench.home.state_directory().join("myclaw.json")
}

/// A config with comments and secrets.
fn commented(bench: &Bench) -> String {
    let url = bench.model.url();
    let text = format!(
        "// Mine.\n{{\n  provider: {{\n    name: \"anthropic\", // the usual one\n    model: \"claude-sonnet-4-6\",\n    \
         baseUrl: \"{url}\",\n    authProfiles: [{{ id: \"one\", apiKey: \"{SECRET}\" }}],\n  }},\n  gateway: {{ port: {} }},\n}}\n",
        bench.port
    );
    std::fs::write(file(bench), &text).unwrap();
    text
}

#[test]
fn changes_keep_comments_and_are_in_force_at_once() {
    let bench = Bench::new(answering("fine"));
    let text = commented(&bench);
    let gateway = bench.start();
    let read = gateway.client.config();
    assert_eq!(read["values"]["provider"]["authProfiles"][0]["apiKey"], read["masked"]);
    assert_eq!(read["secrets"], json!([["provider", "authProfiles", 0, "apiKey"]]));
    assert_eq!(read["schema"]["title"], "MyClaw config");
    assert!(!read.to_string().contains(SECRET));
    let body = set(&read["version"], &json!(["agents", "list"]), &json!([{"id": "second"}]));
    let (status, answer) = gateway.client.patch("", &body);
    assert_eq!((status, &answer["inForce"]), (200, &json!(true)), "{answer}");
    assert!(!answer.to_string().contains(SECRET));
    let (_, agents) = gateway.client.get("/api/agents").unwrap();
    assert!(agents.to_string().contains("second"), "{agents}");
    // A key that counts after a restart is named.
    let body = set(&answer["version"], &json!(["logging", "level"]), &json!("debug"));
    let (status, answer) = gateway.client.patch("", &body);
    assert_eq!((status, &answer["state"]["needsRestart"]), (200, &json!(["logging"])), "{answer}");
    // The placeholder of a secret is the secret.
    let entry = json!({"id": "renamed", "apiKey": read["masked"]});
    let body = set(&answer["version"], &json!(["provider", "authProfiles", 0]), &entry);
    assert_eq!(gateway.client.patch("", &body).0, 200);
    let now = std::fs::read_to_string(file(&bench)).unwrap();
    for kept in ["// Mine.", "// the usual one", SECRET, "renamed", "second"] {
        assert!(now.contains(kept), "{kept} in {now}");
    }
    let backup = std::fs::read_to_string(file(&bench).with_extension("json.bak")).unwrap();
    assert!(backup.starts_with("// Mine.") && backup != text, "{backup}");
    gateway.stop();
}

#[test]
fn a_change_that_is_wrong_or_late_changes_nothing() {
    let bench = Bench::new(answering("fine"));
    let text = commented(&bench);
    let gateway = bench.start();
    let version = gateway.client.config()["version"].clone();
    let refused = |body: &Value, status: u16, class: &str| {
        let answer = gateway.client.patch("", body);
        assert_eq!(
            (answer.0, &answer.1["error"]["class"]),
            (status, &json!(class)),
            "{}",
            answer.1
        );
        assert!(!answer.1.to_string().contains(SECRET), "{}", answer.1);
        answer.1["error"].clone()
    };
    let error = refused(&set(&version, &json!(["gateway", "port"]), &json!("many")), 400, "config");
    assert_eq!(error["issues"][0]["path"], json!(["gateway", "port"]), "{error}");
    // What only `config check` finds: a model whose provider has no key.
    let at = json!(["agents", "defaults", "model"]);
    let error = refused(&set(&version, &at, &json!("openai/gpt-5.1")), 400, "config");
    assert_eq!(error["issues"][0]["path"], at, "{error}");
    let error = refused(&set(&version, &json!(["nope"]), &json!(1)), 400, "config");
    assert_eq!(error["issues"][0]["path"], json!(["nope"]), "{error}");
    let error = refused(&set(&version, &json!(["gateway", "port", "x"]), &json!(1)), 400, "config");
    assert_eq!(error["issues"][0]["path"], json!(["gateway", "port", "x"]), "{error}");
    refused(&set(&json!("0"), &json!(["logging", "level"]), &json!("debug")), 409, "conflict");
    refused(&json!({"version": version, "changes": []}), 400, "usage");
    refused(&json!({"version": version, "changes": [{"op": "boom", "path": []}]}), 400, "usage");
    assert_eq!(std::fs::read_to_string(file(&bench)).unwrap(), text);
    gateway.stop();
}

#[test]
fn the_config_is_the_owners_alone() {
    let bench = Bench::new(answering("fine"));
    let text = commented(&bench);
    let gateway = bench.start();
    let version = gateway.client.config()["version"].clone();
    let body = set(&version, &json!(["logging", "level"]), &json!("debug"));
    let stranger = Client { port: bench.port, token: "wrong".to_owned() };
    assert_eq!(stranger.patch("", &body).0, 401);
    assert_eq!(stranger.get("/api/config").unwrap().0, 401);
    assert_eq!(stranger.get("/api/setup").unwrap().0, 401);
    assert_eq!(stranger.post("/api/setup/model", &json!({})).unwrap().0, 401);
    assert_eq!(gateway.client.patch("Origin: http://evil.example\r\n", &body).0, 403);
    let rebound = format!(
        "PATCH /api/config HTTP/1.1\r\nHost: evil.example:{}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        bench.port, gateway.client.token
    );
    assert_eq!(gateway.client.raw(&rebound).unwrap().0, 421);
    assert_eq!(std::fs::read_to_string(file(&bench)).unwrap(), text);
    gateway.stop();
}

#[test]
fn a_model_is_tried_before_it_is_kept() {
    let script = shared(|request, _| match request.header("x-api-key") {
        Some("right-key") => Reply::anthropic().text("ok").step(),
        _ => Step::status(
            401,
            &[],
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
        ),
    });
    let bench = Bench::new(script);
    std::fs::write(
        file(&bench),
        format!("{{\n  // Mine.\n  gateway: {{ port: {} }},\n}}\n", bench.port),
    )
    .unwrap();
    let before = std::fs::read_to_string(file(&bench)).unwrap();
    let gateway = bench.start();
    let (_, state) = gateway.client.get("/api/setup").unwrap();
    assert_eq!(state["needed"], true, "{state}");
    let body = |key: &str| json!({"version": state["version"], "provider": "anthropic", "key": key, "baseUrl": bench.model.url()});
    let keys = bench.home.state_directory().join("agents/main/agent/auth-profiles.json");
    let (status, answer) = gateway.client.post("/api/setup/model", &body("wrong-key")).unwrap();
    assert_eq!((status, &answer["error"]["class"]), (400, &json!("auth")), "{answer}");
    assert!(!answer.to_string().contains("wrong-key"), "{answer}");
    assert_eq!((std::fs::read_to_string(file(&bench)).unwrap(), keys.exists()), (before, false));
    let (status, answer) = gateway.client.post("/api/setup/model", &body("right-key")).unwrap();
    assert_eq!((status, &answer["inForce"]), (200, &json!(true)), "{answer}");
    assert!(!answer.to_string().contains("right-key"), "{answer}");
    let text = std::fs::read_to_string(file(&bench)).unwrap();
    assert!(text.contains("// Mine.") && !text.contains("right-key"), "{text}");
    let (_, state) = gateway.client.get("/api/setup").unwrap();
    assert_eq!((&state["needed"], &state["model"]), (&json!(false), &answer["model"]), "{state}");
    let message = gateway.client.send("main", "1", "hello").unwrap();
    assert_eq!(gateway.client.outcome(&message).unwrap()["reply"], "ok");
    gateway.stop();
}
