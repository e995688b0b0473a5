//! What this machine offers to a gateway elsewhere, as a node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CommandLine;
use super::values;

/// What `myclaw node` offers to the gateway that it is paired with, besides the tools that this config allows. Commands and
/// file tools follow `tools`, `agents` and the sandbox, in the session `node`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeConfig {
    /// The commands behind the capabilities of the machine. One that is left out is not offered.
    pub commands: NodeCommands,
    /// Where the machine is, such as `"52.52,13.41 (home)"`. Leave it out to say nothing.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<values::NonBlankText>")]
    pub location: Option<String>,
}

/// Commands that get the parameters of a call as one JSON object on their standard input. Those that make a file write it
/// to the path in its field `output`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeCommands {
    /// Shows a notification: `title`, `body`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notify: Option<CommandLine>,
    /// Takes a picture: `facing`, `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub camera_snap: Option<CommandLine>,
    /// Prints the cameras.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub camera_list: Option<CommandLine>,
    /// Records a clip: `facing`, `durationMs`, `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub camera_clip: Option<CommandLine>,
    /// Records the screen: `durationMs`, `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screen_record: Option<CommandLine>,
    /// Takes a picture of the screen: `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screenshot: Option<CommandLine>,
}
