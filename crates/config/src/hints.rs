//! What to write here for what people know from other programs.

use std::net::IpAddr;

use serde_json::{Map, Value};

use crate::config_path::ConfigPath;
use crate::suggest::plain;

const MCP: &str = "write it as `mcp: { servers: { NAME: { command: \"…\" } } }`, or run `myclaw mcp import`; docs/use/mcp.md";
const MCP_SERVER: &str = "write `mcp.servers.NAME.…`; docs/use/mcp.md";
const RULES: &str = "which tools may run is in `tools.allow`, `tools.deny` and `tools.ask`, and which commands in `tools.exec`; docs/operate/policy.md";
const SANDBOX: &str =
    "write it as `agents.defaults.sandbox: { mode: \"all\" }`; docs/operate/sandbox.md";
const MODEL: &str = "write it as `agents.defaults.model: \"provider/model\"`";
const KEYS: &str = "keep a key with `myclaw auth add PROVIDER`, or write `provider: { authProfiles: [{ id: \"main\", apiKey: \"${NAME}\" }] }`";
const TOKEN: &str = "the token of a channel is in its entry, such as `channels.telegram.botToken`, and that of the gateway in `gateway.token`; docs/use/config.md";
const ADDRESS: &str = "the address of a provider is `provider.baseUrl`, or `models.providers.NAME.baseUrl` for one of several";
const ENVIRONMENT: &str =
    "variables for MyClaw are in the file `.env` of its state directory; docs/use/config.md";
const INSTRUCTIONS: &str =
    "instructions are in AGENTS.md of the workspace or of the project; docs/use/workspace.md";
const SHELL: &str = "commands run with `bash`; what may run is in `tools.exec`";
const THINKING: &str = "write it as `agents.defaults.thinkingDefault: \"low\"`";
const PROVIDERS: &str = "write it as `models: { providers: { NAME: { … } } }`";
const PLUGINS: &str = "plugins are added with `myclaw packages add`; docs/use/packages.md";
const COMMANDS: &str = "commands of your own are files `commands/NAME.md`; docs/use/chat.md";
const PROFILE: &str = "put it into `authProfiles: [{ id: \"main\", apiKey: \"${NAME}\" }]`";
const CHANNEL: &str = "a channel runs if it is in the file; take it out to stop it";
const MATCH: &str = "did you mean `match`?";
const FALLBACKS: &str =
    "write it as `agents.defaults.model: { primary: \"provider/model\", fallbacks: [\"…\"] }`";
const LIMITS: &str = "what a message may cost is in `agents.defaults.limits`; docs/use/config.md";
const LOGGING: &str = "write it as `logging: { level: \"debug\" }`; docs/operate/logging.md";
const SPEECH: &str = "write it as `speech: { … }`; docs/use/speech.md";
const TIMES: &str = "times are `agents.defaults.limits.runSeconds` for a message, `models.timeouts` for a model, and `tools.bash.timeoutSeconds` for a command";
const DIRECTORY: &str = "`-C DIR` chooses the directory in which the tools work";
const TURNS: &str = "write it as `agents.defaults.maxIterations: 50`";
const ELSEWHERE: &str = "no part of MyClaw needs it; take it out";
const AGENT: &str = "an agent is an entry of `agents.list`, such as `{ id: \"main\" }`";
const GROUP: &str = "it belongs to a group: `groups: { \"*\": { requireMention: true } }`";
const SANDBOX_MODE: &str = "write `mode: \"all\"` or `mode: \"off\"`";

/// Keys of the whole file in other programs (Claude Code, OpenCode, Codex, OpenClaw, Goose), and what to do here.
const KEYS_ELSEWHERE: &[(&str, &str)] = &[
    ("mcpServers", MCP),
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
    ("apiKeyHelper", "keep the command with `myclaw auth add PROVIDER --command '…'`"),
    ("token", TOKEN),
    ("botToken", TOKEN),
    ("baseUrl", ADDRESS),
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
    ("fallback", FALLBACKS),
    ("fallbacks", FALLBACKS),
    ("fallbackModel", FALLBACKS),
    ("fallbackModels", FALLBACKS),
    ("approvalMode", RULES),
    ("autoApprove", RULES),
    ("autoApproval", RULES),
    ("alwaysAllow", RULES),
    ("yolo", RULES),
    ("allowlist", RULES),
    ("denylist", RULES),
    ("allow", RULES),
    ("deny", RULES),
    ("budget", LIMITS),
    ("limits", LIMITS),
    ("maxBudgetUsd", LIMITS),
    ("maxTurns", TURNS),
    ("maxIterations", TURNS),
    ("GOOSE_MAX_TURNS", TURNS),
    ("timeout", TIMES),
    ("timeouts", TIMES),
    ("log", LOGGING),
    ("logs", LOGGING),
    ("logLevel", LOGGING),
    ("debug", LOGGING),
    ("verbose", LOGGING),
    (
        "telemetry",
        "write it as `gateway: { telemetry: { endpoint: \"…\" } }`; docs/operate/gateway.md",
    ),
    ("otel", "write it as `gateway: { telemetry: { endpoint: \"…\" } }`; docs/operate/gateway.md"),
    ("timezone", "write it as `agents.defaults.userTimezone: \"Europe/Berlin\"`"),
    ("language", INSTRUCTIONS),
    ("proxy", "a proxy is named by `HTTPS_PROXY` in the environment; docs/use/config.md"),
    ("webSearch", "write it as `tools.web.search: { … }`; docs/use/web.md"),
    ("tts", SPEECH),
    ("talk", SPEECH),
    ("audio", "voice is in `speech` and `transcription`; docs/use/speech.md"),
    ("additionalDirectories", DIRECTORY),
    ("cwd", DIRECTORY),
    ("keybindings", "the keys of the chat cannot be changed yet"),
    ("cleanupPeriodDays", "`myclaw sessions prune` deletes old sessions"),
    ("subagents", "write it as `agents.defaults.subagents: { … }`"),
    ("wizard", ELSEWHERE),
    ("meta", ELSEWHERE),
    ("memory", "write it as `agents.defaults.memorySearch: { … }`; docs/use/memory.md"),
];

/// Keys of a section in other programs.
const KEYS_OF_SECTIONS: &[(&str, &str, &str)] = &[
    ("provider", "apiKey", PROFILE),
    ("provider", "key", PROFILE),
    ("provider", "token", PROFILE),
    ("provider", "id", "did you mean `name`?"),
    ("gateway", "auth", "did you mean `token`?"),
    ("gateway", "password", "did you mean `token`?"),
    ("auth", "profiles", KEYS),
    ("cron", "jobs", "jobs are no part of the config: `myclaw cron add` adds one"),
    ("models", "default", MODEL),
    ("models", "mode", ELSEWHERE),
    ("skills", "dirs", "did you mean `skills.load.extraDirs`?"),
    ("skills", "directories", "did you mean `skills.load.extraDirs`?"),
    ("skills", "paths", "did you mean `skills.load.extraDirs`?"),
    ("agents.defaults", "systemPrompt", INSTRUCTIONS),
    ("agents.defaults", "timeoutSeconds", "did you mean `limits.runSeconds`?"),
    ("agents.defaults", "fallbacks", FALLBACKS),
    ("agents.defaults.sandbox", "enabled", SANDBOX_MODE),
    (
        "agents.defaults.sandbox",
        "docker",
        "write it as `confinement: { level: \"docker\" }`; docs/operate/sandbox.md",
    ),
    ("agents.defaults.limits", "maxTurns", TURNS),
    ("hooks", "PreToolUse", "did you mean `tool_call`?"),
    ("hooks", "PostToolUse", "did you mean `tool_result`?"),
    ("hooks", "UserPromptSubmit", "did you mean `before_agent_start`?"),
    ("hooks", "SessionStart", "did you mean `before_agent_start`?"),
    ("hooks", "Stop", "did you mean `agent_end`?"),
    ("hooks", "beforeTool", "did you mean `tool_call`?"),
    ("hooks", "afterTool", "did you mean `tool_result`?"),
    ("hooks", "beforeToolCall", "did you mean `tool_call`?"),
    ("hooks", "afterToolCall", "did you mean `tool_result`?"),
    ("hooks", "PreCompact", "did you mean `before_session_compact`?"),
];

/// What to do about a key that is unknown at `path`, which ends with it.
pub(crate) fn for_key(path: &ConfigPath, key: &str) -> Option<&'static str> {
    let shown = path.to_string();
    let is_same = |other: &str| other == key || plain(other) == plain(key);
    match shown.rsplit_once('.') {
        None => KEYS_ELSEWHERE
            .iter()
            .find(|(other, _)| is_same(other))
            .map(|(_, advice)| *advice)
            .or_else(|| key.starts_with("mcp").then_some(MCP))
            .or_else(|| plain(key).ends_with("apikey").then_some(KEYS)),
        Some((section, _)) => KEYS_OF_SECTIONS
            .iter()
            .find(|(place, other, _)| *place == section && is_same(other))
            .map(|(_, _, advice)| *advice)
            .or_else(|| (key == "enabled" && section.starts_with("channels.")).then_some(CHANNEL))
            .or_else(|| (section.starts_with("hooks.") && key.starts_with("tool")).then_some(MATCH))
            .or_else(|| matches!(key, "mcpServers" | "mcp_servers" | "mcp").then_some(MCP))
            .or_else(|| for_mcp(section, key))
            .or_else(|| matches!(key, "permissions" | "allowedTools").then_some(RULES)),
    }
}

/// What other programs call a key, without case, `_` and `-`; and what it is called here, of which a section has one.
const SYNONYMS: [(&[&str], &[&str]); 25] = [
    (
        &["url", "uri", "endpoint", "apibase", "apiurl", "base", "host", "server"],
        &["baseUrl", "homeserverUrl", "host"],
    ),
    (&["token", "apitoken", "apikey", "key"], &["botToken", "accessToken", "apiKey"]),
    (&["nickname", "username", "botname"], &["nick"]),
    (&["jid", "email", "login"], &["address"]),
    (&["phone", "phonenumber", "number"], &["account"]),
    (
        &[
            "allowedusers",
            "allowedids",
            "allowedsenders",
            "whitelist",
            "users",
            "authorizedusers",
            "allowlist",
        ],
        &["allowFrom", "allow"],
    ),
    (&["allowed", "enabled", "include", "permit", "permitted"], &["allow"]),
    (
        &[
            "denied",
            "blocked",
            "denylist",
            "blacklist",
            "blocklist",
            "disallowed",
            "disabled",
            "exclude",
            "forbidden",
        ],
        &["deny"],
    ),
    (&["confirm", "requireapproval", "approve"], &["ask"]),
    (&["host", "hostname", "address", "listen", "interface", "ip"], &["bind"]),
    (&["ssl", "https", "certificate", "cert"], &["tls"]),
    (
        &[
            "contextlength",
            "contextsize",
            "contexttokens",
            "context",
            "maxcontext",
            "maxinputtokens",
            "window",
        ],
        &["contextWindow"],
    ),
    (&["maxtokens", "maxoutputtokens", "maxcompletiontokens", "outputtokens"], &["maxOutput"]),
    (&["name", "model"], &["id"]),
    (&["effort", "reasoningeffort", "reasoning", "thinkinglevel"], &["thinkingDefault"]),
    (&["cwd", "dir", "directory", "folder", "path", "root", "workdir"], &["workspace"]),
    (&["default", "main", "model"], &["primary"]),
    (&["interval"], &["every"]),
    (&["color", "colors", "colour", "colours", "palette"], &["theme"]),
    (&["depth", "maxdepth"], &["maxSpawnDepth"]),
    (&["timezone", "tz"], &["userTimezone"]),
    (&["streaming", "stream", "streammode", "draft"], &["preview"]),
    (&["budget", "maxcost", "costlimit", "maxbudget", "maxusd"], &["runCost"]),
    (&["shell", "terminal"], &["bash"]),
    (&["files", "filesystem"], &["fs"]),
];

/// The key of this section that other programs call `key`.
pub(crate) fn synonym<'k>(key: &str, known: &'k Map<String, Value>) -> Option<&'k str> {
    let key = plain(key);
    let meant = SYNONYMS.iter().filter(|(names, _)| names.contains(&key.as_str()));
    let mut meant = meant.flat_map(|(_, here)| *here);
    meant.find_map(|name| known.get_key_value(*name).map(|(name, _)| name.as_str()))
}

/// What to do about a key with this value at `path`, which is like no other.
pub(crate) fn for_entry(path: &ConfigPath, key: &str, value: &Value) -> Option<&'static str> {
    let shown = path.to_string();
    let (section, _) = shown.rsplit_once('.')?;
    match section {
        "agents" if value.is_object() => Some(AGENT),
        "models" if value.is_object() => Some(PROVIDERS),
        "tools" if plain(key).starts_with("web") => Some("did you mean `web`?"),
        _ if section.starts_with("channels.") && key == "requireMention" => Some(GROUP),
        _ if section.starts_with("bindings[") => Some("write it within `match: { … }`"),
        _ => None,
    }
}

/// What other programs call the keys of a server.
fn for_mcp(section: &str, key: &str) -> Option<&'static str> {
    if section == "mcp" {
        return Some(MCP_SERVER);
    }
    section.contains("mcp.servers.").then_some(())?;
    Some(match key {
        "type" | "transport" => {
            "leave it out: a server is a program, `command`, or an address, `url`"
        }
        "httpUrl" | "serverUrl" | "uri" => "did you mean `url`?",
        "http_headers" | "requestInit" => "did you mean `headers`?",
        "bearer_token_env_var" => "write it as `headers: { Authorization: \"Bearer ${NAME}\" }`",
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
    properties: &'s Map<String, Value>,
    allowed: impl Fn(&'s Value) -> Vec<String>,
    value: &Value,
) -> Option<String> {
    if let Value::Bool(value) = value {
        let mode = if *value { "all" } else { "off" };
        let modes = properties.get("mode").map(&allowed).unwrap_or_default();
        return match properties.contains_key("enabled") {
            true => Some(format!("write `{{ enabled: {value} }}`")),
            false if modes.iter().any(|known| known == mode) => {
                Some(format!("write `{{ mode: \"{mode}\" }}`"))
            }
            false => None,
        };
    }
    if value.is_array() {
        return properties
            .contains_key("fallbacks")
            .then(|| "write `{ primary: \"…\", fallbacks: [\"…\"] }`".to_owned());
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
