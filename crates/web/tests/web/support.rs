//! Tools and calls for the tests.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use myclaw_engine::{
    PreparedCall, Tool, ToolContext, ToolError, ToolInvocation, ToolOutput, TurnId,
};
use myclaw_llm::ContentBlock;
use myclaw_web::{
    AddressGuard, AddressRules, DownloadOptions, Downloader, FetchLimits, Lookup, WebFetchTool,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// A name server in which each name has a list of answers; the last one is repeated.
#[derive(Default)]
pub(crate) struct Names(Mutex<HashMap<String, Vec<IpAddr>>>);

impl Names {
    pub(crate) fn with(names: &[(&str, &[&str])]) -> Arc<Self> {
        let names = names.iter().map(|(name, answers)| {
            ((*name).to_owned(), answers.iter().map(|text| text.parse().unwrap()).collect())
        });
        Arc::new(Self(Mutex::new(names.collect())))
    }
}

impl Lookup for Names {
    fn lookup<'a>(&'a self, name: &'a str) -> myclaw_web::BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let mut names = self.0.lock().unwrap();
            let answers = names.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
            Ok(vec![if answers.len() > 1 { answers.remove(0) } else { answers[0] }])
        })
    }
}

/// Downloads from `allowed` hosts besides public ones.
pub(crate) fn downloader(allowed: &[&str], names: Arc<Names>) -> Arc<Downloader> {
    let allowed_hosts = allowed.iter().map(|text| text.parse().unwrap()).collect();
    let rules = AddressRules { allowed_hosts, ..AddressRules::default() };
    let options = DownloadOptions { user_agent: "myclaw/test".to_owned(), ..Default::default() };
    Arc::new(Downloader::new(AddressGuard::with_lookup(rules, names), options))
}

/// A tool that may connect to this machine and has plenty of time.
pub(crate) fn local_fetch() -> WebFetchTool {
    fetch(&["127.0.0.1"], Arc::default(), Duration::from_secs(60))
}

pub(crate) fn fetch(allowed: &[&str], names: Arc<Names>, time: Duration) -> WebFetchTool {
    WebFetchTool::new(downloader(allowed, names), FetchLimits { time, max_chars: 15_000 })
}

/// A call as the engine makes it.
pub(crate) async fn call(tool: &dyn Tool, arguments: Value) -> Result<ToolOutput, ToolError> {
    call_with(tool, arguments, CancellationToken::new()).await
}

pub(crate) async fn call_with(
    tool: &dyn Tool,
    arguments: Value,
    cancel: CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let directory = tempfile::tempdir().unwrap();
    let context = ToolContext {
        working_directory: directory.path().to_owned(),
        artifact_directory: directory.path().join("artifacts"),
        max_result_chars: 50_000,
        workspace_only: false,
        closed: Default::default(),
        turn: TurnId::generate(),
    };
    let prepared = PreparedCall::new(tool, "call_1", arguments, &context)?;
    let invocation =
        ToolInvocation { call: &prepared, on_update: &|_| {}, context: &context, cancel };
    tool.execute(invocation).await
}

/// The one text block of a result.
pub(crate) fn text_of(output: &ToolOutput) -> String {
    match &output.content[..] {
        [ContentBlock::Text(text)] => text.text.clone(),
        other => panic!("not one text block: {other:?}"),
    }
}

/// The text of a call that succeeds.
pub(crate) async fn text(tool: &dyn Tool, arguments: Value) -> String {
    let output = call(tool, arguments).await.unwrap();
    assert!(!output.is_error, "{output:?}");
    text_of(&output)
}

/// The message of a call that fails.
pub(crate) async fn failure(tool: &dyn Tool, arguments: Value) -> String {
    call(tool, arguments).await.unwrap_err().to_string()
}
