//! The messages between the side that asks for calls and the side that makes them, and their limits. The side that makes
//! them is a helper process, or a node at the other end of a WebSocket.

mod command;

use std::path::PathBuf;

use myclaw_engine::{ToolContext, ToolError, ToolOutput, ToolUpdate, TurnId};
use myclaw_llm::{ContentBlock, ImageContent};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub(crate) use self::command::{CommandEnd, CommandRequest, MAX_PIECE_BYTES, decode, encode};

/// Both sides must be the same program: it may have been replaced on disk since this process started.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Most blocks of one result. The built-in tools return one or two.
const MAX_BLOCKS: usize = 64;
/// Most bytes of the details of a result, which are stored with it. Diffs, the largest part, have at most 20,000
/// characters each.
const MAX_DETAILS_BYTES: usize = 8 << 20;
/// Most bytes of the text of an update. The built-in tools send at most 4 KiB.
const MAX_UPDATE_BYTES: usize = 64 << 10;
/// The kinds of pictures that models take.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Identifies a call or a command between the two processes. Never used twice for one helper.
pub(crate) type CallNumber = u64;

/// What this program sends to the helper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Request {
    /// Comes first: how to make the tools.
    Begin { version: String, setup: Value },
    /// Run a call.
    Call(CallRequest),
    /// Run a command.
    Run(Box<CommandRequest>),
    /// Pass these bytes, in base 64, to the input of a command.
    Input { number: CallNumber, data: String },
    /// End the input of a command after what was passed before.
    EndInput { number: CallNumber },
    /// Write all output of a command to its file, also while it is short.
    KeepOutput { number: CallNumber },
    /// End a call or a command, with everything it started. Nothing happens if it has ended.
    Cancel { number: CallNumber },
    /// Answer with [`Reply::Idle`] if no call, no command and no process is running.
    AreYouIdle,
}

/// One call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallRequest {
    pub number: CallNumber,
    pub tool: String,
    /// The model's id for the call.
    #[serde(default)]
    pub call_id: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Where the tool works. A node has a context of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CallContext>,
}

/// A [`ToolContext`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallContext {
    pub working_directory: PathBuf,
    pub artifact_directory: PathBuf,
    pub max_result_chars: usize,
    pub workspace_only: bool,
    pub turn: TurnId,
}

/// What the helper sends.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Reply {
    /// Comes first: the helper takes calls.
    Ready { version: String },
    /// Progress of a call.
    Update { number: CallNumber, text: String, details: Option<Box<RawValue>> },
    /// The end of a call.
    Result { number: CallNumber, outcome: CallOutcome },
    /// New output of a command, in base 64. What was skipped comes before it.
    Output { number: CallNumber, skipped_bytes: u64, skipped_lines: u64, data: String },
    /// A command's input has taken a piece. With `is_closed` it takes no more.
    Took { number: CallNumber, is_closed: bool },
    /// The end of a command.
    Ended { number: CallNumber, end: Box<CommandEnd> },
    /// No call and no process is running.
    Idle,
}

/// The end of a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum CallOutcome {
    Output { content: Vec<ContentBlock>, details: Option<Box<RawValue>>, is_error: bool },
    Failed { text: String },
    Aborted { text: String },
}

impl From<CallContext> for ToolContext {
    fn from(context: CallContext) -> Self {
        Self {
            working_directory: context.working_directory,
            artifact_directory: context.artifact_directory,
            max_result_chars: context.max_result_chars,
            workspace_only: context.workspace_only,
            // What is closed is not there in a sandbox.
            closed: std::sync::Arc::default(),
            turn: context.turn,
        }
    }
}

impl From<Result<ToolOutput, ToolError>> for CallOutcome {
    fn from(result: Result<ToolOutput, ToolError>) -> Self {
        match result {
            Ok(ToolOutput { content, details, is_error }) => {
                Self::Output { content, details: details.as_ref().and_then(raw), is_error }
            }
            Err(ToolError::Failed(text)) => Self::Failed { text },
            Err(ToolError::Aborted(text)) => Self::Aborted { text },
        }
    }
}

/// JSON that is not parsed before its size is known.
pub(crate) fn raw(details: &Value) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(details).ok()
}

impl CallOutcome {
    /// The result for the engine. A command may have taken over the helper, so everything is checked.
    ///
    /// # Errors
    /// The call failed or was aborted, or its result is not one that a tool may have.
    pub(crate) fn check(self) -> Result<ToolOutput, ToolError> {
        match self {
            Self::Failed { text } => Err(ToolError::Failed(text)),
            Self::Aborted { text } => Err(ToolError::Aborted(text)),
            Self::Output { content, details, is_error } => {
                if content.len() > MAX_BLOCKS {
                    return Err(refuse(&format!("it has {} blocks", content.len())));
                }
                let content = content.into_iter().map(check_block).collect::<Result<_, _>>()?;
                let details = details.map(|details| check_details(&details)).transpose()?;
                Ok(ToolOutput { content, details, is_error })
            }
        }
    }
}

/// Accepts only text and pictures, without fields that the engine or a provider attaches to them.
fn check_block(block: ContentBlock) -> Result<ContentBlock, ToolError> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    match block {
        ContentBlock::Text(text) => Ok(ContentBlock::text(text.text)),
        ContentBlock::Image(ImageContent { data, mime_type })
            if PICTURES.contains(&mime_type.as_str()) && data.bytes().all(is_base64) =>
        {
            Ok(ContentBlock::Image(ImageContent { data, mime_type }))
        }
        ContentBlock::Image(_) => Err(refuse("it has a picture that is not one")),
        ContentBlock::Thinking(_) | ContentBlock::ToolCall(_) => {
            Err(refuse("it has a block that only a model may write"))
        }
    }
}

fn check_details(details: &RawValue) -> Result<Value, ToolError> {
    let text = details.get();
    if text.len() > MAX_DETAILS_BYTES {
        return Err(refuse(&format!("its details have {} bytes", text.len())));
    }
    serde_json::from_str(text).map_err(|error| refuse(&error.to_string()))
}

/// The progress that user interfaces get; `None` if it is too large.
pub(crate) fn check_update(text: String, details: Option<Box<RawValue>>) -> Option<ToolUpdate> {
    let size = text.len() + details.as_ref().map_or(0, |details| details.get().len());
    if size > MAX_UPDATE_BYTES {
        return None;
    }
    let details = details.map(|details| serde_json::from_str(details.get())).transpose().ok()?;
    Some(ToolUpdate { text, details })
}

fn refuse(reason: &str) -> ToolError {
    ToolError::Failed(format!(
        "the sandboxed helper process returned a result that cannot be used: {reason}. Try another way"
    ))
}
