//! Redirects, names and credentials.

use std::time::Duration;

use serde_json::json;

use crate::server::{Server, page, redirect};
use crate::support::{Names, call, failure, fetch, text};

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn redirects_are_followed_and_the_last_address_is_shown() {
    let server = Server::start(|path| match path {
        "/a" => redirect("b?x=1"),
        "/b?x=1" => redirect("/c"),
        _ => page("text/plain", "here"),
    })
    .await;
    let tool = fetch(&["127.0.0.1"], Names::with(&[]), LONG);
    let text = text(&tool, json!({"url": server.url("/a")})).await;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with(&format!("{}: 200 OK", server.url("/a"))), "{text}");
    // The server chose it, so it stands inside of the marks.
    assert!(lines[2].starts_with("<external-content "), "{text}");
    assert_eq!(lines[3], format!("Address: {}", server.url("/c")));
}

#[tokio::test]
async fn each_redirect_is_checked_before_a_connection() {
    let inner = Server::start_at("127.0.0.2:0", |_| page("text/plain", "secret")).await;
    let port = inner.address.port();
    let names = Names::with(&[("inner.example", &["127.0.0.2"])]);
    for target in [
        format!("http://127.0.0.2:{port}/"),
        format!("http://inner.example:{port}/"),
        format!("//2130706434:{port}/"),
        format!("http://[::ffff:127.0.0.2]:{port}/"),
        format!("http://127.0.0.1@127.0.0.2:{port}/"),
        "file:///etc/passwd".to_owned(),
        // To a host that may be connected to, with a scheme that may not.
        "ftp://127.0.0.1:8021/".to_owned(),
        "wss://127.0.0.1:8443/".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ] {
        let to = target.clone();
        let outer = Server::start(move |path| match path {
            "/" => redirect("/next"),
            _ => redirect(&to),
        })
        .await;
        let tool = fetch(&["127.0.0.1"], names.clone(), LONG);
        let message = failure(&tool, json!({"url": outer.url("/")})).await;
        assert!(
            message.contains("web tools do not connect") || message.contains("only http and https"),
            "{target}: {message}"
        );
        let (own, of_server) = message.split_once("<external-content ").unwrap();
        assert!(own.starts_with("the address redirects, and what it leads to"), "{message}");
        assert!(!own.contains("127.0.0.2") && !own.contains("169.254"), "{message}");
        assert!(of_server.lines().last().unwrap().starts_with("</external-content "), "{message}");
        assert_eq!(outer.requests().len(), 2, "{target}");
    }
    assert_eq!(inner.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_connection_goes_to_the_address_that_was_checked() {
    let public = Server::start(|path| match path {
        "/" => page("text/plain", "public"),
        _ => redirect("/"),
    })
    .await;
    let port = public.address.port();
    let inner =
        Server::start_at(&format!("127.0.0.2:{port}"), |_| page("text/plain", "secret")).await;
    // The name server changes its answer after the first question.
    let names = Names::with(&[("rebinding.example", &["127.0.0.1", "127.0.0.2"])]);
    let tool = fetch(&["127.0.0.1"], names, LONG);
    let url = format!("http://rebinding.example:{port}/");
    assert!(text(&tool, json!({"url": url})).await.contains("public"));
    let message = failure(&tool, json!({"url": url})).await;
    assert!(
        message.contains("rebinding.example is an address of this machine (127.0.0.2)"),
        "{message}"
    );
    // Even if it changes between a page and its redirect.
    let names = Names::with(&[("rebinding.example", &["127.0.0.1", "127.0.0.2"])]);
    let tool = fetch(&["127.0.0.1"], names, LONG);
    let message = failure(&tool, json!({"url": format!("{url}redirect")})).await;
    assert!(message.contains("(127.0.0.2)"), "{message}");
    assert_eq!(inner.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn the_answer_that_was_checked_is_the_one_that_is_used() {
    let first = Server::start(|_| page("text/plain", "first")).await;
    let port = first.address.port();
    let second =
        Server::start_at(&format!("127.0.0.2:{port}"), |_| page("text/plain", "second")).await;
    // Both addresses may be connected to, so only the number of questions to the name server decides.
    let names = Names::with(&[("moving.example", &["127.0.0.1", "127.0.0.2"])]);
    let tool = fetch(&["127.0.0.0/8"], names, LONG);
    let url = json!({"url": format!("http://moving.example:{port}/")});
    assert!(text(&tool, url.clone()).await.contains("first"));
    assert!(text(&tool, url).await.contains("second"), "the next download asks again");
    assert_eq!((first.requests().len(), second.requests().len()), (1, 1));
}

#[tokio::test]
async fn credentials_stay_with_their_origin() {
    let other = Server::start(|_| page("text/plain", "other")).await;
    let target = other.url("/from");
    let server = Server::start(move |path| match path {
        "/same" => redirect("/next"),
        "/away" => redirect(&target.replace("http://", "http://eve:pw@")),
        _ => page("text/plain", "same"),
    })
    .await;
    let tool = fetch(&["127.0.0.1"], Names::with(&[]), LONG);
    let with_user = |path: &str| server.url(path).replace("http://", "http://user:se%40cret@");
    let output = call(&tool, json!({"url": with_user("/same")})).await.unwrap();
    let shown = format!("{output:?}");
    assert!(shown.contains("same") && !shown.contains("cret"), "{shown}");
    text(&tool, json!({"url": with_user("/away")})).await;
    let credentials = |requests: Vec<String>| -> Vec<Option<String>> {
        let header = |request: &String| {
            let line = request.lines().find(|line| line.starts_with("authorization: "))?;
            Some(line["authorization: ".len()..].to_owned())
        };
        requests.iter().map(header).collect()
    };
    let given = Some("Basic dXNlcjpzZUBjcmV0".to_owned());
    assert_eq!(credentials(server.requests()), [given.clone(), given.clone(), given]);
    assert_eq!(credentials(other.requests()), [None]);
}

#[tokio::test]
async fn refused_addresses_are_explained() {
    let tool = fetch(&[], Names::with(&[("site.example", &["10.0.0.7"])]), LONG);
    for (url, expected) in [
        ("http://127.0.0.1:9/", "port 9 of 127.0.0.1 is not for web pages"),
        (
            "http://127.0.0.1:8080/",
            "127.0.0.1 is an address of this machine (127.0.0.1), which web tools",
        ),
        ("https://site.example/", "site.example is an address of a private network (10.0.0.7)"),
        ("https://other.example/", "the host other.example cannot be found"),
        (
            "site.example",
            "\"site.example\" cannot be used: relative URL without a base. Give a full address",
        ),
    ] {
        let message = failure(&tool, json!({"url": url})).await;
        assert!(message.contains(expected), "{message}");
    }
}
