use myclaw_config::Environment;
use serde_json::json;

use super::*;

fn read(source: ImportSource, text: &str) -> Vec<(String, Result<Value, String>)> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, text).unwrap();
    let environment = Environment::new([("KNOWN", "1"), ("GITHUB_TOKEN", "t")], None, None);
    let found = read_servers(source, &file, Path::new("/project"), &environment).unwrap();
    found.into_iter().map(|server| (server.name, server.entry)).collect()
}

#[test]
fn servers_of_claude_code_and_cursor_and_vs_code_are_read() {
    let servers = r#"{ "files": {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"A": "${KNOWN}", "B": "${OTHER:-usual}", "C": "${env:KNOWN}"}},
        "Git Hub": {"command": "gh-mcp", "disabled": true, "env": {"T": "${input:github-token}"}},
        "remote": {"type": "http", "url": "https://x.example/mcp"},
        "unset": {"command": "x", "env": {"K": "${NOT_SET}"}} }"#;
    let expected = [
        (
            "files".to_owned(),
            Ok(
                json!({"command": "npx", "args": ["-y", "x"], "env": {"A": "${KNOWN}", "B": "usual", "C": "${KNOWN}"}}),
            ),
        ),
        (
            "git-hub".to_owned(),
            Ok(json!({"command": "gh-mcp", "env": {"T": "${GITHUB_TOKEN}"}, "enabled": false})),
        ),
    ];
    for (source, text) in [
        (ImportSource::ClaudeCode, format!("{{\"numStartups\": 3, \"mcpServers\": {servers}}}")),
        (
            ImportSource::ClaudeCode,
            format!("{{\"projects\": {{\"/project\": {{\"mcpServers\": {servers}}}}}}}"),
        ),
        (ImportSource::Cursor, format!("{{\"mcpServers\": {servers}}}")),
        (ImportSource::VsCode, format!("// comment\n{{\"inputs\": [], \"servers\": {servers},}}")),
        (ImportSource::OpenClaw, format!("{{mcp: {{servers: {servers}}}}}")),
    ] {
        let found = read(source, &text);
        assert_eq!(found[..2], expected, "{source:?}");
        assert_eq!(found[2].1.as_ref().unwrap()["url"], "https://x.example/mcp");
        assert!(found[3].1.as_ref().unwrap_err().contains("NOT_SET"));
    }
}

#[test]
fn servers_of_codex_are_read_from_toml() {
    let text = r#"
model = "gpt-5" # comment
[profiles.x]
approval_policy = 'never'
[mcp_servers.docs]
command = "npx"
args = [
  "-y", # the package
  'C:\literal',
]
startup_timeout_sec = 20
tool_timeout_sec = 1_00
enabled_tools = ["search"]
[mcp_servers.docs.env]
"A-B" = "x\ty\u00e9"
[mcp_servers."two words"]
command = "two"
env = { KNOWN = "v", "B" = """
multi""" }
env_vars = ["KNOWN"]
[[list]]
a = 1
"#;
    assert_eq!(
        read(ImportSource::Codex, text),
        [
            (
                "docs".to_owned(),
                Ok(
                    json!({"command": "npx", "args": ["-y", "C:\\literal"], "env": {"A-B": "x\tyé"}, "timeoutSeconds": 100, "tools": {"allow": ["search"]}})
                )
            ),
            (
                "two-words".to_owned(),
                Ok(json!({"command": "two", "env": {"KNOWN": "${KNOWN}", "B": "multi"}}))
            ),
        ]
    );
    for (text, line) in [
        ("a = \"open", 1),
        ("\n\na = ", 3),
        ("a = 1 b", 1),
        ("a = 1\n[a.b]\n", 2),
        (&*format!("a = {}", "[".repeat(100_000)), 1),
    ] {
        let error =
            toml::from_str::<Value>(text).map_err(|error| no_toml(text, &error)).unwrap_err();
        assert!(error.starts_with(&format!("it is no TOML: line {line}: ")), "{text:.20}: {error}");
    }
}

#[test]
fn servers_of_goose_are_read_without_its_own_extensions() {
    let text = "extensions:\n  developer:\n    type: builtin\n    enabled: true\n  fetch:\n    type: stdio\n    cmd: uvx\n    args: [mcp-server-fetch]\n    envs: {}\n    env_keys: [GITHUB_TOKEN]\n    enabled: false\n";
    let expected = json!({"command": "uvx", "args": ["mcp-server-fetch"], "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}, "enabled": false});
    assert_eq!(read(ImportSource::Goose, text), [("fetch".to_owned(), Ok(expected))]);
}
