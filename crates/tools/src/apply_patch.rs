//! The `apply_patch` tool: changes several files at once by a unified diff or the `*** Begin Patch` form.
//!
//! The patch is parsed, every hunk is located, and the new content of every file is made in memory. Files are written
//! only if all of it fits, and then either all of them or none.

mod apply;
mod commit;
mod envelope;
mod hunk;
mod locate;
mod model;
mod names;
mod parse;
mod plan;
mod targets;
mod unified;

use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallSubject, PreparedCall, Tool, ToolAliases, ToolContext, ToolDeclaration,
    ToolError, ToolInvocation, ToolOutput,
};
use myclaw_llm::ToolSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::changes::make_change;
use crate::files::{Document, FileKind, diff_deadline, kept_diff, recognise, unified_diff};
use crate::support::{Access, Budget, Judged, cut_end, run_on_files};
use crate::{aliases, declarations};
use commit::{CommitError, commit};
use model::Section;
use plan::{Outcome, Plan, Verdict};

/// Largest patch that is read; a larger one was not written by a model.
const MAX_PATCH_BYTES: usize = 4 * 1024 * 1024;
/// Characters of diffs that are kept with one result.
const MAX_DETAIL_CHARS: usize = 60_000;

/// The tool; see the module.
#[derive(Debug, Default)]
pub struct ApplyPatchTool;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    patch: String,
}

/// The schema that the model reads. All sessions share it.
static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
    let parameters = json!({
        "type": "object",
        "properties": {"patch": {"type": "string"}},
        "required": ["patch"],
    });
    let description = "Apply a unified diff (---, +++, @@; git renames and /dev/null too) to files in the working \
                       directory: all of it or nothing. Show 3 lines of context around each change."
        .to_owned();
    ToolSchema { name: "apply_patch".to_owned(), description, parameters }
});

impl ApplyPatchTool {
    /// The tool.
    pub fn new() -> Self {
        Self
    }
}

impl Tool for ApplyPatchTool {
    fn schema(&self) -> &ToolSchema {
        &SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        declarations::APPLY_PATCH
    }

    fn aliases(&self) -> ToolAliases {
        aliases::APPLY_PATCH
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        context: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let given: Arguments = arguments.parse()?;
        Ok(targets::subject(arguments, context, &sections(context, &given.patch)?))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        run_on_files(invocation, apply_patch)
    }
}

fn apply_patch(
    context: &ToolContext,
    judged: &Judged,
    arguments: &Arguments,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let bounded = |text: &str| cut_end(text, context.max_result_chars).into_owned();
    let (plan, outcomes) = plan(context, &arguments.patch, cancel)?;
    if cancel.is_cancelled() {
        return Err(ToolError::Aborted("aborted before anything was changed".to_owned()));
    }
    let mut details = details(&plan, &outcomes);
    let upcoming = plan.upcoming();
    for change in &upcoming {
        judged.check(&change.path, Access::Write)?;
    }
    let changes = plan.into_changes();
    let recorded = make_change(context, &upcoming, || {
        commit(changes)
            .map_err(|error| ToolError::Failed(bounded(&commit_failure(context, &error))))
    })?;
    recorded.describe(&mut details);
    Ok(ToolOutput { details: Some(details), ..ToolOutput::text(bounded(&success(&outcomes))) })
}

/// The parts of a patch.
fn sections(context: &ToolContext, patch: &str) -> Result<Vec<Section>, ToolError> {
    if patch.len() > MAX_PATCH_BYTES {
        return Err(ToolError::Failed(format!(
            "nothing was changed: the patch is larger than {MAX_PATCH_BYTES} bytes. Send it in parts"
        )));
    }
    parse::parse(patch).map_err(|error| {
        let text = format!("nothing was changed: {error}");
        ToolError::Failed(cut_end(&text, context.max_result_chars).into_owned())
    })
}

/// The changes of a patch that fits.
fn plan(
    context: &ToolContext,
    patch: &str,
    cancel: &CancellationToken,
) -> Result<(Plan, Vec<Outcome>), ToolError> {
    let bounded = |text: &str| cut_end(text, context.max_result_chars).into_owned();
    let sections = sections(context, patch)?;
    let (plan, outcomes) = Plan::of(context, &sections, Budget::new(cancel.clone()))?;
    if outcomes.iter().any(|outcome| matches!(outcome.verdict, Verdict::Blocked(_))) {
        return Err(ToolError::Failed(bounded(&refusal(&outcomes))));
    }
    Ok((plan, outcomes))
}

/// What a call would change, as a unified diff; see [`preview()`](crate::preview()).
pub(crate) fn preview(
    context: &ToolContext,
    call: &PreparedCall,
) -> Result<Option<String>, ToolError> {
    let arguments: Arguments = call.arguments.parse()?;
    let (plan, _) = plan(context, &arguments.patch, &CancellationToken::new())?;
    let shown: Option<Vec<String>> = diffs(&plan).map(|(_, diff)| diff).collect();
    Ok(shown.filter(|shown| !shown.is_empty()).map(|shown| shown.concat()))
}

fn success(outcomes: &[Outcome]) -> String {
    let mut text = format!("Applied to {}:", count(outcomes.len(), "file"));
    for outcome in outcomes {
        if let Verdict::Fits { done, remarks } = &outcome.verdict {
            text.push_str(&format!("\n- {}: {done}", outcome.shown));
            for remark in remarks {
                text.push_str(&format!("\n  {remark}"));
            }
        }
    }
    text
}

fn refusal(outcomes: &[Outcome]) -> String {
    let blocked =
        outcomes.iter().filter(|outcome| matches!(outcome.verdict, Verdict::Blocked(_))).count();
    let mut text = format!(
        "Nothing was changed, because {blocked} of {} in the patch did not fit:",
        count(outcomes.len(), "file")
    );
    for outcome in outcomes {
        match &outcome.verdict {
            Verdict::Blocked(reasons) => {
                for reason in reasons {
                    text.push_str(&format!("\n- {}: {reason}", outcome.shown));
                }
            }
            Verdict::Fits { .. } => text.push_str(&format!("\n- {}: fits", outcome.shown)),
        }
    }
    text.push_str("\nCorrect what did not fit and send the whole patch again.");
    text
}

fn commit_failure(context: &ToolContext, failure: &CommitError) -> String {
    let path = crate::support::shown_path(context, &failure.path);
    let mut text = format!("the patch fits, but {path} could not be written: {}. ", failure.error);
    if failure.unrestored.is_empty() {
        text.push_str("Nothing was changed: what had been written before was taken back.");
    } else {
        text.push_str("Taking back what had been written before failed as well. Tell the user:");
        for (path, kept) in &failure.unrestored {
            text.push_str(&format!(
                "\n- the old content of {} is in {}",
                path.display(),
                kept.display()
            ));
        }
    }
    text
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// For user interfaces: what happened to each file, with diffs as long as there is room for them.
fn details(plan: &Plan, outcomes: &[Outcome]) -> Value {
    let mut room = MAX_DETAIL_CHARS;
    let mut fitting = |diff: &String| {
        let fits = diff.len() <= room;
        room -= if fits { diff.len() } else { 0 };
        fits
    };
    let diffs: Vec<Value> = diffs(plan)
        .map(|(path, diff)| {
            let diff = diff.map(|diff| kept_diff(&diff)).filter(&mut fitting);
            json!({"path": path, "diff": diff})
        })
        .collect();
    let results: Vec<Value> = outcomes
        .iter()
        .filter_map(|outcome| match &outcome.verdict {
            Verdict::Fits { done, remarks } => {
                Some(json!({"path": outcome.shown, "result": done, "remarks": remarks}))
            }
            Verdict::Blocked(_) => None,
        })
        .collect();
    json!({"filesPatched": results.len(), "results": results, "diffs": diffs})
}

/// The files whose content changes, in order, with diffs of those that are texts.
fn diffs(plan: &Plan) -> impl Iterator<Item = (&str, Option<String>)> {
    let deadline = diff_deadline();
    plan.files().filter(|(file, after)| file.before.as_deref() != *after).map(
        move |(file, after)| {
            let texts = text_of(file.before.as_deref()).zip(text_of(after));
            let diff =
                texts.and_then(|(old, new)| unified_diff(&file.path.shown, &old, &new, deadline));
            (file.path.shown.as_str(), diff)
        },
    )
}

fn text_of(bytes: Option<&[u8]>) -> Option<String> {
    match bytes {
        None => Some(String::new()),
        Some(bytes) if recognise(bytes) == FileKind::Text => {
            Some(Document::decode(bytes.to_vec()).text().to_owned())
        }
        Some(_) => None,
    }
}
