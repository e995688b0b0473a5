//! Where things lie, and where variables come from.

use std::fs;
use std::path::{Path, PathBuf};

use myclaw_config::{
    AgentId, ConfigError, Environment, ExposeSecret, KeySource, Paths, SubstitutionLookup,
    Workspaces,
};

use crate::support::Home;

fn environment(variables: &[(&str, &str)]) -> Environment {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Environment::new(variables, Some(PathBuf::from("/home/me")), Some(PathBuf::from("/cwd")))
}

fn paths(variables: &[(&str, &str)]) -> Paths {
    environment(variables).paths().unwrap()
}

#[test]
fn a_variable_is_always_a_key_and_never_names_a_command() {
    let written = "{ provider: { name: 'anthropic', model: 'm', authProfiles: [
        { id: 'a', apiKey: '${FROM_PROJECT}' },
        { id: 'b', apiKey: '!pass show ${WHICH}' },
        { id: 'c', apiKey: 'file:/keys/${USER_NAME}' },
        { id: 'd', apiKey: 'literal:${FROM_PROJECT}' },
    ] } }";
    let home = Home::with_config(written)
        .variable("FROM_PROJECT", "!rm -rf /")
        .variable("USER_NAME", "me");
    let config = home.load().unwrap().config;
    let sources: Vec<String> = config
        .provider
        .as_ref()
        .unwrap()
        .auth_profiles
        .iter()
        .map(|profile| {
            let source = KeySource::from_config(&profile.api_key, config.paths.as_ref()).unwrap();
            match &source {
                KeySource::Literal(key) => format!("key {}", key.expose_secret()),
                source => source.describe().unwrap(),
            }
        })
        .collect();
    assert_eq!(sources, ["key !rm -rf /", "!pass show ${WHICH}", "file:/keys/me", "key !rm -rf /"]);
}

#[test]
fn everything_lies_below_the_state_directory() {
    let paths = paths(&[]);
    assert_eq!(paths.home(), Some(Path::new("/home/me")));
    assert_eq!(paths.state_dir(), Path::new("/home/me/.myclaw"));
    assert_eq!(paths.config_file(), Path::new("/home/me/.myclaw/myclaw.json"));
    assert_eq!(paths.workspace_dir(None), Path::new("/home/me/.myclaw/workspace"));
    assert_eq!(
        paths.workspace_dir(Some(&AgentId::new("Coder"))),
        Path::new("/home/me/.myclaw/workspace-coder")
    );
    assert_eq!(paths.sessions_dir(), Path::new("/home/me/.myclaw/sessions"));
    assert_eq!(paths.logs_dir(), Path::new("/home/me/.myclaw/logs"));
}

#[test]
fn variables_move_home_state_and_settings() {
    for (variables, state_dir, config_file) in [
        (&[("MYCLAW_HOME", " /h ")][..], "/h/.myclaw", "/h/.myclaw/myclaw.json"),
        (&[("MYCLAW_HOME", "  ")], "/home/me/.myclaw", "/home/me/.myclaw/myclaw.json"),
        (&[("MYCLAW_HOME", "~/x")], "/cwd/~/x/.myclaw", "/cwd/~/x/.myclaw/myclaw.json"),
        (&[("MYCLAW_STATE_DIR", "/s")], "/s", "/s/myclaw.json"),
        (&[("MYCLAW_STATE_DIR", "~")], "/home/me", "/home/me/myclaw.json"),
        (&[("MYCLAW_STATE_DIR", "~/s")], "/home/me/s", "/home/me/s/myclaw.json"),
        (&[("MYCLAW_STATE_DIR", "~\\s")], "/home/me/s", "/home/me/s/myclaw.json"),
        (&[("MYCLAW_STATE_DIR", "~other/s")], "/cwd/~other/s", "/cwd/~other/s/myclaw.json"),
        (&[("MYCLAW_STATE_DIR", "./s/.")], "/cwd/s", "/cwd/s/myclaw.json"),
        (&[("MYCLAW_STATE_DIR", "")], "/home/me/.myclaw", "/home/me/.myclaw/myclaw.json"),
        (&[("MYCLAW_HOME", "/h"), ("MYCLAW_STATE_DIR", "~/s")], "/h/s", "/h/s/myclaw.json"),
        (&[("MYCLAW_CONFIG_PATH", "~/c.json")], "/home/me/.myclaw", "/home/me/c.json"),
        (&[("MYCLAW_CONFIG_PATH", "c.json")], "/home/me/.myclaw", "/cwd/c.json"),
    ] {
        let paths = paths(variables);
        assert_eq!(paths.state_dir(), Path::new(state_dir), "{variables:?}");
        assert_eq!(paths.config_file(), Path::new(config_file), "{variables:?}");
        assert_eq!(paths.sessions_dir(), Path::new(state_dir).join("sessions"), "{variables:?}");
    }
}

#[test]
fn a_home_is_needed_only_where_it_is_used() {
    let resolve = |variables: &[(&str, &str)], current_dir: Option<&str>| {
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Environment::new(variables, None, current_dir.map(PathBuf::from)).paths()
    };
    assert!(matches!(resolve(&[], Some("/cwd")), Err(ConfigError::NoHome)));
    assert!(matches!(
        resolve(&[("MYCLAW_STATE_DIR", "~/s")], Some("/cwd")),
        Err(ConfigError::NoHome)
    ));
    assert!(matches!(resolve(&[("MYCLAW_STATE_DIR", "s")], None), Err(ConfigError::NoCurrentDir)));
    assert_eq!(
        resolve(&[("MYCLAW_STATE_DIR", "/s")], None).unwrap().config_file(),
        Path::new("/s/myclaw.json")
    );
    assert_eq!(
        resolve(&[("MYCLAW_HOME", "/h")], None).unwrap().state_dir(),
        Path::new("/h/.myclaw")
    );
    let empty_home = Environment::new([("A", "b")], Some(PathBuf::new()), None);
    let message = empty_home.paths().unwrap_err().to_string();
    assert!(message.contains("MYCLAW_HOME"), "{message}");
}

#[test]
fn the_real_process_has_an_environment() {
    let environment = Environment::from_process();
    assert_eq!(environment.get("PATH"), std::env::var("PATH").ok().as_deref());
    assert_eq!(environment.current_dir(), std::env::current_dir().ok().as_deref());
}

#[test]
fn the_gateway_port_variable_goes_before_the_file() {
    let config = Home::with_config("{ gateway: { port: 4000 } }").load().unwrap().config;
    assert_eq!(config.gateway_port(&environment(&[])), 4000);
    for (value, port) in [("5000", 5000), (" 5000 ", 5000), ("65535", 65_535), ("1", 1)] {
        assert_eq!(
            config.gateway_port(&environment(&[("MYCLAW_GATEWAY_PORT", value)])),
            port,
            "{value:?}"
        );
    }
    for value in ["", "0", "-1", "65536", "80x", "0x50", "1.5", "abc"] {
        assert_eq!(
            config.gateway_port(&environment(&[("MYCLAW_GATEWAY_PORT", value)])),
            4000,
            "{value:?}"
        );
    }
    assert_eq!(myclaw_config::Config::default().gateway_port(&environment(&[])), 18_789);
}

const TOKEN: &str = "{ gateway: { token: '${TOKEN}' } }";

fn token(home: &Home, current_dir: &Path) -> Option<String> {
    let loaded = myclaw_config::load_config(&home.environment_in(current_dir)).ok()?;
    loaded.config.gateway.token.as_ref().map(|token| token.expose_secret().to_owned())
}

#[test]
fn the_process_goes_before_the_state_directory_and_that_before_the_current_directory() {
    let home = Home::with_config(TOKEN);
    let current_dir = home.current_dir();
    assert_eq!(token(&home, &current_dir), None);
    fs::write(current_dir.join(".env"), "TOKEN=current").unwrap();
    assert_eq!(token(&home, &current_dir).as_deref(), Some("current"));
    fs::write(home.state_dir().join(".env"), "export TOKEN='state' # mine\r\n").unwrap();
    assert_eq!(token(&home, &current_dir).as_deref(), Some("state"));
    let home = home.variable("TOKEN", "process");
    assert_eq!(token(&home, &current_dir).as_deref(), Some("process"));
}

#[test]
fn the_state_directories_variables_are_got_like_the_processs_own() {
    let home = Home::new().variable("A", "process");
    fs::write(
        home.state_dir().join(".env"),
        "A=state\nB=state\nMYCLAW_GATEWAY_PORT=7\nMYCLAW_STATE_DIR=/elsewhere\n",
    )
    .unwrap();
    let environment = home.environment();
    assert_eq!(
        (environment.get("A"), environment.get("B"), environment.get("C")),
        (Some("process"), Some("state"), None)
    );
    assert_eq!(myclaw_config::Config::default().gateway_port(&environment), 7);
    assert_eq!(
        environment.paths().unwrap().state_dir(),
        home.state_dir(),
        "a file cannot move the directory it lies in"
    );
}

#[test]
fn what_is_wrong_with_the_file_is_said_without_quoting_it() {
    let home = Home::new();
    fs::write(home.state_dir().join(".env"), "A=1\nhunter2\nB=2\n").unwrap();
    let expected = format!(
        "{}:2: expected NAME=value; the line is ignored",
        home.state_dir().join(".env").display()
    );
    assert_eq!(home.environment().warnings(), [expected]);

    fs::write(home.state_dir().join(".env"), b"A=\xff").unwrap();
    let expected =
        format!("{}: not read: it is not UTF-8 text", home.state_dir().join(".env").display());
    assert_eq!(home.environment().warnings(), [expected]);

    fs::remove_file(home.state_dir().join(".env")).unwrap();
    fs::create_dir(home.state_dir().join(".env")).unwrap();
    let expected =
        format!("{}: not read: it is not a regular file", home.state_dir().join(".env").display());
    assert_eq!(home.environment().warnings(), [expected]);
}

#[test]
fn the_current_directory_serves_references_alone() {
    let home = Home::with_config("{}");
    fs::write(
        home.current_dir().join(".env"),
        "ANTHROPIC_API_KEY=k\nMYCLAW_GATEWAY_PORT=1\nMYCLAW_CONFIG_PATH=/x\nMYCLAW_STATE_DIR=/x\nMYCLAW_HOME=/x\n",
    )
    .unwrap();
    let environment = home.environment();
    assert_eq!(environment.get("ANTHROPIC_API_KEY"), None);
    assert_eq!(environment.paths().unwrap().config_file(), home.config_file());
    let loaded = myclaw_config::load_config(&environment).unwrap();
    assert_eq!(loaded.config.gateway_port(&environment), 18_789);

    let paths = environment.paths().unwrap();
    let lookup = SubstitutionLookup::new(&environment, &paths, Workspaces::Known(Vec::new()));
    assert_eq!(lookup.get("ANTHROPIC_API_KEY"), Some("k"));
    assert_eq!(lookup.get("MYCLAW_GATEWAY_PORT"), None);

    fs::write(home.config_file(), "{ gateway: { token: '${MYCLAW_CONFIG_PATH}' } }").unwrap();
    assert!(matches!(
        myclaw_config::load_config(&environment),
        Err(ConfigError::MissingEnvVar { .. })
    ));
}

#[test]
fn a_workspaces_file_is_never_read() {
    let agents = "agents: { defaults: { workspace: '~/two' }, list: [{ id: 'a', workspace: '${HERE}/three' }] }";
    let text = format!(
        "{{ gateway: {{ token: '${{TOKEN}}' }}, agent: {{ workspaceDir: '../one' }}, {agents} }}"
    );
    let home = Home::with_config(text);
    let home_path = home.path().to_path_buf();
    let home = home.variable("HERE", home_path.display().to_string());
    for directory in
        ["one", "two", "three", ".myclaw/workspace", ".myclaw/workspace-coder/deep/down", "one/src"]
    {
        let directory = home_path.join(directory);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(".env"), "TOKEN=planted").unwrap();
        assert_eq!(token(&home, &directory), None, "{}", directory.display());
        let message =
            myclaw_config::load_config(&home.environment_in(&directory)).unwrap_err().to_string();
        assert!(
            message.contains("not read, since it belongs to a project or an agent works there"),
            "{message}"
        );
    }
    for directory in ["free", "one-and-a-half", ".myclaw"] {
        let directory = home_path.join(directory);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(".env"), "TOKEN=mine").unwrap();
        assert_eq!(token(&home, &directory).as_deref(), Some("mine"), "{}", directory.display());
    }
}

#[cfg(unix)]
#[test]
fn a_link_into_a_workspace_is_seen_through() {
    let home = Home::with_config(TOKEN);
    let workspace = home.state_dir().join("workspace");
    fs::create_dir_all(&workspace).unwrap();
    fs::write(workspace.join(".env"), "TOKEN=planted").unwrap();
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&workspace, &link).unwrap();
    assert_eq!(token(&home, &link), None);
}

#[test]
fn while_the_workspace_is_unknown_no_file_is_trusted() {
    let home =
        Home::with_config("{ agent: { workspaceDir: '${WORK}' }, gateway: { token: '${TOKEN}' } }");
    fs::write(home.current_dir().join(".env"), "WORK=/elsewhere\nTOKEN=planted\n").unwrap();
    assert_eq!(token(&home, &home.current_dir()), None);
    let home = home.variable("WORK", "/elsewhere");
    assert_eq!(token(&home, &home.current_dir()).as_deref(), Some("planted"));
}
