//! From a file to a config: defaults, order of the steps, substitution, cache, and files that are no config.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_config::{
    ChatId, Config, ConfigCache, ConfigError, ExposeSecret, IterationCap, LogLevel, ModelApi,
    ModelChoice, ModelInput, load_config, load_or_default,
};

use crate::support::Home;

const ONE_KEY: &str = "{ provider: { name: 'anthropic', model: 'm', authProfiles: [{ id: 'primary', apiKey: '${KEY}' }] } }";

/// The first key, in the clear.
fn key(config: &Config) -> &str {
    config.provider.as_ref().unwrap().auth_profiles[0].api_key.expose_secret()
}

#[test]
fn an_empty_object_gives_the_built_in_settings() {
    let loaded = Home::with_config("{}").load().unwrap();
    assert!(loaded.found);
    for config in [&*loaded.config, &Config::default()] {
        assert!(config.provider.is_none());
        assert_eq!(config.agent.workspace_dir, None);
        assert_eq!(config.agent.max_iterations.limit(), Some(25));
        assert_eq!(config.agent.max_retries, 3);
        assert_eq!(config.agent.max_tool_result_chars, 50_000);
        assert!(config.agents.list.is_empty());
        assert!(config.channels.telegram.is_none());
        assert_eq!(config.gateway.port, 18_789);
        assert!(config.gateway.token.is_none());
        assert_eq!(config.logging.level, LogLevel::Info);
        assert!(config.logging.redact_sensitive);
        assert!(!config.tools.fs.workspace_only);
        assert_eq!(config.tools.bash.timeout_seconds, 600);
        assert_eq!(config.models.timeouts.connect(), Duration::from_secs(10));
        assert_eq!(config.models.timeouts.first_event(), Duration::from_secs(300));
        assert_eq!(config.models.timeouts.between_events(), Duration::from_secs(120));
        assert!(config.models.providers.is_empty());
    }
}

#[test]
fn every_setting_is_read() {
    let text = r#"{
        $schema: './schema.json',
        provider: {
            name: 'anthropic', model: 'claude', baseUrl: 'https://example.com/v1',
            authProfiles: [{ id: 'one', apiKey: ' k1\n' }, { id: 'two', apiKey: 'k2' }],
        },
        agent: { workspaceDir: '~/w', maxIterations: 7, maxRetries: 0, maxToolResultChars: 1e3 },
        agents: {
            defaults: { workspace: '/d', model: { primary: 'a/b' }, maxIterations: 0 },
            list: [{ id: 'x', default: true, name: 'X', workspace: 'y', model: 'c/d', maxIterations: 'unlimited' }],
        },
        channels: { telegram: { botToken: 'bt', allowedChatIds: [-100, '@me'] } },
        gateway: { port: 1, token: 'gt' },
        logging: { level: 'error', redactSensitive: false },
        tools: { fs: { workspaceOnly: true }, bash: { timeoutSeconds: 86400 } },
        models: {
            timeouts: { connectSeconds: 1, firstEventSeconds: 2, betweenEventsSeconds: 3 },
            providers: { local: {
                baseUrl: 'http://127.0.0.1:8080/v1', apiKey: 'mk', api: 'anthropic-messages',
                models: [{
                    id: 'm', contextWindow: 8192, maxOutput: 1024, reasoning: true, input: ['text', 'image'],
                    price: { input: 1, output: 2.5, cacheRead: 0.1 },
                }],
            } },
        },
    }"#;
    let config = Home::with_config(text).load().unwrap().config;
    let provider = config.provider.as_ref().unwrap();
    assert_eq!((provider.name.as_str(), provider.model.as_str()), ("anthropic", "claude"));
    assert_eq!(provider.base_url.as_deref(), Some("https://example.com/v1"));
    let keys: Vec<_> = provider
        .auth_profiles
        .iter()
        .map(|profile| (profile.id.as_str(), profile.api_key.expose_secret()))
        .collect();
    assert_eq!(keys, [("one", "k1"), ("two", "k2")]);
    assert_eq!(config.agent.workspace_dir.as_deref(), Some("~/w"));
    assert_eq!((config.agent.max_iterations.limit(), config.agent.max_retries), (Some(7), 0));
    assert_eq!(config.agent.max_tool_result_chars, 1000);
    let defaults = &config.agents.defaults;
    assert_eq!(defaults.model.as_ref().and_then(ModelChoice::primary), Some("a/b"));
    assert_eq!(defaults.max_iterations, Some(IterationCap::Unlimited));
    let entry = &config.agents.list[0];
    assert_eq!((entry.id.as_str(), entry.default, entry.name.as_deref()), ("x", true, Some("X")));
    assert_eq!(entry.max_iterations, Some(IterationCap::Unlimited));
    let telegram = config.channels.telegram.as_ref().unwrap();
    let token = telegram.bot_token.as_ref().unwrap();
    assert_eq!(token.expose_secret(), "bt");
    let chats = telegram.allowed_chat_ids.as_ref().unwrap();
    assert_eq!(chats.as_slice(), [ChatId::Number(-100), ChatId::Name("@me".to_owned())]);
    assert_eq!(config.gateway.port, 1);
    assert_eq!(config.gateway.token.as_ref().unwrap().expose_secret(), "gt");
    assert_eq!((config.logging.level, config.logging.redact_sensitive), (LogLevel::Error, false));
    assert!(config.tools.fs.workspace_only);
    assert_eq!(config.tools.bash.timeout_seconds, 86_400);
    assert_eq!(config.models.timeouts.between_events(), Duration::from_secs(3));
    let local = &config.models.providers["local"];
    assert_eq!(
        (local.base_url.as_deref(), local.api),
        (Some("http://127.0.0.1:8080/v1"), Some(ModelApi::AnthropicMessages))
    );
    assert_eq!(local.api_key.as_ref().unwrap().expose_secret(), "mk");
    let model = &local.models[0];
    assert_eq!(
        (model.context_window, model.max_output, model.reasoning),
        (Some(8192), Some(1024), Some(true))
    );
    assert_eq!(model.input, Some(vec![ModelInput::Text, ModelInput::Image]));
    let price = model.price.as_ref().unwrap();
    assert_eq!(
        (price.input, price.output, price.cache_read, price.cache_write),
        (1.0, 2.5, 0.1, 0.0)
    );
}

#[test]
fn unknown_keys_are_refused_in_every_object() {
    let sample = r#"{
        "provider": {"name":"a","model":"m","authProfiles":[{"id":"x","apiKey":"k"}]},
        "agent": {}, "agents": {"defaults": {"model": {"primary":"a/b"}}, "list": [{"id":"a"}]},
        "channels": {"telegram": {"botToken":"t"}}, "gateway": {}, "logging": {},
        "tools": {"fs": {}, "bash": {}},
        "models": {"timeouts": {}, "providers": {"p": {"baseUrl":"http://h","models":[{"id":"m","price":{}}]}}}
    }"#;
    assert!(Home::with_config(sample).load().is_ok());
    let objects: Vec<_> = sample.match_indices('{').map(|(at, _)| at).collect();
    let map_of_providers = sample.find("{\"p\":").unwrap();
    assert_eq!(objects.len(), 21);
    for at in objects.into_iter().filter(|at| *at != map_of_providers) {
        let separator = if sample[at + 1..].starts_with('}') { "" } else { "," };
        let text = format!("{}\"surplus\": 1{separator}{}", &sample[..=at], &sample[at + 1..]);
        let message = Home::with_config(&text).error();
        assert!(message.contains("surplus: unknown key"), "{text}\n{message}");
    }
}

#[test]
fn references_are_replaced_in_values_only_and_once() {
    let text = "{ agents: { list: [{ id: 'a', name: 'x ${A} $${A} ${a}', workspace: '/${B}' }] }, \
                provider: { name: '${B}', model: '\\u0024{B}', authProfiles: [{ id: 'p', apiKey: '${QUOTES}' }] } }";
    let home = Home::with_config(text)
        .variable("A", "${B}")
        .variable("B", "b")
        .variable("QUOTES", "\"},{\\'\n\u{7f}// x");
    let config = home.load().unwrap().config;
    assert_eq!(config.agents.list[0].name.as_deref(), Some("x ${B} ${A} ${a}"));
    assert_eq!(config.agents.list[0].workspace.as_deref(), Some("/b"));
    assert_eq!(config.provider.as_ref().unwrap().name, "b");
    assert_eq!(config.provider.as_ref().unwrap().model, "b");
    assert_eq!(key(&config), "\"},{\\'\n\u{7f}// x");

    let message = Home::with_config("{ '${A}': 1 }").variable("A", "agent").error();
    assert!(message.contains("[\"${A}\"]: unknown key"), "{message}");
}

#[test]
fn an_unset_or_empty_variable_is_named_with_its_place() {
    for home in [Home::with_config(ONE_KEY), Home::with_config(ONE_KEY).variable("KEY", "")] {
        let error = home.load().unwrap_err();
        let ConfigError::MissingEnvVar { var, config_path, .. } = &error else { panic!("{error}") };
        assert_eq!(
            (var.as_str(), config_path.to_string().as_str()),
            ("KEY", "provider.authProfiles[0].apiKey")
        );
        assert_eq!(
            home.error(),
            "~/.myclaw/myclaw.json:1:86: provider.authProfiles[0].apiKey: the variable `KEY` is not set, or empty; set \
             it in the environment or in ~/.myclaw/.env"
        );
    }
    let two =
        Home::with_config("{ gateway: { token: '${ONE}' }, agent: { workspaceDir: '${TWO}' } }")
            .load();
    assert_eq!(two.unwrap_err().report().unwrap().issues().len(), 2);
}

#[test]
fn a_mistake_in_an_earlier_step_is_reported_first() {
    let syntax = Home::with_config("{ agent: { x: '${NOPE}' }");
    assert!(matches!(syntax.load(), Err(ConfigError::Syntax(_))));
    let variable = Home::with_config("{ surplus: '${NOPE}', agent: 5 }");
    assert!(matches!(variable.load(), Err(ConfigError::MissingEnvVar { .. })));
    let shape = Home::with_config("{ surplus: 1, agents: { defaults: { model: 'bare' } } }");
    assert!(
        matches!(shape.load(), Err(ConfigError::Invalid(report)) if report.issues().len() == 1)
    );
}

#[test]
fn a_file_that_is_no_config_is_recognised() {
    let directory = Home::new();
    fs::create_dir(directory.config_file()).unwrap();
    assert_eq!(
        directory.error(),
        "~/.myclaw/myclaw.json is a directory, not a file: move it away, or set MYCLAW_CONFIG_PATH to the config file"
    );
    let large = Home::with_config(" ".repeat(1024 * 1024 + 1));
    assert_eq!(
        large.error(),
        "~/.myclaw/myclaw.json is larger than 1024 KiB, so it is not a config file"
    );
    let largest = Home::with_config(format!("{}{{}}", " ".repeat(1024 * 1024 - 2)));
    assert!(largest.load().is_ok());
    let latin = Home::with_config(b"{\n  // caf\xe9\n}");
    assert_eq!(
        latin.error(),
        "~/.myclaw/myclaw.json:2: not UTF-8 text; save the file in the encoding UTF-8"
    );
    let bom = Home::with_config("\u{feff}{ agent: { maxRetries: 9 } }");
    assert_eq!(bom.load().unwrap().config.agent.max_retries, 9);
    let below_a_file =
        Home::with_config("{}").variable("MYCLAW_CONFIG_PATH", "~/.myclaw/myclaw.json/x.json");
    assert!(matches!(below_a_file.load(), Err(ConfigError::NamedFileNotFound { .. })));
}

#[cfg(unix)]
#[test]
fn links_and_pipes_are_reported_apart() {
    let home = Home::new();
    std::os::unix::fs::symlink("elsewhere.json", home.config_file()).unwrap();
    assert_eq!(
        home.error(),
        "~/.myclaw/myclaw.json is a symbolic link to elsewhere.json, which does not exist: repair the link or remove it"
    );
    assert!(load_or_default(&home.environment()).is_err(), "a broken link is no missing file");
    fs::write(home.state_dir().join("elsewhere.json"), "{}").unwrap();
    assert_eq!(home.load().unwrap().path, home.config_file());

    let pipe = Home::new();
    let made = std::process::Command::new("mkfifo").arg(pipe.config_file()).status().unwrap();
    assert!(made.success());
    assert!(matches!(
        pipe.load(),
        Err(ConfigError::NotAFile { kind: "a device, pipe or socket", .. })
    ));
}

#[test]
fn without_a_file_there_are_defaults_for_those_who_ask() {
    let home = Home::new();
    assert!(matches!(home.load(), Err(ConfigError::NotFound { .. })));
    let loaded = load_or_default(&home.environment()).unwrap();
    assert!(!loaded.found);
    assert_eq!(loaded.path, home.config_file());
    assert_eq!(
        loaded.config.resolve_agent(None).unwrap().workspace,
        home.state_dir().join("workspace")
    );
    let named = Home::with_config("{}").variable("MYCLAW_CONFIG_PATH", "~/elsewhere.json");
    assert_eq!(
        load_or_default(&named.environment()).map(|loaded| loaded.found).unwrap_err().to_string(),
        format!(
            "no config file at {}, which MYCLAW_CONFIG_PATH names: correct or unset it, or let `myclaw init` write one \
             there",
            named.path().join("elsewhere.json").display()
        )
    );
    let broken = Home::with_config("{");
    assert!(load_or_default(&broken.environment()).is_err());
}

#[test]
fn a_cache_gives_the_same_settings_for_a_moment() {
    let home = Home::with_config("{ agent: { maxRetries: 1 } }");
    let environment = home.environment();
    let cache = ConfigCache::new();
    let start = Instant::now();
    let load = |milliseconds| {
        cache.load_at(&environment, start + Duration::from_millis(milliseconds)).unwrap()
    };

    let first = load(0);
    fs::write(home.config_file(), "{ agent: { maxRetries: 2 } }").unwrap();
    assert!(Arc::ptr_eq(&first.config, &load(199).config));
    let second = load(200);
    assert_eq!(second.config.agent.max_retries, 2);
    assert!(Arc::ptr_eq(&second.config, &load(399).config));

    fs::write(home.config_file(), "{ agent: { maxRetries: 3 } }").unwrap();
    cache.clear();
    assert_eq!(load(399).config.agent.max_retries, 3);

    fs::write(home.config_file(), "{ agent: { maxRetries: 4 } }").unwrap();
    let fresh = cache.load_fresh(&environment).unwrap();
    assert_eq!(fresh.config.agent.max_retries, 4);
    assert!(Arc::ptr_eq(&fresh.config, &load(0).config), "a bypass refreshes what is remembered");

    let other = Home::with_config("{ agent: { maxRetries: 5 } }");
    assert_eq!(cache.load_at(&other.environment(), start).unwrap().config.agent.max_retries, 5);
}

#[test]
fn a_cache_does_not_remember_mistakes() {
    let home = Home::with_config("{");
    let (cache, now) = (ConfigCache::new(), Instant::now());
    assert!(cache.load_at(&home.environment(), now).is_err());
    fs::write(home.config_file(), "{}").unwrap();
    assert!(cache.load_at(&home.environment(), now).is_ok());
    fs::write(home.config_file(), "{").unwrap();
    assert!(cache.load_fresh(&home.environment()).is_err());
}

#[test]
fn secrets_are_neither_printed_nor_written() {
    let text = "{ provider: { name: 'a', model: 'm', authProfiles: [{ id: 'p', apiKey: 'hunter2' }] }, \
                gateway: { token: 'hunter2' }, channels: { telegram: { botToken: 'hunter2' } }, \
                models: { providers: { x: { baseUrl: 'http://h', apiKey: 'hunter2' } } } }";
    let home = Home::with_config(text).variable("SECRET", "hunter2");
    fs::write(home.state_dir().join(".env"), "OTHER=hunter2\nhunter2\n").unwrap();
    let environment = home.environment();
    let loaded = load_config(&environment).unwrap();
    let written = serde_json::to_string(&*loaded.config).unwrap();
    assert!(written.contains("\"apiKey\":\"[redacted]\""), "{written}");
    for shown in [
        format!("{loaded:?}"),
        format!("{:?}", loaded.config.provider),
        format!("{environment:?}"),
        format!("{:?}", environment.warnings()),
        written,
    ] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_clone_is_independent() {
    let config = Config::default();
    let mut changed = config.clone();
    changed.agent.max_retries = 99;
    changed.gateway.port = 1;
    assert_eq!((config.agent.max_retries, config.gateway.port), (3, 18_789));
}

/// The limits of a channel hold for its sessions, whether or not this config has its token.
#[test]
fn the_other_keys_of_telegram_need_no_token() {
    let text = "{ channels: { telegram: { historyLimit: 50, dmHistoryLimit: 100 } } }";
    let loaded = Home::with_config(text).load().unwrap();
    let telegram = loaded.config.channels.telegram.as_ref().unwrap();
    assert_eq!(telegram.bots().count(), 0);
    assert!(serde_json::to_value(&loaded.config).unwrap().to_string().contains("historyLimit"));
}
