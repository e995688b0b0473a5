pub(crate) mod calls;
mod terms;

use std::path::Path;

use myclaw_config::Environment;
use myclaw_engine::{Target, TargetAccess};
use myclaw_policy::known_tools;
use serde_json::{Value, json};

use super::*;
use crate::{Home, SessionOptions};

/// A session of `agent:main` with this config, in a directory that exists.
fn session(config: Value, name: &str) -> SessionConfig {
    let mut config: Config = serde_json::from_value(config).unwrap();
    let environment = Environment::new([("MYCLAW_HOME", "/nowhere")], None, None);
    let paths = environment.paths().unwrap();
    config.paths = Some(paths.clone());
    // The directory is no project of the owner, except where a test asks for that.
    config.project.sandbox = true;
    let home = Home::new(environment, paths);
    let directory = Some(Path::new("/tmp").canonicalize().unwrap());
    let session = Some(name.to_owned());
    let options = SessionOptions { session, directory, ..SessionOptions::default() };
    SessionConfig::new(home, Arc::new(config), &options).unwrap()
}

fn permissions(config: Value, name: &str) -> Permissions {
    Permissions::new(&session(config, name), Some("openai/gpt-x"), &[]).unwrap()
}

/// `allowed`, the reason of a question, or the reason of a refusal.
fn shown(permissions: &Permissions, tool: &str, arguments: &Value) -> String {
    match permissions.check(&calls::prepared(tool, arguments)) {
        Verdict::Allowed => "allowed".to_owned(),
        Verdict::NeedsApproval(reason) => format!("ask: {reason}"),
        Verdict::Denied(reason) => reason,
    }
}

#[test]
fn only_the_main_session_is_outside_of_the_default_sandbox() {
    for (name, expected) in [
        ("main", SandboxScope::Unsandboxed),
        ("agent:main:main", SandboxScope::Unsandboxed),
        ("work", SandboxScope::Sandboxed),
        ("main:telegram:42", SandboxScope::Sandboxed),
        ("agent:main:telegram:dm:42", SandboxScope::Sandboxed),
    ] {
        assert_eq!(scope(&session(json!({}), name)), expected, "{name}");
    }
    let off = json!({"agents": {"defaults": {"sandbox": {"mode": "off"}}}});
    assert_eq!(scope(&session(off, "work")), SandboxScope::Unsandboxed);
    let own = json!({"agents": {
        "defaults": {"sandbox": {"mode": "off"}},
        "list": [{"id": "main", "sandbox": {"mode": "all"}}],
    }});
    assert_eq!(scope(&session(own, "main")), SandboxScope::Sandboxed);
}

#[test]
fn only_the_owners_own_sessions_of_a_project_are_outside_of_the_sandbox() {
    let in_project = |config: Value, name: &str| {
        let mut session = session(config, name);
        Arc::make_mut(&mut session.config).project.sandbox = false;
        scope(&session)
    };
    for (name, expected) in [
        ("work", SandboxScope::Unsandboxed),
        ("main:telegram:42", SandboxScope::Sandboxed),
        ("agent:main:telegram:dm:42", SandboxScope::Sandboxed),
        ("agent:main:channel:subagent:account:default:peer:direct:x", SandboxScope::Sandboxed),
    ] {
        assert_eq!(in_project(json!({}), name), expected, "{name}");
    }
    let all = json!({"agents": {"defaults": {"sandbox": {"mode": "all"}}}});
    assert_eq!(in_project(all, "work"), SandboxScope::Sandboxed);
    let mut elsewhere = session(json!({}), "work");
    Arc::make_mut(&mut elsewhere.config).project.sandbox = false;
    elsewhere.directory = None;
    assert_eq!(scope(&elsewhere), SandboxScope::Sandboxed, "the workspace is no project");
}

/// The tools of the specified rules, in their order: five that a sandboxed session has, four that it is denied, and one
/// that is in neither list.
const SPECIFIED_TOOLS: [&str; 10] =
    ["bash", "process", "read", "write", "edit", "browser", "canvas", "nodes", "cron", "message"];

/// `x` is permitted, `.` denied; a column for each of the tools above.
#[test]
fn the_specified_table_of_modes_sessions_and_tools_holds() {
    for (mode, name, row) in [
        ("off", "main", "xxxxxxxxxx"),
        ("off", "main:telegram:42", "xxxxxxxxxx"),
        ("non-main", "main", "xxxxxxxxxx"),
        ("non-main", "main:telegram:42", "xxxxx....."),
        ("all", "main", "xxxxx....."),
        ("all", "main:telegram:42", "xxxxx....."),
    ] {
        let config = json!({"agents": {"defaults": {"sandbox": {"mode": mode}}}});
        let permissions = permissions(config, name);
        let decided: String = SPECIFIED_TOOLS
            .iter()
            .map(|tool| if permissions.decide(tool).allowed { 'x' } else { '.' })
            .collect();
        assert_eq!(decided, row, "{mode} {name}");
    }
}

#[test]
fn each_level_of_the_config_denies_tools() {
    let config = json!({
        "tools": {
            "deny": ["cron"],
            "byProvider": {"openai": {"deny": ["image"]}, "anthropic": {"deny": ["message"]}},
            "bySender": {"telegram:42": {"deny": ["nodes"]}, "43": {"deny": ["gateway"]}},
        },
        "agents": {
            "defaults": {"tools": {"deny": ["canvas"]}, "sandbox": {"mode": "off"}},
            "list": [
                {"id": "main", "tools": {
                    "deny": ["browser"], "byProvider": {"openai/gpt-x": {"deny": ["ls"]}},
                }},
                {"id": "other", "tools": {"deny": ["read"]}},
            ],
        },
        "channels": {"telegram": {"botToken": "t", "tools": {"deny": ["process"]}}},
    });
    let denied = |name: &str| -> Vec<&str> {
        let permissions = permissions(config.clone(), name);
        known_tools().iter().copied().filter(|tool| !permissions.decide(tool).allowed).collect()
    };
    assert_eq!(denied("main"), ["ls", "browser", "canvas", "cron", "image"]);
    let telegram = denied("agent:main:telegram:dm:42");
    assert_eq!(telegram, ["ls", "process", "browser", "canvas", "nodes", "cron", "image"]);

    let offered = permissions(config.clone(), "agent:main:telegram:dm:42");
    assert!(offered.offers("nodes") && !offered.offers("process"));
    let place = offered.decide("ls").to_string();
    assert!(place.contains("agents.list[0].tools.byProvider[\"openai/gpt-x\"].deny"), "{place}");

    // Another model means other rules, also in the middle of a run.
    let main = permissions(config, "main");
    let by = |model: &str| main.check_subject("message", &CallSubject::default(), model);
    assert_eq!(by("openai/gpt-x"), Verdict::Allowed);
    assert!(matches!(by("anthropic/claude"), Verdict::Denied(_)));
}

#[test]
fn commands_are_checked_with_the_programs_of_this_machine() {
    let config =
        json!({"tools": {"exec": {"security": "allowlist", "allowlist": ["ls", "~/bin/*"]}}});
    let permissions = permissions(config.clone(), "main");
    assert_eq!(shown(&permissions, "bash", &json!({"command": "ls -l"})), "allowed");
    let asked = shown(&permissions, "bash", &json!({"command": "ls; id"}));
    assert!(asked.starts_with("ask: `id`: `/"), "{asked}");
    assert!(
        asked.ends_with("/id` is not in the allowlist (`tools.exec`, for all agents)"),
        "{asked}"
    );
    let changed = shown(&permissions, "exec", &json!({"command": "ls", "env": {"GIT_PAGER": "x"}}));
    assert!(changed.contains("sets the variable `GIT_PAGER`"), "{changed}");

    let mut off = config;
    off["tools"]["exec"]["ask"] = json!("off");
    let denied = shown(&self::permissions(off, "main"), "bash", &json!({"command": "id"}));
    assert!(denied.starts_with("the command may not run: `id`:"), "{denied}");
}

#[test]
fn a_sandboxed_session_has_the_rules_of_the_sandbox_as_well() {
    let config = json!({"agents": {"defaults": {"sandbox": {"exec": {"security": "deny"}}}}});
    let command = || json!({"command": "ls"});
    assert_eq!(shown(&permissions(config.clone(), "main"), "bash", &command()), "allowed");
    assert_eq!(
        shown(&permissions(config, "work"), "bash", &command()),
        "the command may not run: commands are turned off (`agents.defaults.sandbox.exec`, for sandboxed sessions)"
    );
}

#[test]
fn sessions_in_terminals_share_answers_and_those_of_channels_do_not() {
    let audience = |name: &str| crate::approvals::audience(&session(json!({}), name));
    assert_eq!(audience("main"), audience("work"));
    let in_channel = ["agent:main:telegram:dm:42", "agent:main:telegram:dm:43"].map(audience);
    assert_ne!(in_channel[0], in_channel[1]);
    assert!(!in_channel.contains(&audience("main")));
}

#[test]
fn mistakes_are_found_at_every_level_and_reported_once() {
    let config: Config = serde_json::from_value(json!({
        "tools": {
            "deny": ["raed"],
            "exec": {"allowlist": ["ls", "./x"]},
            "byProvider": {"openai": {"allow": ["group:runtme"]}},
            "bySender": {"7": {"ask": ["wirte"]}},
        },
        "agents": {
            "defaults": {"sandbox": {"denylist": ["brwoser"]}},
            "list": [{"id": "a", "tools": {"allow": [""]}}, {"id": "b", "sandbox": {"allowlist": ["bsh"]}}],
        },
    }))
    .unwrap();
    let found: Vec<String> =
        mistakes(&config).iter().map(|it| format!("{}: {}", it.path, it.message)).collect();
    assert_eq!(
        found,
        [
            "tools.deny[0]: there is no tool `raed`; did you mean `read`?",
            "agents.list[0].tools.allow[0]: the entry is empty; remove it, or name a tool or program",
            "tools.byProvider.openai.allow[0]: there is no group `group:runtme`; did you mean `group:runtime`?",
            "tools.bySender.7.ask[0]: there is no tool `wirte`; did you mean `write`?",
            "agents.defaults.sandbox.denylist[0]: there is no tool `brwoser`; did you mean `browser`?",
            "tools.exec.allowlist[1]: `./x` is neither a program's name nor an absolute path; write `git` or \
             `/usr/bin/git`",
            "agents.list[1].sandbox.allowlist[0]: there is no tool `bsh`; did you mean `bash`?",
        ]
    );
}

#[test]
fn what_works_on_behalf_of_others_has_their_rules_too() {
    let config = json!({
        "tools": {
            "byChannel": {"telegram": {"deny": ["web_fetch"]}},
            "bySender": {"telegram:42": {"deny": ["read"]}},
        },
        "agents": {"defaults": {"sandbox": {"mode": "off"}}, "list": [
            {"id": "main", "tools": {"deny": ["exec"]}},
            {"id": "helper", "tools": {"deny": ["write"]}},
        ]},
    });
    let chat = session(config.clone(), "agent:main:telegram:dm:42");
    let principals = chat.principals();
    let child = "agent:helper:channel:subagent:account:default:peer:direct:c1";
    let alone = session(config.clone(), child);
    let child = session(config, child).on_behalf_of(principals).unwrap();
    let offered = |config: &SessionConfig| {
        let permissions = Permissions::new(config, Some("openai/gpt-x"), &[]).unwrap();
        let allowed = ["exec", "write", "web_fetch", "read", "ls"].into_iter();
        allowed.filter(|tool| permissions.decide(tool).allowed).collect::<Vec<_>>()
    };
    assert_eq!(offered(&alone), ["exec", "web_fetch", "read", "ls"]);
    assert_eq!(offered(&child), ["ls"]);
    let reloaded = child.with_config(child.home.clone(), Arc::clone(&child.config)).unwrap();
    assert_eq!(offered(&reloaded), ["ls"]);
    // A sub-agent of it has these rules as well.
    assert_eq!(child.principals().len(), 2);
}

#[test]
fn a_sandboxed_session_gives_work_only_to_the_same_sandbox() {
    let config = |other: Value| json!({"agents": {"list": [{"id": "main"}, {"id": "helper", "sandbox": other}]}});
    let child =
        |agent: &str| format!("agent:{agent}:channel:subagent:account:default:peer:direct:c1");
    let result = |other: Value, parent: &str, agent: &str| {
        let parent = session(config(other.clone()), parent);
        let child = session(config(other), &child(agent));
        child.on_behalf_of(parent.principals()).map(|child| child.is_sandboxed())
    };
    // The main session is not sandboxed, its sub-agents are.
    assert_eq!(result(json!({"mode": "off"}), "main", "helper").ok(), Some(false));
    assert_eq!(result(json!({}), "main", "main").ok(), Some(true));
    assert_eq!(result(json!({}), "work", "helper").ok(), Some(true));
    assert_eq!(result(json!({"mode": "all"}), "work", "helper").ok(), Some(true));
    for other in [json!({"mode": "off"}), json!({"allowlist": ["exec", "web_fetch"]})] {
        let refused = result(other, "work", "helper").unwrap_err().message;
        assert!(refused.contains("needs the same sandbox"), "{refused}");
    }
}

#[test]
fn sub_agents_that_may_have_sub_agents_have_the_tools_for_it_in_the_sandbox() {
    let child = "agent:main:channel:subagent:account:default:peer:direct:c1";
    let offers = |depth: u64, sandbox: Value, name: &str| {
        let subagents = json!({"maxSpawnDepth": depth});
        let defaults = json!({"subagents": subagents, "sandbox": sandbox});
        let config = json!({"agents": {"defaults": defaults}});
        ["sessions_spawn", "subagents"].map(|tool| permissions(config.clone(), name).offers(tool))
    };
    assert_eq!(offers(2, json!({}), child), [true; 2]);
    assert_eq!(offers(1, json!({}), child), [false; 2]);
    // Other sandboxed sessions, and lists of the owner, stay as they are.
    assert_eq!(offers(2, json!({}), "work"), [false; 2]);
    assert_eq!(offers(2, json!({"allowlist": ["read"]}), child), [false; 2]);
    assert_eq!(offers(2, json!({"denylist": ["subagents"]}), child), [true, false]);
}

#[test]
fn heartbeats_have_few_tools_in_a_session_of_their_own() {
    let own = "agent:main:channel:cron:account:default:peer:direct:heartbeat";
    let off = json!({"mode": "off"});
    let offered = |heartbeat: Value, name: &str| {
        let defaults = json!({"heartbeat": heartbeat, "sandbox": off});
        let rules = permissions(json!({"agents": {"defaults": defaults}}), name);
        known_tools().iter().filter(|tool| rules.offers(tool)).count()
    };
    assert_eq!(offered(json!({}), own), 10);
    assert_eq!(offered(json!({"tools": ["read", "group:web"]}), own), 3);
    assert_eq!(offered(json!({"tools": ["read"]}), "main"), offered(json!({}), "main"));
}

#[test]
fn rules_that_cancel_each_other_are_named() {
    let found = |config: Value| {
        let config: Config = serde_json::from_value(config).unwrap();
        contradictions(&config).join("\n")
    };
    assert_eq!(found(json!({})), "");
    let nested = |sandbox: Value| {
        found(
            json!({"agents": {"defaults": {"subagents": {"maxSpawnDepth": 2}, "sandbox": sandbox}}}),
        )
    };
    assert_eq!(nested(json!({})), "");
    assert!(nested(json!({"allowlist": ["read"]})).contains("sessions_spawn"));
    assert!(nested(json!({"denylist": ["group:sessions"]})).contains("sessions_spawn"));
    assert_eq!(nested(json!({"allowlist": ["*"]})), "");
    let heartbeat =
        json!({"cron": {"enabled": false}, "agents": {"defaults": {"heartbeat": {"every": "1h"}}}});
    assert!(found(heartbeat).contains("cron.enabled"));
    let sandbox = json!({"allowlist": ["cron", "read"], "denylist": ["cron"]});
    let both = found(json!({"agents": {"defaults": {"sandbox": sandbox}}}));
    assert!(both.contains("sandbox.allowlist[0]: `cron` has no effect"), "{both}");
}

fn cancelled(config: &Value) -> String {
    contradictions(&serde_json::from_value(config.clone()).unwrap()).join("\n")
}

/// One line for each config, with these words.
fn assert_named(cases: &[(Value, &str)]) {
    for (config, words) in cases {
        let lines = cancelled(config);
        assert!(lines.contains(words), "{config}: {words} in {lines}");
        assert_eq!(lines.lines().count(), 1, "{lines}");
    }
}

fn with_tools(tools: &Value) -> Value {
    json!({"tools": tools})
}

fn with_agent(tools: &Value, own: &Value) -> Value {
    json!({"tools": tools, "agents": {"list": [{"id": "a"}, {"id": "b", "tools": own}]}})
}

/// Sub-agents may have sub-agents.
fn nested(more: &Value) -> Value {
    let mut config = json!({"agents": {"defaults": {"subagents": {"maxSpawnDepth": 2}}}});
    for (key, value) in more.as_object().unwrap() {
        match key.as_str() {
            "sandbox" => config["agents"]["defaults"][key] = value.clone(),
            "list" => config["agents"][key] = value.clone(),
            _ => config[key] = value.clone(),
        }
    }
    config
}

#[test]
fn entries_that_other_rules_cancel_are_named() {
    assert_named(&[
        (
            with_tools(&json!({"allow": ["read", "bash"], "deny": ["exec"]})),
            "tools.allow[1]: `bash` has",
        ),
        (
            with_tools(&json!({"allow": ["read"], "deny": ["group:fs"]})),
            "`group:fs` in `tools.deny`",
        ),
        (with_tools(&json!({"allow": ["read"], "deny": ["*"]})), "tools.allow[0]: `read`"),
        (
            with_tools(&json!({"allow": ["group:web"], "deny": ["web_*"]})),
            "tools.allow[0]: `group:web`",
        ),
        (
            with_tools(&json!({"allow": ["web_*"], "deny": ["group:web"]})),
            "tools.allow[0]: `web_*`",
        ),
        (with_tools(&json!({"deny": ["bash"], "ask": ["bash"]})), "tools.ask[0]: `bash`"),
        (with_tools(&json!({"allow": ["read"], "ask": ["bash"]})), "it is not in `tools.allow`"),
        (with_tools(&json!({"profile": "minimal", "ask": ["write"]})), "profile `minimal`"),
        (
            with_tools(&json!({"deny": ["mcp"], "allow": ["mcp:github", "read"]})),
            "`mcp:github` has no",
        ),
        (
            with_tools(&json!({"deny": ["github__*"], "ask": ["github__push"]})),
            "`github__push` has no",
        ),
        (
            with_tools(
                &json!({"byChannel": {"telegram": {"allow": ["read"], "deny": ["group:fs"]}}}),
            ),
            "tools.byChannel.telegram.allow[0]",
        ),
        (
            with_tools(
                &json!({"deny": ["read"], "byChannel": {"telegram": {"allow": ["read", "ls"]}}}),
            ),
            "tools.byChannel.telegram.allow[0]: `read` has no effect: `read` in `tools.deny`",
        ),
        (
            with_tools(
                &json!({"deny": ["read"], "bySender": {"telegram:1": {"ask": ["group:fs", "read"]}}}),
            ),
            "ask[1]: `read`",
        ),
        (
            with_agent(&json!({}), &json!({"allow": ["read"], "deny": ["read"]})),
            "agents.list[1].tools.allow[0]",
        ),
        (
            with_agent(&json!({"deny": ["group:fs"]}), &json!({"allow": ["write"]})),
            "agents.list[1].tools.allow[0]",
        ),
        (
            with_agent(&json!({"allow": ["read"]}), &json!({"allow": ["bash"]})),
            "it is not in `tools.allow`",
        ),
        (
            with_agent(
                &json!({}),
                &json!({"deny": ["bash"], "byProvider": {"openai": {"ask": ["bash"]}}}),
            ),
            "agents.list[1].tools.byProvider.openai.ask[0]",
        ),
        (
            json!({"agents": {"defaults": {"sandbox": {"allowlist": ["cron"]}}}}),
            "`cron` in `agents.defaults.sandbox.denylist`",
        ),
        (
            json!({"tools": {"deny": ["bash"]}, "agents": {"defaults": {"sandbox": {"allowlist": ["bash", "read"]}}}}),
            "agents.defaults.sandbox.allowlist[0]",
        ),
    ]);
}

#[test]
fn what_keeps_sub_agents_from_sub_agents_is_named() {
    assert_named(&[
        (
            nested(&json!({"tools": {"deny": ["sessions_spawn"]}})),
            "maxSpawnDepth of the agent main",
        ),
        (
            nested(&json!({"tools": {"deny": ["group:sessions"]}})),
            "`group:sessions` in `tools.deny`",
        ),
        (nested(&json!({"tools": {"allow": ["group:fs"]}})), "it is not in `tools.allow`"),
        (nested(&json!({"tools": {"profile": "minimal"}})), "profile `minimal`"),
        (nested(&json!({"sandbox": {"allowlist": ["*"], "denylist": ["sess*"]}})), "`sess*`"),
        (
            nested(
                &json!({"list": [{"id": "main"}, {"id": "b", "tools": {"deny": ["sessions_*"]}}]}),
            ),
            "maxSpawnDepth of the agent b",
        ),
    ]);
}

#[test]
fn exceptions_and_rules_of_other_places_cancel_nothing() {
    for config in [
        with_tools(&json!({"allow": ["group:fs"], "deny": ["write"]})),
        with_tools(&json!({"allow": ["*"], "deny": ["bash"], "ask": ["group:runtime"]})),
        with_tools(&json!({"deny": ["*"]})),
        with_tools(&json!({"deny": ["bash"], "byChannel": {"telegram": {"deny": ["bash"]}}})),
        with_tools(
            &json!({"byChannel": {"telegram": {"deny": ["read"]}, "slack": {"allow": ["read"]}}}),
        ),
        with_tools(&json!({"deny": ["mcp:github"], "allow": ["mcp", "read"]})),
        with_agent(&json!({}), &json!({"deny": ["read"], "ask": ["bash"]})),
        nested(&json!({"sandbox": {"mode": "off", "denylist": ["sessions_spawn"]}})),
        json!({"agents": {"defaults": {"sandbox": {"denylist": ["bash"]}}}}),
    ] {
        assert_eq!(cancelled(&config), "", "{config}");
    }
}

#[test]
fn questions_that_nobody_can_answer_in_their_chats_are_named() {
    let telegram = json!({"botToken": "1:x"});
    let slack = json!({"appToken": "xapp-1", "botToken": "xoxb-1"});
    let found = |tools: Value, more: Value| {
        let channels = json!({"telegram": telegram, "slack": slack});
        let mut config = json!({"tools": tools, "channels": channels});
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        unanswered_questions(&serde_json::from_value(config).unwrap())
    };
    let named = |tools: Value| {
        let found = found(tools, json!({})).into_iter();
        let name = |line: &str| {
            let of = line.split_once(" asks in chats of ");
            of.map(|(place, rest)| format!("{place} {}", rest.split(',').next().unwrap()))
        };
        found.map(|(line, _)| name(&line).unwrap_or(line)).collect::<Vec<_>>()
    };
    // Nothing is asked.
    assert_eq!(named(json!({})), [""; 0]);
    assert_eq!(named(json!({"ask": []})), [""; 0]);
    let exec = |security: &str, ask: &str| json!({"exec": {"security": security, "ask": ask}});
    assert_eq!(named(exec("allowlist", "off")), [""; 0]);
    assert_eq!(named(exec("full", "on-miss")), [""; 0]);
    // What asks, and where.
    assert_eq!(named(json!({"ask": ["bash"]})), ["tools.ask telegram", "tools.ask slack"]);
    assert_eq!(named(exec("allowlist", "on-miss")), ["tools.exec telegram", "tools.exec slack"]);
    assert_eq!(named(exec("full", "always")), ["tools.exec telegram", "tools.exec slack"]);
    let of_slack = json!({"byChannel": {"slack": {"ask": ["bash"]}}});
    assert_eq!(named(of_slack), ["tools.byChannel.slack.ask slack"]);
    let sender = |name: &str| json!({"bySender": {name: {"ask": ["bash"]}}});
    assert_eq!(named(sender("telegram:42")), ["tools.bySender[\"telegram:42\"].ask telegram"]);
    assert_eq!(named(sender("42")).len(), 2);
    let sandbox = json!({"agents": {"defaults": {"sandbox": {"exec": {"security": "allowlist"}}}}});
    assert_eq!(found(json!({}), sandbox).len(), 2);
    let agent = json!({"agents": {"list": [{"id": "a", "tools": {"ask": ["write"]}}]}});
    assert_eq!(found(json!({}), agent).len(), 2);
    let letters = json!({"channels": {"email": {
        "address": "claw@example.org", "password": "x", "imap": {"host": "h"}, "smtp": {"host": "h"},
    }}});
    assert_eq!(found(json!({"ask": ["bash"]}), letters), []);
    // Who answers.
    let asked = |approvals: Value| named(json!({"ask": ["bash"], "approvals": approvals}));
    assert_eq!(asked(json!({"owners": ["telegram:42"]})), ["tools.ask slack"]);
    assert_eq!(asked(json!({"owners": ["telegram:42", "slack:U1"]})), [""; 0]);
    let own = json!({"owners": ["telegram:42"], "sendTo": "telegram:42"});
    let lines = found(json!({"ask": ["bash"], "approvals": own}), json!({}));
    assert!(lines.len() == 1 && lines[0].0.contains("sendTo answers those of other"), "{lines:?}");
    // People and chats that no channel reaches.
    let lines = asked(json!({"owners": ["telegram:42", "slack:U1", "discord:7"]}));
    assert!(lines.len() == 1 && lines[0].contains("names discord:7"), "{lines:?}");
    let owners = json!(["telegram:42"]);
    let lines = asked(json!({"owners": owners, "sendTo": "signal:+491701234567"}));
    assert!(lines[1].contains("sendTo is signal:+491701234567"), "{lines:?}");
    let lines = asked(json!({"owners": owners, "sendTo": "slack:D1"}));
    assert!(lines[1].contains("nobody can answer in slack:D1"), "{lines:?}");
}

#[test]
fn what_starts_programs_is_neither_changed_nor_removed_unasked() {
    let permissions = permissions(json!({"tools": {"exec": {"security": "allowlist"}}}), "main");
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().canonicalize().unwrap().join("run");
    std::fs::write(&program, "").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    for (access, path, is_asked) in [
        (TargetAccess::Write, "/tmp/.envrc", true),
        (TargetAccess::Delete, "/tmp/.envrc", true),
        (TargetAccess::Read, "/tmp/.envrc", false),
        (TargetAccess::Write, "/tmp/notes.txt", false),
        (TargetAccess::Delete, "/tmp/notes.txt", false),
        (TargetAccess::Write, program.to_str().unwrap(), true),
        (TargetAccess::Delete, program.to_str().unwrap(), true),
    ] {
        let target = Target { access, path: path.into() };
        let subject = CallSubject::default().with(CallEffect::Touch(target));
        let verdict = permissions.check_subject("write", &subject, "openai/gpt-x");
        let is_asked_now = matches!(verdict, Verdict::NeedsApproval(_));
        assert_eq!(is_asked_now, is_asked, "{access:?} {path}: {verdict:?}");
    }
}

/// Commands that write where nothing is started.
const FREE_WRITERS: &[&str] = &[
    "cp a out",
    "cp a out/b",
    "mv a sub/deep",
    "cp -r sub out",
    "gcc -o out/x a.c",
    "tar -xf a.tar --one-top-level=out/new",
    "cd out && touch x",
    "tool .",
    "tool --output=out/x a",
    "rsync -a sub/ out/",
];

/// Commands that write a program, a file that is obeyed, or files with names that are not known.
const ASKED_WRITERS: &[&str] = &[
    "cp a bin/ls",
    "cp a bin",
    "cp a sub/../bin",
    "cp a linked/b",
    "cp a linked/b/ls",
    "cp a hidden",
    "cp a broken",
    "cp -P hidden out",
    "mv hidden out",
    "cp Makefile out",
    "cp -t out Makefile",
    "cp -r x/. holds",
    "cp -r x/. .",
    "rsync -a x/ holds/",
    "rsync -a x/ dotless/",
    "rsync -a x/ linked/",
    "tar -xf a.tar",
    "tar -xf a.tar --one-top-level=holds",
    "unzip -o a.zip",
    "cd sub && unzip -o a.zip",
    "ln -s bin out/b",
    "ln -s a bin/x",
    "ln a dotless/run.sh",
    "gcc -o bin/ls a.c",
    "gcc -o dotless/run.sh a.c",
    "dd if=a of=bin/ls",
    "tool --output=bin/ls a",
    "tool -obin/ls a",
    "tool /",
    "cd bin && touch x",
    "cd holds && touch .git/config",
    "touch missing/../bin/ls",
];

/// The name of the agent's own directory is no name of a file that bazel obeys, whichever case counts.
#[test]
fn archives_are_unpacked_unasked_into_the_agents_own_directory() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap().join("workspace");
    std::fs::create_dir_all(root.join("bin")).unwrap();
    let config =
        json!({"tools": {"exec": {"security": "allowlist", "allowlist": ["unzip", "tar", "cp"]}}});
    let mut session = session(config, "main");
    session.directory = Some(root.clone());
    let mut permissions = Permissions::new(&session, None, &[]).unwrap();
    let programs = directory.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    for name in ["unzip", "tar", "cp"] {
        let path = programs.join(name);
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    permissions.environment =
        permissions.environment.clone().with("PATH", programs.display().to_string());
    let is_asked = |command: &str| {
        let verdict =
            permissions.check_subject("bash", &permissions.command(command), "openai/gpt-x");
        !matches!(verdict, Verdict::Allowed)
    };
    for command in ["unzip -o a.zip", "tar -xf a.tar", "cp a.tar b.tar", "cp a ../workspace/b"] {
        assert!(!is_asked(command), "{command}");
    }
    for command in ["cp a WORKSPACE", "cp a module.bazel", "cp a sub/WORKSPACE.bazel"] {
        assert!(is_asked(command), "{command}");
    }
    std::fs::write(root.join("bin/MODULE.bazel"), "").unwrap();
    for command in ["unzip -o a.zip", "tar -xf a.tar"] {
        assert!(is_asked(command), "{command}");
    }
}

/// What commands write is judged by the same places, with the files as they are.
#[test]
fn commands_do_not_write_what_starts_programs_unasked() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let config = json!({"tools": {"exec": {"security": "allowlist", "allowlist": [
        "cp", "mv", "ln", "tar", "unzip", "rsync", "gcc", "dd", "touch", "tool", "cd", "ls",
    ]}}});
    let mut session = session(config, "main");
    session.directory = Some(root.clone());
    let mut permissions = Permissions::new(&session, None, &[]).unwrap();
    let bin = root.join("bin");
    std::fs::create_dir(&bin).unwrap();
    let everywhere: std::ffi::OsString = format!("{}:/usr/bin:/bin", bin.display()).into();
    permissions.environment =
        permissions.environment.clone().with("PATH", everywhere.into_string().unwrap());
    let program = |path: &str| {
        std::fs::write(root.join(path), "").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(root.join(path), mode).unwrap();
    };
    for name in ["cp", "mv", "ln", "tar", "unzip", "rsync", "gcc", "dd", "touch", "tool", "ls"] {
        program(&format!("bin/{name}"));
    }
    for name in ["out", "sub/deep", "holds/.git", "linked", "dotless"] {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    program("dotless/run.sh");
    std::fs::write(root.join("Makefile"), "").unwrap();
    std::fs::write(root.join("a"), "").unwrap();
    std::os::unix::fs::symlink(&bin, root.join("linked/b")).unwrap();
    std::os::unix::fs::symlink(bin.join("ls"), root.join("hidden")).unwrap();
    std::os::unix::fs::symlink(root.join("nowhere"), root.join("broken")).unwrap();
    let verdict = |command: &str| {
        let subject = permissions.command(command);
        match permissions.check_subject("bash", &subject, "openai/gpt-x") {
            Verdict::Allowed => "allowed".to_owned(),
            Verdict::NeedsApproval(reason) | Verdict::Denied(reason) => reason,
        }
    };
    for command in FREE_WRITERS {
        assert_eq!(verdict(command), "allowed", "{command}");
    }
    for command in ASKED_WRITERS {
        let verdict = verdict(command);
        assert!(
            verdict.contains("start a program later") || verdict.contains("may put a link"),
            "{command}: {verdict}"
        );
    }
}

#[test]
fn a_mode_decides_by_what_a_tool_declares_and_counts_from_the_next_call_on() {
    let session = session(json!({}), "main");
    let permissions = Permissions::new(&session, Some("openai/gpt-x"), &[]).unwrap();
    let calls =
        [("write", json!({"path": "a", "content": "x"})), ("exec", json!({"command": "true"}))];
    for (mode, expected) in [
        (Mode::ReadOnly, "the session is in the mode read-only"),
        (Mode::Plan, "the session is in the mode plan"),
        (Mode::Ask, "ask: the mode ask asks"),
        (Mode::Auto, "allowed"),
        (Mode::Sandbox, "the user has changed the mode of the session to sandbox"),
    ] {
        session.mode.set(mode);
        assert_eq!(shown(&permissions, "read", &json!({"path": "a"})), "allowed", "{mode}");
        for (tool, arguments) in &calls {
            let found = shown(&permissions, tool, arguments);
            assert!(found.starts_with(expected), "{mode}, {tool}: {found}");
        }
    }
    // The model is offered the same tools in the sandbox, and those that its rules deny are refused.
    let permissions = Permissions::new(&session, Some("openai/gpt-x"), &[]).unwrap();
    assert_eq!(permissions.scope(), SandboxScope::Sandboxed);
    assert!(permissions.offers("grep"));
    assert!(shown(&permissions, "grep", &json!({"pattern": "x"})).contains("sandbox"));
}
