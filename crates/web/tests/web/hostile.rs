//! Servers that want to waste time and memory.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use myclaw_engine::ToolError;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::server::{Reply, Server, redirect, reply};
use crate::support::{Names, call_with, failure, fetch, local_fetch, text};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n";

#[tokio::test]
async fn an_endless_page_is_cut_and_its_connection_closed() {
    let server = Server::start(|path| match path {
        "/announced" => Reply::Endless(
            [HEAD, b"content-length: 10737418240\r\n\r\n"].concat(),
            b"<p>again and again".repeat(100),
        ),
        _ => Reply::Endless([HEAD, b"\r\n"].concat(), b"<p>again and again".repeat(100)),
    })
    .await;
    for path in ["/announced", "/silent"] {
        let text = text(&local_fetch(), json!({"url": server.url(path)})).await;
        assert!(text.contains("The document is too long and ends early"), "{}", &text[..300]);
        assert!(text.len() < 20_000, "{}", text.len());
    }
    server.wait_until_unused().await;
}

#[tokio::test]
async fn a_small_body_cannot_unpack_into_a_huge_one() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..200 {
        encoder.write_all(&[b'x'; 1024 * 1024]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    let headers = ["content-type: text/plain", "content-encoding: gzip"];
    let server = Server::start(move |_| reply("200 OK", &headers, &bomb)).await;
    let text = text(&local_fetch(), json!({"url": server.url("/")})).await;
    assert!(text.contains("(text/plain, 5242880 bytes)"), "{}", &text[..300]);
    server.wait_until_unused().await;
}

#[tokio::test]
async fn redirects_without_end_are_given_up() {
    let server = Server::start(|path| redirect(&format!("{path}x"))).await;
    let message = failure(&local_fetch(), json!({"url": server.url("/")})).await;
    let last = server.url("/xxxxxx");
    let (own, of_server) = message.split_once("<external-content ").unwrap();
    assert!(!own.contains("/x"), "{message}");
    let expected = format!(
        "more than 5 redirects, the last one to {last}; use the address of the page itself"
    );
    assert_eq!(of_server.lines().nth(1).unwrap(), expected);
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn a_server_that_stalls_is_left() {
    let server = Server::start(|path| match path {
        "/headers" => Reply::Stalled(b"HTTP/1.1 200 OK\r\n".to_vec()),
        "/nothing" => Reply::Stalled(Vec::new()),
        _ => Reply::Stalled([HEAD, b"content-length: 100\r\n\r\n<p>"].concat()),
    })
    .await;
    let tool = fetch(&["127.0.0.1"], Arc::default(), Duration::from_millis(300));
    for path in ["/headers", "/nothing", "/body"] {
        let message = failure(&tool, json!({"url": server.url(path)})).await;
        assert!(message.contains("was not complete within 0.3 s"), "{message}");
    }
    server.wait_until_unused().await;
}

#[tokio::test]
async fn an_aborted_run_ends_the_download_at_once() {
    let server = Server::start(|_| Reply::Stalled([HEAD, b"\r\n<p>"].concat())).await;
    let tool = Arc::new(local_fetch());
    let cancel = CancellationToken::new();
    let (url, token) = (server.url("/"), cancel.clone());
    let call = tokio::spawn(async move { call_with(&*tool, json!({"url": url}), token).await });
    server.wait_until("a request", |server| server.requests().len() == 1).await;
    cancel.cancel();
    assert!(matches!(call.await.unwrap(), Err(ToolError::Aborted(_))));
    server.wait_until_unused().await;
}

#[tokio::test]
async fn servers_that_do_not_speak_http_are_explained() {
    let server = Server::start(|path| match path {
        "/ssh" => Reply::Bytes(b"SSH-2.0-OpenSSH_9.6\r\n".to_vec()),
        "/short" => Reply::Bytes([HEAD, b"content-length: 100\r\n\r\n<p>"].concat()),
        _ => Reply::Bytes(Vec::new()),
    })
    .await;
    for path in ["/ssh", "/short", "/closed"] {
        let message = failure(&local_fetch(), json!({"url": server.url(path)})).await;
        let origin = server.url("");
        assert!(
            message.starts_with(&format!("no answer from {origin}: the connection broke")),
            "{message}"
        );
    }
    let names = Names::with(&[("gone.example", &["127.0.0.1"])]);
    let tool = fetch(&["gone.example"], names, Duration::from_secs(60));
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let message = failure(&tool, json!({"url": format!("http://gone.example:{port}/")})).await;
    assert!(message.contains("nothing listens there; check the address"), "{message}");
    let tls =
        failure(&local_fetch(), json!({"url": server.url("/").replace("http:", "https:")})).await;
    assert!(tls.starts_with("no answer from https://127.0.0.1:"), "{tls}");
}
