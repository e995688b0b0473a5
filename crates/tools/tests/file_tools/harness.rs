//! A workspace in a temporary directory, and calls of tools in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_engine::{
    PreparedCall, Tool, ToolContext, ToolError, ToolInvocation, ToolOutput, TurnId,
};
use myclaw_llm::ContentBlock;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub(crate) struct Workspace {
    directory: TempDir,
    pub context: ToolContext,
    pub cancel: CancellationToken,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        Self::below(TempDir::new().unwrap())
    }

    /// For tests of many cases: in memory where the system has a directory for that, so that waiting for the disk after
    /// each change takes no time.
    pub(crate) fn in_memory() -> Self {
        Self::below(TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap())
    }

    fn below(directory: TempDir) -> Self {
        let root = directory.path().canonicalize().unwrap();
        let working_directory = root.join("work");
        std::fs::create_dir(&working_directory).unwrap();
        let context = ToolContext {
            working_directory,
            artifact_directory: root.join("artifacts"),
            max_result_chars: 100_000,
            workspace_only: false,
            closed: Default::default(),
            turn: TurnId::generate(),
        };
        Self { directory, context, cancel: CancellationToken::new() }
    }

    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let workspace = Self::new();
        for (name, content) in files {
            workspace.put(name, content);
        }
        workspace
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.context.working_directory.join(name)
    }

    /// The directory that holds the working directory.
    pub(crate) fn outside(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    /// All files and directories below the working directory with their bytes (none for a directory), sorted.
    pub(crate) fn everything(&self) -> Vec<(String, Option<Vec<u8>>)> {
        let mut found = Vec::new();
        collect(&self.context.working_directory, &self.context.working_directory, &mut found);
        found.sort();
        found
    }

    pub(crate) fn call(&self, name: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        let tool = tool(name);
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let prepared = PreparedCall::new(&*tool, "call-1", arguments, &self.context)?;
        runtime.block_on(tool.execute(ToolInvocation {
            call: &prepared,
            on_update: &|_| {},
            context: &self.context,
            cancel: self.cancel.clone(),
        }))
    }

    /// The change of a call as it is shown; `None` for a call that is refused.
    pub(crate) fn preview(&self, name: &str, arguments: &Value) -> Option<String> {
        let arguments = arguments.as_object().unwrap().clone();
        let call = PreparedCall::new(&*tool(name), "call-1", arguments, &self.context).ok()?;
        myclaw_tools::preview(&call, &self.context)
    }

    /// The text of a call that works.
    pub(crate) fn ok(&self, name: &str, arguments: Value) -> String {
        let output = self.call(name, arguments).unwrap();
        assert!(!output.is_error);
        match output.content.as_slice() {
            [ContentBlock::Text(text)] => text.text.clone(),
            other => panic!("expected one text block, got {other:?}"),
        }
    }

    /// The text of a call that fails, which leaves everything as it was.
    pub(crate) fn refused(&self, name: &str, arguments: Value) -> String {
        let before = self.everything();
        let error = match self.call(name, arguments) {
            Err(ToolError::Failed(text)) => text,
            other => panic!("expected a failure, got {other:?}"),
        };
        assert_eq!(self.everything(), before);
        error
    }
}

pub(crate) fn tool(name: &str) -> Arc<dyn Tool> {
    let command_timeout = std::time::Duration::from_secs(60);
    myclaw_tools::builtin_tools(myclaw_tools::ToolOptions {
        command_timeout,
        jobs: None,
        commands: myclaw_tools::CommandPlace::Here,
        memory: None,
    })
    .into_iter()
    .find(|tool| tool.schema().name == name)
    .unwrap()
}

fn collect(root: &Path, directory: &Path, found: &mut Vec<(String, Option<Vec<u8>>)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        if path.is_symlink() {
            found.push((
                name,
                std::fs::read_link(&path).ok().map(|to| to.to_str().unwrap().as_bytes().to_vec()),
            ));
        } else if path.is_dir() {
            found.push((name, None));
            collect(root, &path, found);
        } else if path.is_file() {
            found.push((name, Some(std::fs::read(&path).unwrap())));
        }
    }
}
