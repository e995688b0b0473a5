//! What there is to approve of a server, as its owner reads it.

use serde::Serialize;
use serde_json::json;

use super::{ConfiguredServer, Difference, Listing, Revision, ToolDefinition, code_of};
use crate::AgentError;

/// What is new, changed or gone of a server since its approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToApprove {
    /// The name and version that the server gives itself, and the revision that it speaks.
    pub server: String,
    /// All of it.
    pub lines: Vec<String>,
    /// Belongs to exactly this.
    pub code: String,
}

impl ConfiguredServer {
    /// What there is to approve, if anything. Starts the server, and keeps the lists for completion of one that is unchanged.
    ///
    /// # Errors
    /// It does not start, gives no list, or what was approved cannot be read or written.
    pub async fn to_approve(&self) -> Result<Option<ToApprove>, AgentError> {
        let (listing, revision, own_name) = self.listing().await?;
        let approved = self.approved()?;
        let difference = Difference::between(approved.as_ref(), &listing.tools);
        if approved.is_some() && difference.is_empty() {
            self.approve(listing, &revision)?;
            return Ok(None);
        }
        let lines = difference_lines(self, &difference, approved.is_some());
        let server = format!("{own_name}, revision {revision}");
        Ok(Some(ToApprove { server, lines, code: code_of(&listing.tools) }))
    }

    /// Approves what was shown with this code.
    ///
    /// # Errors
    /// The server lists something else now; or as [`ConfiguredServer::to_approve`].
    pub async fn approve_shown(&self, code: &str) -> Result<(), AgentError> {
        let (listing, revision, _): (Listing, Revision, String) = self.listing().await?;
        if code != code_of(&listing.tools) {
            let why = "the tools are others than those that were shown; look at them again";
            return Err(AgentError::usage(why));
        }
        self.approve(listing, &revision)
    }
}

/// The difference as the owner reads it: all that a model will be shown, because an approval covers it.
pub fn difference_lines(
    server: &ConfiguredServer,
    difference: &Difference,
    was_approved: bool,
) -> Vec<String> {
    let mut lines = Vec::new();
    for tool in &difference.new {
        let mark = if was_approved { "new: " } else { "" };
        let about = text_of(tool);
        let mut about = about.lines();
        let first = about.next().unwrap_or_default();
        lines.push(format!("  {mark}{}  {first}", tool.offered_name(&server.name)));
        lines.extend(about.map(|line| format!("      {line}")));
    }
    for (before, now) in &difference.changed {
        lines.push(format!("  changed: {}", now.offered_name(&server.name)));
        lines.extend(text_of(before).lines().map(|line| format!("    - {line}")));
        lines.extend(text_of(now).lines().map(|line| format!("    + {line}")));
    }
    lines.extend(difference.gone.iter().map(|name| format!("  gone: {name}")));
    lines
}

/// All that a server says about a tool.
fn text_of(tool: &ToolDefinition) -> String {
    let mut text = tool.description.clone();
    text.push_str(&format!("\narguments: {}", tool.input_schema));
    let further = [("title", tool.title.as_ref().map(|title| json!(title)))]
        .into_iter()
        .chain([("result", tool.output_schema.clone()), ("hints", tool.annotations.clone())]);
    for (name, value) in further {
        if let Some(value) = value {
            text.push_str(&format!("\n{name}: {value}"));
        }
    }
    text
}
