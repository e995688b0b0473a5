//! The config file is changed by path, and replaced as a whole.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use myclaw_config::{
    ConfigChange, ConfigFile, ConfigPath, EditProblem, MASKED, MaskedValues, Paths, WriteError,
};
use serde_json::{Value, json};

use crate::support::Home;

const TEXT: &str = r#"{
  // The way to the model.
  provider: {
    name: "anthropic",
    authProfiles: [
      { id: "one", apiKey: "sk-ant-very-secret-1" },
      { id: "two", apiKey: "${SECOND_KEY}" },
    ],
    baseUrl: "https://me:password@example.com",
  },
  gateway: { token: "0123456789abcdef", port: 18790 },
}
"#;

fn paths(home: &Home) -> Paths {
    home.environment().paths().unwrap()
}

fn set(path: &str, value: Value) -> ConfigChange {
    ConfigChange::Set { path: path.parse().unwrap(), value }
}

#[test]
fn values_are_shown_without_their_secrets() {
    let home = Home::with_config(TEXT);
    let MaskedValues { values, secrets } =
        ConfigFile::read(&paths(&home)).unwrap().values().unwrap();
    assert_eq!(
        values,
        json!({
            "provider": {
                "name": "anthropic",
                "authProfiles": [
                    {"id": "one", "apiKey": MASKED},
                    {"id": "two", "apiKey": "${SECOND_KEY}"},
                ],
                "baseUrl": MASKED,
            },
            "gateway": {"token": MASKED, "port": 18_790},
        })
    );
    let secrets: Vec<String> = secrets.iter().map(ConfigPath::to_string).collect();
    assert_eq!(secrets, ["provider.authProfiles[0].apiKey", "provider.baseUrl", "gateway.token"]);
}

#[test]
fn what_the_schema_does_not_know_is_masked_when_in_doubt() {
    let home = Home::with_config(
        r#"{ provider: { apiKye: "hunter2", authProfiles: "hunter3", note: "fine" },
             models: { providers: { x: { headers: { "X-Custom": "hunter4" } } } },
             mySecrets: ["hunter5", { deep: "hunter6" }] }"#,
    );
    let values = ConfigFile::read(&paths(&home)).unwrap().values().unwrap().values;
    assert!(!values.to_string().contains("hunter"), "{values}");
    assert_eq!(values["provider"]["note"], "fine");
}

#[test]
fn the_placeholder_of_a_secret_stands_for_the_secret() {
    let home = Home::with_config(TEXT).variable("SECOND_KEY", "x");
    let file = ConfigFile::read(&paths(&home)).unwrap();
    let profile = json!({"id": "renamed", "apiKey": MASKED});
    let changed = file.with(&[set("provider.authProfiles[0]", profile.clone())]).unwrap();
    changed.replace(&file).unwrap();
    let text = fs::read_to_string(home.config_file()).unwrap();
    assert!(text.contains("sk-ant-very-secret-1") && text.contains("renamed"), "{text}");
    assert!(text.contains("// The way to the model."), "{text}");
    // Nowhere else: not for another key, not where there is none.
    let problem = |change| file.with(&[change]).unwrap_err().problem;
    assert_eq!(problem(set("provider.name", json!([MASKED]))), EditProblem::NoSecretHere);
    assert_eq!(
        problem(set("channels.telegram.botToken", json!(MASKED))),
        EditProblem::NoSecretHere
    );
    let path = "provider.authProfiles".parse().unwrap();
    assert_eq!(problem(ConfigChange::Append { path, value: profile }), EditProblem::NoSecretHere);
}

#[test]
fn a_file_that_changed_meanwhile_is_not_overwritten() {
    let home = Home::with_config(TEXT);
    let file = ConfigFile::read(&paths(&home)).unwrap();
    let changed = file.with(&[set("gateway.port", json!(1024))]).unwrap();
    assert_ne!(changed.version(), file.version());
    let theirs = TEXT.replace("18790", "18791");
    fs::write(home.config_file(), &theirs).unwrap();
    assert!(matches!(changed.replace(&file), Err(WriteError::Changed { .. })));
    assert_eq!(fs::read_to_string(home.config_file()).unwrap(), theirs);
    fs::remove_file(home.config_file()).unwrap();
    assert!(matches!(changed.replace(&file), Err(WriteError::Changed { .. })));
}

#[test]
fn the_file_keeps_its_mode_and_its_link_and_leaves_a_backup() {
    let home = Home::new();
    let target = home.path().join("dotfiles.json");
    fs::write(&target, TEXT).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&target, home.config_file()).unwrap();
    let file = ConfigFile::read(&paths(&home)).unwrap();
    file.with(&[set("gateway.port", json!(1024))]).unwrap().replace(&file).unwrap();
    assert!(fs::symlink_metadata(home.config_file()).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&target).unwrap(), TEXT.replace("18790", "1024"));
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    let backup = home.path().join("dotfiles.json.bak");
    assert_eq!(fs::read_to_string(&backup).unwrap(), TEXT);
    assert_eq!(fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!home.path().join("dotfiles.json.lock").exists());
}

#[test]
fn the_first_change_makes_the_file() {
    let home = Home::new();
    let file = ConfigFile::read(&paths(&home)).unwrap();
    assert_eq!((file.found(), file.values().unwrap().values), (false, json!({"agent": {}})));
    let changed = file.with(&[set("agents.defaults.model", json!("builtin/demo"))]).unwrap();
    changed.load(&home.environment()).unwrap();
    changed.replace(&file).unwrap();
    assert!(home.load().unwrap().config.agents.defaults.model.is_some());
    assert!(
        fs::read_to_string(home.config_file()).unwrap().starts_with("// The config of MyClaw.")
    );
    // Made once: a second writer who also saw none does not replace it.
    assert!(matches!(changed.replace(&file), Err(WriteError::Changed { .. })));
}

#[test]
fn a_mistake_is_found_before_anything_is_written() {
    let home = Home::with_config("{ gateway: { port: 1 } }");
    let file = ConfigFile::read(&paths(&home)).unwrap();
    let changed = file.with(&[set("gateway.port", json!("many"))]).unwrap();
    let error = changed.load(&home.environment()).unwrap_err();
    let issue = &error.report().unwrap().issues()[0];
    assert_eq!(serde_json::to_value(&issue.path).unwrap(), json!(["gateway", "port"]));
    assert_eq!(fs::read_to_string(home.config_file()).unwrap(), "{ gateway: { port: 1 } }");
}
