//! Names of tools, groups and profiles.

use myclaw_config::{ToolProfile, is_mcp_server_name};

/// Other names of a tool, on the left, as models and other programs call it.
const ALIASES: [(&str, &str); 8] = [
    ("bash", "exec"),
    ("apply-patch", "apply_patch"),
    ("webfetch", "web_fetch"),
    ("web-fetch", "web_fetch"),
    ("websearch", "web_search"),
    ("web-search", "web_search"),
    ("agent-browser", "browser"),
    ("send_message", "message"),
];

/// The group of the tools of all MCP servers.
pub(crate) const MCP_GROUP: &str = "group:mcp";
/// The tool that finds those of MCP servers. It does nothing by itself: a call through it is judged as one of the tool that it
/// names.
pub(crate) const MCP_FINDER: &str = "mcp__tools";
/// The tool that runs scripts which call those of MCP servers. Each call is judged as one of the tool that it names; the
/// script itself runs in a sandbox.
pub(crate) const MCP_SCRIPT: &str = "mcp__script";

/// The server of a tool `server__tool`; `None` for all other tools.
pub fn mcp_server_of(name: &str) -> Option<&str> {
    let (server, tool) = name.split_once("__")?;
    (is_mcp_server_name(server) && !tool.is_empty()).then_some(server)
}

/// The servers that an entry means: `mcp` and `group:mcp` all of them (`Some(None)`), `mcp:NAME` one.
pub(crate) fn mcp_group(entry: &str) -> Option<Option<&str>> {
    let entry = entry.strip_prefix("group:").unwrap_or(entry);
    match entry.strip_prefix("mcp")? {
        "" => Some(None),
        rest => rest.strip_prefix(':').filter(|name| is_mcp_server_name(name)).map(Some),
    }
}

/// Groups and their members. `group:fs` has the search tools as well: they read files.
const GROUPS: [(&str, &[&str]); 11] = [
    ("group:fs", &["read", "write", "edit", "apply_patch", "grep", "find", "ls"]),
    ("group:runtime", &["exec", "process"]),
    ("group:web", &["web_search", "web_fetch"]),
    ("group:ui", &["browser", "canvas"]),
    ("group:sessions", &SESSION_TOOLS),
    ("group:memory", &["memory_search", "memory_get", "memory_write"]),
    ("group:automation", &["cron", "gateway"]),
    ("group:messaging", &["message", "send_voice"]),
    ("group:nodes", &["nodes"]),
    // Its tools are known by their names.
    (MCP_GROUP, &[]),
    ("group:myclaw", &KNOWN),
];

const SESSION_TOOLS: [&str; 7] = [
    "sessions_list",
    "sessions_history",
    "sessions_send",
    "sessions_spawn",
    "session_status",
    "subagents",
    "agents_list",
];

/// Canonical names of the tools that come with MyClaw, including those that need a gateway or a container.
const KNOWN: [&str; 33] = [
    "read",
    "write",
    "edit",
    "apply_patch",
    "grep",
    "find",
    "ls",
    "exec",
    "process",
    "web_search",
    "web_fetch",
    "browser",
    "canvas",
    "nodes",
    "cron",
    "gateway",
    "message",
    "image",
    "image_generate",
    "sessions_list",
    "sessions_history",
    "sessions_send",
    "sessions_spawn",
    "session_status",
    "subagents",
    "agents_list",
    "memory_search",
    "memory_get",
    "memory_write",
    "ask_boss",
    "send_voice",
    "run_workflow",
    "update_plan",
];

/// The name that rules are compared with: lower case, without surrounding spaces, and one name for tools that have
/// several (`bash` is `exec`).
pub fn canonical_tool_name(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    match ALIASES.iter().find(|(alias, _)| *alias == name) {
        Some((_, canonical)) => (*canonical).to_owned(),
        None => name,
    }
}

/// Canonical names of all tools that come with MyClaw.
pub fn known_tools() -> &'static [&'static str] {
    &KNOWN
}

/// The tools of a group such as `group:fs`; `None` for a name that is no group.
pub fn group_members(group: &str) -> Option<&'static [&'static str]> {
    let group = group.trim().to_ascii_lowercase();
    GROUPS.iter().find(|(name, _)| *name == group).map(|(_, members)| *members)
}

/// Names of all groups.
pub fn group_names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|(name, _)| *name)
}

/// Names of tools in other programs, and what does the same here.
const ELSEWHERE: [(&str, &str); 24] = [
    ("shell", "bash"),
    ("local_shell", "bash"),
    ("terminal", "bash"),
    ("run_shell_command", "bash"),
    ("execute_command", "bash"),
    ("developer__shell", "bash"),
    ("bashoutput", "process"),
    ("killshell", "process"),
    ("glob", "find"),
    ("list", "ls"),
    ("search", "grep"),
    ("view", "read"),
    ("cat", "read"),
    ("multiedit", "edit"),
    ("str_replace", "edit"),
    ("str_replace_editor", "edit"),
    ("patch", "apply_patch"),
    ("task", "sessions_spawn"),
    ("todowrite", "update_plan"),
    ("todo", "update_plan"),
    ("fetch", "web_fetch"),
    ("schedule", "cron"),
    ("remember", "memory_write"),
    ("save_memory", "memory_write"),
];

/// The tool that does here what one of this name does in another program.
pub(crate) fn meant_tool(name: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(other, _)| *other == name).map(|(_, own)| *own)
}

/// Other names of tools, for suggestions.
pub fn alias_names() -> impl Iterator<Item = &'static str> {
    ALIASES.iter().map(|(alias, _)| *alias)
}

/// The tools and groups of a profile; `None` for [`ToolProfile::Full`], which sets no limit.
pub fn profile_members(profile: ToolProfile) -> Option<&'static [&'static str]> {
    match profile {
        ToolProfile::Minimal => Some(&["session_status"]),
        ToolProfile::Coding => Some(&[
            "group:fs",
            "group:runtime",
            "group:sessions",
            "group:memory",
            "image",
            "update_plan",
            MCP_GROUP,
        ]),
        ToolProfile::Messaging => Some(&[
            "group:messaging",
            "sessions_list",
            "sessions_history",
            "sessions_send",
            "session_status",
        ]),
        ToolProfile::Full => None,
        ToolProfile::Myclaw => Some(&["group:fs", "exec"]),
        ToolProfile::Pi => Some(&["read", "exec", "edit", "write"]),
    }
}

#[cfg(test)]
mod tests;
