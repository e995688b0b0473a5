//! The file to start from.

use std::fs;
use std::sync::Barrier;

use myclaw_config::{
    ConfigError, ExposeSecret, STARTER_CONFIG, Scaffold, scaffold_config_if_missing,
};

use crate::support::Home;

#[test]
fn the_starter_is_written_once_and_loads() {
    let home = Home::new().variable("ANTHROPIC_API_KEY", "k");
    fs::remove_dir(home.state_dir()).unwrap();
    let paths = home.environment().paths().unwrap();
    let path = home.config_file();
    assert_eq!(
        scaffold_config_if_missing(&paths).unwrap(),
        Scaffold { path: path.clone(), created: true }
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), STARTER_CONFIG);

    let config = home.load().unwrap().config;
    let provider = config.provider.as_ref().unwrap();
    assert_eq!(
        (provider.name.as_str(), provider.model.as_str()),
        ("anthropic", "claude-sonnet-4-6")
    );
    let profiles: Vec<_> = provider
        .auth_profiles
        .iter()
        .map(|profile| (profile.id.as_str(), profile.api_key.expose_secret()))
        .collect();
    assert_eq!(profiles, [("primary", "k")]);
    assert!(config.channels.telegram.is_none() && config.gateway.token.is_none());
    assert_eq!(config.resolve_agent(None).unwrap().workspace, home.state_dir().join("workspace"));

    fs::write(&path, "{}").unwrap();
    assert_eq!(
        scaffold_config_if_missing(&paths).unwrap(),
        Scaffold { path: path.clone(), created: false }
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "{}");
    assert_eq!(
        fs::read_dir(home.state_dir()).unwrap().count(),
        1,
        "no temporary file stays behind"
    );
}

/// Whoever takes the comment marks away must get a valid config.
#[test]
fn what_the_starter_shows_in_comments_is_right_too() {
    let is_setting = |line: &str| {
        line.starts_with(['}', ']', '{']) || line.split(':').next().is_some_and(is_key)
    };
    let text: String = STARTER_CONFIG
        .lines()
        .map(|line| match line.trim_start().strip_prefix("//").map(str::trim_start) {
            Some(shown) if is_setting(shown) => format!("{shown}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let home = [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_API_KEY_BACKUP",
        "TELEGRAM_BOT_TOKEN",
        "MYCLAW_GATEWAY_TOKEN",
    ]
    .into_iter()
    .fold(Home::with_config(&text), |home, name| home.variable(name, "value"));
    let config = home.load().unwrap_or_else(|error| panic!("{error}\n{text}")).config;
    assert_eq!(config.provider.as_ref().unwrap().auth_profiles.len(), 2);
    assert!(config.channels.telegram.is_some() && config.gateway.token.is_some());
    assert!(config.tools.fs.workspace_only);
    assert!(config.agent.workspace_dir.is_some());
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric())
}

#[test]
fn of_many_at_once_one_writes() {
    let home = Home::new();
    let paths = home.environment().paths().unwrap();
    let barrier = Barrier::new(8);
    let created = std::thread::scope(|scope| {
        let write = || {
            barrier.wait();
            scaffold_config_if_missing(&paths).unwrap().created
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(write)).collect();
        threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum::<usize>()
    });
    assert_eq!(created, 1);
    assert_eq!(fs::read_to_string(home.config_file()).unwrap(), STARTER_CONFIG);
    assert_eq!(fs::read_dir(home.state_dir()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn the_owner_alone_may_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    fs::remove_dir(home.state_dir()).unwrap();
    scaffold_config_if_missing(&home.environment().paths().unwrap()).unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(home.config_file()), mode(home.state_dir())), (0o600, 0o700));
}

#[cfg(unix)]
#[test]
fn a_link_is_something_in_its_place() {
    let home = Home::new();
    std::os::unix::fs::symlink("/nowhere/at/all", home.config_file()).unwrap();
    assert!(!scaffold_config_if_missing(&home.environment().paths().unwrap()).unwrap().created);
    assert!(matches!(home.load(), Err(ConfigError::DanglingLink { .. })));
}

#[test]
fn where_it_cannot_be_written_the_message_says_so() {
    let home = Home::new();
    fs::write(home.path().join("file"), "").unwrap();
    let home = home.variable("MYCLAW_STATE_DIR", "~/file/state");
    let error = scaffold_config_if_missing(&home.environment().paths().unwrap()).unwrap_err();
    assert!(
        matches!(&error, ConfigError::Unwritable { path, .. } if path.ends_with("file/state")),
        "{error}"
    );
}

#[test]
fn a_settings_file_elsewhere_gets_its_directory() {
    let home = Home::new().variable("MYCLAW_CONFIG_PATH", "~/deep/down/claw.json5");
    let scaffold = scaffold_config_if_missing(&home.environment().paths().unwrap()).unwrap();
    assert_eq!(
        scaffold,
        Scaffold { path: home.path().join("deep/down/claw.json5"), created: true }
    );
}
