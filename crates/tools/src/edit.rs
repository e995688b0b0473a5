//! The `edit` tool: replaces one piece of a text file by another.
//!
//! The place is searched exactly first and then with more and more tolerance. Tolerance only finds the place: where
//! `oldText` and `newText` agree, the file keeps its own characters, and what differs is written as given.

mod locate;
mod numbered;
mod rewrite;

use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallSubject, PreparedCall, TargetAccess, Tool, ToolAliases, ToolContext,
    ToolDeclaration, ToolError, ToolInvocation, ToolOutput,
};
use myclaw_llm::ToolSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::changes::{Before, Fingerprint, Upcoming, make_change, require_fresh};
use crate::files::{
    Attributes, Document, Lines, Loaded, describe_nearest, diff_deadline, kept_diff, load,
    replace_file, require_writable, unified_diff,
};
use crate::support::{Access, Budget, Judged, ResolvedPath, io_failure, run_on_files, touching};
use crate::{aliases, declarations};
use locate::{Located, MAX_COUNTED, Search};

/// Most line numbers that an error lists.
const MAX_LINES_LISTED: usize = 10;
/// A `newText` shorter than this is likely to be somewhere in the file by chance.
const LEAST_DISTINCT_CHARS: usize = 12;

/// The tool; see the module.
#[derive(Debug, Default)]
pub struct EditTool;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    #[serde(rename = "oldText")]
    old_text: String,
    #[serde(rename = "newText")]
    new_text: String,
    #[serde(default)]
    all: bool,
}

/// The schema that the model reads. All sessions share it.
static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "oldText": {"type": "string", "description": "text to replace, copied from the file; must occur exactly once"},
            "newText": {"type": "string"},
            "all": {"type": "boolean"}
        },
        "required": ["path", "oldText", "newText"],
    });
    let description =
        "Replace text in a file. Give enough lines in oldText to make it unique.".to_owned();
    ToolSchema { name: "edit".to_owned(), description, parameters }
});

impl EditTool {
    /// The tool.
    pub fn new() -> Self {
        Self
    }
}

impl Tool for EditTool {
    fn schema(&self) -> &ToolSchema {
        &SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        declarations::EDIT
    }

    fn aliases(&self) -> ToolAliases {
        aliases::EDIT
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
        run_on_files(invocation, edit)
    }
}

/// An edit that was checked and is not made yet.
struct Planned {
    path: ResolvedPath,
    loaded: Loaded,
    /// The fingerprint of the present content.
    fingerprint: Fingerprint,
    /// The new content.
    bytes: Vec<u8>,
    /// Number of replaced places.
    replacements: usize,
    /// The result for the model after the edit.
    text: String,
}

fn edit(
    context: &ToolContext,
    judged: &Judged,
    arguments: &Arguments,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let planned = plan(context, judged, arguments, cancel)?;
    let Planned { path, loaded, bytes, .. } = &planned;
    if cancel.is_cancelled() {
        return Err(ToolError::Aborted(format!("aborted before {} was changed", path.shown)));
    }
    let attributes = Attributes { like: Some(loaded.metadata.clone()), executable: None };
    let upcoming = Upcoming {
        path: path.real.clone(),
        before: Some(Before {
            metadata: loaded.metadata.clone(),
            fingerprint: Some(planned.fingerprint.clone()),
        }),
        after: Some(Fingerprint::of(bytes, attributes.mode())),
    };
    let recorded = make_change(context, &[upcoming], || {
        replace_file(&path.real, bytes, &attributes)
            .map_err(|error| io_failure("write", path, &error))
    })?;
    let mut details = json!({
        "path": path.shown, "replacements": planned.replacements, "diff": planned.diff().map(|diff| kept_diff(&diff))
    });
    recorded.describe(&mut details);
    Ok(ToolOutput { details: Some(details), ..ToolOutput::text(planned.text) })
}

/// What a call would change, as a unified diff; see [`preview()`](crate::preview()).
pub(crate) fn preview(
    context: &ToolContext,
    call: &PreparedCall,
) -> Result<Option<String>, ToolError> {
    let (judged, arguments) = (Judged::of(call), call.arguments.parse()?);
    Ok(plan(context, &judged, &arguments, &CancellationToken::new())?.diff())
}

impl Planned {
    fn diff(&self) -> Option<String> {
        let (old, new) = (&self.loaded.document, Document::decode(self.bytes.clone()));
        unified_diff(&self.path.shown, old.text(), new.text(), diff_deadline())
    }
}

fn plan(
    context: &ToolContext,
    judged: &Judged,
    arguments: &Arguments,
    cancel: &CancellationToken,
) -> Result<Planned, ToolError> {
    let path = judged.resolve(context, &arguments.path, Access::Write)?;
    check_texts(arguments, &path)?;
    let loaded = load(&path, "edit")?;
    let fingerprint = loaded.fingerprint();
    require_fresh(context, &path, &loaded.metadata, Some(&fingerprint))?;
    require_writable(&path, &loaded.metadata)?;
    let document = &loaded.document;
    let lines = Lines::of(document.text());
    let budget = Budget::new(cancel.clone());
    let search = Search { text: document.text(), lines: &lines, arguments, budget: &budget };
    let located = search.locate();
    budget.check(&path.shown)?;
    let located = located?.ok_or_else(|| not_found(&path, &search))?;
    if located.regions.len() > 1 && !arguments.all {
        return Err(ambiguous(&path, &lines, &located));
    }
    let splices = rewrite::splices(document.text(), &lines, &located);
    let bytes = document
        .spliced(&splices)
        .map_err(|error| ToolError::Failed(format!("cannot edit {}: {error}", path.shown)))?;
    if bytes == document.bytes() {
        return Err(ToolError::Failed(format!(
            "nothing was changed: newText is what {} has there already. edit keeps line endings, and composed or \
             decomposed characters; to convert them use bash",
            path.shown
        )));
    }
    let (text, replacements) = (report(&path, &lines, &located), located.regions.len());
    Ok(Planned { path, loaded, fingerprint, bytes, replacements, text })
}

fn check_texts(arguments: &Arguments, path: &ResolvedPath) -> Result<(), ToolError> {
    if arguments.old_text.is_empty() {
        return Err(ToolError::Failed(format!(
            "oldText is empty. Give the text to replace; to create {} or replace all of it, use write",
            path.shown
        )));
    }
    if arguments.old_text == arguments.new_text {
        return Err(ToolError::Failed(
            "oldText and newText are the same, so there is nothing to change. Give the new text in newText".to_owned(),
        ));
    }
    Ok(())
}

fn not_found(path: &ResolvedPath, search: &Search<'_>) -> ToolError {
    let Search { lines, arguments, .. } = search;
    let mut text = format!("oldText was not found in {}, which was not changed.", path.shown);
    let new_text = arguments.new_text.trim();
    if new_text.chars().count() >= LEAST_DISTINCT_CHARS
        && let Some(offset) = search.text.find(new_text)
    {
        let line = lines.index_at(offset) + 1;
        text.push_str(&format!(
            " newText is already there, at line {line}: was this edit made before?"
        ));
    }
    let wanted: Vec<&str> = Lines::of(&arguments.old_text).contents().collect();
    if lines.len() == 0 {
        text.push_str(" The file is empty; use write to fill it.");
    } else if let Some(nearest) = describe_nearest(lines, &wanted, search.budget) {
        text.push_str(&format!(
            "\n{nearest}\nCopy the lines to replace from there into oldText and call again."
        ));
    } else {
        text.push_str(" Nothing in it is like oldText: read the file, then copy the lines to replace from it.");
    }
    ToolError::Failed(text)
}

fn ambiguous(path: &ResolvedPath, lines: &Lines<'_>, located: &Located) -> ToolError {
    ToolError::Failed(format!(
        "oldText occurs {}{} times in {} ({}), which was not changed. Add lines before or after it until only one \
         place fits, or set all to true to replace every one",
        if located.regions.len() < MAX_COUNTED { "" } else { "at least " },
        located.regions.len(),
        path.shown,
        listed_lines(lines, located)
    ))
}

/// Such as "lines 3, 18".
fn listed_lines(lines: &Lines<'_>, located: &Located) -> String {
    let numbers: Vec<String> = located
        .regions
        .iter()
        .take(MAX_LINES_LISTED)
        .map(|region| (lines.index_at(region.start()) + 1).to_string())
        .collect();
    let more = if located.regions.len() > numbers.len() { ", ..." } else { "" };
    let word = if located.regions.len() == 1 { "line" } else { "lines" };
    format!("{word} {}{more}", numbers.join(", "))
}

fn report(path: &ResolvedPath, lines: &Lines<'_>, located: &Located) -> String {
    let count = located.regions.len();
    let places = if count == 1 { "1 place".to_owned() } else { format!("{count} places") };
    let mut text =
        format!("Edited {}: {places} replaced ({})", path.shown, listed_lines(lines, located));
    if let Some(overlooked) = located.tolerance.overlooked() {
        text.push_str(&format!(". oldText differed from the file in {overlooked}"));
    }
    if located.numbers_removed {
        text.push_str(". Line numbers in front of the lines were left out");
    }
    text
}
