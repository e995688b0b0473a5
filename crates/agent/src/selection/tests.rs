use std::net::SocketAddr;
use std::sync::Arc;

use myclaw_auth::{AuthFile, CredentialType, StoredProfile};
use myclaw_config::{Config, Environment, KeySource};
use myclaw_engine::ActiveModel;
use myclaw_llm::InputKind;
use myclaw_testkit::{ModelServer, Script};
use serde_json::{Value, json};

use super::{
    LOCAL_SERVERS_VARIABLE, Selection, SelectionSource, Wanted, loopback_address, parse_candidates,
    select,
};
use crate::{AgentError, FailureClass};

fn choose_with(
    config: serde_json::Value,
    variables: &[(&str, &str)],
    requested: Option<&str>,
    configured: Option<&str>,
) -> Result<Selection, AgentError> {
    choose_among(config, variables, requested, configured, &[], &AuthFile::default())
}

fn choose_among(
    config: serde_json::Value,
    variables: &[(&str, &str)],
    requested: Option<&str>,
    configured: Option<&str>,
    fallbacks: &[&str],
    stored: &AuthFile,
) -> Result<Selection, AgentError> {
    let fallbacks: Vec<String> = fallbacks.iter().map(|name| (*name).to_owned()).collect();
    let config: Arc<Config> = Arc::new(serde_json::from_value(config).expect("a config"));
    let variables = [(LOCAL_SERVERS_VARIABLE, "none")].into_iter().chain(variables.iter().copied());
    let environment = Environment::new(variables, None, None);
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime").block_on(
        select(
            &config,
            &environment,
            Wanted { requested, configured, fallbacks: &fallbacks, stored },
        ),
    )
}

/// The keys of a model, each with where it comes from.
fn keys(selection: &Selection, model: usize) -> Vec<String> {
    let source = |source: &KeySource| source.describe().unwrap_or_else(|| "literal".to_owned());
    selection.models[model]
        .profiles
        .iter()
        .map(|profile| {
            format!("{}={}", profile.id, profile.source.as_ref().map(source).unwrap_or_default())
        })
        .collect()
}

fn empty() -> serde_json::Value {
    serde_json::json!({})
}

fn anthropic() -> serde_json::Value {
    serde_json::json!({"provider": {
        "name": "anthropic", "model": "claude-x", "authProfiles": [{"id": "a", "apiKey": "from-file"}]
    }})
}

#[test]
fn without_any_provider_the_planner_answers_and_a_note_says_so() {
    let chosen = choose_with(empty(), &[], None, None).expect("a model");
    assert_eq!(chosen.reference.to_string(), "builtin/demo");
    assert_eq!(chosen.source, SelectionSource::Builtin);
    assert!(chosen.is_builtin());
}

#[test]
fn a_key_in_the_environment_goes_before_a_server_and_fills_in_the_provider() {
    let chosen = choose_with(
        empty(),
        &[("GEMINI_API_KEY", " k1 "), ("OPENROUTER_API_KEY", "k2")],
        None,
        None,
    )
    .expect("a model");
    assert_eq!(chosen.reference.provider, "google");
    assert_eq!(chosen.source, SelectionSource::KeyVariable("GEMINI_API_KEY"));
    assert_eq!(keys(&chosen, 0), ["GEMINI_API_KEY=env:GEMINI_API_KEY"]);
    assert!(!format!("{chosen:?}").contains("k1"));
}

#[test]
fn a_blank_key_counts_as_missing() {
    let chosen = choose_with(empty(), &[("ANTHROPIC_API_KEY", "  ")], None, None).expect("a model");
    assert_eq!(chosen.source, SelectionSource::Builtin);
}

#[test]
fn the_config_file_goes_before_the_environment_and_needs_no_announcement() {
    let chosen =
        choose_with(anthropic(), &[("OPENAI_API_KEY", "k")], None, Some("anthropic/claude-x"))
            .expect("ok");
    assert_eq!(chosen.source, SelectionSource::ConfigFile);
}

#[test]
fn a_requested_model_of_another_provider_takes_its_key_from_the_environment() {
    let chosen = choose_with(
        anthropic(),
        &[("OPENAI_API_KEY", "k")],
        Some("openai/gpt-x"),
        Some("anthropic/claude-x"),
    )
    .expect("a model");
    assert_eq!(chosen.reference.provider, "openai");
    assert_eq!(keys(&chosen, 0), ["OPENAI_API_KEY=env:OPENAI_API_KEY"]);
}

#[test]
fn a_missing_key_is_named_with_its_variable() {
    let error = choose_with(anthropic(), &[], Some("openai/gpt-x"), None).expect_err("no key");
    assert_eq!(error.class, FailureClass::Usage);
    assert!(error.message.contains("OPENAI_API_KEY"), "{error}");
    let error = choose_with(empty(), &[], None, Some("openai/gpt-x")).expect_err("no key");
    assert_eq!(error.class, FailureClass::Config);
}

#[test]
fn an_unknown_provider_gets_the_nearest_known_one() {
    let error = choose_with(empty(), &[], Some("antropic/claude"), None).expect_err("unknown");
    assert!(error.message.contains("`anthropic`"), "{error}");
    let error = choose_with(empty(), &[], Some("claude"), None).expect_err("no provider");
    assert_eq!(error.class, FailureClass::Usage);
}

#[test]
fn a_provider_that_the_user_defines_needs_no_key() {
    let own = serde_json::json!({"models": {"providers": {"lab": {
        "baseUrl": "http://10.0.0.5:9000/v1", "models": [{"id": "big"}]
    }}}});
    let chosen = choose_with(own, &[], None, None).expect("a model");
    assert_eq!(chosen.reference.to_string(), "lab/big");
    assert_eq!(chosen.source, SelectionSource::ConfigFile);
}

#[test]
fn a_local_provider_is_reached_where_ollama_host_says() {
    let environment = Environment::new([("OLLAMA_HOST", "0.0.0.0:9999")], None, None);
    let reference = myclaw_llm::parse_model_ref("ollama/qwen3").expect("a model");
    let stored = AuthFile::default();
    let found = super::find_access(&Config::default(), &environment, &stored, &reference);
    let model = super::resolve(&Config::default(), &reference, &found.expect("access"));
    assert_eq!(model.model.base_url, "http://127.0.0.1:9999/v1");
}

#[test]
fn ollama_host_is_read_as_ollama_reads_it() {
    let at = |text: &str| text.parse::<SocketAddr>().ok();
    for (text, address) in [
        ("127.0.0.1:1", at("127.0.0.1:1")),
        ("http://localhost:4000/", at("127.0.0.1:4000")),
        ("localhost", at("127.0.0.1:11434")),
        (":5000", at("127.0.0.1:5000")),
        ("0.0.0.0", at("127.0.0.1:11434")),
        ("[::1]:70", at("[::1]:70")),
        ("192.168.1.5:11434", None),
        ("gpu.example:11434", None),
    ] {
        assert_eq!(loopback_address(text), address, "{text}");
    }
}

#[test]
fn candidates_are_pairs() {
    assert_eq!(parse_candidates("none"), Ok(Vec::new()));
    let parsed = parse_candidates("ollama=127.0.0.1:1, lmstudio=127.0.0.1:2").expect("two");
    assert_eq!(parsed.len(), 2);
    assert_eq!(parsed[1].provider, "lmstudio");
    assert!(parse_candidates("ollama").expect_err("no address").contains("ollama=127.0.0.1:11434"));
}

fn with_stored(provider: &str) -> AuthFile {
    let mut stored = AuthFile::default();
    let key = "a-stored-key".to_owned().into();
    stored.put("name", StoredProfile::with_key(provider, CredentialType::ApiKey, key));
    stored
}

#[test]
fn a_stored_key_is_as_good_as_one_in_the_environment_which_goes_first() {
    let stored = with_stored("groq");
    let chosen = choose_among(empty(), &[], None, None, &[], &stored).expect("a model");
    assert_eq!(
        (chosen.reference.provider.as_str(), chosen.source),
        ("groq", SelectionSource::StoredKey)
    );
    let chosen = choose_among(empty(), &[("XAI_API_KEY", "k")], None, None, &[], &stored);
    assert_eq!(chosen.expect("a model").source, SelectionSource::KeyVariable("XAI_API_KEY"));
    choose_among(empty(), &[], Some("groq/any"), None, &[], &stored).expect("no key is missing");
    choose_among(empty(), &[], Some("xai/any"), None, &[], &stored).expect_err("one is");
}

#[test]
fn fallbacks_come_with_their_keys_and_unusable_ones_are_reported() {
    let names = ["openai/gpt-5.1", "groq/llama", "nobody/model"];
    let variables = [("OPENAI_API_KEY", "k")];
    let stored = AuthFile::default();
    let configured = Some("anthropic/claude-x");
    let chosen = choose_among(anthropic(), &variables, None, configured, &names, &stored);
    let chosen = chosen.expect("a model");
    let usable: Vec<String> = chosen.models.iter().map(ActiveModel::reference).collect();
    assert_eq!(usable, ["anthropic/claude-x", "openai/gpt-5.1"]);
    assert_eq!(keys(&chosen, 0), ["a=literal"]);
    assert_eq!(keys(&chosen, 1), ["OPENAI_API_KEY=env:OPENAI_API_KEY"]);
    assert!(chosen.unusable[0].starts_with("no fallback on groq/llama: there is no key for groq"));
    assert!(chosen.unusable[1].starts_with("no fallback on nobody/model: the provider `nobody`"));

    let requested = Some("anthropic/claude-x");
    let chosen = choose_among(anthropic(), &variables, requested, configured, &names, &stored);
    assert_eq!(
        chosen.expect("a model").models.len(),
        1,
        "a model that the caller names has no fallbacks"
    );
}

/// What is selected where `provider` is a server on this machine that answers with these documents, with the paths that
/// it was asked for. `definition` is what the config says about the model `m`.
fn choose_local(
    provider: &str,
    documents: &[(&str, Value)],
    definition: &Value,
) -> (Selection, Vec<String>) {
    let script = documents
        .iter()
        .fold(Script::new(), |script, (path, document)| script.document(path, document.clone()));
    let server = ModelServer::spawn_blocking_thread(script);
    let own = json!({"baseUrl": format!("{}/v1", server.url()), "models": [definition]});
    let config = json!({"models": {"providers": {provider: own}}});
    let chosen = choose_with(config, &[], None, Some(&format!("{provider}/m"))).expect("a model");
    let mut asked: Vec<String> =
        server.all_requests().iter().map(|request| request.path.clone()).collect();
    asked.sort();
    (chosen, asked)
}

#[test]
fn the_window_and_the_input_are_those_that_a_server_on_this_machine_states() {
    let list = |entry: Value| json!({"object": "list", "data": [entry]});
    let show = |parameters: &str| {
        json!({
            "parameters": parameters, "capabilities": ["completion", "tools", "vision"],
            "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 262_144},
        })
    };
    let loaded = |window: u64| json!({"models": [{"name": "m:latest", "context_length": window}]});
    let llama = json!({
        "id": "weights.gguf", "meta": {"n_ctx": 40_960, "n_ctx_train": 131_072},
        "architecture": {"input_modalities": ["text"]},
    });
    let older = json!({"id": "weights.gguf", "meta": {"n_ctx_train": 65_536}});
    let vllm = json!({"id": "m", "max_model_len": 32_768});
    let studio = json!({
        "id": "m", "type": "llm", "max_context_length": 131_072, "loaded_context_length": 16_384,
    });
    let show_path = "/api/show";
    let ps_path = "/api/ps";
    let cases = [
        ("llamacpp", vec![("/v1/models", list(llama))], 40_960, false),
        ("llamacpp", vec![("/v1/models", list(older))], 65_536, true),
        ("vllm", vec![("/v1/models", list(vllm))], 32_768, true),
        ("lmstudio", vec![("/api/v0/models", list(studio))], 16_384, false),
        ("ollama", vec![(ps_path, loaded(4_096)), (show_path, show("stop x"))], 4_096, true),
        // The model's own file decides, whatever another program's request made Ollama load it with.
        (
            "ollama",
            vec![(ps_path, loaded(4_096)), (show_path, show("stop x\nnum_ctx   65536"))],
            65_536,
            true,
        ),
    ];
    for (provider, documents, window, takes_images) in cases {
        let (chosen, asked) = choose_local(provider, &documents, &json!({"id": "m"}));
        let model = chosen.model();
        let has_images = model.input.contains(&InputKind::Image);
        assert_eq!((model.context_window, has_images), (window, takes_images), "{documents:?}");
        assert!(model.max_output <= window / 4, "{model:?}");
        let paths: Vec<&str> = documents.iter().map(|(path, _)| *path).collect();
        assert_eq!(asked, paths);
        let is_noted = chosen.window_note().is_some_and(|note| note.contains("4096 tokens"));
        assert_eq!(is_noted, window == 4_096, "{:?}", chosen.window_note());
    }
}

#[test]
fn an_unknown_window_of_ollama_is_reported() {
    let show = json!({"model_info": {"llama.context_length": 131_072}});
    let documents = [("/api/show", show), ("/api/ps", json!({"models": []}))];
    let (chosen, _) = choose_local("ollama", &documents, &json!({"id": "m"}));
    assert_eq!(chosen.model().context_window, 131_072);
    let note = chosen.window_note().expect("a note");
    assert!(note.contains("not known") && note.contains("OLLAMA_CONTEXT_LENGTH"), "{note}");
}

#[test]
fn a_stated_window_and_other_providers_are_not_asked_about() {
    let window = json!({"id": "m", "contextWindow": 50_000});
    for (provider, definition) in [("ollama", window), ("lab", json!({"id": "m"}))] {
        let (chosen, asked) = choose_local(provider, &[], &definition);
        assert_eq!((asked.len(), chosen.window_note()), (0, None), "{provider}");
    }
    // A server that does not answer the question leaves the guess.
    let (chosen, asked) =
        choose_local("llamacpp", &[("/v1/models", json!([]))], &json!({"id": "m"}));
    assert_eq!((chosen.model().context_window, asked.len()), (200_000, 1));
    let stated = json!({"id": "m", "input": ["text", "image"]});
    let list =
        json!({"data": [{"id": "m", "meta": {"n_ctx": 20_000}, "input_modalities": ["text"]}]});
    let (chosen, _) = choose_local("llamacpp", &[("/v1/models", list)], &stated);
    assert_eq!(chosen.model().context_window, 20_000);
    assert!(chosen.model().input.contains(&InputKind::Image), "{:?}", chosen.model());
}
