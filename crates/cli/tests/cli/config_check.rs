//! What `myclaw config check`, `myclaw doctor` and a run say of a config file whose every value is right by itself.

use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, TempHome, WireFormat};
use serde_json::json;

use crate::{myclaw, run};

/// What `config check` says of `text`, which must be a mistake.
fn mistake(text: &str) -> String {
    let home = TempHome::new();
    home.write_config_text(text);
    let output = run(&home, &["config", "check"]);
    output.assert_code(3);
    output.stderr().replace(&home.state_directory().display().to_string(), "~")
}

fn provider(name: &str) -> String {
    format!(
        "{{ provider: {{ name: '{name}', model: 'm', authProfiles: [{{ id: 'a', apiKey: 'sk-test' }}] }} }}"
    )
}

#[test]
fn a_key_never_goes_to_a_provider_that_the_file_does_not_name() {
    for (name, meant) in [
        ("OpenAI", "write `openai`"),
        ("anthropci", "did you mean `anthropic`?"),
        ("gemini", "did you mean `google`?"),
        ("zhipu", "did you mean `zai`?"),
        ("azure-openai", "each customer has their own address"),
    ] {
        let home = TempHome::new();
        home.write_config_text(&provider(name));
        for arguments in [
            &["config", "check"][..],
            &["run", "hello"],
            &["models", "test", &format!("{name}/m")],
            &["doctor"],
        ] {
            let output = run(&home, arguments);
            output.assert_code(3);
            if arguments != ["doctor"] {
                let stderr = output.stderr();
                assert!(stderr.contains("provider.name: "), "{arguments:?}: {stderr}");
                assert!(stderr.contains(meant), "{arguments:?}: {stderr}");
            }
        }
    }
    let own =
        mistake("{ models: { providers: { OpenAI: { baseUrl: 'http://127.0.0.1:1/v1' } } } }");
    assert!(own.contains("models.providers.OpenAI: the name of a known provider"), "{own}");
}

#[test]
fn a_provider_of_any_name_is_fine_with_an_address() {
    let server = ModelServer::spawn_blocking_thread(Script::from(Reply::openai().text("Here.")));
    let home = TempHome::new();
    let address = format!("baseUrl: 'http://{}/v1'", server.address());
    home.write_config_text(&provider("zhipu").replace("model:", &format!("{address}, model:")));
    run(&home, &["config", "check"]).assert_code(0);
    let output = run(&home, &["run", "hello"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "Here.\n");
}

#[test]
fn everything_that_would_make_a_run_fail_is_found_at_once() {
    let home = TempHome::new();
    home.write_in_workspace("file.txt", "");
    home.write_config_text(
        "{
  models: { providers: { nowhere: { apiKey: 'env:NOT_SET' } } },
  agents: {
    defaults: { model: { primary: 'anthropci/m', fallbacks: ['openia/m', 'groq/m'] } },
    list: [
      { id: 'a', workspace: 'workspace/file.txt/below' },
      { id: 'b', model: 'deepseek/deepseek-chat' },
    ],
  },
  hooks: { tool_call: [{ command: ['/no/such/program'] }] },
}",
    );
    let output = run(&home, &["config", "check"]);
    output.assert_code(3);
    let stderr = output.stderr();
    for expected in [
        "models.providers.nowhere: the provider `nowhere` is not known. Give its address",
        "agents.defaults.model: the provider `anthropci` is not known; did you mean `anthropic`?",
        "agents.defaults.model.fallbacks[0]: the provider `openia` is not known; did you mean `openai`?",
        "agents.list[0].workspace: ",
        "is not a directory",
        "agents.list[1].model: there is no key for deepseek: set DEEPSEEK_API_KEY",
        "hooks.tool_call[0]: ",
        "warning: agents.defaults.model.fallbacks[1]: there is no key for groq",
        "warning: models.providers.nowhere.apiKey: the variable NOT_SET is not set",
        "myclaw.json:4:",
    ] {
        assert!(stderr.contains(expected), "{expected}\n{stderr}");
    }
}

#[test]
fn a_key_that_is_missing_is_a_mistake_where_there_is_no_other() {
    let keys = |keys: &str| {
        format!("{{ provider: {{ name: 'anthropic', model: 'm', authProfiles: [{keys}] }} }}")
    };
    let stderr = mistake(&keys("{ id: 'a', apiKey: 'env:NOT_SET' }"));
    assert!(
        stderr.contains("provider.authProfiles[0].apiKey: the variable NOT_SET is not set"),
        "{stderr}"
    );
    let stderr = mistake(&keys("{ id: 'a', apiKey: 'file:/no/such/file' }"));
    assert!(stderr.contains("the key file /no/such/file cannot be read"), "{stderr}");
    let home = TempHome::new();
    home.write_config_text(&keys("{ id: 'a', apiKey: 'k' }, { id: 'b', apiKey: 'env:NOT_SET' }"));
    let output = run(&home, &["config", "check"]);
    output.assert_code(0);
    assert!(output.stderr().contains("warning: provider.authProfiles[1].apiKey: "));
}

#[test]
fn an_address_that_no_request_can_go_to_is_a_mistake() {
    for address in ["http://host:99999/v1", "http://[::1/v1"] {
        let text = format!("{{ models: {{ providers: {{ a: {{ baseUrl: '{address}' }} }} }} }}");
        let stderr = mistake(&text);
        assert!(stderr.contains("no request can be sent to this base URL"), "{stderr}");
    }
}

#[test]
fn what_keeps_sandboxed_sessions_from_running_is_found() {
    let with_sandbox = |sandbox: serde_json::Value| {
        let home = TempHome::new();
        let mut config = TempHome::config_for("http://127.0.0.1:9", WireFormat::AnthropicMessages);
        config["agents"]["defaults"]["sandbox"] = sandbox;
        home.write_config(&config);
        home
    };
    // A problem of the machine, or of a workspace: the main session runs, unless it is sandboxed as well.
    for (confinement, words) in [
        (json!({"level": "bubblewrap"}), "bwrap is not in PATH"),
        (json!({"readOnly": ["~"]}), "could read keys"),
    ] {
        for (mode, code, line) in
            [("non-main", 0, "warn  sandbox"), ("all", 3, "fail  sandbox"), ("off", 0, "")]
        {
            let home = with_sandbox(json!({"mode": mode, "confinement": confinement}));
            let mut check = myclaw(&home, &["config", "check"]);
            let output = RunningChild::run(check.env("PATH", "/nowhere"));
            output.assert_code(code);
            let is_named = output.stderr().contains(words)
                && output.stderr().contains("agents.defaults.sandbox.confinement");
            assert_eq!(is_named, mode != "off", "{mode} {confinement}: {}", output.stderr());
            let mut doctor = myclaw(&home, &["doctor"]);
            let output = RunningChild::run(doctor.env("PATH", "/nowhere"));
            assert!(output.stdout().contains(line), "{mode}: {}", output.stdout());
            assert_eq!(output.stdout().contains(words), mode != "off", "{}", output.stdout());
        }
    }
    // A mistake of the config.
    for (confinement, words) in [
        (json!({"level": "podman"}), "no image is named"),
        (json!({"readWrite": ["~/nowhere"]}), "nowhere"),
    ] {
        let home = with_sandbox(json!({"confinement": confinement}));
        let output = run(&home, &["config", "check"]);
        output.assert_code(3);
        assert!(output.stderr().contains(words), "{}", output.stderr());
    }
}

#[test]
fn entries_of_an_allowlist_that_permit_less_than_they_seem_to_are_warnings() {
    let home = TempHome::new();
    home.write_config_text(
        "{
  provider: { name: 'anthropic', model: 'm', authProfiles: [{ id: 'a', apiKey: 'k' }] },
  tools: { exec: { allowlist: [
    'git', 'ls', '/usr/bin/make', { program: 'xargs', args: ['...'] }, { program: 'git', args: ['show', '*'] },
    { program: 'npm', args: ['test'] }, { program: 'cat', args: ['**'] },
  ] } },
  agents: { defaults: { sandbox: { exec: { allowlist: ['sh'] } } } },
}",
    );
    let output = run(&home, &["config", "check"]);
    output.assert_code(0);
    let stderr = output.stderr();
    let warned: Vec<&str> = stderr
        .lines()
        .filter(|line| line.contains("allowlist"))
        .filter_map(|line| line.strip_prefix("myclaw: warning: "))
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_eq!(
        warned,
        [
            "tools.exec.allowlist[2]",
            "tools.exec.allowlist[3]",
            "tools.exec.allowlist[4]",
            "agents.defaults.sandbox.exec.allowlist[0]",
        ],
        "{stderr}"
    );
    assert!(stderr.contains("`*` in args does not match an argument with a `/`; write `**`"));
}

#[test]
fn a_rule_that_names_no_tool_is_a_mistake_wherever_it_stands() {
    for (text, place, words) in [
        ("{ tools: { deny: ['Bash(rm:*)'] } }", "tools.deny[0]", "a rule here is for a whole tool"),
        (
            "{ tools: { allow: ['read', 'mcp__github__*'] } }",
            "tools.allow[1]",
            "the tools of MCP servers are `SERVER__TOOL`",
        ),
        ("{ tools: { ask: ['shell'] } }", "tools.ask[0]", "did you mean `bash`?"),
        ("{ tools: { deny: ['web*fetch*x'] } }", "tools.deny[0]", "there is no tool `web*fetch*x`"),
        (
            "{ tools: { byProvider: { openai: { deny: ['Glob'] } } } }",
            "tools.byProvider.openai.deny[0]",
            "did you mean `find`?",
        ),
        ("{ tools: { ask: ['group:shell'] } }", "tools.ask[0]", "there is no group `group:shell`"),
        (
            "{ agents: { list: [{ id: 'a', tools: { allow: ['Edit(src/**)'] } }] } }",
            "agents.list[0].tools.allow[0]",
            "a rule here is for a whole tool",
        ),
        (
            "{ agents: { defaults: { sandbox: { denylist: ['Task'] } } } }",
            "agents.defaults.sandbox.denylist[0]",
            "did you mean `sessions_spawn`?",
        ),
        (
            "{ hooks: { tool_call: [{ command: 'true', match: ['bash', 'Bash(git *)'] }] } }",
            "hooks.tool_call[0].match[1]",
            "a rule here is for a whole tool",
        ),
        (
            "{ hooks: { tool_result: [{ command: 'true', match: ['wirte'] }] } }",
            "hooks.tool_result[0].match[0]",
            "did you mean `write`?",
        ),
    ] {
        let stderr = mistake(text);
        assert!(
            stderr.contains(&format!("{place}: ")) && stderr.contains(words),
            "{text}: {stderr}"
        );
    }
    let home = TempHome::new();
    home.write_config_text(
        "{ tools: { deny: ['ba*', 'group:web', 'Write'] }, hooks: { tool_call: [{ command: 'true', match: ['Bash', 'group:fs', 'mem*'] }] } }",
    );
    run(&home, &["config", "check"]).assert_code(0);
}

#[test]
fn what_people_know_from_other_programs_is_explained() {
    for (text, words) in [
        ("{ mcpServers: {} }", "write it as `mcp: { servers:"),
        ("{ mcp: { github: {} } }", "write `mcp.servers.NAME"),
        ("{ permissions: { deny: ['Bash'] } }", "docs/operate/policy.md"),
        ("{ shell: 'zsh' }", "commands run with `bash`"),
        ("{ GOOSE_MODEL: 'gpt-5' }", "agents.defaults.model"),
        ("{ approval_policy: 'never' }", "`tools.exec`"),
        ("{ apiKeyHelper: 'pass show x' }", "myclaw auth add"),
        ("{ provider: { name: 'openai', model: 'm', apiKey: 'sk-test' } }", "authProfiles: [{ id"),
        ("{ channels: { telegram: { token: '1:a' } } }", "did you mean `botToken`?"),
        ("{ hooks: { PreToolUse: [] } }", "did you mean `tool_call`?"),
        ("{ agents: { defaults: { heartbeat: '30m' } } }", "write `{ every: \"30m\" }`"),
        ("{ agents: { defaults: { sandbox: 'all' } } }", "write `{ mode: \"all\" }`"),
        ("{ tools: { browser: true } }", "enabled"),
        (
            "{ models: { providers: { x: { baseUrl: 'http://127.0.0.1:1', models: ['m'] } } } }",
            "write `{ id: \"…\" }`",
        ),
        (
            "{ provider: { name: 'x', model: 'm', baseUrl: 'localhost:8080/v1' } }",
            "write `http://localhost:8080/v1`",
        ),
        ("{ tools: { deny: 'bash' } }", "write a list"),
        ("model = \"gpt-5\"\napproval_policy = \"never\"\n", "this is TOML"),
        ("# mine\n[agents.defaults]\nmodel = \"m\"\n", "this is TOML"),
        ("---\nagents:\n  defaults: {}\n", "this is YAML"),
        ("agents:\n  defaults: {}\n", "this is YAML"),
    ] {
        let stderr = mistake(text);
        assert!(stderr.contains(words), "{text}: {stderr}");
        assert!(!stderr.contains("sk-test"), "{stderr}");
    }
}

#[test]
fn get_prints_the_default_of_a_key_and_refuses_one_that_does_not_exist() {
    let home = TempHome::new();
    home.write_config_text("{ gateway: { port: 4711 } }");
    let set = run(&home, &["config", "get", "gateway.port"]);
    set.assert_code(0);
    assert_eq!((set.stdout().as_str(), set.stderr().as_str()), ("4711\n", ""));
    let default = run(&home, &["config", "get", "tools.approvals.timeoutSeconds"]);
    default.assert_code(0);
    assert_eq!(default.stdout(), "300\n");
    assert!(default.stderr().contains("this is the default"), "{}", default.stderr());
    for (key, words) in [
        ("nope", "the config has no key `nope`"),
        ("gatway.port", "did you mean `gateway`?"),
        ("agents.list[0].nope", "the config has no key `agents.list[0].nope`"),
        ("mcpServers", "write it as `mcp: { servers:"),
    ] {
        let output = run(&home, &["config", "get", key]);
        output.assert_code(2);
        assert!(
            output.stdout().is_empty() && output.stderr().contains(words),
            "{}",
            output.stderr()
        );
    }
    let unset = run(&home, &["config", "get", "agents.defaults.model"]);
    unset.assert_code(1);
    assert!(
        unset.stderr().contains("docs/use/config.md says what applies then"),
        "{}",
        unset.stderr()
    );
}

#[test]
fn questions_that_nobody_can_answer_in_their_chat_are_warned_of() {
    let config = |approvals: &str| {
        let home = TempHome::new();
        home.write_config_text(&format!(
            "{{ channels: {{ telegram: {{ botToken: '1:x' }} }}, tools: {{ ask: ['bash'], approvals: {approvals} }} }}"
        ));
        let check = run(&home, &["config", "check"]);
        check.assert_code(0);
        (check.stderr(), run(&home, &["doctor"]).stdout())
    };
    let (check, doctor) = config("{}");
    let what = "tools.ask asks in chats of telegram, where nobody can answer";
    let next = "add yourself to tools.approvals.owners as \"telegram:ID\"";
    assert!(check.contains(&format!("warning: {what}: {next}")), "{check}");
    let doctor: String = doctor.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(doctor.contains(&format!("warn approvals {what}")), "{doctor}");
    assert!(doctor.contains(&format!("-> {next}")), "{doctor}");
    let (check, doctor) = config("{ owners: ['telegram:42'] }");
    assert!(!check.contains("approvals") && !doctor.contains("approvals"), "{check}{doctor}");
    let (check, _) =
        config("{ owners: ['telegram:42', 'slack:U1'], sendTo: 'signal:+491701234567' }");
    assert!(check.contains("owners names slack:U1, whose channel is not set up"), "{check}");
    assert!(check.contains("sendTo is signal:+491701234567, whose channel is not"), "{check}");
}

/// Keys that are misspelt, or that other programs have, and a part of the help.
const FROM_ELSEWHERE: &[(&str, &str)] = &[
    // Misspelt, in another case, singular and plural.
    ("{ provder: { name: 'x' } }", "did you mean `provider`?"),
    ("{ provider: { base_url: 'http://x' } }", "did you mean `baseUrl`?"),
    ("{ provider: { baseURL: 'http://x' } }", "did you mean `baseUrl`?"),
    ("{ provider: { auth_profiles: [] } }", "did you mean `authProfiles`?"),
    ("{ agent: { 'max-iterations': 5 } }", "did you mean `maxIterations`?"),
    ("{ agents: { default: { model: 'a/b' } } }", "did you mean `defaults`?"),
    ("{ agents: { defaults: { workspce: 'x' } } }", "did you mean `workspace`?"),
    ("{ agents: { defaults: { subAgents: {} } } }", "did you mean `subagents`?"),
    ("{ channel: { telegram: {} } }", "did you mean `channels`?"),
    ("{ channels: { telegram: { allow_from: ['1'] } } }", "did you mean `allowFrom`?"),
    ("{ tools: { bash: { timeout_seconds: 5 } } }", "did you mean `timeoutSeconds`?"),
    ("{ tools: { exec: { allowList: ['ls'] } } }", "did you mean `allowlist`?"),
    ("{ hooks: { toolCall: [] } }", "did you mean `tool_call`?"),
    // Other words for a key of the same section.
    ("{ provider: { api_base: 'http://x' } }", "did you mean `baseUrl`?"),
    ("{ models: { providers: { x: { endpoint: 'http://x' } } } }", "did you mean `baseUrl`?"),
    ("{ channels: { telegram: { apiToken: 'x' } } }", "did you mean `botToken`?"),
    ("{ channels: { telegram: { allowedUsers: ['1'] } } }", "did you mean `allowFrom`?"),
    ("{ channels: { telegram: { streamMode: 'partial' } } }", "did you mean `preview`?"),
    ("{ channels: { irc: { nickname: 'x' } } }", "did you mean `nick`?"),
    ("{ channels: { irc: { server: 'x' } } }", "did you mean `host`?"),
    ("{ channels: { xmpp: { jid: 'a@b' } } }", "did you mean `address`?"),
    ("{ channels: { signal: { phone_number: '+1' } } }", "did you mean `account`?"),
    ("{ gateway: { host: '0.0.0.0' } }", "did you mean `bind`?"),
    ("{ gateway: { hostname: 'x' } }", "did you mean `bind`?"),
    ("{ gateway: { ssl: true } }", "did you mean `tls`?"),
    ("{ tools: { denied: ['bash'] } }", "did you mean `deny`?"),
    ("{ tools: { blacklist: ['bash'] } }", "did you mean `deny`?"),
    ("{ tools: { whitelist: ['bash'] } }", "did you mean `allow`?"),
    ("{ tools: { shell: {} } }", "did you mean `bash`?"),
    ("{ tools: { filesystem: {} } }", "did you mean `fs`?"),
    ("{ tools: { webSearch: {} } }", "did you mean `web`?"),
    ("{ agents: { defaults: { model: { default: 'a/b' } } } }", "did you mean `primary`?"),
    ("{ agents: { defaults: { cwd: 'x' } } }", "did you mean `workspace`?"),
    ("{ agents: { defaults: { subagents: { maxDepth: 2 } } } }", "did you mean `maxSpawnDepth`?"),
    ("{ models: { providers: { x: { models: [{ name: 'm' }] } } } }", "did you mean `id`?"),
    (
        "{ models: { providers: { x: { models: [{ id: 'm', contextLength: 5 }] } } } }",
        "did you mean `contextWindow`?",
    ),
    ("{ terminal: { colors: 'dark' } }", "did you mean `theme`?"),
    // Keys of Claude Code, Codex, Cursor, goose, aider and OpenClaw.
    ("{ fallbackModel: 'x' }", "fallbacks: ["),
    ("{ approval_mode: 'auto' }", "docs/operate/policy.md"),
    ("{ 'auto-approve': true }", "docs/operate/policy.md"),
    ("{ yolo: true }", "docs/operate/policy.md"),
    ("{ additionalDirectories: ['x'] }", "-C DIR"),
    ("{ cleanupPeriodDays: 30 }", "myclaw sessions prune"),
    ("{ GOOSE_MAX_TURNS: 5 }", "agents.defaults.maxIterations"),
    ("{ 'openai-api-key': 'x' }", "myclaw auth add"),
    ("{ ANTHROPIC_API_KEY: 'x' }", "myclaw auth add"),
    ("{ web_search: 'live' }", "tools.web.search"),
    ("{ auth: { profiles: {} } }", "authProfiles"),
    ("{ cron: { jobs: [] } }", "myclaw cron add"),
    ("{ wizard: {} }", "take it out"),
    ("{ tts: {} }", "`speech: {"),
    ("{ log_level: 'debug' }", "logging: {"),
    ("{ timezone: 'Europe/Berlin' }", "userTimezone"),
    ("{ proxy: 'http://x' }", "HTTPS_PROXY"),
    ("{ timeout: 5 }", "limits.runSeconds"),
    ("{ budget: 5 }", "agents.defaults.limits"),
    ("{ models: { default: 'a/b' } }", "agents.defaults.model"),
    ("{ models: { openai: { apiKey: 'x' } } }", "models: { providers: {"),
    ("{ agents: { main: { model: 'a/b' } } }", "an entry of `agents.list`"),
    ("{ hooks: { pre_tool_use: [] } }", "did you mean `tool_call`?"),
    ("{ channels: { telegram: { requireMention: true } } }", "groups: { \"*\": {"),
    ("{ agents: { defaults: { sandbox: { enabled: true } } } }", "mode: \"all\""),
    ("{ agents: { defaults: { sandbox: { docker: {} } } } }", "level: \"docker\""),
    ("{ agents: { defaults: { hooks: { tool_call: [] } } } }", "did you mean `hooks`?"),
    ("{ bindings: [{ agentId: 'a', channel: 'telegram' }] }", "within `match: {"),
    ("{ keybindings: {} }", "cannot be changed yet"),
    // The form of a value.
    ("{ agents: { defaults: { sandbox: true } } }", "write `{ mode: \"all\" }`"),
    ("{ agents: { defaults: { models: 'a/b' } } }", "such as `[\"…\"]`"),
    ("{ agents: { list: { id: 'a' } } }", "such as `[{ id: \"…\" }]`"),
    ("{ tools: { allow: 'bash' } }", "such as `[\"…\"]`"),
    ("{ agents: { defaults: { model: ['a/b'] } } }", "write `{ primary: \"…\", fallbacks:"),
    ("{ channels: { telegram: { groups: ['-100'] } } }", "`{ \"NAME\": { … } }`"),
];

#[test]
fn keys_from_elsewhere_and_misspelt_ones_get_the_right_help() {
    for (text, help) in FROM_ELSEWHERE {
        let stderr = mistake(text);
        assert!(stderr.contains(help), "{text}: {stderr}");
    }
    // Another section has a key of this name, which means something else; and what is far off gets no guess.
    for text in [
        "{ speech: { provider: 'openai' } }",
        "{ tools: { exec: { host: 'gateway' } } }",
        "{ hooks: { tool_call: [{ command: ['x'], hooks: [] }] } }",
        "{ agents: { defaults: { speechSeconds: 60 } } }",
        "{ features: {} }",
        "{ 'edit-format': 'diff' }",
    ] {
        let stderr = mistake(text);
        assert!(!stderr.contains("did you mean"), "{text}: {stderr}");
    }
}
