//! Which agent answers, and what holds for it.

use std::path::Path;

use myclaw_config::{CompactionSettings, ContextPruning, AgentId, AgentSettings, Config, ConfigError, IterationCap, Paths};

use crate::support::Home;

fn config(text: &str) -> (Home, Config) {
    let home = Home::with_config(text);
    let config = (*home.load().unwrap().config).clone();
    (home, config)
}

#[test]
fn without_agents_there_is_main() {
    let (home, config) = config("{}");
    let expected = AgentSettings {
        id: AgentId::default(),
        name: None,
        workspace: home.state_dir().join("workspace"),
        model: None,
        max_iterations: IterationCap::default(),
        max_retries: 3,
        max_tool_result_chars: 50_000,
        compaction: CompactionSettings::default(),
        context_pruning: ContextPruning::Off,
    };
    for id in [None, Some("main"), Some(""), Some(" MAIN ")] {
        assert_eq!(config.agent_settings(id).unwrap(), expected, "{id:?}");
    }
    let unknown = config.agent_settings(Some("coder")).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no agent `coder`; known: `main`");
}

#[test]
fn the_default_agent_is_the_marked_one_else_the_first() {
    let (home, marked) = config(
        "{ agents: { list: [{ id: 'A' }, { id: 'b', default: true }, { id: 'c', default: true }] } }",
    );
    assert_eq!(marked.agent_settings(None).unwrap().id.as_str(), "b");
    assert_eq!(marked.agent_settings(None).unwrap().workspace, home.state_dir().join("workspace"));
    assert_eq!(
        marked.agent_settings(Some("a")).unwrap().workspace,
        home.state_dir().join("workspace-a")
    );
    assert!(
        matches!(marked.agent_settings(Some("main")), Err(ConfigError::UnknownAgent { known, .. }) if known.len() == 3)
    );

    let (_, first) = config("{ agents: { list: [{ id: 'My Agent' }, { id: 'main' }] } }");
    assert_eq!(first.default_agent_id().as_str(), "my-agent");
    assert_eq!(first.agent_settings(Some("my agent")).unwrap().id.as_str(), "my-agent");
    assert!(first.agent_settings(Some("main")).unwrap().workspace.ends_with("workspace-main"));
}

#[test]
fn the_entry_goes_before_the_defaults_and_those_before_the_agent() {
    let text = "{
        provider: { name: 'anthropic', model: 'base', authProfiles: [{ id: 'p', apiKey: 'k' }] },
        agent: { workspaceDir: '~/agent', maxIterations: 1, maxRetries: 7, maxToolResultChars: 9 },
        agents: {
            defaults: { DEFAULTS },
            list: [
                { id: 'plain' },
                { id: 'own', name: 'Own', workspace: '/own', model: { primary: 'openai/gpt/x' }, maxIterations: 'unlimited' },
                { id: 'bare', model: 'other' },
            ],
        },
    }";
    let (home, with) = config(
        &text.replace("DEFAULTS", "workspace: 'here', model: 'groq/llama', maxIterations: 2"),
    );
    let plain = with.agent_settings(Some("plain")).unwrap();
    assert_eq!(plain.workspace, home.state_dir().join("here"));
    assert_eq!(
        (plain.model.as_deref(), plain.max_iterations.limit()),
        (Some("groq/llama"), Some(2))
    );
    assert_eq!((plain.max_retries, plain.max_tool_result_chars), (7, 9));

    let own = with.agent_settings(Some("own")).unwrap();
    assert_eq!((own.name.as_deref(), own.workspace.as_path()), (Some("Own"), Path::new("/own")));
    assert_eq!((own.model.as_deref(), own.max_iterations.limit()), (Some("openai/gpt/x"), None));
    assert_eq!(
        with.agent_settings(Some("bare")).unwrap().model.as_deref(),
        Some("anthropic/other")
    );

    let (home, without) = config(&text.replace("DEFAULTS", ""));
    let plain = without.agent_settings(None).unwrap();
    assert_eq!(plain.workspace, home.path().join("agent"));
    assert_eq!(
        (plain.model.as_deref(), plain.max_iterations.limit()),
        (Some("anthropic/base"), Some(1))
    );
}

#[test]
fn no_cap_is_written_in_two_ways() {
    for (written, limit) in
        [("0", None), ("'unlimited'", None), ("1", Some(1)), ("4294967295", Some(u32::MAX))]
    {
        let (_, config) = config(&format!("{{ agent: {{ maxIterations: {written} }} }}"));
        assert_eq!(config.agent_settings(None).unwrap().max_iterations.limit(), limit, "{written}");
    }
}

#[test]
fn settings_made_by_hand_need_folders_or_an_absolute_workspace() {
    let mut config = Config::default();
    assert!(matches!(config.agent_settings(None), Err(ConfigError::NoPaths)));
    config.agent.workspace_dir = Some("relative".to_owned());
    assert!(matches!(config.agent_settings(None), Err(ConfigError::NoPaths)));
    config.agent.workspace_dir = Some("/absolute".to_owned());
    assert_eq!(config.agent_settings(None).unwrap().workspace, Path::new("/absolute"));
    config.agent.workspace_dir = None;
    config.paths = Some(Paths::in_state_dir("/state"));
    assert_eq!(config.agent_settings(None).unwrap().workspace, Path::new("/state/workspace"));
    config.agent.workspace_dir = Some("~/x".to_owned());
    assert!(matches!(config.agent_settings(None), Err(ConfigError::NoHome)));
}
