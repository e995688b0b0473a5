//! Which agent answers, and what holds for it.

use std::path::Path;

use myclaw_config::{
    AgentId, CompactionConfig, Config, ConfigError, ContextPruning, DeliveryMode, IterationCap,
    MemorySearch, Paths, ResolvedAgent, RunLimits, ThinkingDefault,
};

use crate::support::Home;

fn config(text: &str) -> (Home, Config) {
    let home = Home::with_config(text);
    let config = (*home.load().unwrap().config).clone();
    (home, config)
}

#[test]
fn without_agents_there_is_main() {
    let (home, config) = config("{}");
    let expected = ResolvedAgent {
        id: AgentId::default(),
        name: None,
        workspace: home.state_dir().join("workspace"),
        model: None,
        thinking: None,
        fallbacks: Vec::new(),
        agent_dir: Some(home.state_dir().join("agents/main/agent")),
        max_iterations: IterationCap::default(),
        max_retries: 3,
        max_tool_result_chars: 50_000,
        compaction: CompactionConfig::default(),
        context_pruning: ContextPruning::Off,
        user_timezone: None,
        limits: RunLimits {
            run_seconds: 600,
            run_tokens: 5_000_000,
            run_cost: 5.0,
            day_tokens: 50_000_000,
            day_cost: 25.0,
            repeated_calls: 6,
        },
        steering_mode: DeliveryMode::All,
        follow_up_mode: DeliveryMode::All,
        memory_search: MemorySearch {
            enabled: None,
            extra_paths: Vec::new(),
            max_results: 6,
            min_score: 0.1,
            weights: None,
        },
    };
    for id in [None, Some("main"), Some(""), Some(" MAIN ")] {
        assert_eq!(config.resolve_agent(id).unwrap(), expected, "{id:?}");
    }
    let unknown = config.resolve_agent(Some("coder")).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no agent `coder`; known: `main`");
}

#[test]
fn the_search_of_an_agent_overrides_that_of_all_key_by_key() {
    let (home, config) = config(
        "{ agents: {
            defaults: { memorySearch: { enabled: false, extraPaths: ['notes'], maxResults: 9, weights: '/m' } },
            list: [{ id: 'a', memorySearch: { enabled: true, minScore: 0.5 } }, { id: 'b' }],
        } }",
    );
    let expected = MemorySearch {
        enabled: Some(true),
        extra_paths: vec![home.state_dir().join("notes")],
        max_results: 9,
        min_score: 0.5,
        weights: Some("/m".into()),
    };
    assert_eq!(config.resolve_agent(Some("a")).unwrap().memory_search, expected);
    let others = MemorySearch { enabled: Some(false), min_score: 0.1, ..expected };
    assert_eq!(config.resolve_agent(Some("b")).unwrap().memory_search, others);
}

#[test]
fn the_default_agent_is_the_marked_one_else_the_first() {
    let (home, marked) = config(
        "{ agents: { list: [{ id: 'A' }, { id: 'b', default: true }, { id: 'c', default: true }] } }",
    );
    assert_eq!(marked.resolve_agent(None).unwrap().id.as_str(), "b");
    assert_eq!(marked.resolve_agent(None).unwrap().workspace, home.state_dir().join("workspace"));
    assert_eq!(
        marked.resolve_agent(Some("a")).unwrap().workspace,
        home.state_dir().join("workspace-a")
    );
    assert!(
        matches!(marked.resolve_agent(Some("main")), Err(ConfigError::UnknownAgent { known, .. }) if known.len() == 3)
    );

    let (_, first) = config("{ agents: { list: [{ id: 'My Agent' }, { id: 'main' }] } }");
    assert_eq!(first.default_agent_id().as_str(), "my-agent");
    assert_eq!(first.resolve_agent(Some("my agent")).unwrap().id.as_str(), "my-agent");
    assert!(first.resolve_agent(Some("main")).unwrap().workspace.ends_with("workspace-main"));
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
    let plain = with.resolve_agent(Some("plain")).unwrap();
    assert_eq!(plain.workspace, home.state_dir().join("here"));
    assert_eq!(
        (plain.model.as_deref(), plain.max_iterations.limit()),
        (Some("groq/llama"), Some(2))
    );
    assert_eq!((plain.max_retries, plain.max_tool_result_chars), (7, 9));

    let own = with.resolve_agent(Some("own")).unwrap();
    assert_eq!((own.name.as_deref(), own.workspace.as_path()), (Some("Own"), Path::new("/own")));
    assert_eq!((own.model.as_deref(), own.max_iterations.limit()), (Some("openai/gpt/x"), None));
    assert_eq!(with.resolve_agent(Some("bare")).unwrap().model.as_deref(), Some("anthropic/other"));

    let (_home, limited) = config(
        "{ agents: {
            defaults: { limits: { runCost: 2, dayTokens: 9 }, followUpMode: 'one-at-a-time' },
            list: [{ id: 'plain' }, { id: 'own', limits: { runCost: 0.5, runSeconds: 0 }, steeringMode: 'one-at-a-time' }],
        } }",
    );
    let of = |agent| limited.resolve_agent(Some(agent)).unwrap();
    let costs = |agent| (of(agent).limits.run_cost, of(agent).limits.day_tokens);
    assert_eq!((costs("plain"), costs("own")), ((2.0, 9), (0.5, 9)));
    assert_eq!((of("plain").limits.run_seconds, of("own").limits.run_seconds), (600, 0));
    let modes = |agent| (of(agent).steering_mode, of(agent).follow_up_mode);
    let (all, single) = (DeliveryMode::All, DeliveryMode::OneAtATime);
    assert_eq!((modes("plain"), modes("own")), ((all, single), (single, single)));

    let (home, without) = config(&text.replace("DEFAULTS", ""));
    let plain = without.resolve_agent(None).unwrap();
    assert_eq!(plain.workspace, home.path().join("agent"));
    assert_eq!(
        (plain.model.as_deref(), plain.max_iterations.limit()),
        (Some("anthropic/base"), Some(1))
    );
}

#[test]
fn fallbacks_of_an_agent_go_before_those_of_the_defaults() {
    let (home, config) = config(
        "{
            provider: { name: 'anthropic', model: 'base', authProfiles: [{ id: 'p', apiKey: 'k' }] },
            agents: {
                defaults: { model: { primary: 'groq/llama', fallbacks: ['openai/gpt', 'haiku'] } },
                list: [
                    { id: 'inherits', model: 'xai/grok' },
                    { id: 'none', model: { primary: 'xai/grok', fallbacks: [] }, agentDir: 'kept/here' },
                ],
            },
        }",
    );
    let inherits = config.resolve_agent(Some("inherits")).unwrap();
    assert_eq!(inherits.fallbacks, ["openai/gpt", "anthropic/haiku"]);
    assert_eq!(inherits.agent_dir, Some(home.state_dir().join("agents/inherits/agent")));
    let none = config.resolve_agent(Some("none")).unwrap();
    assert_eq!(none.fallbacks, [""; 0]);
    assert_eq!(none.agent_dir, Some(home.state_dir().join("kept/here")));

    let home = Home::with_config(
        "{ agents: { defaults: { model: { primary: 'a/b', fallbacks: ['gpt', '/x'] } } } }",
    );
    let error = home.load().unwrap_err().to_string();
    for place in ["agents.defaults.model.fallbacks[0]", "agents.defaults.model.fallbacks[1]"] {
        assert!(error.contains(place), "{error}");
    }
}

#[test]
fn no_cap_is_written_in_two_ways() {
    for (written, limit) in
        [("0", None), ("'unlimited'", None), ("1", Some(1)), ("4294967295", Some(u32::MAX))]
    {
        let (_, config) = config(&format!("{{ agent: {{ maxIterations: {written} }} }}"));
        assert_eq!(config.resolve_agent(None).unwrap().max_iterations.limit(), limit, "{written}");
    }
}

#[test]
fn settings_made_by_hand_need_directories_or_an_absolute_workspace() {
    let mut config = Config::default();
    assert!(matches!(config.resolve_agent(None), Err(ConfigError::NoPaths)));
    config.agent.workspace_dir = Some("relative".to_owned());
    assert!(matches!(config.resolve_agent(None), Err(ConfigError::NoPaths)));
    config.agent.workspace_dir = Some("/absolute".to_owned());
    assert_eq!(config.resolve_agent(None).unwrap().workspace, Path::new("/absolute"));
    config.agent.workspace_dir = None;
    config.paths = Some(Paths::in_state_dir("/state"));
    assert_eq!(config.resolve_agent(None).unwrap().workspace, Path::new("/state/workspace"));
    config.agent.workspace_dir = Some("~/x".to_owned());
    assert!(matches!(config.resolve_agent(None), Err(ConfigError::NoHome)));
}

#[test]
fn a_model_is_trimmed_and_a_blank_one_is_none() {
    let model = |text: &str| {
        let config = Home::with_config(text).load().unwrap().config;
        config.resolve_agent(None).unwrap().model
    };
    assert_eq!(model("{ agents: { defaults: { model: '  a/b ' } } }").as_deref(), Some("a/b"));
    assert_eq!(model("{ agents: { defaults: { model: '  ' } } }"), None);
    assert_eq!(model("{ agents: { defaults: { model: { primary: '' } } } }"), None);
    let own_blank = "{ agents: { defaults: { model: 'a/b' }, list: [{ id: 'x', model: ' ' }] } }";
    assert_eq!(model(own_blank).as_deref(), Some("a/b"));
}

#[test]
fn fallbacks_are_kept_in_order() {
    let text = "{ agents: { defaults: { model: { primary: 'a/b', fallbacks: ['c/d', 'e/f'] } } } }";
    let config = Home::with_config(text).load().unwrap().config;
    let model = config.agents.defaults.model.as_ref().unwrap();
    let names: Vec<&str> = model.fallbacks().unwrap().iter().map(|name| name.0.as_str()).collect();
    assert_eq!(names, ["c/d", "e/f"]);
}

#[test]
fn an_agents_thinking_goes_before_the_default() {
    let text = "{ agents: { defaults: { thinkingDefault: 'low' }, list: [{ id: 'a' }, { id: 'b', thinking: 'xhigh' }] } }";
    let config = Home::with_config(text).load().unwrap().config;
    let thinking = |id| config.resolve_agent(Some(id)).unwrap().thinking;
    assert_eq!(thinking("a"), Some(ThinkingDefault::Low));
    assert_eq!(thinking("b"), Some(ThinkingDefault::Xhigh));
}

#[test]
fn a_list_of_models_allows_no_others() {
    let text = "{ agents: { defaults: { models: ['anthropic/*', 'openrouter/openai/gpt-5'] } } }";
    let config = Home::with_config(text).load().unwrap().config;
    let allowed = |provider, id| config.allows_model(provider, id);
    assert!(allowed("anthropic", "anything") && allowed("openrouter", "openai/gpt-5"));
    assert!(!allowed("openrouter", "openai/gpt-5-mini") && !allowed("openai", "gpt-5"));
    let open = Home::with_config("{}").load().unwrap().config;
    assert!(open.allows_model("any", "thing"));
}
