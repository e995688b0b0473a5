//! A site on this machine, and a tool whose browser may visit it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use myclaw_browser::{BrowserOptions, BrowserSlot, BrowserTool, Programs};
use myclaw_engine::{
    PreparedCall, Tool, ToolContext, ToolError, ToolInvocation, ToolOutput, TurnId,
};
use myclaw_llm::ContentBlock;
use myclaw_web::{AddressGuard, AddressRules, BoxFuture, Lookup};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long a condition may take to become true on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program; `None` (and a word about it) if it is not installed.
pub(crate) fn agent_browser() -> Option<PathBuf> {
    let program = std::env::var_os("MYCLAW_AGENT_BROWSER").map(PathBuf::from);
    if program.is_none() {
        myclaw_testkit::skip_without("MYCLAW_AGENT_BROWSER is not set; scripts/test sets it");
    }
    program
}

/// A web server with fixed pages by path. A path without a page is answered with 404; one with [`Page::Never`] not at
/// all.
pub(crate) struct Site {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

#[derive(Clone)]
pub(crate) enum Page {
    Html(String),
    Redirect(String),
    Download(Vec<u8>),
    Never,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Site {
    pub(crate) async fn start(pages: impl FnOnce(u16) -> Vec<(&'static str, Page)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let pages: Arc<HashMap<&str, Page>> = Arc::new(pages(port).into_iter().collect());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (pages, seen) = (Arc::clone(&pages), Arc::clone(&seen));
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                        if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    let head = String::from_utf8_lossy(&head).into_owned();
                    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
                    seen.lock().unwrap().push(target.clone());
                    let path = target.split('?').next().unwrap_or_default();
                    let Some(answer) = answer(pages.get(path)) else {
                        return std::future::pending().await;
                    };
                    let _ = stream.write_all(&answer).await;
                });
            }
        });
        Self { port, requests, task }
    }

    /// The targets that were asked for so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn has_request(&self, target: &str) -> bool {
        self.requests().iter().any(|seen| seen == target)
    }

    pub(crate) fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }
}

fn answer(page: Option<&Page>) -> Option<Vec<u8>> {
    let with = |head: String, body: &[u8]| {
        let mut answer = format!(
            "HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        )
        .into_bytes();
        answer.extend_from_slice(body);
        Some(answer)
    };
    match page {
        Some(Page::Html(html)) => with(
            "200 OK\r\nContent-Type: text/html; charset=utf-8".to_owned(),
            format!("<!doctype html><meta charset=utf-8>{html}").as_bytes(),
        ),
        Some(Page::Redirect(to)) => with(format!("302 Found\r\nLocation: {to}"), b""),
        Some(Page::Download(bytes)) => {
            with("200 OK\r\nContent-Type: application/octet-stream".to_owned(), bytes)
        }
        Some(Page::Never) => None,
        None => {
            with("404 Not Found\r\nContent-Type: text/html".to_owned(), b"<h1>Nothing here</h1>")
        }
    }
}

/// All names of `.test` lead to this machine, but for those with an address of their own. Others do not exist.
struct Names(HashMap<String, Vec<IpAddr>>, Mutex<HashMap<String, usize>>);

impl Lookup for Names {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let own = self.0.get(name).map(|answers| {
            let mut counts = self.1.lock().unwrap();
            let count = counts.entry(name.to_owned()).or_default();
            *count += 1;
            // One answer after the other; the last one stays.
            answers[(*count - 1).min(answers.len() - 1)]
        });
        let is_known = name.ends_with(".test") || name == "localhost";
        let here = is_known.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let address = own.or(here).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
        Box::pin(async move { Ok(vec![address?]) })
    }
}

/// A session with the browser tool.
pub(crate) struct Session {
    pub(crate) tool: BrowserTool,
    pub(crate) slot: BrowserSlot,
    _directory: TempDir,
    context: ToolContext,
    pub(crate) cancel: CancellationToken,
}

impl Session {
    /// A session whose browser may visit `allowed` (`host:port`), though these are on this machine.
    pub(crate) fn new(program: &Path, allowed: &[&str]) -> Self {
        Self::with_names(program, allowed, &[])
    }

    /// The same, with names that have addresses of their own, one after the other.
    pub(crate) fn with_names(
        program: &Path,
        allowed: &[&str],
        names: &[(&str, &[IpAddr])],
    ) -> Self {
        let names = names.iter().map(|(name, to)| ((*name).to_owned(), to.to_vec())).collect();
        let rules = AddressRules {
            allowed_hosts: allowed.iter().map(|entry| entry.parse().unwrap()).collect(),
            ..AddressRules::default()
        };
        let guard = AddressGuard::with_lookup(rules, Arc::new(Names(names, Mutex::default())));
        let path = std::env::var_os("PATH").unwrap();
        Self::with_options(BrowserOptions {
            programs: Programs {
                agent_browser: Some(program.to_owned()),
                path,
                ..Programs::default()
            },
            guard,
            action_limit: Duration::from_secs(5),
            idle_limit: Duration::from_secs(600),
        })
    }

    pub(crate) fn with_options(options: BrowserOptions) -> Self {
        let directory = TempDir::new().unwrap();
        let work = directory.path().join("work");
        std::fs::create_dir(&work).unwrap();
        let context = ToolContext {
            working_directory: work,
            artifact_directory: directory.path().join("artifacts"),
            max_result_chars: 20_000,
            workspace_only: false,
            closed: Default::default(),
            turn: TurnId::generate(),
        };
        let slot = BrowserSlot::default();
        let tool = BrowserTool::new(options, slot.clone());
        Self { tool, slot, _directory: directory, context, cancel: CancellationToken::new() }
    }

    /// The directory of the running browser: the one that names this session's proxy and socket is found by its
    /// processes.
    pub(crate) fn directory_of_browser(&self) -> String {
        self.tool.directory().unwrap().display().to_string()
    }

    pub(crate) fn work(&self) -> &Path {
        &self.context.working_directory
    }

    pub(crate) fn artifacts(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.context.artifact_directory).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    pub(crate) async fn call(&self, arguments: Value) -> Result<ToolOutput, ToolError> {
        let arguments = arguments.as_object().unwrap().clone();
        let prepared = PreparedCall::new(&self.tool, "call", arguments, &self.context)?;
        let invocation = ToolInvocation {
            call: &prepared,
            on_update: &|_| {},
            context: &self.context,
            cancel: self.cancel.clone(),
        };
        self.tool.execute(invocation).await
    }

    /// The text of a call that succeeds.
    pub(crate) async fn text(&self, arguments: Value) -> String {
        let output = self.call(arguments.clone()).await.unwrap();
        let text = text_of(&output);
        assert!(!output.is_error, "{arguments}: {text}");
        text
    }

    /// The text of a call that fails.
    pub(crate) async fn failure(&self, arguments: Value) -> String {
        match self.call(arguments.clone()).await {
            Err(error) => error.to_string(),
            Ok(output) => {
                let text = text_of(&output);
                assert!(output.is_error, "{arguments}: {text}");
                text
            }
        }
    }

    /// Makes the same call until its text contains `wanted`.
    pub(crate) async fn until(&self, arguments: Value, wanted: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = self.call(arguments.clone()).await.map(|output| text_of(&output));
            match text {
                Ok(text) if text.contains(wanted) => return text,
                other => assert!(Instant::now() < deadline, "{wanted:?} is not in {other:?}"),
            }
        }
    }

    /// The reference of the element that the newest snapshot shows as `name`.
    pub(crate) async fn element(&self, name: &str) -> String {
        let snapshot = self.text(serde_json::json!({"action": "snapshot"})).await;
        let line = snapshot.lines().find(|line| line.contains(name));
        assert!(line.is_some(), "{name} is not in {snapshot}");
        let line = line.unwrap();
        let at = line.find("ref=").unwrap();
        line[at + 4..].split([',', ']']).next().unwrap().to_owned()
    }
}

pub(crate) fn text_of(output: &ToolOutput) -> String {
    let texts = output.content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Waits for a condition.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The processes that have `text` in their command line or environment, by id.
pub(crate) fn processes_with(text: &str) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let ids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        entry.file_name().to_str()?.parse::<i32>().ok().filter(|id| *id != own)
    });
    ids.filter(|id| {
        ["cmdline", "environ"].iter().any(|file| {
            let bytes = std::fs::read(format!("/proc/{id}/{file}")).unwrap_or_default();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        })
    })
    .collect()
}

pub(crate) fn path_with_nothing() -> OsString {
    "/nonexistent".into()
}
