//! The `read` tool: shows text, by line ranges, and pictures.

mod picture;
mod text;

use std::io::Read;
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallSubject, TargetAccess, Tool, ToolAliases, ToolContext, ToolDeclaration,
    ToolError, ToolInvocation, ToolOutput,
};
use myclaw_llm::ToolSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::changes::note_read;
use crate::files::{BYTES_TO_RECOGNISE, FileKind, open_regular, recognise, refuse_binary};
use crate::support::{Access, Judged, io_failure, run_on_files, touching};
use crate::{aliases, declarations};
use text::LineRange;

/// The tool; see the module.
#[derive(Debug, Default)]
pub struct ReadTool;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    #[serde(default, rename = "startLine")]
    start_line: Option<u64>,
    #[serde(default, rename = "endLine")]
    end_line: Option<u64>,
    /// A number of lines, for models that know this tool with `offset` and `limit`.
    #[serde(default)]
    limit: Option<u64>,
}

/// The schema that the model reads. All sessions share it.
static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "startLine": {"type": "integer", "minimum": 1, "description": "from 1"},
            "endLine": {"type": "integer", "minimum": 1, "description": "last line, included"}
        },
        "required": ["path"],
    });
    let description = format!(
        "Read a text file (at most {} lines a call, then go on with startLine) or look at an image.",
        text::MAX_LINES
    );
    ToolSchema { name: "read".to_owned(), description, parameters }
});

impl ReadTool {
    /// The tool.
    pub fn new() -> Self {
        Self
    }
}

impl Tool for ReadTool {
    fn schema(&self) -> &ToolSchema {
        &SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        declarations::READ
    }

    fn aliases(&self) -> ToolAliases {
        aliases::READ
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        context: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let given: Arguments = arguments.parse()?;
        touching(arguments, context, &given.path, TargetAccess::Read)
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        run_on_files(invocation, read)
    }
}

fn read(
    context: &ToolContext,
    judged: &Judged,
    arguments: &Arguments,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let range = line_range(arguments)?;
    let path = judged.resolve(context, &arguments.path, Access::Read)?;
    let failed = |error: std::io::Error| io_failure("read", &path, &error);
    let (mut file, metadata) = open_regular(&path, "read")?;
    let mut start = Vec::with_capacity(BYTES_TO_RECOGNISE);
    (&mut file).take(BYTES_TO_RECOGNISE as u64).read_to_end(&mut start).map_err(failed)?;
    let handle = file.try_clone().map_err(failed)?;
    let shown = match recognise(&start) {
        FileKind::Text => {
            let source = text::Source { path: &path, start, rest: file, bytes: metadata.len() };
            text::read(source, range, context.max_result_chars, cancel)
        }
        FileKind::Image(kind) => picture::read(&path, file, &start, kind),
        FileKind::Binary(kind) => Err(refuse_binary("read", &path.shown, kind, metadata.len())),
    }?;
    note_read(context, &path, handle, &metadata);
    Ok(shown)
}

fn line_range(arguments: &Arguments) -> Result<LineRange, ToolError> {
    // Models that count from 0 mean the first line by 0.
    let first = arguments.start_line.unwrap_or(1).max(1);
    let by_limit = arguments.limit.map(|limit| first.saturating_add(limit.max(1) - 1));
    let last = arguments.end_line.or(by_limit);
    match last {
        Some(last) if last < first => Err(ToolError::Failed(format!(
            "endLine {last} is before startLine {first}. Lines count from 1 and both ends are included"
        ))),
        _ => Ok(LineRange { first, last }),
    }
}
