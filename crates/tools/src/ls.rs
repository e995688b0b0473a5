//! The `ls` tool: what is in a directory.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallSubject, TargetAccess, Tool, ToolAliases, ToolContext, ToolDeclaration,
    ToolError, ToolInvocation, ToolOutput,
};
use myclaw_llm::{ContentBlock, ToolSchema};
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Access, Judged, Listing, io_failure, printable, run_on_files, touching};
use crate::{aliases, declarations};

/// Entries listed unless the call asks for another number.
const DEFAULT_LIMIT: u64 = 500;

/// Most entries that are kept for one result: as many as fit with the shortest names.
const MAX_LIMIT: usize = 25_000;

/// Lists a directory: sorted, directories with a slash, hidden entries included.
#[derive(Debug, Default)]
pub struct LsTool;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default = "here")]
    path: String,
    #[serde(default)]
    limit: Option<u64>,
}

fn here() -> String {
    ".".to_owned()
}

/// The schema that the model reads. All sessions share it.
static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| ToolSchema {
    name: "ls".to_owned(),
    description: "List a directory, hidden entries included; directories end in /.".to_owned(),
    parameters: json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Default: working directory"},
            "limit": {"type": "integer", "minimum": 1, "description": format!("Default {DEFAULT_LIMIT}")},
        },
    }),
});

impl LsTool {
    /// The tool.
    pub fn new() -> Self {
        Self
    }
}

impl Tool for LsTool {
    fn schema(&self) -> &ToolSchema {
        &SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        declarations::LS
    }

    fn aliases(&self) -> ToolAliases {
        aliases::LS
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
        run_on_files(invocation, list)
    }
}

fn list(
    context: &ToolContext,
    judged: &Judged,
    arguments: &Arguments,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let path = judged.resolve(context, &arguments.path, Access::Read)?;
    let metadata = fs::metadata(&path.real).map_err(|error| io_failure("list", &path, &error))?;
    if !metadata.is_dir() {
        return Err(ToolError::Failed(format!(
            "{} is a file, not a directory; use read to see what is in it",
            path.shown
        )));
    }
    let limit = arguments.limit.filter(|limit| *limit > 0).unwrap_or(DEFAULT_LIMIT);
    let limit = usize::try_from(limit).unwrap_or(MAX_LIMIT).min(MAX_LIMIT);
    let entries = fs::read_dir(&path.real).map_err(|error| io_failure("list", &path, &error))?;
    // Only the shown entries are kept in memory, so the size of the directory does not matter.
    let mut first: BTreeMap<(String, String), DirEntry> = BTreeMap::new();
    let (mut total, mut unreadable) = (0_usize, 0_usize);
    for entry in entries {
        if cancel.is_cancelled() {
            return Err(ToolError::Aborted(format!("aborted while listing {}", path.shown)));
        }
        let Ok(entry) = entry else {
            unreadable += 1;
            continue;
        };
        total += 1;
        let name = entry.file_name().to_string_lossy().into_owned();
        first.insert((name.to_lowercase(), name), entry);
        if first.len() > limit {
            first.pop_last();
        }
    }
    let mut listing = Listing::new(context.max_result_chars);
    let shown = first
        .iter()
        .map_while(|((_, name), entry)| listing.push_line(&described(name, entry)).ok())
        .count();
    let mut notes = Vec::new();
    if shown < total {
        notes.push(format!(
            "{shown} of {total} entries shown; raise limit, or use find with a pattern"
        ));
    }
    if unreadable > 0 {
        notes.push(format!("{unreadable} entries could not be read"));
    }
    let text = listing.finish("(empty directory)", &notes);
    let details = json!({"entries": total, "truncated": shown < total});
    Ok(ToolOutput {
        content: vec![ContentBlock::text(text)],
        details: Some(details),
        is_error: false,
    })
}

/// The line of one entry.
fn described(name: &str, entry: &DirEntry) -> String {
    let name = printable(name);
    match entry.file_type() {
        Err(_) => format!("{name} (unreadable)"),
        Ok(kind) if kind.is_dir() => format!("{name}/"),
        Ok(kind) if kind.is_symlink() => {
            let target = fs::read_link(entry.path())
                .map_or_else(|_| "?".to_owned(), |path| path.to_string_lossy().into_owned());
            let target = printable(&target);
            match fs::metadata(entry.path()) {
                Ok(metadata) if metadata.is_dir() => format!("{name}/ -> {target}"),
                Ok(_) => format!("{name} -> {target}"),
                Err(_) => format!("{name} -> {target} (broken link)"),
            }
        }
        Ok(_) => name,
    }
}

#[cfg(test)]
mod tests;
