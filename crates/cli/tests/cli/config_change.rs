//! `myclaw config get`, `set`, `unset` and `edit`.

use std::fs;

use myclaw_testkit::{RunningChild, TempHome};

use crate::{myclaw, run};

const TEXT: &str = "\
// my config
{
  agents: { defaults: { model: 'openai/gpt-5' } }, // the model
  channels: {},
  models: { providers: { mine: { baseUrl: 'http://127.0.0.1:1/v1', apiKey: '${KEY}' } } },
}
";

fn home() -> TempHome {
    let home = TempHome::new();
    home.write_config_text(TEXT);
    home.write(
        ".myclaw/.env",
        "KEY=hidden-value\nANTHROPIC_API_KEY=sk-ant-x\nOPENAI_API_KEY=sk-x\n",
    );
    home
}

fn config(home: &TempHome) -> String {
    fs::read_to_string(home.config_path()).expect("the config")
}

#[test]
fn a_value_is_changed_and_everything_else_stays() {
    let home = home();
    let output = run(&home, &["config", "get", "agents.defaults.model"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "openai/gpt-5\n");
    run(&home, &["config", "set", "agents.defaults.model", "anthropic/claude-opus-4-6"])
        .assert_code(0);
    let expected = TEXT.replace("'openai/gpt-5'", "\"anthropic/claude-opus-4-6\"");
    assert_eq!(config(&home), expected);
    run(&home, &["config", "set", "agent.maxIterations", "7"]).assert_code(0);
    assert_eq!(run(&home, &["config", "get", "agent.maxIterations"]).stdout(), "7\n");
    run(&home, &["config", "unset", "agent.maxIterations"]).assert_code(0);
    run(&home, &["config", "set", "models.favorites", "['openai/gpt-5']"]).assert_code(0);
    assert!(config(&home).starts_with("// my config\n") && config(&home).contains("// the model"));
    let output = run(&home, &["config", "get"]);
    output.assert_code(0);
    assert!(output.stdout().contains("\"apiKey\": \"${KEY}\""), "{}", output.stdout());
}

#[test]
fn mistakes_and_secrets_are_refused_and_nothing_is_written() {
    let home = home();
    for (arguments, code, message) in [
        (&["set", "agents.defaults.modle", "x"][..], 3, "modle"),
        (&["set", "gateway.port", "high"], 3, "port"),
        (&["set", "gateway..port", "1"], 2, "not a path"),
        (&["set", "gateway.token", "very-secret-token-42"], 2, "${NAME}"),
        (&["set", "models.providers.mine.apiKey", "sk-ant-0123456789abcdef"], 2, "myclaw auth add"),
        (
            &["set", "models.providers.mine", "{baseUrl: 'http://127.0.0.1:1', apiKey: 'abc'}"],
            2,
            "${NAME}",
        ),
        (&["get", "gateway.port"], 0, "this is the default"),
        (&["get", "gateway.prot"], 2, "did you mean `port`?"),
        (&["unset", "gateway.port"], 1, "not in"),
    ] {
        let arguments: Vec<&str> =
            ["config"].into_iter().chain(arguments.iter().copied()).collect();
        let output = run(&home, &arguments);
        output.assert_code(code);
        let stderr = output.stderr();
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("very-secret") && !stderr.contains("0123456789"), "{stderr}");
        assert_eq!(config(&home), TEXT, "{arguments:?}");
    }
    run(&home, &["config", "set", "gateway.token", "${KEY}"]).assert_code(0);
}

#[test]
fn an_edited_file_is_checked_before_it_is_kept() {
    let home = home();
    let edit = |script: &str| {
        let editor = home.write("editor", format!("#!/bin/sh\n{script}\n"));
        let mut command = myclaw(&home, &["config", "edit"]);
        RunningChild::run(command.env("VISUAL", format!("sh {}", editor.display())))
    };
    let output = edit("sed -i 's/gpt-5/gpt-5-mini/' \"$1\"");
    output.assert_code(0);
    assert_eq!(config(&home), TEXT.replace("gpt-5", "gpt-5-mini"));
    edit("true").assert_code(0);
    let before = config(&home);
    let output = edit("echo '{ gateway: { port: \"x\" } }' > \"$1\"");
    output.assert_code(3);
    assert_eq!(config(&home), before);
    let stderr = output.stderr();
    let kept = stderr.trim_end().rsplit_once("what you wrote is in ").expect("a file").1;
    assert!(fs::read_to_string(kept).expect("the draft").contains("port"), "{stderr}");
    edit("exit 3").assert_code(1);
    assert_eq!(config(&home), before);
}

#[test]
fn the_first_value_makes_a_commented_file() {
    let home = TempHome::new();
    let output = run(&home, &["config", "set", "project.start", "continue"]);
    output.assert_code(0);
    assert!(config(&home).contains("//"), "{}", config(&home));
    assert_eq!(run(&home, &["config", "get", "project.start"]).stdout(), "continue\n");
}
