//! The interface between the engine and a tool.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_files::ClosedPaths;
use myclaw_llm::{ContentBlock, ToolCall, ToolSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{CallArguments, CallSubject, ToolDeclaration};

/// Something a model can call.
pub trait Tool: Send + Sync {
    /// Name, description and argument schema, as the model sees them. Arguments are validated against the schema
    /// before anything else reads them.
    fn schema(&self) -> &ToolSchema;

    /// Its name, for those who do not need the rest of the schema.
    fn name(&self) -> &str {
        &self.schema().name
    }

    /// What the tool is. Without a declaration it counts as one that can do everything.
    fn declaration(&self) -> ToolDeclaration {
        ToolDeclaration::UNKNOWN
    }

    /// Other names of the tool and its arguments. A call with these names is converted to the names of the schema
    /// before arguments are validated and hooks are called.
    fn aliases(&self) -> ToolAliases {
        ToolAliases::default()
    }

    /// What a call with these arguments will do: for the policy, for the question about it, and for
    /// [`Tool::execute`], which must do that and nothing else. It may ask the file system, so it blocks.
    ///
    /// Without it, a call counts as one that can do everything.
    ///
    /// # Errors
    /// There is no such call; the model reads the text as for [`Tool::execute`].
    fn subject(
        &self,
        arguments: &CallArguments,
        context: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let _ = context;
        Ok(CallSubject::unknown(arguments))
    }

    /// Whether [`Tool::subject`] asks the file system for one place only. Then it is called where it is needed, because a
    /// change to another thread takes longer.
    fn has_quick_subject(&self) -> bool {
        false
    }

    /// The tool and the arguments that a call with these arguments means, if this tool only passes calls on to others. What
    /// follows sees a call of that tool: hooks, the policy, the question about it.
    ///
    /// The text says why there is no such call.
    fn stands_for(&self, arguments: &Map<String, Value>) -> Option<Result<MeantCall, String>> {
        let _ = arguments;
        None
    }

    /// The arguments with what a person wrote in the place of what a call does, and what the model reads of that. `None` where
    /// nothing else can be done. A call that runs a command needs no answer here.
    fn replaced(
        &self,
        arguments: &CallArguments,
        text: &str,
    ) -> Option<(Map<String, Value>, String)> {
        let _ = (arguments, text);
        None
    }

    /// Whether the program that sent the message makes the calls, so that the turn ends with them. Nothing of such a call
    /// is judged or validated here.
    fn is_of_program(&self) -> bool {
        false
    }

    /// Whether others wrote the schema, such as a server of tools. Then a model is sent its texts as text from outside.
    fn is_described_by_others(&self) -> bool {
        false
    }

    /// Makes one call.
    ///
    /// # Errors
    /// A [`ToolError`] becomes an error result. The model reads its text, so it should say what to do next.
    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// Makes one call, for a tool whose call is made of calls of others. `calls` makes them.
    ///
    /// # Errors
    /// As for [`Tool::execute`].
    fn execute_with<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
        calls: &'a dyn InnerCalls,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let _ = calls;
        self.execute(invocation)
    }

    /// The result of a call that an earlier process began and did not write into the log, if the tool has kept it. The
    /// model made the call at `asked_at`, in milliseconds since the Unix epoch; what is older belongs to another call
    /// with the same id. Without a result the model is told that the call was interrupted.
    fn recall<'a>(
        &'a self,
        call: &'a ToolCall,
        asked_at: u64,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Option<ToolOutput>> {
        let _ = (call, asked_at, context);
        Box::pin(std::future::ready(None))
    }
}

/// Makes calls in the middle of another one, as if the model had made them: hooks, the policy and approvals hold for each,
/// and each emits its events. The log has what the outer tool says of them.
pub trait InnerCalls: Send + Sync {
    /// Makes a call of an offered tool. It ends when `ended` fires, which also withdraws the question about it.
    fn make<'a>(
        &'a self,
        call: ToolCall,
        ended: &'a CancellationToken,
    ) -> BoxFuture<'a, ToolOutput>;
}

/// A tool, and the arguments of a call of it.
pub type MeantCall = (Arc<dyn Tool>, Map<String, Value>);

/// A tool that is not offered.
#[derive(Clone)]
pub struct WithheldTool {
    /// The tool; it is never called.
    pub tool: Arc<dyn Tool>,
    /// Makes of its name a text about it and the rule that withholds it, for the model and the user. It is made when the
    /// model calls the tool: a turn has dozens of these.
    pub reason: Arc<dyn Fn(&str) -> String + Send + Sync>,
}

/// Other names of a tool and its arguments, which models know from the agents they were trained with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolAliases {
    /// Names of the tool; compared without regard to case.
    pub names: &'static [&'static str],
    /// Names of arguments, each with the name in the schema. The name of a field is preceded by those of the objects
    /// that it is in, with dots between them, as in `("job.text", "message")`.
    pub arguments: &'static [(&'static str, &'static str)],
    /// Arguments that the tool takes and the schema does not show, each with its JSON type.
    pub unlisted: &'static [(&'static str, &'static str)],
}

impl ToolAliases {
    /// Whether a call of `name` means this tool.
    pub fn names_tool(&self, name: &str) -> bool {
        self.names.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    }
}

/// A call that can be made: its arguments fit, and its tool has said what it will do.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedCall {
    /// Tool name.
    pub tool_name: String,
    /// The model's id for the call.
    pub tool_call_id: String,
    /// The model that made the call, as `provider/model`; empty if none did.
    pub model: String,
    /// The arguments, under the names of the schema.
    pub arguments: CallArguments,
    /// What the tool is.
    pub declaration: ToolDeclaration,
    /// What the call will do.
    pub subject: CallSubject,
}

impl PreparedCall {
    /// A call of `tool` that no model makes. Blocks as [`Tool::subject`] does.
    ///
    /// # Errors
    /// The arguments do not fit, or the tool refuses them.
    pub fn new(
        tool: &dyn Tool,
        call_id: &str,
        given: Map<String, Value>,
        context: &ToolContext,
    ) -> Result<Self, ToolError> {
        let arguments = CallArguments::of(tool, given).map_err(|problems| {
            let problems = problems.join("\n- ");
            ToolError::Failed(format!(
                "the arguments do not fit.\n- {problems}\nCall again, corrected"
            ))
        })?;
        Self::read(tool, (call_id.to_owned(), String::new()), arguments, context)
    }

    /// The call with the id and of the model `(id, model)`.
    pub(crate) fn read(
        tool: &dyn Tool,
        (tool_call_id, model): (String, String),
        arguments: CallArguments,
        context: &ToolContext,
    ) -> Result<Self, ToolError> {
        let subject = tool.subject(&arguments, context)?;
        let (tool_name, declaration) = (tool.schema().name.clone(), tool.declaration());
        Ok(Self { tool_name, tool_call_id, model, arguments, declaration, subject })
    }
}

/// One call of a tool.
pub struct ToolInvocation<'a> {
    /// The call.
    pub call: &'a PreparedCall,
    /// Reports progress to user interfaces; never to the model.
    pub on_update: &'a (dyn Fn(ToolUpdate) + Send + Sync),
    /// The surroundings of the call.
    pub context: &'a ToolContext,
    /// Fires when the run is aborted: the tool must end at once, with everything it started.
    pub cancel: CancellationToken,
}

/// The surroundings of the tool calls of one run.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// Relative paths start here; the agent's workspace unless the user chose another directory.
    pub working_directory: PathBuf,
    /// Directory for output that is too large for the model, and for what undo needs; created on first use. The files
    /// are kept with the session.
    pub artifact_directory: PathBuf,
    /// Most characters of text that one result gives to the model.
    pub max_result_chars: usize,
    /// Whether file tools refuse paths outside the working directory (`tools.fs.workspaceOnly`).
    pub workspace_only: bool,
    /// Paths that no tool touches, because the program keeps its own data there.
    pub closed: Arc<ClosedPaths>,
    /// The turn that the calls belong to.
    pub turn: TurnId,
}

/// Names a turn of a session. What file tools change in one turn is undone together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnId(String);

impl TurnId {
    /// A new id. Ids sort by time.
    pub fn generate() -> Self {
        Self(Uuid::now_v7().to_string())
    }
}

impl fmt::Display for TurnId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// Blocks for the model.
    pub content: Vec<ContentBlock>,
    /// For user interfaces; stored with the result, never sent to a model.
    pub details: Option<Value>,
    /// Whether the model should see it as a failure (a command with a non-zero exit code, say).
    pub is_error: bool,
}

/// Progress of a running call, for user interfaces.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUpdate {
    /// The latest progress as text, such as new output.
    pub text: String,
    /// Anything else that a user interface may show.
    pub details: Option<Value>,
}

/// A call that failed. The text is for the model: what went wrong and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The call failed.
    #[error("{0}")]
    Failed(String),
    /// The run was aborted during the call; the text describes what the tool had done by then.
    #[error("{0}")]
    Aborted(String),
}

impl ToolOutput {
    /// A successful result of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], details: None, is_error: false }
    }
}
