use myclaw_config::Environment;
use myclaw_testkit::TempHome;
use serde_json::json;

use crate::Home;

#[test]
fn keys_that_were_added_since_the_last_time_are_removed() {
    let directory = TempHome::new();
    let environment = Environment::new([("MYCLAW_STATE_DIR", directory.path())], None, None);
    let paths = environment.paths().unwrap();
    let home = Home::new(environment, paths.clone());
    let clone = home.clone();
    let cleaned = |home: &Home| {
        let mut text = "first-key-of-mine second-key-of-mine third-key-of-mine".to_owned();
        home.redactor().clean_in_place(&mut text);
        text
    };
    let write = |path: &std::path::Path, text: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    assert_eq!(cleaned(&home), "first-key-of-mine second-key-of-mine third-key-of-mine");
    let config = |key: &str| {
        let profiles = json!([{"id": "a", "apiKey": key}]);
        json!({"provider": {"name": "openai", "model": "m", "authProfiles": profiles}}).to_string()
    };
    // A config file appears, changes with the same length, and a key store appears.
    write(paths.config_file(), &config("first-key-of-mine"));
    assert_eq!(cleaned(&home), "[redacted] second-key-of-mine third-key-of-mine");
    assert_eq!(cleaned(&clone), cleaned(&home));
    write(paths.config_file(), &config("third-key-of-mine"));
    assert_eq!(cleaned(&clone), "first-key-of-mine second-key-of-mine [redacted]");
    let loaded = myclaw_config::load_or_default(&home.environment).unwrap();
    let agent = loaded.config.resolve_agent(None).unwrap();
    let store = myclaw_auth::AuthStore::in_agent_dir(agent.agent_dir.as_deref().unwrap());
    let kept = r#"{"version":1,"profiles":{"b":{"type":"api_key","provider":"openai","key":"second-key-of-mine"}}}"#;
    write(store.file().unwrap(), kept);
    assert_eq!(cleaned(&home), "first-key-of-mine [redacted] [redacted]");
    assert_eq!(cleaned(&clone), cleaned(&home));
}
