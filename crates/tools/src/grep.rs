//! The `grep` tool: lines by regular expression.

mod matcher;
mod search;
mod spelling;

use std::path::PathBuf;
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallSubject, TargetAccess, Tool, ToolAliases, ToolContext, ToolDeclaration,
    ToolError, ToolInvocation, ToolOutput,
};
use myclaw_files::Sameness;
use myclaw_llm::{ContentBlock, ToolSchema};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::matcher::LineMatcher;
use self::search::{Ending, Search};
use self::spelling::has_other_spellings;
use crate::support::{
    Access, Judged, PathPatterns, ResolvedPath, Walker, io_failure, real_root, run_on_files,
    touching,
};
use crate::{aliases, declarations};

/// Matching lines shown unless the call asks for another number.
const DEFAULT_LIMIT: u64 = 100;
/// Most lines around a match; for more, the model can read the file.
const MAX_CONTEXT: u64 = 50;
/// Most characters of a pattern that a message repeats.
const MAX_PATTERN_CHARS: usize = 200;

/// Most searches that run at once in this process, for all sessions together: each may take a core and some 50 MB.
const MAX_SEARCHES: usize = 4;
/// The limit is shared by all sessions, because they share the memory and the cores of the process.
static SEARCHES: Semaphore = Semaphore::const_new(MAX_SEARCHES);

/// Searches file contents with the libraries of ripgrep, by the rules of ignore files.
#[derive(Debug, Default)]
pub struct GrepTool;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    pattern: String,
    #[serde(default = "here")]
    path: String,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    context: Option<u64>,
    #[serde(default)]
    limit: Option<u64>,
}

fn here() -> String {
    ".".to_owned()
}

/// The schema that the model reads. All sessions share it.
static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| ToolSchema {
    name: "grep".to_owned(),
    description: "Search file contents by regex. Skips binary files and what .gitignore excludes."
        .to_owned(),
    parameters: json!({
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "Regex for one line"},
            "path": {"type": "string", "description": "File or directory"},
            "glob": {"type": "string", "description": "Like *.rs or src/**/*.ts"},
            "ignoreCase": {"type": "boolean"},
            "literal": {"type": "boolean"},
            "context": {"type": "integer", "minimum": 0},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "description": format!("Default {DEFAULT_LIMIT}"),
            },
        },
        "required": ["pattern"],
    }),
});

impl GrepTool {
    /// The tool.
    pub fn new() -> Self {
        Self
    }
}

impl Tool for GrepTool {
    fn schema(&self) -> &ToolSchema {
        &SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        declarations::GREP
    }

    fn aliases(&self) -> ToolAliases {
        aliases::GREP
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        context: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let given: Arguments = arguments.parse()?;
        touching(arguments, context, &given.path, TargetAccess::Search)
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let permit = tokio::select! {
                permit = SEARCHES.acquire() => permit,
                () = invocation.cancel.cancelled() => {
                    return Err(ToolError::Aborted("aborted before the search began".to_owned()));
                }
            };
            run_on_files(invocation, move |context, judged, arguments, cancel| {
                let _permit = permit;
                grep(context, judged, arguments, cancel)
            })
            .await
        })
    }
}

fn grep(
    context: &ToolContext,
    judged: &Judged,
    arguments: &Arguments,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let matcher = |sameness| LineMatcher::new(arguments, sameness, cancel.clone());
    let exact = matcher(Sameness::Composition)?;
    let target = judged.resolve(context, &arguments.path, Access::Read)?;
    let scope = Scope::new(context, arguments, &target, cancel)?;
    let mut walked = None;
    let mut found = scope.search(exact, &mut walked)?;
    let mut is_exact = true;
    if found.matches() == 0 && has_other_spellings(&arguments.pattern) {
        let similar = scope.search(matcher(Sameness::Typography)?, &mut walked)?;
        if similar.matches() > 0 {
            (found, is_exact) = (similar, false);
        }
    }
    let details = found.details();
    let text = found.finish(&arguments.pattern, &target.shown, is_exact);
    Ok(ToolOutput {
        content: vec![ContentBlock::text(text)],
        details: Some(details),
        is_error: false,
    })
}

/// What a walk has found, for a search of the same files.
struct Walked {
    files: Vec<PathBuf>,
    unreadable: usize,
    closed: Option<String>,
}

/// What a call searches.
struct Scope<'a> {
    context: &'a ToolContext,
    arguments: &'a Arguments,
    target: &'a ResolvedPath,
    is_directory: bool,
    patterns: Option<PathPatterns>,
    cancel: &'a CancellationToken,
}

impl<'a> Scope<'a> {
    fn new(
        context: &'a ToolContext,
        arguments: &'a Arguments,
        target: &'a ResolvedPath,
        cancel: &'a CancellationToken,
    ) -> Result<Self, ToolError> {
        let metadata = std::fs::metadata(&target.real)
            .map_err(|error| io_failure("search", target, &error))?;
        let is_directory = metadata.is_dir();
        if !is_directory && !metadata.is_file() {
            return Err(ToolError::Failed(format!(
                "{} is neither a file nor a directory, so it cannot be searched",
                target.shown
            )));
        }
        let glob = arguments.glob.as_deref().filter(|glob| is_directory && !glob.trim().is_empty());
        // A directory means the files in it.
        let glob = glob.map(|glob| {
            if glob.trim_end().ends_with('/') {
                format!("{}**", glob.trim_end())
            } else {
                glob.to_owned()
            }
        });
        let patterns = glob.map(|glob| PathPatterns::new(&glob, &target.real)).transpose()?;
        Ok(Self { context, arguments, target, is_directory, patterns, cancel })
    }

    /// Searches every file. The first search notes in `walked` which files there are, if it finds nothing in them, so that
    /// another one need not walk again.
    fn search(
        &self,
        matcher: LineMatcher,
        walked: &mut Option<Walked>,
    ) -> Result<Search, ToolError> {
        let Self { context, arguments, target, cancel, .. } = self;
        let lines_around =
            usize::try_from(arguments.context.unwrap_or(0).min(MAX_CONTEXT)).unwrap_or(0);
        let limit =
            usize::try_from(arguments.limit.filter(|limit| *limit > 0).unwrap_or(DEFAULT_LIMIT))
                .unwrap_or(usize::MAX);
        let root = real_root(context);
        let mut search = Search::new(
            matcher,
            lines_around,
            limit,
            context.max_result_chars,
            context.closed.now(),
            (*cancel).clone(),
        );
        if !self.is_directory {
            search.file(&target.real, &root)?;
            return Ok(search);
        }
        if let Some(Walked { files, unreadable, closed }) = walked.take() {
            for path in files {
                if search.file(&path, &root)? == Ending::Early {
                    break;
                }
            }
            search.left_out(unreadable, closed);
            return Ok(search);
        }
        let mut files = Vec::new();
        let mut walker = Walker::new(&target.real, &context.closed, (*cancel).clone());
        while let Some(entry) = walker.next_entry()? {
            let path = entry.path();
            let from_target = path.strip_prefix(&target.real).unwrap_or(path);
            let from_root = path.strip_prefix(&root).unwrap_or(path);
            let is_meant = entry.file_type().is_some_and(|kind| kind.is_file())
                && self
                    .patterns
                    .as_ref()
                    .is_none_or(|patterns| patterns.match_file(from_target, from_root));
            if !is_meant {
                continue;
            }
            if search.file(path, &root)? == Ending::Early {
                break;
            }
            match search.matches() {
                0 => files.push(path.to_owned()),
                _ => files = Vec::new(),
            }
        }
        let (unreadable, closed) = (walker.unreadable(), walker.closed_note());
        search.left_out(unreadable, closed.clone());
        *walked = Some(Walked { files, unreadable, closed });
        Ok(search)
    }
}

#[cfg(test)]
mod tests;
