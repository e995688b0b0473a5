//! The `find` tool: files and directories by glob.

use std::path::Path;
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

use crate::support::{
    Access, Judged, Listing, PathPatterns, Walker, cut_line, io_failure, real_root, resolve_path,
    run_on_files, shown_below, touching,
};
use crate::{aliases, declarations};

/// Entries listed unless the call asks for another number.
const DEFAULT_LIMIT: u64 = 1000;
/// Most characters of a pattern that a message repeats.
const MAX_PATTERN_CHARS: usize = 200;

/// Finds files and directories by glob, by the rules of ignore files.
#[derive(Debug, Default)]
pub struct FindTool;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
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
    name: "find".to_owned(),
    description: "Find files and directories by glob. Skips what .gitignore excludes.".to_owned(),
    parameters: json!({
        "type": "object",
        "properties": {
            "pattern": {
                "type": "string",
                "description": "Like *.rs (a name at any depth) or src/**/*.rs (a path)",
            },
            "path": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "description": format!("Default {DEFAULT_LIMIT}")},
        },
        "required": ["pattern"],
    }),
});

impl FindTool {
    /// The tool.
    pub fn new() -> Self {
        Self
    }
}

impl Tool for FindTool {
    fn schema(&self) -> &ToolSchema {
        &SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        declarations::FIND
    }

    fn aliases(&self) -> ToolAliases {
        aliases::FIND
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        context: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let given: Arguments = arguments.parse()?;
        let (path, _) = split_pattern(context, &given);
        touching(arguments, context, &path, TargetAccess::Search)
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        run_on_files(invocation, find)
    }
}

fn find(
    context: &ToolContext,
    judged: &Judged,
    arguments: &Arguments,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let (path, pattern) = split_pattern(context, arguments);
    let directory = judged.resolve(context, &path, Access::Read)?;
    let metadata = std::fs::metadata(&directory.real)
        .map_err(|error| io_failure("search", &directory, &error))?;
    if !metadata.is_dir() {
        return Err(ToolError::Failed(format!(
            "{} is a file; give the directory to search in as path",
            directory.shown
        )));
    }
    let patterns = PathPatterns::new(&pattern, &directory.real)?;
    let limit =
        usize::try_from(arguments.limit.filter(|limit| *limit > 0).unwrap_or(DEFAULT_LIMIT))
            .unwrap_or(usize::MAX);
    let root = real_root(context);
    let mut walker = Walker::new(&directory.real, &context.closed, cancel.clone());
    let mut listing = Listing::new(context.max_result_chars);
    let mut shown = 0;
    let mut has_more = false;
    while let Some(entry) = walker.next_entry()? {
        let path = entry.path();
        let from_root = path.strip_prefix(&directory.real).unwrap_or(path);
        let from_directory = path.strip_prefix(&root).unwrap_or(path);
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        let is_match = match is_directory {
            true => patterns.match_directory(from_root, from_directory),
            false => patterns.match_file(from_root, from_directory),
        };
        if !is_match {
            continue;
        }
        let slash = if is_directory { "/" } else { "" };
        has_more = shown == limit
            || listing.push_line(&format!("{}{slash}", shown_below(path, &root))).is_err();
        if has_more {
            break;
        }
        shown += 1;
    }
    let mut notes = Vec::new();
    if has_more {
        notes.push(format!(
            "{shown} entries shown, there are more; narrow the pattern or path, or raise limit"
        ));
    }
    if walker.unreadable() > 0 {
        notes.push(format!("{} entries could not be read", walker.unreadable()));
    }
    notes.extend(walker.closed_note());
    let nothing = nothing_found(&cut_line(&pattern, MAX_PATTERN_CHARS), &directory.shown);
    let text = listing.finish(&nothing, &notes);
    let details = json!({"entries": shown, "truncated": has_more});
    Ok(ToolOutput {
        content: vec![ContentBlock::text(text)],
        details: Some(details),
        is_error: false,
    })
}

/// The directory to search and the glob in it. Models often write the directory into the glob, as in `/etc/*.conf`.
fn split_pattern(context: &ToolContext, arguments: &Arguments) -> (String, String) {
    let pattern = arguments.pattern.trim();
    let leads_elsewhere =
        ["/", "~/", "../"].iter().any(|start| pattern.starts_with(start)) && !pattern.contains(',');
    let literal = &pattern[..pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len())];
    if let Some((directory, _)) =
        literal.rsplit_once('/').filter(|(directory, _)| leads_elsewhere && !directory.is_empty())
    {
        let path = if directory.starts_with("..") {
            format!("{}/{directory}", arguments.path)
        } else {
            directory.to_owned()
        };
        // This only determines the directory; the caller decides whether it may be searched.
        let anywhere = ToolContext { workspace_only: false, ..context.clone() };
        if resolve_path(&anywhere, &path, Access::Read)
            .is_ok_and(|directory| directory.real.is_dir())
        {
            return (path, format!("./{}", &pattern[directory.len() + 1..]));
        }
    }
    (arguments.path.clone(), pattern.to_owned())
}

fn nothing_found(pattern: &str, directory: &str) -> String {
    let is_plain_name = !pattern.contains(['*', '?', '[', '{']);
    let stem = Path::new(pattern).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    match stem.filter(|_| is_plain_name) {
        Some(stem) => format!(
            "nothing matches {pattern} in {directory}; try *{stem}* (ignored entries are skipped)"
        ),
        None => format!("nothing matches {pattern} in {directory} (ignored entries are skipped)"),
    }
}

#[cfg(test)]
mod tests;
