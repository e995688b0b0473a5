//! What to write here for what people know from other programs.

use std::net::IpAddr;

use serde_json::Value;

use crate::config_path::ConfigPath;

const MCP: &str = "write it as `mcp: { servers: { NAME: { command: \"…\" } } }`, or run `myclaw mcp import`; docs/use/mcp.md";
const MCP_ADDRESS: &str = "servers with an address are not supported yet; a program such as `npx mcp-remote` connects to them";
const MCP_SERVER: &str = "write `mcp.servers.NAME.…`; docs/use/mcp.md";
const RULES: &str = "which tools may run is in `tools.allow`, `tools.deny` and `tools.ask`, and which commands in `tools.exec`; docs/operate/policy.md";
const SANDBOX: &str =
    "write it as `agents.defaults.sandbox: { mode: \"all\" }`; docs/operate/sandbox.md";
const MODEL: &str = "write it as `agents.defaults.model: \"provider/model\"`";
const KEYS: &str = "keep a key with `myclaw auth add PROVIDER`, or write `provider: { authProfiles: [{ id: \"main\", apiKey: \"${NAME}\" }] }`";
const ADDRESS: &str = "the address of a provider is `provider.baseUrl`, or `models.providers.NAME.baseUrl` for one of several";
const ENVIRONMENT: &str =
    "variables for MyClaw are in the file `.env` of its state directory; docs/use/config.md";
const INSTRUCTIONS: &str =
    "instructions are in AGENTS.md of the workspace or of the project; docs/use/workspace.md";
const SHELL: &str = "commands run with `bash`; what may run is in `tools.exec`";
const THINKING: &str = "write it as `agents.defaults.thinkingDefault: \"low\"`";
const PROVIDERS: &str = "write it as `models: { providers: { NAME: { … } } }`";
const PLUGINS: &str =
    "there are no plugins; tools of your own are skills with scripts, docs/use/skills.md";
const COMMANDS: &str = "commands of your own are files `commands/NAME.md`; docs/use/chat.md";
const PROFILE: &str = "put it into `authProfiles: [{ id: \"main\", apiKey: \"${NAME}\" }]`";
const CHANNEL: &str = "a channel runs if it is in the file; take it out to stop it";
const MATCH: &str = "did you mean `match`?";

/// Keys of the whole file in other programs (Claude Code, OpenCode, Codex, OpenClaw, Goose), and what to do here.
const KEYS_ELSEWHERE: [(&str, &str); 65] = [
    ("mcpServers", MCP),
    ("mcp_servers", MCP),
    ("enableAllProjectMcpServers", MCP),
    ("enabledMcpjsonServers", MCP),
    ("extensions", MCP),
    ("permissions", RULES),
    ("permission", RULES),
    ("permissionMode", RULES),
    ("allowedTools", RULES),
    ("disallowedTools", RULES),
    ("approval_policy", RULES),
    (
        "approvals",
        "how long a question waits is `tools.approvals.timeoutSeconds`; docs/operate/policy.md",
    ),
    ("GOOSE_MODE", RULES),
    ("shell", SHELL),
    ("sandbox", SANDBOX),
    ("sandbox_mode", SANDBOX),
    ("sandbox_workspace_write", SANDBOX),
    ("model", MODEL),
    ("small_model", MODEL),
    ("smallModel", MODEL),
    ("defaultModel", MODEL),
    ("GOOSE_MODEL", MODEL),
    ("GOOSE_PROVIDER", MODEL),
    ("model_provider", MODEL),
    ("providers", PROVIDERS),
    ("model_providers", PROVIDERS),
    ("profiles", "several agents are entries of `agents.list`"),
    ("model_reasoning_effort", THINKING),
    ("reasoningEffort", THINKING),
    ("thinking", THINKING),
    ("alwaysThinkingEnabled", THINKING),
    ("apiKey", KEYS),
    ("api_key", KEYS),
    ("apiKeyHelper", "keep the command with `myclaw auth add PROVIDER --command '…'`"),
    ("baseUrl", ADDRESS),
    ("base_url", ADDRESS),
    ("env", ENVIRONMENT),
    ("environment", ENVIRONMENT),
    ("shell_environment_policy", ENVIRONMENT),
    ("instructions", INSTRUCTIONS),
    ("systemPrompt", INSTRUCTIONS),
    ("developer_instructions", INSTRUCTIONS),
    (
        "project_doc_max_bytes",
        "files of a project are read up to 50,000 characters each; docs/use/projects.md",
    ),
    ("identity", "write it as `agents.defaults.identity: { … }`"),
    ("routing", "which agent answers where is in `bindings`; docs/channels/sessions.md"),
    ("telegram", "write it as `channels: { telegram: { … } }`"),
    ("discord", "write it as `channels: { discord: { … } }`"),
    ("slack", "write it as `channels: { slack: { … } }`"),
    ("whatsapp", "write it as `channels: { whatsapp: { … } }`"),
    ("signal", "write it as `channels: { signal: { … } }`"),
    ("matrix", "write it as `channels: { matrix: { … } }`"),
    ("heartbeat", "write it as `agents.defaults.heartbeat: { every: \"30m\" }`"),
    ("workspace", "write it as `agents.defaults.workspace: \"~/agent\"`"),
    (
        "session",
        "which direct messages share a session is `channels.dmScope`; docs/channels/sessions.md",
    ),
    ("theme", "write it as `terminal.theme: \"dark\"`"),
    ("tui", "the look of the chat is in `terminal`"),
    ("browser", "write it as `tools.browser: { … }`"),
    ("plugins", PLUGINS),
    ("plugin", PLUGINS),
    ("enabledPlugins", PLUGINS),
    ("command", COMMANDS),
    ("commands", COMMANDS),
    ("notify", "write it as a hook `hooks.agent_end`; docs/operate/hooks.md"),
    ("statusLine", "the status line cannot be changed yet"),
    ("memory", "write it as `agents.defaults.memorySearch: { … }`; docs/use/workspace.md"),
];

/// Keys of a section in other programs.
const KEYS_OF_SECTIONS: [(&str, &str, &str); 14] = [
    ("provider", "apiKey", PROFILE),
    ("provider", "api_key", PROFILE),
    ("provider", "key", PROFILE),
    ("provider", "token", PROFILE),
    ("provider", "url", "did you mean `baseUrl`?"),
    ("provider", "id", "did you mean `name`?"),
    ("gateway", "auth", "did you mean `token`?"),
    ("gateway", "password", "did you mean `token`?"),
    ("hooks", "PreToolUse", "did you mean `tool_call`?"),
    ("hooks", "PostToolUse", "did you mean `tool_result`?"),
    ("hooks", "UserPromptSubmit", "did you mean `before_agent_start`?"),
    ("hooks", "SessionStart", "did you mean `before_agent_start`?"),
    ("hooks", "Stop", "did you mean `agent_end`?"),
    ("hooks", "PreCompact", "did you mean `before_session_compact`?"),
];

/// What to do about a key that is unknown at `path`, which ends with it.
pub(crate) fn for_key(path: &ConfigPath, key: &str) -> Option<&'static str> {
    let shown = path.to_string();
    match shown.rsplit_once('.') {
        None => KEYS_ELSEWHERE
            .iter()
            .find(|(other, _)| *other == key)
            .map(|(_, advice)| *advice)
            .or_else(|| key.starts_with("mcp").then_some(MCP)),
        Some((section, _)) => KEYS_OF_SECTIONS
            .iter()
            .find(|(place, other, _)| *place == section && *other == key)
            .map(|(_, _, advice)| *advice)
            .or_else(|| (key == "enabled" && section.starts_with("channels.")).then_some(CHANNEL))
            .or_else(|| (section.starts_with("hooks.") && key.starts_with("tool")).then_some(MATCH))
            .or_else(|| matches!(key, "mcpServers" | "mcp_servers" | "mcp").then_some(MCP))
            .or_else(|| for_mcp(section, key))
            .or_else(|| matches!(key, "permissions" | "allowedTools").then_some(RULES)),
    }
}

/// What other programs call the keys of a server.
fn for_mcp(section: &str, key: &str) -> Option<&'static str> {
    if section == "mcp" {
        return Some(MCP_SERVER);
    }
    section.contains("mcp.servers.").then_some(())?;
    Some(match key {
        "type" | "transport" => "leave it out: a server is a program, `command`",
        "url"
        | "httpUrl"
        | "serverUrl"
        | "uri"
        | "headers"
        | "http_headers"
        | "auth"
        | "bearer_token_env_var" => MCP_ADDRESS,
        "cmd" => "did you mean `command`?",
        "environment" | "envs" | "env_vars" => "did you mean `env`?",
        "workingDirectory" | "working_directory" | "dir" => "did you mean `cwd`?",
        "timeout" | "timeout_ms" | "startup_timeout_sec" | "tool_timeout_sec" => {
            "write it in seconds, as `timeoutSeconds`"
        }
        "disabled" => "write it as `enabled: false`",
        "alwaysAllow" | "autoApprove" => RULES,
        "enabledTools" | "enabled_tools" | "includeTools" => "write it as `tools: { allow: […] }`",
        "disabledTools" | "disabled_tools" | "excludeTools" => "write it as `tools: { deny: […] }`",
        _ => return None,
    })
}

/// The keys of this section that hold `key` as one of their words, as `botToken` holds `token`; none if there are more
/// than two.
pub(crate) fn longer_keys<'k>(key: &str, known: impl Iterator<Item = &'k str>) -> Vec<&'k str> {
    let words = |name: &str| -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        for char in name.chars() {
            match words.last_mut() {
                Some(word) if char.is_lowercase() || char.is_ascii_digit() => word.push(char),
                _ if char.is_alphanumeric() => words.push(char.to_lowercase().collect()),
                _ => words.push(String::new()),
            }
        }
        words
    };
    let wanted = words(key);
    if wanted.is_empty() {
        return Vec::new();
    }
    let is_longer = |name: &&str| {
        let own = words(name);
        own.len() > wanted.len() && own.windows(wanted.len()).any(|part| part == wanted)
    };
    let longer: Vec<_> = known.filter(is_longer).collect();
    if longer.len() > 2 { Vec::new() } else { longer }
}

/// How to write the address that `text` means. Only what cannot be a secret is repeated.
pub(crate) fn for_address(text: &str) -> Option<String> {
    let text = text.trim();
    if text.contains("://") || text.is_empty() {
        return None;
    }
    let is_address_character = |char: char| {
        char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | ':' | '/' | '[' | ']' | '_')
    };
    let authority = text.split('/').next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok());
    let is_local = host == "localhost" || host.parse::<IpAddr>().is_ok();
    if text.chars().all(is_address_character) && (is_local || is_port && !host.is_empty()) {
        return Some(format!("write `http://{text}`"));
    }
    Some("begin it with `https://`, or `http://` for a server without encryption".to_owned())
}

/// How to write an object for which a single value was written, such as `{ every: "30m" }` for `"30m"`. `properties` are those of
/// the object. Only words of the schema and spans of time are repeated.
pub(crate) fn for_object<'s>(
    properties: &'s serde_json::Map<String, Value>,
    allowed: impl Fn(&'s Value) -> Vec<String>,
    value: &Value,
) -> Option<String> {
    if let Value::Bool(value) = value {
        return properties
            .contains_key("enabled")
            .then(|| format!("write `{{ enabled: {value} }}`"));
    }
    let text = value.as_str()?;
    let is_span = !text.is_empty()
        && text.trim_end_matches(['s', 'm', 'h', 'd']).bytes().all(|byte| byte.is_ascii_digit());
    let by_word =
        properties.iter().find(|(_, schema)| allowed(schema).iter().any(|word| word == text));
    if let Some((key, _)) = by_word {
        return Some(format!("write `{{ {key}: \"{text}\" }}`"));
    }
    let key =
        ["every", "id", "name", "primary", "path", "url", "baseUrl", "host", "command", "mode"]
            .into_iter()
            .find(|key| properties.contains_key(*key))?;
    let shown = if key == "every" && is_span { text } else { "…" };
    Some(format!("write `{{ {key}: \"{shown}\" }}`"))
}

#[cfg(test)]
mod tests;
