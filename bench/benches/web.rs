//! What `web_fetch` costs for a page of 1 MB, compared with a bare program that downloads the page and converts it with the same
//! library. The ratio of the medians of one run.
#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has nothing to report")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dom_smoothie::{Config, Readability, TextMode};
use myclaw_engine::{PreparedCall, Tool as _, ToolContext, ToolInvocation, TurnId};
use myclaw_web::{
    AddressGuard, AddressRules, DownloadOptions, Downloader, FetchLimits, PrivateNetworks,
    WebFetchTool,
};
use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Size of the page.
const PAGE_BYTES: usize = 1_000_000;
/// Timed runs of each: odd, so that the median is a run that happened.
const RUNS: usize = 11;

fn main() {
    // Cargo's test run asks every bench whether it has tests.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let url = serve(page());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (mut bare_times, mut our_times) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        for _ in 0..RUNS {
            let began = Instant::now();
            assert!(bare(&url).await > PAGE_BYTES / 2, "the text of the page");
            bare_times.push(began.elapsed());
            let began = Instant::now();
            ours(&url).await;
            our_times.push(began.elapsed());
        }
    });
    let (bare, ours) = (median(bare_times), median(our_times));
    println!("a page of {PAGE_BYTES} bytes, medians of {RUNS} runs");
    println!("bare program  {:8.1} ms", bare.as_secs_f64() * 1e3);
    println!(
        "web_fetch     {:8.1} ms  {:.2} times",
        ours.as_secs_f64() * 1e3,
        ours.as_secs_f64() / bare.as_secs_f64()
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// An article with headings, paragraphs, links, lists and code.
fn page() -> Vec<u8> {
    let mut page = String::from(
        "<!doctype html><title>A long page</title><nav><a href=/>Home</a></nav><article>",
    );
    let mut number = 0;
    while page.len() < PAGE_BYTES {
        number += 1;
        page.push_str(&format!(
            "<h2>Part {number}</h2><p>{}<a href=\"/part/{number}?a=1&amp;b=2\">Read on</a>, or <b>do not</b>.</p>\
             <ul><li>first of {number}<li>second</ul><pre><code>let part = {number};</code></pre>",
            "Some words of an article, with commas, and of a usual length. ".repeat(12)
        ));
    }
    page.push_str("</article><footer>Imprint</footer>");
    page.into_bytes()
}

/// Serves `page` on a thread that lives as long as the process.
fn serve(page: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                page.len()
            );
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(&page);
        }
    });
    format!("http://{address}/")
}

/// The bare program: a download, a conversion.
async fn bare(url: &str) -> usize {
    myclaw_llm::install_crypto_provider();
    let client =
        reqwest::Client::builder().no_proxy().tls_certs_only([]).build().expect("a client");
    let answer = client.get(url).send().await.expect("an answer");
    let html = answer.text().await.expect("a page");
    let config = Config { text_mode: TextMode::Markdown, ..Config::default() };
    let mut readability =
        Readability::new(html, Some(url), Some(config)).expect("an absolute address");
    readability.parse().expect("an article").text_content.len()
}

/// The tool, made anew as for a run.
async fn ours(url: &str) {
    let rules =
        AddressRules { private_networks: PrivateNetworks::Allowed, ..AddressRules::default() };
    let downloader = Downloader::new(AddressGuard::new(rules), DownloadOptions::default());
    let limits = FetchLimits { time: Duration::from_secs(60), max_chars: 15_000 };
    let tool = WebFetchTool::new(Arc::new(downloader), limits);
    let directory = TempDir::new().expect("a directory");
    let context = ToolContext {
        working_directory: directory.path().to_owned(),
        artifact_directory: directory.path().join("artifacts"),
        max_result_chars: 50_000,
        workspace_only: false,
        closed: Default::default(),
        turn: TurnId::generate(),
    };
    let arguments = Map::from_iter([("url".to_owned(), Value::from(url))]);
    let prepared = PreparedCall::new(&tool, "call", arguments, &context).expect("a call");
    let invocation = ToolInvocation {
        call: &prepared,
        on_update: &|_| {},
        context: &context,
        cancel: CancellationToken::new(),
    };
    let output = tool.execute(invocation).await.expect("a page");
    assert!(!output.is_error, "a page");
}
