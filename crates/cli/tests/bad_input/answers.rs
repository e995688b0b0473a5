//! Servers that cannot be reached, and answers that are none.

use std::net::TcpListener;

use myclaw_testkit::{ModelServer, Reply, RunningChild, Step, TempHome, WireFormat};
use serde_json::json;

use crate::{
    assert_fails, assert_goes_on, config, count, home_for, myclaw, rows, run, said, serve,
    serve_text,
};

/// A failed turn keeps what the user said, and nothing else; the next one continues from there.
fn assert_only_the_message_is_kept(home: &TempHome, format: WireFormat) {
    assert_eq!(rows(home, "main"), said(&[("user", "hello")]));
    let request = assert_goes_on(home, format, "main");
    assert_eq!(count(&request, "hello"), 1);
    assert_eq!(
        rows(home, "main"),
        said(&[("user", "hello"), ("user", "and now?"), ("assistant", "Going on.")])
    );
}

fn assert_step_fails(step: &Step, words: &[&str]) {
    assert_step_fails_in(&WireFormat::ALL, step, words);
}

fn assert_step_fails_in(formats: &[WireFormat], step: &Step, words: &[&str]) {
    for &format in formats {
        let server = serve(step.clone());
        let home = home_for(&server, format);
        assert_fails(&run(&home, &["run", "hello"]), 4, words);
        assert_eq!(server.requests().len(), 1, "one attempt");
        assert_only_the_message_is_kept(&home, format);
    }
}

#[test]
fn a_server_that_is_not_there() {
    // A port that was free a moment ago, and is free again.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    for format in WireFormat::ALL {
        let home = TempHome::new();
        home.write_config(&config(&format!("http://{address}"), format));
        let output = run(&home, &["run", "hello"]);
        assert_fails(&output, 4, &[&address, "nothing listens", "is the server running"]);
        assert_only_the_message_is_kept(&home, format);
    }
}

/// With a proxy in the environment it is the proxy that is not there, and the message says so.
#[test]
fn a_proxy_that_is_not_there() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    for (variable, url) in
        [("HTTP_PROXY", "http://models.example"), ("https_proxy", "https://models.example")]
    {
        let home = TempHome::new();
        home.write_config(&config(url, WireFormat::ALL[0]));
        let mut command = myclaw(&home, &["run", "hello"]);
        command.env(variable, format!("http://me:secret@{address}"));
        let output = RunningChild::run(&mut command);
        assert_fails(&output, 4, &["nothing listens", "the proxy http://127.0.0.1", "HTTPS_PROXY"]);
        assert!(!output.stderr().contains("secret"), "{}", output.stderr());
    }
}

/// Addresses of a private network go through the proxy in either version of IP, unless `NO_PROXY` names them.
#[test]
fn a_proxy_for_addresses_of_a_private_network() {
    for (host, exceptions, is_asked) in [
        ("[fd00::9]", "", true),
        ("[fd12:3456::9]", "fd00::/16", true),
        ("[2001:db8::9]", "", true),
        ("10.255.255.1", "", true),
        ("[fd00:ec2::254]", "", false),
        ("[::ffff:127.0.0.1]", "", false),
    ] {
        let proxy = serve_text(WireFormat::ALL[0], "over the proxy");
        let home = TempHome::new();
        // The discard port: what does not go through the proxy fails at once.
        home.write_config(&config(&format!("http://{host}:9"), WireFormat::ALL[0]));
        let mut command = myclaw(&home, &["run", "hello"]);
        command.env("http_proxy", proxy.url()).env("NO_PROXY", exceptions);
        let output = RunningChild::run(&mut command);
        assert_eq!(proxy.requests().len(), usize::from(is_asked), "{host}: {}", output.stderr());
        if is_asked {
            assert!(output.stdout().contains("over the proxy"), "{host}: {}", output.stderr());
        } else {
            assert!(!output.stderr().contains("proxy"), "{host}: {}", output.stderr());
        }
    }
}

#[test]
fn a_server_that_hangs_up() {
    assert_step_fails(&Step::raw(""), &["127.0.0.1", "broke"]);
    assert_step_fails(&Step::raw("SSH-2.0-OpenSSH_9.6\r\n"), &["127.0.0.1"]);
}

#[test]
fn a_web_page_instead_of_json() {
    let page = "<!doctype html><html><head><title>Sign in to the hotel</title></head><body><script>x()</script></body>";
    assert_step_fails(&Step::html(page), &["web page", "Sign in to the hotel", "base URL"]);
}

#[test]
fn a_proxy_that_reaches_nobody() {
    let page =
        "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><hr>nginx</body></html>";
    let step = Step::status(502, &[("content-type", "text/html")], page);
    assert_step_fails(&step, &["502", "web page", "Bad Gateway", "again"]);
}

#[test]
fn an_error_in_an_answer_that_claims_success() {
    let error =
        json!({"error": {"type": "invalid_request_error", "message": "model `m` is on holiday"}});
    assert_step_fails(
        &Step::status(200, &[], error.to_string()),
        &["model `m` is on holiday", "invalid_request_error"],
    );
    // Amazon's streams are binary.
    let text =
        WireFormat::ALL.map(|format| (format != WireFormat::BedrockConverse).then_some(format));
    let text: Vec<WireFormat> = text.into_iter().flatten().collect();
    assert_step_fails_in(
        &text,
        &Step::event_stream(format!("data: {error}\n\n")),
        &["model `m` is on holiday", "invalid_request_error"],
    );
}

#[test]
fn an_answer_without_anything() {
    for step in [Step::status(200, &[], ""), Step::empty_stream()] {
        assert_step_fails(&step, &["127.0.0.1", "again"]);
    }
    assert_step_fails(&Step::status(204, &[], ""), &["127.0.0.1"]);
}

#[test]
fn an_answer_that_is_json_of_something_else() {
    for body in ["{}", "null", "[]", "\"hello\"", "{\"status\":\"ok\"}", "42"] {
        assert_step_fails(&Step::status(200, &[], body), &["127.0.0.1"]);
    }
    assert_step_fails(&Step::status(200, &[], b"\x1f\x8b\x08\0\xff\xfe".to_vec()), &["127.0.0.1"]);
}

#[test]
fn a_redirect_to_another_host_takes_no_key_along() {
    let other = serve(Reply::anthropic().text("never"));
    let target = format!("{}/v1/messages", other.url());
    let step = Step::status(307, &[("location", target.as_str())], "");
    assert_step_fails(&step, &["307", &target, "base URL"]);
    assert_eq!(other.all_requests().len(), 0);
}

#[test]
fn refusals_say_what_to_do() {
    let cases: [(u16, &str, &[&str]); 5] = [
        (401, "authentication_error", &["401", "check the API key"]),
        (403, "permission_error", &["403", "check the API key"]),
        (402, "billing_error", &["402", "check the credit"]),
        (404, "not_found_error", &["404", "check the base URL and the model id"]),
        (400, "invalid_request_error", &["400", "from the server"]),
    ];
    for (status, kind, words) in cases {
        // Servers repeat keys; we do not.
        let body = json!({"error": {"type": kind, "message": "from the server: bad key test-key"}});
        assert_step_fails(&Step::status(status, &[], body.to_string()), words);
    }
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    for format in WireFormat::ALL {
        let server: ModelServer = serve(Step::event_stream("").stall_after(0));
        let home = TempHome::new();
        let mut config = config(server.url(), format);
        config["models"]["timeouts"] = json!({"firstEventSeconds": 1});
        home.write_config(&config);
        assert_fails(&run(&home, &["run", "hello"]), 4, &["127.0.0.1", "no event within 1 s"]);
        assert_only_the_message_is_kept(&home, format);
    }
}
