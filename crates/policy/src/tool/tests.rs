use myclaw_config::SandboxMode;

use super::*;

const MAIN: SessionFacts<'_> =
    SessionFacts { key: "main", main_keys: &[], host_says_main: false, is_open_project: false };

fn list(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

fn policy(rules: &[(Level, ToolRules)]) -> Result<ToolPolicy, Vec<PolicyError>> {
    let levels: Vec<LevelRules> = rules
        .iter()
        .map(|(level, rules)| LevelRules {
            level: level.clone(),
            place: ConfigPath::default().key("tools"),
            rules: rules.clone(),
        })
        .collect();
    let sandbox = SandboxRules { mode: SandboxMode::Off, ..SandboxRules::default() };
    ToolPolicy::for_session(
        &levels,
        &sandbox,
        &ConfigPath::default().key("sandbox"),
        MAIN,
        &["mcp_search"],
    )
}

fn one(rules: ToolRules) -> ToolPolicy {
    policy(&[(Level::Global, rules)]).unwrap()
}

#[test]
fn without_rules_everything_may_run() {
    let policy = policy(&[]).unwrap();
    assert!(policy.decide("anything").allowed);
    assert_eq!(
        policy.decide("read").to_string(),
        "Tool 'read' is allowed (main session, not sandboxed): no rule denies it"
    );
}

#[test]
fn a_list_that_is_absent_sets_no_limit_and_an_empty_one_permits_nothing() {
    assert!(one(ToolRules::default()).decide("read").allowed);
    assert!(!one(ToolRules { allow: list(&[]), ..ToolRules::default() }).decide("read").allowed);
    assert!(one(ToolRules { deny: list(&[]), ..ToolRules::default() }).decide("read").allowed);
}

#[test]
fn deny_wins_over_allow() {
    let policy = one(ToolRules {
        allow: list(&["*"]),
        deny: list(&["group:web", "Bash"]),
        ..ToolRules::default()
    });
    for (tool, expected) in [
        ("read", true),
        ("web_fetch", false),
        ("WebFetch", false),
        ("exec", false),
        ("bash", false),
    ] {
        assert_eq!(policy.decide(tool).allowed, expected, "{tool}");
    }
    assert_eq!(
        policy.decide("WebFetch").rule.unwrap().to_string(),
        "`group:web` in `tools.deny` denies it for all agents"
    );
}

#[test]
fn profiles_limit_what_may_run() {
    for (profile, allowed, denied) in [
        (
            ToolProfile::Minimal,
            ["session_status"].as_slice(),
            ["read", "exec", "message"].as_slice(),
        ),
        (
            ToolProfile::Coding,
            &["read", "grep", "bash", "image", "memory_get"],
            &["message", "cron", "web_fetch"],
        ),
        (
            ToolProfile::Messaging,
            &["message", "sessions_send"],
            &["read", "exec", "sessions_spawn"],
        ),
        (ToolProfile::Full, &["read", "nodes", "mcp_search"], &[]),
    ] {
        let policy = one(ToolRules { profile: Some(profile), ..ToolRules::default() });
        for tool in allowed {
            assert!(policy.decide(tool).allowed, "{profile:?} {tool}");
        }
        for tool in denied {
            assert!(!policy.decide(tool).allowed, "{profile:?} {tool}");
        }
    }
}

#[test]
fn the_first_level_that_denies_is_named_and_every_level_can_be_asked() {
    let policy = policy(&[
        (Level::Global, ToolRules { deny: list(&["cron"]), ..ToolRules::default() }),
        (
            Level::Agent("coder".to_owned()),
            ToolRules { profile: Some(ToolProfile::Coding), ..ToolRules::default() },
        ),
        (
            Level::Channel("telegram".to_owned()),
            ToolRules { allow: list(&["read"]), ..ToolRules::default() },
        ),
    ])
    .unwrap();
    let decision = policy.decide("message");
    assert_eq!(
        decision.to_string(),
        "Tool 'message' is not allowed in current security context (main session, not sandboxed): it is not in the \
         profile `coding` set by `tools.profile` for agent `coder`"
    );
    let answers: Vec<bool> =
        policy.explain("message").iter().map(|(_, _, rule)| rule.is_none()).collect();
    assert_eq!(answers, [true, false, false]);
}

#[test]
fn unknown_names_are_errors_with_a_suggestion() {
    let rules = ToolRules {
        allow: list(&["raed", "group:runtme", "mcp_search", "sessions_*", ""]),
        deny: list(&["quite unknown"]),
        ask: list(&["edti"]),
        ..ToolRules::default()
    };
    let errors: Vec<String> =
        policy(&[(Level::Global, rules)]).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "`tools.allow[0]`: there is no tool `raed`; did you mean `read`?",
            "`tools.allow[1]`: there is no group `group:runtme`; did you mean `group:runtime`?",
            "`tools.allow[4]`: the entry is empty; remove it, or name a tool or program",
            "`tools.deny[0]`: there is no tool `quite unknown`; `myclaw policy explain` lists the tools",
            "`tools.ask[0]`: there is no tool `edti`; did you mean `edit`?",
        ]
    );
}

#[test]
fn the_named_sets_of_the_first_tools_are_exact() {
    let first = ["read", "bash", "edit", "write", "grep", "find", "ls", "apply_patch"];
    let all = || first.iter().copied().chain(["process", "web_fetch", "message", "image"]);
    for (profile, expected) in [(ToolProfile::Myclaw, &first[..]), (ToolProfile::Pi, &first[..4])] {
        let policy = one(ToolRules { profile: Some(profile), ..ToolRules::default() });
        let offered: Vec<&str> = all().filter(|tool| policy.offers(tool)).collect();
        assert_eq!(offered, expected, "{profile:?}");
    }
}

#[test]
fn tools_of_others_obey_the_lists_of_the_config_and_not_the_built_in_ones() {
    let session =
        SessionFacts { key: "x", main_keys: &[], host_says_main: false, is_open_project: false };
    let policy = |rules: ToolRules, sandbox: SandboxRules| {
        let place = ConfigPath::default().key("tools");
        let levels = [LevelRules { level: Level::Global, place: place.clone(), rules }];
        ToolPolicy::for_session(&levels, &sandbox, &place, session, &["weather"]).unwrap()
    };
    let minimal = ToolRules { profile: Some(ToolProfile::Minimal), ..ToolRules::default() };
    let built_in = policy(minimal, SandboxRules::default());
    assert!(built_in.offers("weather") && !built_in.offers("grep"));
    let own = SandboxRules { allowlist: list(&["read"]), ..SandboxRules::default() };
    assert!(!policy(ToolRules::default(), own).offers("weather"));
    let denied = ToolRules { deny: list(&["weath*"]), ..ToolRules::default() };
    assert!(!policy(denied, SandboxRules::default()).offers("weather"));
}

#[test]
fn a_rule_about_the_sender_refuses_calls_and_keeps_the_offer() {
    let rules = ToolRules { deny: list(&["write"]), ask: list(&["edit"]), ..ToolRules::default() };
    let policy = policy(&[(Level::Sender("telegram:7".to_owned()), rules)]).unwrap();
    assert!(policy.offers("write") && !policy.decide("write").allowed);
    assert_eq!(
        policy.asks("Edit").unwrap().to_string(),
        "`edit` in `tools.ask` asks before each call, for sender `telegram:7`"
    );
    assert_eq!(policy.asks("read"), None);
}

#[test]
fn tools_of_mcp_servers_are_named_one_by_one_by_server_or_all_together() {
    let tools = ["github__create_issue", "github__delete_repo", "files__read", "read"];
    for (entry, expected) in [
        ("mcp", &tools[..3]),
        ("group:mcp", &tools[..3]),
        ("MCP:github", &tools[..2]),
        ("group:mcp:files", &tools[2..3]),
        ("github__*", &tools[..2]),
        ("*__delete_*", &tools[1..2]),
        ("GitHub__create_issue", &tools[..1]),
        ("*", &tools[..]),
    ] {
        let denied = one(ToolRules { deny: list(&[entry]), ..ToolRules::default() });
        let hit: Vec<&str> =
            tools.into_iter().filter(|tool| !denied.decide(tool).allowed).collect();
        assert_eq!(hit, expected, "deny {entry}");
        let asked = one(ToolRules { ask: list(&[entry]), ..ToolRules::default() });
        let hit: Vec<&str> = tools.into_iter().filter(|tool| asked.asks(tool).is_some()).collect();
        assert_eq!(hit, expected, "ask {entry}");
        // The tool that finds others is there in any case: what it finds is judged by its own name.
        assert!(denied.decide(MCP_FINDER).allowed && asked.asks(MCP_FINDER).is_none(), "{entry}");
        assert!(denied.decide(MCP_SCRIPT).allowed && asked.asks(MCP_SCRIPT).is_none(), "{entry}");
    }
    for wrong in
        ["mcp__github__create_issue", "mcp__github__*", "mcp:", "mcp:a__b", "mcp:A B", "mcpx"]
    {
        let rules = ToolRules { deny: list(&[wrong]), ..ToolRules::default() };
        policy(&[(Level::Global, rules)]).unwrap_err();
    }
}

#[test]
fn profiles_and_the_list_of_the_sandbox_hold_for_tools_of_mcp_servers() {
    for (profile, expected) in [
        (ToolProfile::Minimal, false),
        (ToolProfile::Messaging, false),
        (ToolProfile::Pi, false),
        (ToolProfile::Coding, true),
        (ToolProfile::Full, true),
    ] {
        let policy = one(ToolRules { profile: Some(profile), ..ToolRules::default() });
        assert_eq!(policy.decide("github__create_issue").allowed, expected, "{profile:?}");
    }
    for (allowlist, expected) in [(None, false), (list(&["read", "mcp:github"]), true)] {
        let sandbox = SandboxRules { mode: SandboxMode::All, allowlist, ..SandboxRules::default() };
        let place = ConfigPath::default().key("sandbox");
        let policy = ToolPolicy::for_session(&[], &sandbox, &place, MAIN, &[]).unwrap();
        assert_eq!(policy.decide("github__create_issue").allowed, expected);
        assert!(!policy.decide("files__read").allowed);
    }
}
