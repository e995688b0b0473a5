//! Decides which sessions are sandboxed, and which tools those may use.

use std::fmt;

use myclaw_config::{SandboxMode, SandboxRules, ToolRules};

/// Tools of a sandboxed session unless the config lists others.
pub const DEFAULT_SANDBOX_ALLOWLIST: [&str; 7] =
    ["bash", "process", "read", "write", "edit", "group:memory", "update_plan"];
/// Tools denied to a sandboxed session unless the config lists others.
pub const DEFAULT_SANDBOX_DENYLIST: [&str; 4] = ["browser", "canvas", "nodes", "cron"];

/// The facts that decide whether a session is the owner's main one.
#[derive(Debug, Clone, Copy)]
pub struct SessionFacts<'a> {
    /// The session's key, in the form that the caller stores.
    pub key: &'a str,
    /// Keys of the agent's main session: its direct session in the terminal, and what the config names as main.
    pub main_keys: &'a [&'a str],
    /// True if a trusted host declares this the main session.
    pub host_says_main: bool,
    /// True if the owner works in it in the directory of a project, and the config does not sandbox such sessions.
    pub is_open_project: bool,
}

/// Whether the rules of the sandbox apply to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxScope {
    /// They apply.
    Sandboxed,
    /// They do not apply.
    Unsandboxed,
}

impl fmt::Display for SandboxScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Sandboxed => "sandboxed",
            Self::Unsandboxed => "not sandboxed",
        })
    }
}

impl SessionFacts<'_> {
    /// True if this is the owner's main session: its key is `main`, begins with `main:`, or is one of the agent's main
    /// keys, or the host declares it. All others, including direct chats, are not.
    pub fn is_main(&self) -> bool {
        self.key == "main"
            || self.key.starts_with("main:")
            || self.main_keys.contains(&self.key)
            || self.host_says_main
    }

    /// The scope of the session under `mode`.
    pub fn scope(&self, mode: SandboxMode) -> SandboxScope {
        match mode {
            SandboxMode::NonMain if !self.is_main() && !self.is_open_project => {
                SandboxScope::Sandboxed
            }
            SandboxMode::All => SandboxScope::Sandboxed,
            SandboxMode::NonMain | SandboxMode::Off => SandboxScope::Unsandboxed,
        }
    }
}

/// The rules for tools of a sandboxed session. A list of the config replaces the built-in one.
pub(crate) fn tool_rules(sandbox: &SandboxRules) -> ToolRules {
    let or_default = |list: &Option<Vec<String>>, default: &[&str]| -> Option<Vec<String>> {
        let default = || default.iter().map(|name| (*name).to_owned()).collect();
        Some(list.clone().unwrap_or_else(default))
    };
    ToolRules {
        profile: None,
        allow: or_default(&sandbox.allowlist, &DEFAULT_SANDBOX_ALLOWLIST),
        deny: or_default(&sandbox.denylist, &DEFAULT_SANDBOX_DENYLIST),
        ask: None,
    }
}

#[cfg(test)]
mod tests;
