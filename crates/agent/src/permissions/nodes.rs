//! The policy for calls that leave this machine: the tool `nodes`.

use myclaw_policy::{ApprovalDigest, ExecPolicy, InputVerdict};
use serde_json::{Map, Value};

use super::{Permissions, Question, Verdict, canonical};

/// The tool.
pub(super) const NODES_TOOL: &str = "nodes";
/// The actions that run something on another machine.
const RUNNING_ACTIONS: [&str; 2] = ["run", "tool"];
/// The action that lets another machine in. It is always asked about: a model may suggest it, the owner decides.
const APPROVING_ACTION: &str = "approve";

impl Permissions {
    /// The programs of a command are on another machine, so none can be resolved here: where commands are restricted, it
    /// counts as one that cannot be read.
    pub(super) fn nodes_verdict(
        &self,
        exec: &ExecPolicy,
        arguments: &Map<String, Value>,
        asked: Option<String>,
    ) -> Verdict {
        let action = arguments.get("action").and_then(Value::as_str).unwrap_or_default();
        let mut reasons: Vec<String> = Vec::new();
        if RUNNING_ACTIONS.contains(&action) {
            match exec.check_input() {
                InputVerdict::Denied(refusal) => {
                    return Verdict::Denied(format!("nothing may be run on a node: {refusal}"));
                }
                InputVerdict::NeedsApproval(refusal) => reasons.push(refusal.to_string()),
                InputVerdict::Allowed => {}
            }
        }
        if action == APPROVING_ACTION {
            reasons.push("only the owner lets a new node in".to_owned());
        }
        reasons.extend(asked);
        if reasons.is_empty() {
            return Verdict::Allowed;
        }
        let digest =
            ApprovalDigest::of_tool_call(NODES_TOOL, &canonical(arguments), &self.directory);
        let always = "this call of nodes with the same arguments".to_owned();
        Verdict::NeedsApproval(Question { reason: reasons.join("; "), always, digest })
    }
}
