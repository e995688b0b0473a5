//! Changes of the config by a model always need an approval.

use myclaw_policy::ApprovalDigest;
use serde_json::{Map, Value};

use super::{Permissions, Question, Verdict, canonical};

/// The tool that changes the config, and its action for that.
const TOOL: &str = "gateway";
const ACTION: &str = "change";

/// Whether a call of `tool` changes the config.
pub(crate) fn is_meant(tool: &str, arguments: &Map<String, Value>) -> bool {
    tool == TOOL && arguments.get("action").and_then(Value::as_str) == Some(ACTION)
}

impl Permissions {
    /// The verdict on a change of the config, which no rule allows without a question. "Always" covers this change of this
    /// version of the file, so it covers nothing that is not done already.
    pub(super) fn config_verdict(
        &self,
        arguments: &Map<String, Value>,
        asked: Option<String>,
    ) -> Verdict {
        let rule = "a change of the config needs an approval".to_owned();
        let reason: Vec<String> = asked.into_iter().chain([rule]).collect();
        let digest = ApprovalDigest::of_tool_call(TOOL, &canonical(arguments), &self.directory);
        let always = "exactly this change of this version of the file".to_owned();
        Verdict::NeedsApproval(Question { reason: reason.join("; "), always, digest })
    }
}
