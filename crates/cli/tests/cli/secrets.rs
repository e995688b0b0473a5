//! What tools can learn of the program's own environment.

use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, TempHome, WireFormat};
use serde_json::json;

use crate::myclaw;

/// Prints the variables of every process from the tool's parent up to the first, as far as the system shows them.
const WALK: &str = r#"
pid=$PPID
while [ "$pid" -gt 1 ]; do
    echo "of $pid:"; tr '\0' '\n' < "/proc/$pid/environ"
    pid=$(awk '/^PPid:/ {print $2}' "/proc/$pid/status")
done
echo "own:"; env"#;

#[test]
fn a_tool_cannot_read_keys_from_the_processes_above_it() {
    let server = ModelServer::spawn_blocking_thread(Script::from([
        Reply::anthropic().tool_call("call_1", "bash", json!({"command": WALK})),
        Reply::anthropic().text("I see."),
    ]));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["provider"]["authProfiles"][0]["apiKey"] = json!("${CLAUDE_ACCESS}");
    home.write_config(&config);
    let mut command = myclaw(&home, &["run", "look"]);
    command
        .env("CLAUDE_ACCESS", "sk-first-secret")
        .env("OPENAI_API_KEY", "sk-second-secret")
        .env("HTTPS_PROXY", "http://me:third-secret@127.0.0.1:9")
        .env("NO_PROXY", "127.0.0.1,localhost");
    let output = RunningChild::run(&mut command);
    output.assert_code(0);
    let requests = server.requests();
    assert_eq!(requests[0].header("x-api-key"), Some("sk-first-secret"), "the key is still used");
    let seen = requests[1].body_text();
    // What was seen is not shown here: it holds the variables of whoever runs the tests.
    for shown in ["of ", "own:", "NO_PROXY="] {
        assert!(seen.contains(shown), "{shown:?} was not seen");
    }
    for secret in ["sk-first-secret", "sk-second-secret", "third-secret"] {
        assert!(!seen.contains(secret), "{secret:?} was seen");
    }
}
