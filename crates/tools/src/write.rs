//! The `write` tool: creates a file or replaces all of it.

use std::fs::Metadata;
use std::io;
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallSubject, PreparedCall, TargetAccess, Tool, ToolAliases, ToolContext,
    ToolDeclaration, ToolError, ToolInvocation, ToolOutput,
};
use myclaw_files::portable::PermissionsExt;
use myclaw_llm::ToolSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::changes::{Before, Fingerprint, Upcoming, make_change, note_seen, require_fresh};
use crate::files::{
    Attributes, Document, FileKind, Lines, diff_deadline, kept_diff, read_whole, recognise,
    replace_file, require_regular_file, require_writable, unified_diff,
};
use crate::support::{Access, Judged, ResolvedPath, io_failure, run_on_files, touching};
use crate::{aliases, declarations};

/// Largest old content that is compared with the new one.
const MAX_COMPARED_BYTES: u64 = 8 * 1024 * 1024;

/// The tool; see the module.
#[derive(Debug, Default)]
pub struct WriteTool;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
}

/// The present state of the path.
enum Present {
    Nothing,
    File {
        metadata: Box<Metadata>,
        /// `None` if it is too large to be read.
        bytes: Option<Vec<u8>>,
        /// Of the bytes.
        fingerprint: Option<Fingerprint>,
    },
}

/// The schema that the model reads. All sessions share it.
static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
    let parameters = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    });
    let description = "Create a file or replace all of it. Makes missing directories.".to_owned();
    ToolSchema { name: "write".to_owned(), description, parameters }
});

impl WriteTool {
    /// The tool.
    pub fn new() -> Self {
        Self
    }
}

impl Tool for WriteTool {
    fn schema(&self) -> &ToolSchema {
        &SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        declarations::WRITE
    }

    fn aliases(&self) -> ToolAliases {
        aliases::WRITE
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        context: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let given: Arguments = arguments.parse()?;
        touching(arguments, context, &given.path, TargetAccess::Write)
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        run_on_files(invocation, write)
    }
}

fn write(
    context: &ToolContext,
    judged: &Judged,
    arguments: &Arguments,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let path = judged.resolve(context, &arguments.path, Access::Write)?;
    let present = look_at(&path, &arguments.path)?;
    let content = arguments.content.as_bytes();
    let lines = Lines::of(&arguments.content).len();
    let size =
        format!("{} bytes, {lines} {}", content.len(), if lines == 1 { "line" } else { "lines" });
    if let Present::File { bytes: Some(old), .. } = &present
        && old == content
    {
        note_seen(context, &path.real, &Fingerprint::of(content, None));
        let details = json!({"path": path.shown, "action": "unchanged", "bytes": content.len(), "lines": lines});
        let text = format!("{} had exactly this content already ({size})", path.shown);
        return Ok(ToolOutput { details: Some(details), ..ToolOutput::text(text) });
    }
    require_known(context, &path, &present)?;
    if cancel.is_cancelled() {
        return Err(ToolError::Aborted(format!("aborted before {} was written", path.shown)));
    }
    let attributes = match &present {
        Present::Nothing => Attributes::default(),
        Present::File { metadata, .. } => {
            Attributes { like: Some((**metadata).clone()), executable: None }
        }
    };
    let upcoming = Upcoming {
        path: path.real.clone(),
        before: present.before(),
        after: Some(Fingerprint::of(content, attributes.mode())),
    };
    let recorded = make_change(context, &[upcoming], || put(&path, content, &attributes))?;
    let (action, verb) = match &present {
        Present::Nothing => ("created", "Created"),
        Present::File { .. } => ("overwritten", "Overwrote"),
    };
    let diff = diff(&path, &present, &arguments.content).map(|diff| kept_diff(&diff));
    let mut details = json!({"path": path.shown, "action": action, "bytes": content.len(), "lines": lines, "diff": diff});
    recorded.describe(&mut details);
    Ok(ToolOutput {
        details: Some(details),
        ..ToolOutput::text(format!("{verb} {} ({size})", path.shown))
    })
}

/// What a call would change, as a unified diff; see [`preview()`](crate::preview()).
pub(crate) fn preview(
    context: &ToolContext,
    call: &PreparedCall,
) -> Result<Option<String>, ToolError> {
    let arguments: Arguments = call.arguments.parse()?;
    let judged = Judged::of(call);
    let path = judged.resolve(context, &arguments.path, Access::Write)?;
    let present = look_at(&path, &arguments.path)?;
    require_known(context, &path, &present)?;
    Ok(diff(&path, &present, &arguments.content))
}

/// Refuses to overwrite a file that changed since the model saw it.
fn require_known(
    context: &ToolContext,
    path: &ResolvedPath,
    present: &Present,
) -> Result<(), ToolError> {
    let Present::File { metadata, fingerprint, .. } = present else { return Ok(()) };
    require_fresh(context, path, metadata, fingerprint.as_ref())
}

impl Present {
    fn before(&self) -> Option<Before> {
        let Self::File { metadata, fingerprint, .. } = self else { return None };
        Some(Before { metadata: (**metadata).clone(), fingerprint: fingerprint.clone() })
    }
}

fn look_at(path: &ResolvedPath, given: &str) -> Result<Present, ToolError> {
    let names_a_directory = given.trim_end().ends_with('/');
    match std::fs::symlink_metadata(&path.real) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && names_a_directory => {
            Err(ToolError::Failed(format!(
                "{given:?} ends with a slash, so it names a directory. Add a file name; missing directories are created"
            )))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Present::Nothing),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(blocked_by_file(path)),
        Err(error) => Err(io_failure("write", path, &error)),
        Ok(_) => {
            let metadata = require_regular_file(path, "write")?;
            require_writable(path, &metadata)?;
            let small = metadata.len() <= MAX_COMPARED_BYTES;
            // An old content that cannot be read can still be replaced.
            let bytes =
                if small { read_whole(path, "write").ok().map(|(bytes, _)| bytes) } else { None };
            let mode = Some(metadata.permissions().mode());
            let fingerprint = bytes.as_deref().map(|bytes| Fingerprint::of(bytes, mode));
            Ok(Present::File { metadata: Box::new(metadata), bytes, fingerprint })
        }
    }
}

fn put(path: &ResolvedPath, content: &[u8], attributes: &Attributes) -> Result<(), ToolError> {
    if let Some(directory) = path.real.parent() {
        std::fs::create_dir_all(directory).map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => blocked_by_file(path),
            _ => io_failure("make the directory of", path, &error),
        })?;
    }
    replace_file(&path.real, content, attributes).map_err(|error| io_failure("write", path, &error))
}

fn blocked_by_file(path: &ResolvedPath) -> ToolError {
    let file = path.real.ancestors().skip(1).find(|ancestor| ancestor.is_file());
    let name = file.map(|file| file.display().to_string()).unwrap_or_default();
    ToolError::Failed(format!(
        "cannot write {}: {name} is a file, so nothing can be put below it. Choose another path",
        path.shown
    ))
}

fn diff(path: &ResolvedPath, present: &Present, new: &str) -> Option<String> {
    match present {
        Present::Nothing => unified_diff(&path.shown, "", new, diff_deadline()),
        Present::File { bytes: Some(old), .. } if recognise(old) == FileKind::Text => {
            let old = Document::decode(old.clone());
            unified_diff(&path.shown, old.text(), new, diff_deadline())
        }
        Present::File { .. } => None,
    }
}
