//! The browser ends with its session in every case, with all that it started.

use std::time::Duration;

use myclaw_browser::{BrowserOptions, Programs};
use myclaw_engine::ToolError;
use myclaw_web::{AddressGuard, AddressRules};
use serde_json::json;

use crate::support::{
    Page, Session, Site, agent_browser, eventually, path_with_nothing, processes_with,
};

/// A session with an open page, and the directory of its browser.
async fn opened() -> Option<(Site, Session, String)> {
    let program = agent_browser()?;
    let site = Site::start(|_| vec![("/", Page::Html("<h1>Here</h1>".to_owned()))]).await;
    let session = Session::new(&program, &[&format!("app.test:{}", site.port)]);
    session.text(json!({"action": "open", "url": site.url("app.test", "/")})).await;
    let script = "navigator.userAgent";
    session.text(json!({"action": "evaluate", "script": script})).await;
    let directory = session.directory_of_browser();
    assert!(processes_with(&directory).len() >= 3, "agent-browser, Chromium and a shell");
    Some((site, session, directory))
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_and_dropping_leave_neither_processes_nor_files() {
    let Some((site, session, directory)) = opened().await else { return };
    session.slot.close().await;
    assert!(processes_with(&directory).is_empty());
    assert!(!std::path::Path::new(&directory).exists());
    // The next page starts another browser.
    session.text(json!({"action": "open", "url": site.url("app.test", "/")})).await;
    let directory = session.directory_of_browser();
    drop(session);
    eventually("the end of all processes", || processes_with(&directory).is_empty()).await;
    eventually("the end of all files", || !std::path::Path::new(&directory).exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_was_killed_is_reported_and_replaced() {
    let Some((site, session, directory)) = opened().await else { return };
    for id in processes_with(&directory) {
        kill(id);
    }
    eventually("the end of all processes", || processes_with(&directory).is_empty()).await;
    let gone = session.failure(json!({"action": "snapshot"})).await;
    assert!(gone.contains("Open the page again"), "{gone}");
    session.text(json!({"action": "open", "url": site.url("app.test", "/")})).await;
    session.slot.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_action_ends_at_once_and_the_page_stays() {
    let Some((_site, mut session, _)) = opened().await else { return };
    let cancel = session.cancel.clone();
    let wait = session.call(json!({"action": "wait", "text": "never there"}));
    let aborted = tokio::join!(wait, async {
        tokio::task::yield_now().await;
        cancel.cancel();
    })
    .0;
    assert!(matches!(aborted, Err(ToolError::Aborted(_))), "{aborted:?}");
    session.cancel = tokio_util::sync::CancellationToken::new();
    session.until(json!({"action": "snapshot"}), "Here").await;
    session.slot.close().await;
}

#[tokio::test]
async fn missing_programs_are_named_with_the_command_that_installs_them() {
    let options = |programs: Programs| BrowserOptions {
        programs,
        guard: AddressGuard::new(AddressRules {
            allowed_hosts: vec!["127.0.0.1:9".parse().unwrap()],
            ..AddressRules::default()
        }),
        action_limit: Duration::from_secs(1),
        idle_limit: Duration::from_secs(1),
    };
    let open = json!({"action": "open", "url": "http://127.0.0.1:9/"});
    let none = Programs { path: path_with_nothing(), ..Programs::default() };
    let text = Session::with_options(options(none)).failure(open.clone()).await;
    assert!(text.contains("npm install -g agent-browser"), "{text}");
    let half = Programs {
        agent_browser: Some("/bin/sh".into()),
        path: path_with_nothing(),
        ..Programs::default()
    };
    let text = Session::with_options(options(half)).failure(open.clone()).await;
    assert!(text.contains("apt-get install chromium"), "{text}");
    // A program that is something else: it fails with its own words.
    let wrong = Programs {
        agent_browser: Some("/bin/echo".into()),
        chromium: Some("/bin/true".into()),
        path: "/usr/bin:/bin".into(),
        ..Programs::default()
    };
    let text = Session::with_options(options(wrong)).failure(open).await;
    assert!(text.contains("cannot be started"), "{text}");
}

fn kill(id: i32) {
    if let Some(id) = rustix::process::Pid::from_raw(id) {
        // It may have ended with another one.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
    }
}
