//! A workspace for tests of tools, and calls to them as the engine makes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use myclaw_engine::{
    PreparedCall, Tool, ToolContext, ToolError, ToolInvocation, ToolOutput, ToolUpdate, TurnId,
};
use myclaw_files::canonical;
use myclaw_llm::ContentBlock;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A workspace in a temporary directory whose own path has no links.
pub(crate) struct Workspace {
    _directory: TempDir,
    pub base: PathBuf,
    pub context: ToolContext,
    pub cancel: CancellationToken,
    pub updates: Mutex<Vec<ToolUpdate>>,
}

impl Workspace {
    /// A workspace with these files, each holding the text next to it.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let directory = TempDir::new().unwrap();
        let base = canonical(directory.path()).unwrap();
        fs::create_dir(base.join("work")).unwrap();
        let context = ToolContext {
            working_directory: base.join("work"),
            artifact_directory: base.join("artifacts"),
            max_result_chars: 50_000,
            workspace_only: false,
            closed: Default::default(),
            turn: TurnId::generate(),
        };
        let workspace = Self {
            _directory: directory,
            base,
            context,
            cancel: CancellationToken::new(),
            updates: Mutex::default(),
        };
        for (path, text) in files {
            workspace.write(path, text);
        }
        workspace
    }

    /// The real path of something in the workspace.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.context.working_directory.join(path)
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        fs::write(path, content).unwrap();
    }

    /// One call.
    pub(crate) async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Value,
    ) -> Result<ToolOutput, ToolError> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let on_update = |update| self.updates.lock().unwrap().push(update);
        let prepared = PreparedCall::new(tool, "call_1", arguments, &self.context)?;
        tool.execute(ToolInvocation {
            call: &prepared,
            on_update: &on_update,
            context: &self.context,
            cancel: self.cancel.clone(),
        })
        .await
    }

    /// The text of a call that succeeds.
    pub(crate) async fn text(&self, tool: &dyn Tool, arguments: Value) -> String {
        let output = self.call(tool, arguments).await.unwrap();
        assert!(!output.is_error, "{output:?}");
        text_of(&output)
    }

    /// The text of a call that fails.
    pub(crate) async fn failure(&self, tool: &dyn Tool, arguments: Value) -> String {
        self.call(tool, arguments).await.unwrap_err().to_string()
    }
}

/// The one text block of a result.
pub(crate) fn text_of(output: &ToolOutput) -> String {
    match &output.content[..] {
        [ContentBlock::Text(text)] => text.text.clone(),
        other => panic!("not one text block: {other:?}"),
    }
}

/// Makes a named pipe. Opening it for reading would block until somebody writes.
pub(crate) fn make_pipe(path: &Path) {
    let status = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(status.success());
}
