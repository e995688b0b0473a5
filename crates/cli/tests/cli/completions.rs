//! What a shell completes with the script that `myclaw completions` prints.

use std::path::Path;
use std::process::Command;

use myclaw_testkit::{RunningChild, TempHome};

use crate::{always, run};

/// What bash offers for the last of `words`.
fn offered(home: &TempHome, words: &[&str]) -> Vec<String> {
    let script = run(home, &["completions", "bash"]).stdout();
    let script = home.write("completions.bash", script);
    let binary = Path::new(env!("CARGO_BIN_EXE_myclaw")).parent().expect("a directory");
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let line = format!(
        "PATH={}:$PATH; source {}; COMP_WORDS=({}); COMP_CWORD={}; _myclaw myclaw '{}' '{}'; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        binary.display(),
        script.display(),
        quoted.join(" "),
        words.len() - 1,
        words[words.len() - 1],
        words[words.len() - 2],
    );
    let mut command: Command = home.command("bash");
    let output = RunningChild::run(command.args(["--norc", "-c", &line]));
    output.assert_code(0);
    output.stdout().lines().map(str::to_owned).collect()
}

#[test]
fn a_shell_completes_sessions_models_levels_agents_and_profiles() {
    let (_server, home) = always("Yes.");
    for name in ["trip", "travel", "work"] {
        run(&home, &["run", "-q", "-s", name, "hello"]).assert_code(0);
    }
    let mut sessions = offered(&home, &["myclaw", "run", "--session", "tr"]);
    sessions.sort();
    assert_eq!(sessions, ["travel", "trip"]);
    assert_eq!(offered(&home, &["myclaw", "-s", "w"]), ["work"]);
    assert_eq!(offered(&home, &["myclaw", "--thinking", "m"]), ["minimal", "medium"]);
    assert_eq!(offered(&home, &["myclaw", "chat", "--agent", ""]), ["main"]);
    let models = offered(&home, &["myclaw", "run", "-m", "anthropic/claude-opus"]);
    assert!(models.iter().any(|model| model == "anthropic/claude-opus-4-6"), "{models:?}");
    let profiles = run(&home, &["completions", "--values", "auth-profile"]);
    profiles.assert_code(0);
    let profile = profiles.stdout().lines().next().expect("a profile").to_owned();
    assert_eq!(offered(&home, &["myclaw", "run", "--auth-profile", ""])[0], profile);
    // Other options complete files, as before.
    assert!(offered(&home, &["myclaw", "run", "--directory", "completions"]).len() == 1);
}

#[test]
fn the_scripts_for_other_shells_ask_for_each_of_the_values() {
    let home = TempHome::new();
    for (shell, before, after) in [
        ("zsh", ":_myclaw_values_", "'"),
        ("fish", "--values ", " "),
        ("elvish", "=", " "),
        ("powershell", "' = '", "'"),
    ] {
        let script = run(&home, &["completions", shell]).stdout();
        for kind in ["session", "model", "thinking", "agent", "auth-profile"] {
            let mark = format!("{before}{kind}{after}");
            assert!(
                script.contains(&mark) || script.contains(&mark.replace(' ', "]")),
                "{shell}: {kind}"
            );
        }
        assert!(script.contains("completions --values "), "{shell}");
        let knows_letters = script.contains("-s") && script.contains("myclaw;models;list -s");
        assert!(knows_letters || matches!(shell, "zsh" | "fish"), "{shell}");
    }
}
