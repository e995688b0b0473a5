//! The browser tool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values;

/// Seconds that an action may take: `agent-browser`'s own limit.
const DEFAULT_TIMEOUT_SECONDS: u64 = 25;
/// Five minutes: a page that takes longer is waited for with several calls.
const MAX_TIMEOUT_SECONDS: u64 = 300;
/// Minutes without an action after which the browser is closed: it takes some 300 MB.
const DEFAULT_IDLE_MINUTES: u64 = 30;
/// A day.
const MAX_IDLE_MINUTES: u64 = 1_440;

/// The tool that uses a web browser. It needs the program `agent-browser` and a Chromium. Which addresses it may connect
/// to is set by `tools.web.fetch.allowPrivate` and `tools.web.fetch.allowHosts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BrowserToolConfig {
    /// Whether models get the tool. Leave it out to offer it when `agent-browser` is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The `agent-browser` program, if it is not the one in `PATH`.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<values::NonBlankText>")]
    pub program: Option<String>,
    /// The Chromium or Chrome program, if it is not one in `PATH`.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<values::NonBlankText>")]
    pub executable_path: Option<String>,
    /// Seconds that an action may take, such as waiting for a page to load; 1 to 300.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_TIMEOUT_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_TIMEOUT_SECONDS))]
    pub timeout_seconds: u64,
    /// Minutes without an action after which the browser is closed; 1 to 1440.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_IDLE_MINUTES>")]
    #[schemars(range(min = 1, max = MAX_IDLE_MINUTES))]
    pub idle_minutes: u64,
}

impl Default for BrowserToolConfig {
    fn default() -> Self {
        Self {
            enabled: None,
            program: None,
            executable_path: None,
            timeout_seconds: DEFAULT_TIMEOUT_SECONDS,
            idle_minutes: DEFAULT_IDLE_MINUTES,
        }
    }
}
