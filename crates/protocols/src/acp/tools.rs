//! Tool calls as an editor shows them: title, place and changes.

use std::path::Path;

use agent_client_protocol_schema::v1::{
    Diff, Terminal, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use myclaw_agent::approvals::{Question, escape};
use myclaw_agent::declaration_of;
use myclaw_engine::{About, ApprovalRequest, FactForm, ToolKind as Kind};
use myclaw_session::EntryId;
use serde_json::{Map, Value};

use super::editor::absolute;
use super::hunks::hunks;
use super::markdown::{code, fenced};
use myclaw_front::approval::{CHANGED, CUT};
use myclaw_front::report::{first_line, summarise_arguments};

/// Bytes of a running command's output that are shown. Each update repeats them, so they are few.
const MOST_PROGRESS_BYTES: usize = 8 * 1024;
/// Files that the title of a patch names.
const MOST_NAMED: usize = 3;

/// How a call ended.
pub(super) struct Ending<'a> {
    pub(super) is_error: bool,
    /// The text for the model.
    pub(super) text: &'a str,
    /// The details for user interfaces.
    pub(super) details: Option<&'a Value>,
}

/// Where the details of a call name the editor's terminal.
pub(super) const TERMINAL_FIELD: &str = "terminalId";

/// The client's id for a call of the message `message`. The model's own id need not be unique in an imported session.
pub(super) fn call_id(message: &EntryId, id: &str) -> String {
    format!("{message}:{id}")
}

/// A call whose `arguments` still stream in, in `directory`.
pub(super) fn coming(
    directory: &Path,
    id: &str,
    name: &str,
    arguments: &Map<String, Value>,
) -> ToolCall {
    // The arguments themselves are sent once, when they are complete.
    let call = ToolCall::new(id.to_owned(), title(name, arguments))
        .name(name.to_owned())
        .kind(kind(name))
        .status(ToolCallStatus::Pending);
    call.locations(location(directory, arguments).into_iter().collect())
}

/// A call that begins to run, in `directory`.
pub(super) fn started(
    directory: &Path,
    id: &str,
    name: &str,
    arguments: &Map<String, Value>,
) -> ToolCall {
    coming(directory, id, name, arguments)
        .status(ToolCallStatus::InProgress)
        .raw_input(Value::Object(arguments.clone()))
}

/// A call that waits for an approval: what it is, why it needs one, and everything that decides what happens.
pub(super) fn to_approve(
    directory: &Path,
    id: &str,
    request: &ApprovalRequest,
    question: &Question,
) -> ToolCallUpdate {
    let call = &request.call;
    let mut content: Vec<ToolCallContent> = vec![question.reason.clone().into()];
    if !question.changes.is_empty() {
        content.push(CHANGED.to_owned().into());
    }
    for fact in question.changes.iter().chain(&question.shown) {
        let language = if fact.form == FactForm::Diff { "diff" } else { "" };
        let cut = if fact.is_whole { "" } else { CUT };
        content.push(format!("{}{cut}:", fact.label).into());
        content.push(fenced(language, &fact.text).into());
    }
    let arguments = call.arguments.as_map();
    let targets = call.subject.targets().map(|target| ToolCallLocation::new(target.path.clone()));
    let mut locations: Vec<ToolCallLocation> = targets.collect();
    if locations.is_empty() {
        locations.extend(location(directory, arguments));
    }
    let fields = ToolCallUpdateFields::new()
        .title(title(&call.tool_name, arguments))
        .kind(kind(&call.tool_name))
        .status(ToolCallStatus::Pending)
        .raw_input(Value::Object(arguments.clone()))
        .content(content)
        .locations(locations);
    ToolCallUpdate::new(id.to_owned(), fields)
}

/// An update with the output of a running call. `printed` keeps the end of the output.
pub(super) fn progress(id: &str, printed: &mut String, more: &str) -> ToolCallUpdate {
    printed.push_str(more);
    if printed.len() > MOST_PROGRESS_BYTES {
        let from = printed.ceil_char_boundary(printed.len() - MOST_PROGRESS_BYTES);
        printed.drain(..from);
    }
    let fields = ToolCallUpdateFields::new()
        .status(ToolCallStatus::InProgress)
        .content(vec![fenced("", printed).into()]);
    ToolCallUpdate::new(id.to_owned(), fields)
}

/// The editor's terminal that a call names.
pub(super) fn terminal(details: &Value) -> Option<&str> {
    details.get(TERMINAL_FIELD)?.as_str()
}

/// A call whose output the editor has in one of its terminals.
pub(super) fn in_terminal(id: &str, terminal: &str) -> ToolCallUpdate {
    let content = ToolCallContent::Terminal(Terminal::new(terminal.to_owned()));
    let fields =
        ToolCallUpdateFields::new().status(ToolCallStatus::InProgress).content(vec![content]);
    ToolCallUpdate::new(id.to_owned(), fields)
}

/// A call that is over.
pub(super) fn ended(directory: &Path, id: &str, ending: &Ending<'_>) -> ToolCallUpdate {
    let status = if ending.is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
    let changes = ending.details.map(|details| changes(directory, details)).unwrap_or_default();
    let mut fields = ToolCallUpdateFields::new().status(status);
    if let Some(terminal) = ending.details.and_then(terminal) {
        let content = ToolCallContent::Terminal(Terminal::new(terminal.to_owned()));
        fields = fields.content(vec![content]);
    } else if changes.is_empty() {
        let content = (!ending.text.is_empty()).then(|| fenced("", ending.text).into());
        fields = fields.content(content.into_iter().collect::<Vec<_>>());
        if let Some(details) = ending.details {
            fields = fields.raw_output(details.clone());
        }
    } else {
        let locations = changes
            .iter()
            .map(|change| ToolCallLocation::new(change.diff.path.clone()).line(change.line))
            .collect::<Vec<_>>();
        let diffs: Vec<ToolCallContent> =
            changes.into_iter().map(|change| change.diff.into()).collect();
        fields = fields.content(diffs).locations(locations);
    }
    ToolCallUpdate::new(id.to_owned(), fields)
}

/// A call that will never end, and why.
pub(super) fn given_up(id: &str, why: &str) -> ToolCallUpdate {
    let fields = ToolCallUpdateFields::new()
        .status(ToolCallStatus::Failed)
        .content(vec![ToolCallContent::from(why.to_owned())]);
    ToolCallUpdate::new(id.to_owned(), fields)
}

/// A place in a file that a call changed.
struct Change {
    diff: Diff,
    line: u32,
}

/// The changes of a call, which the tools report as `diff` with its `path`, or several as `diffs`.
fn changes(directory: &Path, details: &Value) -> Vec<Change> {
    let several = details.get("diffs").and_then(Value::as_array);
    let files = several.map_or_else(|| std::slice::from_ref(details), Vec::as_slice);
    let mut changes = Vec::new();
    for file in files {
        let text = |name| file.get(name).and_then(Value::as_str);
        let (Some(path), Some(diff)) = (text("path"), text("diff")) else { continue };
        let path = absolute(directory, path);
        changes.extend(hunks(diff).into_iter().map(|hunk| Change {
            diff: Diff::new(path.clone(), hunk.new).old_text(hunk.old),
            line: hunk.line,
        }));
    }
    changes
}

fn kind(name: &str) -> ToolKind {
    match declaration_of(name).kind {
        Kind::Read | Kind::Look => ToolKind::Read,
        Kind::Change => ToolKind::Edit,
        Kind::Search => ToolKind::Search,
        Kind::Fetch => ToolKind::Fetch,
        Kind::Run => ToolKind::Execute,
        Kind::Plan => ToolKind::Think,
        Kind::Attend | Kind::Other => ToolKind::Other,
    }
}

/// The title of a call, in one line.
fn title(name: &str, arguments: &Map<String, Value>) -> String {
    let declaration = declaration_of(name);
    let (verb, named) = declaration.about.of(arguments);
    let shown = |text: &str| code(&escape(&first_line(text)));
    let about = match named.len() {
        0 if declaration.about == About::Nothing && declaration.kind == Kind::Other => {
            let title = format!("{name} {}", summarise_arguments(arguments));
            return escape(title.trim_end());
        }
        0 => return declaration.title.to_owned(),
        count if count > MOST_NAMED => {
            let first: Vec<String> =
                named.iter().take(MOST_NAMED).map(|text| shown(text)).collect();
            format!("{} and {} more", first.join(", "), count - MOST_NAMED)
        }
        _ => named.iter().map(|text| shown(text)).collect::<Vec<_>>().join(", "),
    };
    let path = arguments.get("path").and_then(Value::as_str).filter(|path| !named.contains(path));
    let within = path.map(|path| format!(" in {}", shown(path))).unwrap_or_default();
    format!("{verb} {about}{within}{}", lines(arguments)).trim_start().to_owned()
}

/// ` (lines 3-9)`.
fn lines(arguments: &Map<String, Value>) -> String {
    let line = |name| arguments.get(name).and_then(Value::as_u64);
    match (line("startLine"), line("endLine")) {
        (Some(first), Some(last)) => format!(" (lines {first}-{last})"),
        (Some(first), None) => format!(" (from line {first})"),
        (None, Some(last)) => format!(" (to line {last})"),
        (None, None) => String::new(),
    }
}

/// The file and line that a call reads or writes, if its arguments name them.
fn location(directory: &Path, arguments: &Map<String, Value>) -> Option<ToolCallLocation> {
    let path = arguments.get("path").and_then(Value::as_str)?;
    let line = arguments
        .get("startLine")
        .and_then(Value::as_u64)
        .and_then(|line| u32::try_from(line).ok());
    Some(ToolCallLocation::new(absolute(directory, path)).line(line))
}

#[cfg(test)]
mod tests;
