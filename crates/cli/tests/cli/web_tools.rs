//! The web tools through the program.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, Step, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::{last_message, run};

/// A page server on a thread that ends with the test. It answers every request with `body`.
pub(crate) fn page_server(content_type: &'static str, body: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(body);
        }
    });
    format!("http://{address}/")
}

/// What the model reads of one call. `change` changes the config.
fn result_of(tool: &str, arguments: &Value, change: impl Fn(&mut Value)) -> String {
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().tool_call("call_1", tool, arguments.clone()),
        Reply::anthropic().text("Done."),
    ]));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    change(&mut config);
    home.write_config(&config);
    run(&home, &["run", "go on"]).assert_code(0);
    last_message(&server)
}

#[test]
fn a_page_of_a_listed_host_is_read_and_any_other_is_refused() {
    let url = page_server("text/html", b"<title>T</title><h1>Hello</h1><p>World");
    let arguments = json!({"url": url, "prompt": "as in another agent"});
    let read = result_of("WebFetch", &arguments, |config| {
        config["tools"]["web"]["fetch"]["allowHosts"] = json!(["127.0.0.1"]);
    });
    for part in ["200 OK (text/html", "<external-content ", "## Hello", "World"] {
        assert!(read.contains(part), "{part}: {read}");
    }
    let refused = result_of("web_fetch", &arguments, |_| {});
    assert!(refused.contains("web tools do not connect to"), "{refused}");
}

#[test]
fn a_page_does_not_come_through_the_proxy_of_the_environment() {
    // Such a proxy would look the name up itself, and connect to what nobody has checked.
    let proxy = TcpListener::bind("127.0.0.1:0").expect("a port");
    proxy.set_nonblocking(true).expect("a listener that does not wait");
    let address = format!("http://{}", proxy.local_addr().expect("its address"));
    let url = page_server("text/plain", b"the page").replace("127.0.0.1", "localhost");
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().tool_call("call_1", "web_fetch", json!({"url": url})),
        Reply::anthropic().text("Done."),
    ]));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["tools"]["web"]["fetch"]["allowHosts"] = json!(["localhost"]);
    home.write_config(&config);
    let mut command = crate::myclaw(&home, &["run", "go on"]);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"] {
        command.env(name, &address);
    }
    // The model is reached directly, whatever the variables say.
    command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    RunningChild::run(&mut command).assert_code(0);
    let read = last_message(&server);
    assert!(read.contains("the page"), "{read}");
    assert!(proxy.accept().is_err(), "the proxy was asked");
}

#[test]
fn a_search_uses_the_key_of_the_config() {
    let base = page_server(
        "application/json",
        br#"{"results": [{"title": "Found", "url": "https://f.example/"}]}"#,
    );
    let found = result_of("web_search", &json!({"query": "q"}), |config| {
        config["tools"]["web"]["search"] = json!({"provider": "searxng", "baseUrl": base});
    });
    assert!(found.contains("1. Found") && found.contains("https://f.example/"), "{found}");
}

#[test]
fn a_search_needs_no_key_where_the_service_wants_none() {
    let base = page_server(
        "application/json",
        br#"{"results": [{"title": "Free", "url": "https://f.example/"}]}"#,
    );
    let found = result_of("web_search", &json!({"query": "q"}), |config| {
        config["tools"]["web"]["search"] = json!({"provider": "tavily", "baseUrl": base});
    });
    assert!(found.contains("1. Free"), "{found}");
}

#[test]
fn another_model_looks_at_a_picture_for_one_that_cannot() {
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic()
            .tool_call("call_1", "image", json!({"image": "p.png", "prompt": "Which colour?"}))
            .usage(10, 1),
        Reply::anthropic().text("It is red.").usage(700, 70),
        Reply::anthropic().text("Done.").usage(20, 2),
    ]));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    let model =
        |id: &str, input: &[&str]| json!({"id": id, "input": input, "contextWindow": 200_000});
    config["models"]["providers"] = json!({"mine": {
        "baseUrl": server.url(), "api": "anthropic-messages", "apiKey": "k",
        "models": [model("blind", &["text"]), model("seeing", &["text", "image"])]
    }});
    config["agents"] = json!({"defaults": {
        "model": "mine/blind", "imageModel": "mine/seeing", "sandbox": {"mode": "off"},
    }});
    home.write_config(&config);
    let picture = include_bytes!("../data/pixel.png");
    std::fs::create_dir_all(home.path().join("work")).expect("a directory");
    std::fs::write(home.path().join("work/p.png"), picture).expect("a file");
    let directory = home.path().join("work");
    let directory = directory.to_str().expect("a path");
    run(&home, &["run", "-C", directory, "go on"]).assert_code(0);
    let requests = server.requests();
    assert_eq!(requests[1].json()["model"], "seeing");
    let asked = &requests[1].messages()[0]["content"];
    assert!(asked.to_string().contains("Which colour?"), "{asked}");
    assert_eq!(asked[1]["type"], "image", "{asked}");
    let result = requests[2].messages().last().expect("a result")["content"].to_string();
    assert!(result.contains("It is red.") && result.contains("external-content"), "{result}");
    let totals =
        std::fs::read_to_string(home.state_directory().join("usage.json")).expect("totals");
    let totals: serde_json::Value = serde_json::from_str(&totals).expect("JSON");
    assert_eq!(totals["tokens"], 11 + 770 + 22, "the call for the picture counts");
}

#[test]
fn the_next_key_is_used_when_the_model_for_pictures_refuses_one() {
    let main = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().tool_call("call_1", "image", json!({"image": "p.png"})),
        Reply::anthropic().text("Done."),
        Reply::anthropic().tool_call("call_2", "image", json!({"image": "p.png"})),
        Reply::anthropic().text("Done."),
    ]));
    let refused = |message: &str| {
        let error = json!({"type": "authentication_error", "message": message});
        Step::status(401, &[], json!({"type": "error", "error": error}).to_string())
    };
    let eyes = ModelServer::spawn_blocking_thread(Script::from([
        refused("invalid x-api-key"),
        Reply::anthropic().text("It is red.").step(),
        refused("invalid x-api-key"),
        refused("no key of yours"),
    ]));
    let home = TempHome::new();
    let mut config = TempHome::config_for(main.url(), WireFormat::AnthropicMessages);
    config["models"]["providers"] = json!({
        "mine": {
            "baseUrl": main.url(), "api": "anthropic-messages", "apiKey": "k",
            "models": [{"id": "blind", "input": ["text"], "contextWindow": 200_000}]
        },
        "eyes": {
            "baseUrl": eyes.url(), "api": "anthropic-messages",
            "models": [{"id": "seeing", "input": ["text", "image"], "contextWindow": 200_000}]
        }
    });
    config["agents"] = json!({"defaults": {
        "model": "mine/blind", "imageModel": "eyes/seeing", "sandbox": {"mode": "off"},
    }});
    home.write_config(&config);
    home.write(
        ".myclaw/agents/main/agent/auth-profiles.json",
        json!({"version": 1, "order": {"eyes": ["eyes:a", "eyes:b"]}, "profiles": {
            "eyes:a": {"type": "api_key", "provider": "eyes", "key": "first-key"},
            "eyes:b": {"type": "api_key", "provider": "eyes", "key": "second-key"},
        }})
        .to_string(),
    );
    home.write("work/p.png", include_bytes!("../data/pixel.png"));
    let directory = home.path().join("work");
    let directory = directory.to_str().expect("a path");
    run(&home, &["run", "-C", directory, "go on"]).assert_code(0);
    let result = last_message(&main);
    assert!(result.contains("It is red."), "{result}");
    let keys: Vec<String> = eyes
        .requests()
        .iter()
        .map(|request| request.header("x-api-key").expect("a key").to_owned())
        .collect();
    assert_eq!(keys, ["first-key", "second-key"]);
    // When no key is left, the call fails with the last answer, and the turn continues.
    run(&home, &["run", "-C", directory, "again"]).assert_code(0);
    let result = last_message(&main);
    assert!(result.contains("eyes/seeing") && result.contains("no key of yours"), "{result}");
    assert!(!result.contains("first-key") && !result.contains("second-key"), "{result}");
    assert_eq!(eyes.requests().len(), 4);
}

#[test]
fn mistakes_in_the_config_are_found_before_a_run_needs_them() {
    let home = TempHome::new();
    for (web, expected) in [
        (
            json!({"fetch": {"allowHosts": ["http://wiki/"]}}),
            "\"http://wiki/\" is not a host; write a name",
        ),
        (json!({"search": {"provider": "brave"}}), "this provider needs a key; set `apiKey`"),
        (json!({"search": {"provider": "searxng"}}), "SearXNG needs the address of a server"),
        (json!({"search": {"provider": "bing"}}), "expected \"searxng\", \"brave\" or \"tavily\""),
    ] {
        home.write_config(&json!({"tools": {"web": web}}));
        let check = run(&home, &["config", "check"]);
        assert_ne!(check.code(), Some(0));
        assert!(check.stderr().contains(expected), "{web}: {}", check.stderr());
        let run = run(&home, &["run", "hello"]);
        assert_ne!(run.code(), Some(0));
        assert!(run.stderr().contains(expected), "{web}: {}", run.stderr());
    }
}
