//! Which tools each kind of session may use under each mode of the sandbox.

use myclaw_config::{ConfigPath, SandboxMode, SandboxRules};
use myclaw_policy::{Level, SessionFacts, ToolPolicy};

/// The agent's own main key: its direct session in the terminal.
const MAIN_KEY: &str = "agent:helper:channel:cli:account:default:peer:direct:main";

/// Keys of sessions, with whether the rules call them main: `main` and `main:…` by their names, the agent's main key by
/// the config; a direct chat and a group are not.
const SESSIONS: [(&str, bool); 7] = [
    ("main", true),
    ("main:x", true),
    (MAIN_KEY, true),
    ("agent:helper:channel:telegram:account:default:peer:direct:42", false),
    ("agent:helper:channel:telegram:account:default:peer:group:-100", false),
    ("mainly", false),
    ("x:main:y", false),
];

const TOOLS: [&str; 12] = [
    "bash", "exec", "process", "read", "write", "edit", "browser", "canvas", "nodes", "cron",
    "message", "grep",
];

/// The rules as they were specified, written down again: in mode `non-main` a session that is not main may use the
/// allowlist less the denylist, and every other session everything. Mode `all` treats every session so.
fn oracle(mode: SandboxMode, is_main: bool, tool: &str, sandbox: &SandboxRules) -> bool {
    let applies = match mode {
        SandboxMode::Off => false,
        SandboxMode::NonMain => !is_main,
        SandboxMode::All => true,
    };
    if !applies {
        return true;
    }
    let same = |entry: &str| {
        entry == tool || (["bash", "exec"].contains(&entry) && ["bash", "exec"].contains(&tool))
    };
    let listed = |list: &Option<Vec<String>>, default: &[&str]| match list {
        Some(list) => list.iter().any(|entry| same(entry)),
        None => default.iter().any(|entry| same(entry)),
    };
    listed(&sandbox.allowlist, &["bash", "process", "read", "write", "edit"])
        && !listed(&sandbox.denylist, &["browser", "canvas", "nodes", "cron"])
}

fn list(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn every_mode_session_and_tool_follows_the_specified_rules() {
    let mut cells = 0;
    let lists = [
        (None, None),
        (list(&["browser", "read"]), None),
        (None, list(&["bash"])),
        (list(&["browser", "exec"]), list(&[])),
        (list(&[]), None),
        (list(&["cron", "read"]), list(&["read"])),
    ];
    for mode in [SandboxMode::Off, SandboxMode::NonMain, SandboxMode::All] {
        for (allowlist, denylist) in &lists {
            let sandbox = SandboxRules {
                mode,
                allowlist: allowlist.clone(),
                denylist: denylist.clone(),
                ..SandboxRules::default()
            };
            for (key, is_main) in SESSIONS {
                let session = SessionFacts {
                    key,
                    main_keys: &[MAIN_KEY],
                    host_says_main: false,
                    is_open_project: false,
                };
                let policy = ToolPolicy::for_session(
                    &[],
                    &sandbox,
                    &ConfigPath::default().key("sandbox"),
                    session,
                    &[],
                )
                .unwrap();
                for tool in TOOLS {
                    let decision = policy.decide(tool);
                    let expected = oracle(mode, is_main, tool, &sandbox);
                    assert_eq!(decision.allowed, expected, "{mode:?} {key} {tool}: {decision}");
                    cells += 1;
                }
            }
        }
    }
    assert_eq!(cells, 3 * 6 * 7 * 12);
}

#[test]
fn the_host_can_say_that_a_session_is_main() {
    let sandbox = SandboxRules::default();
    for (host_says_main, expected) in [(true, true), (false, false)] {
        let session = SessionFacts {
            key: "group:family",
            main_keys: &[],
            host_says_main,
            is_open_project: false,
        };
        let policy = ToolPolicy::for_session(
            &[],
            &sandbox,
            &ConfigPath::default().key("sandbox"),
            session,
            &[],
        )
        .unwrap();
        assert_eq!(policy.decide("browser").allowed, expected);
    }
}

#[test]
fn a_refusal_names_the_tool_the_context_and_the_rule() {
    let session = SessionFacts {
        key: "telegram",
        main_keys: &[],
        host_says_main: false,
        is_open_project: false,
    };
    let place = ConfigPath::default().key("agents").key("defaults").key("sandbox");
    let policy =
        ToolPolicy::for_session(&[], &SandboxRules::default(), &place, session, &[]).unwrap();
    assert_eq!(
        policy.decide("browser").to_string(),
        "Tool 'browser' is not allowed in current security context (non-main session, sandboxed): it is not in \
         `agents.defaults.sandbox.allowlist` for sandboxed sessions"
    );
    let denied: Vec<&str> =
        ["read", "Browser", "bash", "ls"].into_iter().filter(|tool| !policy.offers(tool)).collect();
    assert_eq!(denied, ["Browser", "ls"]);
    assert_eq!(policy.explain("read"), [(&Level::Sandbox, &place, None)]);
}
