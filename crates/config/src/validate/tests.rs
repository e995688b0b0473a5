use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

use super::*;
use crate::strict::{Misfit, typed};

static SCHEMA: LazyLock<Value> = LazyLock::new(crate::json_schema);

/// Every key of the schema with a valid value.
fn full() -> Value {
    json!({
        "$schema": "./schema.json",
        "format": 1,
        "provider": {
            "name": "anthropic", "model": "m", "baseUrl": "https://example.com/v1",
            "authProfiles": [{ "id": "a", "apiKey": "one" }, { "id": "b", "apiKey": "two" }],
        },
        "agent": { "workspaceDir": "~/w", "maxIterations": 3, "maxRetries": 0, "maxToolResultChars": 10 },
        "agents": agents(),
        "channels": channels(),
        "bindings": [
            { "agentId": "main", "match": { "channel": "telegram", "account": "other", "peer": 1 } },
            { "agentId": "main", "match": { "channel": "webhook", "group": "x" } },
        ],
        "host": { "options": ["--model-socket"], "bindings": [
            { "folder": "family", "match": { "channel": "telegram", "group": -5 } },
            { "folder": "ann", "match": { "channel": "telegram", "account": "other", "peer": 1 } },
        ] },
        "messages": { "queue": { "mode": "steer-backlog", "debounceMs": 0, "cap": 1, "drop": "new" },
            "responsePrefix": "auto", "ackReaction": "x", "ackReactionScope": "all" },
        "gateway": {
            "port": 1, "token": "t", "store": "postgresql://c:c@localhost/c", "blobs": "s3://b/p", "tenant": "t_1", "node": "n", "bind": "lan", "tls": { "cert": "~/c.pem", "key": "k.pem" }, "protectedLink": true,
            "trustedProxies": ["127.0.0.1", "10.0.0.0/8"], "allowedHosts": ["claw.example.org"],
            "allowedOrigins": ["https://home.example.org"],
            "telemetry": { "endpoint": "http://localhost:4318", "headers": { "mine": "k" }, "serviceName": "claw" },
        },
        "node": { "commands": node_commands(), "location": "home" },
        "cron": { "enabled": false, "maxJobs": 10_000 },
        "logging": { "file": true, "level": "warn", "redactSensitive": false },
        "mcp": mcp(),
        "terminal": {
            "theme": "dark", "statusLine": ["model", "session"], "statusCommand": "date", "keys": "vi",
            "bindings": {
                "unfold": "f1", "thinking": "f2", "mode": "alt-m", "editor": "ctrl-e", "picture": "alt-p",
                "suspend": "f12", "newline": "alt-n",
            },
            "notifications": "off", "longTurnSeconds": 60,
        },
        "tools": tool_section(),
        "skills": { "load": { "extraDirs": ["~/skills"] }, "entries": { "mine": { "enabled": false } } },
        "auth": { "cooldowns": {
            "firstSeconds": 60, "factor": 5, "longestSeconds": 3600, "billingFirstSeconds": 18_000,
            "billingLongestSeconds": 86_400, "forgetAfterSeconds": 86_400,
        } },
        "hooks": hooks(),
        "memory": { "learn": false, "share": true },
        "packages": { "registry": "https://h", "disabled": ["x"] },
        "sideFiles": { "sessionMb": 1, "totalMb": 1 },
        "project": { "detect": false, "markers": [".git", "x"], "start": "continue", "instructions": false, "sandbox": true },
        "speech": {
            "command": "espeak-ng --stdout", "baseUrl": "https://h/v1", "apiKey": "k", "model": "m", "voice": "v",
            "maxChars": 1, "maxMb": 100, "timeoutSeconds": 600,
        },
        "transcription": {
            "command": ["listen"], "baseUrl": "https://h/v1", "apiKey": "k", "model": "m", "language": "de",
            "maxMb": 1, "maxSeconds": 14_400, "timeoutSeconds": 1,
        },
        "models": models(),
    })
}

fn agents() -> Value {
    json!({
        "defaults": {
            "workspace": "/w", "model": { "primary": "p/m", "fallbacks": ["p/n"] }, "models": ["p/*"], "imageModel": "p/v", "imageGenerationModel": "p/w",
            "userTimezone": "UTC", "thinkingDefault": "low", "maxIterations": "unlimited",
            "compaction": { "reserveTokens": 1, "keepMessages": 1, "maxResultChars": 1 }, "contextPruning": "cache-ttl",
            "limits": {
                "runSeconds": 0, "runTokens": 1, "runCost": 0.5, "dayTokens": 2, "dayCost": 0, "repeatedCalls": 3,
            },
            "steeringMode": "one-at-a-time", "followUpMode": "all",
            "lanes": { "main": 1, "cron": 2, "subagent": 3, "nested": 1000 },
            "heartbeat": heartbeat(), "subagents": subagents(),
            "identity": identity(), "groupChat": group_chat(), "humanDelay": human_delay(),
            "memorySearch": memory_search(), "tools": agent_tools(),
            "sandbox": { "mode": "all", "allowlist": [], "denylist": ["read"], "exec": exec(), "confinement": confinement() },
        },
        "list": [{
            "id": "main", "default": true, "name": "Claw", "workspace": "/x", "agentDir": "/d",
            "model": { "primary": "p/m", "fallbacks": ["p/n"] }, "thinking": "xhigh", "maxIterations": 0,
            "limits": {
                "runSeconds": 1, "runTokens": 0, "runCost": 0, "dayTokens": 1, "dayCost": 1.5, "repeatedCalls": 0,
            },
            "identity": identity(), "groupChat": group_chat(), "humanDelay": human_delay(),
            "heartbeat": heartbeat(), "subagents": subagents(), "steeringMode": "all", "followUpMode": "one-at-a-time",
            "memorySearch": memory_search(), "tools": agent_tools(),
            "sandbox": { "mode": "off", "allowlist": [], "denylist": [], "confinement": confinement() },
            "mcp": mcp(),
        }],
    })
}

/// Every key, though no config has an interval in both forms.
fn subagents() -> Value {
    json!({
        "allowAgents": ["*"], "model": "a/b", "models": ["a/*"], "thinking": "low", "maxSpawnDepth": 2,
        "maxChildrenPerAgent": 3, "runTimeoutSeconds": 60,
    })
}

fn identity() -> Value {
    json!({ "name": "Claw", "theme": "calm", "emoji": "x" })
}

fn group_chat() -> Value {
    json!({ "mentionPatterns": ["@?claw"], "historyLimit": 200 })
}

fn human_delay() -> Value {
    json!({ "mode": "custom", "minMs": 0, "maxMs": 60_000 })
}

fn mcp() -> Value {
    json!({ "codeMode": true, "servers": { "mine": {
        "command": "npx", "args": ["-y", "x"], "env": { "mine": "t" }, "cwd": "~", "enabled": true, "timeoutSeconds": 9, "idleSeconds": 9,
        "url": "https://x.example/mcp", "headers": { "mine": "t" },
        "auth": { "clientId": "i", "clientSecret": "s", "clientMetadataUrl": "https://x/c.json", "scope": "a b", "port": 1 },
        "tools": { "allow": ["read_*"], "deny": ["read_all"] },
        "sandbox": {
            "enabled": true, "network": "allowlist", "allowHosts": ["x.example"], "readOnly": ["~/a"], "readWrite": ["~/b"],
            "limits": confinement()["limits"],
        },
    } } })
}

fn memory_search() -> Value {
    json!({ "enabled": true, "extraPaths": ["~/n"], "maxResults": 50, "minScore": 0.5, "weights": "/m" })
}

fn heartbeat() -> Value {
    json!({
        "enabled": true, "every": "30m", "intervalMinutes": 0, "target": "last", "session": "own", "tools": ["read"],
        "activeHours": { "start": "08:00", "end": "22:00", "timezone": "UTC" },
    })
}

fn tool_section() -> Value {
    json!({
        "profile": "pi", "allow": ["*"], "deny": [], "ask": ["write"], "exec": exec(),
        "byProvider": { "mine": tools() }, "bySender": { "mine": tools() }, "byChannel": { "mine": tools() }, "approvals": { "timeoutSeconds": 1, "owners": ["telegram:1"], "sendTo": "telegram:1" },
        "fs": { "workspaceOnly": true, "stateDirectories": ["x"] },
        "bash": { "timeoutSeconds": 86_400, "yieldMs": 600_000, "stateDirectory": "open" },
        "diagnostics": { "enabled": false, "waitMs": 100, "idleMinutes": 1, "memoryMb": 100, "trustedProjects": ["~/p"] },
        "sessions": {"main": "all", "others": "self", "maxHops": 3},
        "message": {"otherChats": "main"},
        "browser": {
            "enabled": true, "program": "/b", "executablePath": "/c", "timeoutSeconds": 1, "idleMinutes": 1,
        },
        "web": {
            "fetch": {
                "enabled": false, "allowPrivate": true, "allowHosts": ["localhost:8080"], "maxChars": 500,
                "timeoutSeconds": 600,
            },
            "search": {
                "provider": "brave", "apiKey": "k", "baseUrl": "https://h", "maxResults": 20, "timeoutSeconds": 1,
            },
        },
    })
}

fn node_commands() -> Value {
    json!({
        "notify": "cat", "cameraSnap": ["cat"], "cameraList": "cat", "cameraClip": "cat", "screenRecord": "cat",
        "screenshot": "cat",
    })
}

fn hooks() -> Value {
    json!({
        "before_agent_start": [{ "command": "cat", "timeoutSeconds": 1 }],
        "context": [{ "command": ["cat"], "timeoutSeconds": 3_600 }],
        "tool_call": [{ "command": ["cat", ""], "timeoutSeconds": 10, "match": ["bash", "mcp_*"] }],
        "tool_result": [{ "command": "cat", "timeoutSeconds": 10, "match": ["*"] }],
        "before_session_compact": [{ "command": "cat", "timeoutSeconds": 10 }],
        "session_compact": [{ "command": "cat", "timeoutSeconds": 10 }],
        "agent_end": [{ "command": "cat", "timeoutSeconds": 10 }],
    })
}

fn models() -> Value {
    json!({
        "favorites": ["p/m"],
        "timeouts": { "connectSeconds": 1, "firstEventSeconds": 2, "betweenEventsSeconds": 3 },
        "attribution": { "enabled": false, "url": "https://h", "title": "t" },
        "providers": { "mine": {
            "baseUrl": "http://127.0.0.1:8080", "apiKey": "k", "api": "openai-completions",
            "headers": { "mine": "secret" }, "compat": compat(),
            "models": [{
                "api": "bedrock-converse", "compat": compat(), "thinkingForm": "adaptive",
                "thinkingLevels": {
                    "off": "o", "minimal": "i", "low": "l", "medium": "m", "high": "h", "xhigh": "x",
                },
                "id": "m", "contextWindow": 1, "maxOutput": 1, "reasoning": true, "input": ["text", "image"],
                "price": { "input": 0, "output": 1.5, "cacheRead": 0, "cacheWrite": 0 },
            }],
        } },
    })
}

fn channels() -> Value {
    json!({
        "dmScope": "per-peer", "identityLinks": { "mine": ["telegram:1", "email:a@h"] },
        "telegram": {
            "historyLimit": 1, "dmHistoryLimit": 1, "botToken": "t", "allowedChatIds": [-5, "@me"], "tools": tools(),
            "baseUrl": "https://h", "webhookUrl": "https://h/x", "dmPolicy": "open", "allowFrom": [1, "@me"],
            "groupPolicy": "disabled", "groups": { "mine": { "requireMention": false, "allowFrom": [] } },
            "uncertain": "again", "preview": false, "mediaMaxMb": 20,
            "accounts": { "mine": { "botToken": "u", "webhookUrl": "https://h/y" } },
        },
        "matrix": {
            "historyLimit": 1, "dmHistoryLimit": 1, "homeserverUrl": "https://h", "accessToken": "t", "tools": tools(),
            "dmPolicy": "open", "allowFrom": ["@me:h"], "groupPolicy": "disabled",
            "groups": { "mine": { "requireMention": false, "allowFrom": [] } },
            "autoJoin": false, "preview": false, "mediaMaxMb": 20,
        },
        "email": {
            "address": "a@h", "displayName": "A", "user": "u", "password": "p", "accessToken": "t",
            "imap": { "host": "h", "port": 1, "security": "tls" }, "smtp": { "host": "h", "port": 1, "security": "none" },
            "mailbox": "M", "senderCheck": "none", "authservId": "h", "sessionPer": "thread", "uncertain": "again",
            "mediaMaxMb": 20, "dmPolicy": "open", "allowFrom": ["b@h"], "dmHistoryLimit": 1, "tools": tools(),
        },
        "whatsapp": {
            "historyLimit": 1, "dmHistoryLimit": 1, "phoneNumberId": "1", "accessToken": "t", "tools": tools(),
            "appSecret": "s", "verifyToken": "v", "baseUrl": "https://h", "apiVersion": "v26.0", "uncertain": "again",
            "dmPolicy": "open", "allowFrom": [1], "groupPolicy": "disabled", "mediaMaxMb": 20,
            "groups": { "mine": { "requireMention": false, "allowFrom": [] } },
            "template": { "name": "n", "language": "en_US" }, "accounts": { "mine": { "phoneNumberId": "2" } },
        },
        "signal": {
            "historyLimit": 1, "dmHistoryLimit": 1, "account": "+1", "baseUrl": "http://h", "tools": tools(),
            "dmPolicy": "open", "allowFrom": ["+2"], "groupPolicy": "disabled", "mediaMaxMb": 20,
            "groups": { "mine": { "requireMention": false, "allowFrom": [] } }, "uncertain": "again",
        },
        "irc": {
            "host": "h", "port": 1, "tls": true, "nick": "n", "sasl": { "user": "u", "password": "p" }, "serverPassword": "p",
            "uncertain": "again", "dmPolicy": "open", "allowFrom": ["ann"], "groupPolicy": "disabled",
            "groups": { "mine": { "requireMention": false, "allowFrom": [] } }, "historyLimit": 1, "dmHistoryLimit": 1,
            "tools": tools(),
        },
        "xmpp": {
            "historyLimit": 1, "dmHistoryLimit": 1, "address": "a@h", "password": "p", "host": "h", "port": 1,
            "security": "tls", "nick": "n", "mediaMaxMb": 20, "tools": tools(),
            "dmPolicy": "open", "allowFrom": ["b@h"], "groupPolicy": "disabled",
            "groups": { "mine": { "requireMention": false, "allowFrom": [] } },
        },
        "slack": {
            "historyLimit": 1, "dmHistoryLimit": 1, "appToken": "t", "botToken": "u", "tools": tools(),
            "dmPolicy": "open", "allowFrom": ["U1"], "groupPolicy": "disabled",
            "groups": { "mine": { "requireMention": false, "allowFrom": [] } },
            "baseUrl": "https://h", "preview": false, "mediaMaxMb": 20,
        },
        "discord": {
            "historyLimit": 1, "dmHistoryLimit": 1, "botToken": "u", "tools": tools(),
            "dmPolicy": "open", "allowFrom": ["1"], "groupPolicy": "disabled",
            "groups": { "mine": { "requireMention": false, "allowFrom": [] } },
            "baseUrl": "https://h", "preview": false, "mediaMaxMb": 20,
        },
        "webhook": { "mine": { "secret": "0123456789abcdef", "url": "https://h" } },
        "socket": { "path": "/s" },
    })
}

fn tools() -> Value {
    json!({ "profile": "coding", "allow": ["group:fs"], "deny": ["*_x"], "ask": [] })
}

fn agent_tools() -> Value {
    json!({
        "profile": "full", "allow": ["group:fs"], "deny": [], "ask": [], "exec": exec(), "byProvider": { "mine": tools() },
    })
}

fn confinement() -> Value {
    json!({
        "level": "podman", "image": "i", "workspaceAccess": "ro", "network": "open", "allowHosts": ["x.example"],
        "readOnly": ["/x"], "readWrite": [],
        "limits": { "memoryMb": 1, "processes": 0, "fileSizeMb": 1, "openFiles": 1, "cpuSeconds": 1, "workspaceMb": 1, "workspaceFiles": 1 },
    })
}

fn exec() -> Value {
    json!({
        "security": "allowlist", "ask": "on-miss",
        "allowlist": ["ls", { "program": "/usr/bin/git", "args": ["log", "..."] }],
    })
}

fn compat() -> Value {
    json!({
        "outputLimit": "max_tokens", "systemRole": "developer", "streamUsage": "on-request",
        "reasoningReplay": "within-turn",
    })
}

/// The paths of all values in a tree, as JSON pointers.
fn pointers(tree: &Value) -> Vec<String> {
    fn collect(value: &Value, at: &str, found: &mut Vec<String>) {
        found.push(at.to_owned());
        match value {
            Value::Object(entries) => {
                entries
                    .iter()
                    .for_each(|(key, entry)| collect(entry, &format!("{at}/{key}"), found));
            }
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(index, item)| collect(item, &format!("{at}/{index}"), found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(tree, "", &mut found);
    found
}

/// Every key of the schema, without the levels of maps and lists.
fn keys_of_schema(schema: &Value, root: &Value, at: &str, found: &mut Vec<String>) {
    let target =
        schema["$ref"].as_str().and_then(|name| root["$defs"].get(name.strip_prefix("#/$defs/")?));
    let schema = target.unwrap_or(schema);
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{at}/{key}");
        keys_of_schema(property, root, &path, found);
        found.push(path);
    }
    let branches = schema["anyOf"].as_array().into_iter().flatten();
    let inner = [&schema["items"], &schema["additionalProperties"]];
    for part in branches.chain(inner).filter(|part| part.is_object()) {
        keys_of_schema(part, root, at, found);
    }
}

#[test]
fn the_sample_holds_every_key_of_the_schema() {
    let mut known = Vec::new();
    keys_of_schema(&SCHEMA, &SCHEMA, "", &mut known);
    let is_level = |part: &&str| part.parse::<usize>().is_err() && *part != "mine";
    let mut used: Vec<String> = pointers(&full())
        .iter()
        .map(|pointer| pointer.split('/').filter(is_level).collect::<Vec<_>>().join("/"))
        .filter(|pointer| !pointer.is_empty())
        .collect();
    known.sort();
    used.sort();
    used.dedup();
    assert_eq!(known, used);
}

#[test]
fn the_sample_is_valid() {
    assert_eq!(validate(&SCHEMA, &full(), 10), []);
    typed(&full()).unwrap();
}

#[test]
fn stops_at_the_limit() {
    let many: Map<String, Value> =
        (0..100).map(|number| (format!("key{number}"), Value::Null)).collect();
    assert_eq!(validate(&SCHEMA, &Value::Object(many), 7).len(), 7);
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof![
            Just(0_i64),
            Just(1),
            Just(-1),
            Just(65_535),
            Just(65_536),
            Just(86_400),
            Just(86_401),
            Just(i64::from(u32::MAX)),
            Just(i64::from(u32::MAX) + 1),
            any::<i64>(),
        ]
        .prop_map(Value::from),
        (-1.0e6_f64..1.0e6).prop_map(Value::from),
        prop_oneof![
            Just(""),
            Just(" "),
            Just("unlimited"),
            Just("text"),
            Just("info"),
            Just("a/b"),
            Just("http://h"),
            Just("https://"),
            Just("http:// h"),
            Just("http://h/p?q"),
            Just("anthropic-messages"),
            Just("\u{a0}"),
        ]
        .prop_map(Value::from),
        ".{0,5}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!(["text"])),
        Just(json!({ "primary": "a/b" })),
        Just(json!(["a/b"])),
    ]
}

#[derive(Debug, Clone)]
enum Change {
    Replace(Index, Value),
    Remove(Index),
    Add(Index, String, Value),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<Index>(), leaf()).prop_map(|(at, value)| Change::Replace(at, value)),
        any::<Index>().prop_map(Change::Remove),
        (any::<Index>(), "[a-zA-Z_]{1,8}", leaf())
            .prop_map(|(at, key, value)| Change::Add(at, key, value)),
    ]
}

fn apply(tree: &mut Value, change: Change) {
    let pointers = pointers(tree);
    match change {
        Change::Replace(at, value) => {
            *tree.pointer_mut(at.get(pointers.as_slice()) as &String).unwrap() = value
        }
        Change::Remove(at) => {
            let pointer: &String = at.get(pointers.as_slice());
            let Some((parent, key)) = pointer.rsplit_once('/') else { return };
            match tree.pointer_mut(parent).unwrap() {
                Value::Object(entries) => drop(entries.shift_remove(key)),
                Value::Array(items) => drop(items.remove(key.parse().unwrap())),
                _ => unreachable!(),
            }
        }
        Change::Add(at, key, value) => {
            match tree.pointer_mut(at.get(pointers.as_slice()) as &String).unwrap() {
                Value::Object(entries) => drop(entries.insert(key, value)),
                Value::Array(items) => items.push(value),
                _ => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The types and the schema must agree.
    #[test]
    fn the_schema_refuses_what_the_types_refuse(changes in prop::collection::vec(change(), 1..4)) {
        let mut tree = full();
        changes.into_iter().for_each(|change| apply(&mut tree, change));
        let findings = validate(&SCHEMA, &tree, 10);
        match typed(&tree) {
            Ok(_) => prop_assert_eq!(findings, []),
            Err(Misfit { path, error }) => prop_assert!(!findings.is_empty(), "the types say: {error} at {path}"),
        }
    }
}
