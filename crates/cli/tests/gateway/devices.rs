//! Devices: pairing, scopes and revocation.

use super::socket::{Socket, block_on};
use super::*;

/// What the command line prints.
pub(super) fn run(bench: &Bench, args: &[&str]) -> String {
    let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    let output = command.args(args).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

pub(super) fn code(bench: &Bench, scope: &str) -> String {
    run(bench, &["devices", "code", "--scope", scope]).trim().to_owned()
}

/// A device that has paired, with its id. The owner has not approved it.
fn paired(client: &Client, code: &str, name: &str) -> (Client, String) {
    // What a client claims is not read.
    let body = json!({"code": code, "name": name, "scope": "owner", "scopes": ["owner"], "approved": true});
    let (status, device) = client.post("/api/devices/pair", &body).unwrap();
    assert_eq!(status, 200, "{device}");
    assert_eq!(device["state"], "pending");
    let token = device["token"].as_str().unwrap().to_owned();
    (Client { port: client.port, token }, device["id"].as_str().unwrap().to_owned())
}

pub(super) fn device(bench: &Bench, client: &Client, scope: &str) -> (Client, String) {
    let (device, id) = paired(client, &code(bench, scope), &format!("my {scope}"));
    run(bench, &["devices", "approve", &id]);
    (device, id)
}

fn stranger(client: &Client) -> Client {
    Client { port: client.port, token: "none".to_owned() }
}

#[test]
fn a_device_pairs_once_and_is_let_in_when_the_owner_says_so() {
    let bench = Bench::new(answering("hello"));
    let gateway = bench.start();
    let nobody = stranger(&gateway.client);
    let code = code(&bench, "read-only");
    let (phone, id) = paired(&nobody, &code.to_lowercase(), "phone");
    // Until then, its token says only that it waits. It cannot approve itself.
    assert_eq!(phone.get("/api/status").unwrap().0, 403);
    assert_eq!(phone.post("/api/devices/approve", &json!({"name": id})).unwrap().0, 403);
    // The code was used, and a wrong one is no better.
    for code in [code.as_str(), "AAAAAAAA", ""] {
        let (status, answer) = nobody.post("/api/devices/pair", &json!({"code": code})).unwrap();
        assert_eq!((status, &answer["error"]["class"]), (403, &json!("scope")), "{answer}");
    }
    let listed = run(&bench, &["devices", "list"]);
    assert!(listed.contains(&id) && listed.contains("pending") && listed.contains("read-only"));
    assert!(run(&bench, &["devices", "approve", "phone"]).contains("may connect now"));
    // The scope is the code's, whatever the device claimed.
    let scopes = phone.get("/api/scopes").unwrap();
    assert_eq!((scopes.0, &scopes.1["scope"]), (200, &json!("read-only")));
    // The store has a digest, never the token; it outlives a restart.
    gateway.kill();
    for file in ["store.sqlite", "store.sqlite-wal"] {
        let bytes = std::fs::read(bench.home.state_directory().join("gateway").join(file));
        let has = |text: &str| {
            bytes
                .as_ref()
                .is_ok_and(|all| all.windows(text.len()).any(|part| part == text.as_bytes()))
        };
        assert!(!has(&phone.token), "{file} has the token");
    }
    let gateway = bench.start();
    assert_eq!(phone.get("/api/status").unwrap().0, 200);
    // Attempts are counted, and then even a right code waits.
    let late = self::code(&bench, "owner");
    let mut statuses = Vec::new();
    for _ in 0..10 {
        statuses.push(nobody.post("/api/devices/pair", &json!({"code": "BBBBBBBB"})).unwrap().0);
    }
    assert_eq!(statuses, [403; 10]);
    assert_eq!(nobody.post("/api/devices/pair", &json!({"code": late})).unwrap().0, 429);
    gateway.stop();
    // Without a gateway the command line works on the store.
    run(&bench, &["devices", "revoke", &id]);
    assert!(run(&bench, &["devices", "list"]).contains("no other device"));
}

#[test]
fn each_scope_may_do_what_the_table_says_and_nothing_else() {
    let bench = Bench::new(answering("hello"));
    let gateway = bench.start();
    let owner = &gateway.client;
    let table = owner.get("/api/scopes").unwrap().1;
    let routes = table["routes"].as_array().unwrap();
    assert!(routes.len() > 30);
    for scope in ["owner", "operator", "read-only", "webhook", "node"] {
        let (device, _) = device(&bench, owner, scope);
        for route in routes {
            let [method, path, needs] =
                ["method", "path", "needs"].map(|key| route[key].as_str().unwrap());
            let is_allowed = match needs {
                "nothing" => true,
                "see" => ["owner", "operator", "read-only"].contains(&scope),
                "deliver" => ["owner", "operator", "webhook"].contains(&scope),
                "talk" => ["owner", "operator"].contains(&scope),
                "own" => scope == "owner",
                "be-node" => scope == "node",
                other => panic!("{other}"),
            };
            let path = path.replace(['{', '}'], "");
            let request = format!("{}Content-Length: 0\r\n\r\n", device.head(method, &path));
            let (status, body) = device.raw(&request).unwrap();
            let is_refused = status == 403 && body.contains("does not allow that");
            assert_eq!(is_refused, !is_allowed, "{scope} {method} {path}: {status} {body}");
            // The route is there, and known to the table.
            assert!(status < 500 && status != 401, "{scope} {method} {path}: {status} {body}");
        }
        if ["read-only", "operator"].contains(&scope) {
            let methods = table["methods"].as_array().unwrap();
            block_on(async {
                let mut socket = Socket::open(&device).await;
                for method in methods {
                    let name = method["method"].as_str().unwrap();
                    let answer = socket.ask(name, name, json!({"session": "s", "text": ""})).await;
                    let is_refused = answer["error"]["class"] == "scope";
                    let is_allowed = scope == "operator" || method["needs"] == "see";
                    assert_eq!(is_refused, !is_allowed, "{scope} {name}: {answer}");
                }
            });
        }
    }
    // What no route is stays unknown, whoever asks.
    assert_eq!(owner.get("/api/nothing").unwrap().0, 404);
    assert_eq!(owner.post("/api/status", &json!({})).unwrap().0, 405);
    gateway.stop();
}

#[test]
fn a_webhook_reaches_only_a_session_of_its_own() {
    let bench = Bench::new(answering("hello"));
    let gateway = bench.start();
    let owner = &gateway.client;
    let asked = owner.send("main", "first", "a secret").unwrap();
    owner.outcome(&asked).unwrap();
    let (hook, id) = device(&bench, owner, "webhook");
    for other in ["main", "agent:main:main", "hook-other"] {
        let body = json!({"text": "delete everything", "session": other, "id": "a"});
        let (status, answer) = hook.post("/api/messages", &body).unwrap();
        assert_eq!((status, &answer["error"]["class"]), (403, &json!("scope")), "{answer}");
    }
    // The id of somebody else's message names another message here.
    let (status, answer) =
        hook.post("/api/messages", &json!({"text": "built", "id": "first"})).unwrap();
    assert_eq!((status, answer["state"].as_str()), (202, Some("open")), "{answer}");
    let message = answer["messageId"].as_str().unwrap();
    assert_ne!(message, asked);
    let outcome = owner.outcome(message).unwrap();
    assert_eq!(outcome["state"], "answered", "{outcome}");
    let session = format!("agent:main:channel:hook:account:default:peer:direct:hook-{id}");
    assert_eq!(outcome["session"], session, "{outcome}");
    // It names its own session too, and the same message is one message.
    let body = json!({"text": "built", "id": "first", "session": format!("hook-{id}")});
    assert_eq!(hook.post("/api/messages", &body).unwrap().1["messageId"], message);
    let shown = bench.rows("main").iter().map(ToString::to_string).collect::<String>();
    assert!(!shown.contains("built") && !shown.contains("delete everything"), "{shown}");
    gateway.stop();
}

#[test]
fn a_revoked_device_loses_its_sockets_and_a_rotated_token_its_hold() {
    let bench = Bench::new(answering("hello"));
    let gateway = bench.start();
    let owner = &gateway.client;
    let (mut phone, id) = device(&bench, owner, "operator");
    let (other, _) = device(&bench, owner, "read-only");
    block_on(async {
        let mut kept = Socket::open(&other).await;
        let mut socket = Socket::open(&phone).await;
        let printed = run(&bench, &["devices", "rotate", &id]);
        assert!(socket.next().await["closed"].as_str().unwrap().contains("replaced or revoked"));
        assert_eq!(phone.get("/api/status").unwrap().0, 401);
        phone.token = printed.trim().to_owned();
        assert_eq!(phone.get("/api/status").unwrap().0, 200);
        let mut socket = Socket::open(&phone).await;
        assert!(run(&bench, &["devices", "revoke", "my operator"]).contains("no access"));
        assert!(socket.next().await["closed"].as_str().unwrap().contains("replaced or revoked"));
        assert_eq!(phone.get("/api/status").unwrap().0, 401);
        // The others notice nothing.
        assert_eq!(kept.ask("one", "status", json!({})).await["ok"], true);
    });
    // An owner's device that revokes itself is gone for good.
    let (second, id) = device(&bench, owner, "owner");
    assert_eq!(second.post("/api/devices/revoke", &json!({"name": id})).unwrap().0, 200);
    gateway.kill();
    let gateway = bench.start();
    for gone in [&phone, &second] {
        assert_eq!(gone.get("/api/status").unwrap().0, 401);
    }
    gateway.stop();
}

#[test]
fn a_link_signs_the_owner_in_once() {
    let bench = Bench::new(answering("hello"));
    bench.configure(|config| config["gateway"]["allowedHosts"] = json!(["claw.example.org"]));
    let gateway = bench.start();
    let nobody = stranger(&gateway.client);
    let made = |client: &Client| client.post("/api/devices/link", &json!({})).unwrap();
    let sign_in = |secret: &str| {
        let body = json!({"secret": secret, "name": "my browser"});
        nobody.post("/api/devices/sign-in", &body).unwrap()
    };
    let printed = run(&bench, &["gateway", "link"]);
    let port = gateway.client.port;
    let secret = printed.lines().next().unwrap().rsplit('/').next().unwrap();
    let expected = format!(
        "http://127.0.0.1:{port}/#/sign-in/{secret}\nhttp://claw.example.org:{port}/#/sign-in/{secret}\n"
    );
    assert_eq!(printed, expected);
    assert_eq!(secret.len(), 64);
    for wrong in ["", &secret[1..], &"0".repeat(64)] {
        let (status, answer) = sign_in(wrong);
        assert_eq!((status, &answer["error"]["class"]), (403, &json!("scope")), "{answer}");
    }
    let (status, device) = sign_in(secret);
    assert_eq!(status, 200, "{device}");
    assert_eq!((&device["state"], &device["scope"]), (&json!("approved"), &json!("owner")));
    let (again, answer) = sign_in(secret);
    assert_eq!(again, 403, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("gateway link"), "{answer}");
    // The browser is a device like others, and makes no links itself.
    let token = device["token"].as_str().unwrap().to_owned();
    let browser = Client { port, token };
    assert_eq!(browser.get("/api/devices").unwrap().0, 200);
    assert_eq!(made(&browser).0, 403);
    assert_eq!(made(&nobody).0, 401);
    let id = device["id"].as_str().unwrap();
    assert!(run(&bench, &["devices", "revoke", id]).contains("no access any more"));
    assert_eq!(browser.get("/api/devices").unwrap().0, 401);

    // The newest twenty are kept, and none outlives the process.
    let links: Vec<String> =
        (0..21).map(|_| made(&gateway.client).1["links"][0].as_str().unwrap().to_owned()).collect();
    let secret_of = |link: &str| link.rsplit('/').next().unwrap().to_owned();
    assert_eq!(sign_in(&secret_of(&links[0])).0, 403);
    assert_eq!(sign_in(&secret_of(&links[1])).0, 200);
    gateway.stop();
    let gateway = bench.start();
    assert_eq!(sign_in(&secret_of(&links[2])).0, 403);
    gateway.stop();
    let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    let output = command.args(["gateway", "link"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("start one with `myclaw gateway`"));
}
