//! Config files, environments, keys and addresses that cannot work: nothing is sent, nothing is stored.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use myclaw_testkit::{RunningChild, TempHome, WireFormat};
use serde_json::json;

use crate::{assert_fails, assert_fit_for_people, assert_goes_on, config, myclaw, run, serve_text};

/// Nobody said anything that was kept.
fn assert_nothing_stored(home: &TempHome) {
    assert_eq!(home.transcripts(), Vec::<PathBuf>::new());
}

#[test]
fn a_config_file_that_cannot_be_used() {
    let cases: [(&[u8], &[&str]); 8] = [
        (b"", &["myclaw.json:1:1", "empty", "{ … }"]),
        (b" \n\t\n", &["myclaw.json", "empty"]),
        (b"\x7fELF\x02\x01\x01\0\xff\xfe", &["myclaw.json:1", "UTF-8"]),
        (b"\0\0\0\0", &["myclaw.json:1:1"]),
        (b"{ provider: { name: 'anthropic' ", &["myclaw.json:1:"]),
        (b"[]", &["myclaw.json:1:1", "object"]),
        (b"{ agent: { maxIteration: 3 } }", &["agent.maxIteration", "maxIterations"]),
        (
            b"{ provider: { name: 'anthropic', model: 'm', authProfiles: [{ id: 'a', apiKey: '${NO_SUCH_KEY}' }] } }",
            &["NO_SUCH_KEY", "provider.authProfiles[0].apiKey"],
        ),
    ];
    for (text, words) in cases {
        let home = TempHome::new();
        home.write(home.config_path(), text);
        assert_fails(&run(&home, &["run", "hello"]), 3, words);
        assert_fails(&run(&home, &["config", "check"]), 3, words);
        assert_nothing_stored(&home);
        assert_goes_on(&home, WireFormat::AnthropicMessages, "main");
    }
}

#[test]
fn a_config_file_that_is_a_directory() {
    let home = TempHome::new();
    fs::create_dir_all(home.config_path()).expect("a directory");
    let words = ["myclaw.json is a directory", "MYCLAW_CONFIG_PATH"];
    assert_fails(&run(&home, &["run", "hello"]), 3, &words);
    assert_fails(&run(&home, &["config", "check"]), 3, &words);
    assert_nothing_stored(&home);
}

#[test]
fn a_config_file_that_may_not_be_read() {
    let home = TempHome::new();
    home.write_config(&json!({}));
    fs::set_permissions(home.config_path(), fs::Permissions::from_mode(0o000)).expect("chmod");
    if fs::read(home.config_path()).is_ok() {
        myclaw_testkit::skip_here("this user may read everything");
        return;
    }
    assert_fails(&run(&home, &["run", "hello"]), 3, &["cannot read", "myclaw.json", "ermission"]);
}

#[test]
fn a_config_file_that_was_named_and_is_not_there() {
    let home = TempHome::new();
    for (name, path) in [("nowhere.json", "nowhere.json"), ("a/b.json", "~/a/b.json")] {
        for arguments in [&["run", "hello"][..], &["config", "check"], &["doctor"]] {
            let output =
                RunningChild::run(myclaw(&home, arguments).env("MYCLAW_CONFIG_PATH", path));
            output.assert_code(3);
            let all = format!("{}{}", output.stdout(), output.stderr());
            for word in [name, "MYCLAW_CONFIG_PATH", "myclaw init"] {
                assert!(all.contains(word), "{arguments:?}: {word} is missing:\n{all}");
            }
            assert_fit_for_people(&output);
        }
    }
    assert_nothing_stored(&home);
    // The way out that the message names is one.
    let init =
        RunningChild::run(myclaw(&home, &["init"]).env("MYCLAW_CONFIG_PATH", "nowhere.json"));
    init.assert_code(0);
    assert!(home.path().join("nowhere.json").is_file());
}

#[test]
fn without_a_home_a_state_directory_is_enough() {
    let home = TempHome::new();
    // Without any variable the system's list of users names a home, which is the tester's own: not for a test.
    let mut command = myclaw(&home, &["run", "hello"]);
    command.env_remove("HOME").env_remove("MYCLAW_HOME");
    command.env("MYCLAW_STATE_DIR", home.state_directory());
    RunningChild::run(&mut command).assert_code(0);
    assert_eq!(home.transcripts().len(), 1);
    let mut command = myclaw(&home, &["run", "hello"]);
    command.env("HOME", "").env("MYCLAW_HOME", home.path());
    RunningChild::run(&mut command).assert_code(0);
}

#[test]
fn a_dotenv_file_full_of_garbage_is_reported_and_does_no_harm() {
    let garbage: [(&[u8], &str); 4] = [
        (b"this is no assignment\nOPENAI_API_KEY\n", ".env:1: expected NAME=value"),
        (b"\xff\xfe\0k\0e\0y", "not UTF-8"),
        (b"A='never closed\n", ".env:1"),
        (b"0BAD NAME=secret-value\n", ".env:1"),
    ];
    for (text, words) in garbage {
        let home = TempHome::new();
        home.write(home.state_directory().join(".env"), text);
        let server = serve_text(WireFormat::AnthropicMessages, "Fine.");
        home.write_config(&config(server.url(), WireFormat::AnthropicMessages));
        let output = run(&home, &["run", "hello"]);
        output.assert_code(0);
        assert_eq!(output.stdout(), "Fine.\n");
        assert!(output.stderr().contains(words), "{}", output.stderr());
        assert!(!output.stderr().contains("secret-value"), "{}", output.stderr());
        assert_fit_for_people(&output);
    }
}

#[test]
fn a_model_or_key_that_is_not_there() {
    let home = TempHome::new();
    let cases: [(&[&str], &[&str]); 5] = [
        (&["--model", "antropic/claude"], &["`antropic`", "did you mean", "anthropic", "baseUrl"]),
        (&["--model", "claude-sonnet-4-6"], &["provider/model"]),
        (&["--model", ""], &["provider/model"]),
        (&["--model", "anthropic/"], &["provider/model"]),
        (&["--model", "anthropic/claude-sonnet-4-6"], &["no key", "ANTHROPIC_API_KEY"]),
    ];
    for (arguments, words) in cases {
        let arguments = [&["run", "hello"], arguments].concat();
        assert_fails(&run(&home, &arguments), 2, words);
    }
    home.write_config(&json!({"agents": {"defaults": {"model": {"primary": "openai/gpt-4o"}}}}));
    assert_fails(&run(&home, &["run", "hello"]), 3, &["no key", "OPENAI_API_KEY"]);
    assert_nothing_stored(&home);
    assert_goes_on(&home, WireFormat::OpenAiCompletions, "main");
}

#[test]
fn a_key_that_no_header_can_hold() {
    for format in crate::WireFormat::ALL {
        for key in ["test-key\nsecond line", "test-key-ключ", "test-key\u{7f}", "test-key\0"] {
            let server = serve_text(format, "never");
            let home = TempHome::new();
            let mut config = config(server.url(), format);
            config["provider"]["authProfiles"][0]["apiKey"] = json!(key);
            home.write_config(&config);
            let output = run(&home, &["run", "hello"]);
            assert_fails(&output, 4, &["API key", "again"]);
            assert_eq!(server.all_requests().len(), 0);
            let request = assert_goes_on(&home, format, "main");
            assert_eq!(crate::count(&request, "hello"), 1);
        }
    }
}

#[test]
fn a_key_with_a_line_end_behind_it_works() {
    let server = serve_text(WireFormat::AnthropicMessages, "Fine.");
    let home = TempHome::new();
    let mut config = config(server.url(), WireFormat::AnthropicMessages);
    config["provider"]["authProfiles"][0]["apiKey"] = json!("test-key\n");
    home.write_config(&config);
    run(&home, &["run", "hello"]).assert_code(0);
    assert_eq!(server.last_request().header("x-api-key"), Some("test-key"));
}

#[test]
fn an_address_with_a_typo() {
    let cases: [(&str, i32, &[&str]); 6] = [
        ("htp://api.example.com", 3, &["provider.baseUrl", "http"]),
        ("api.example.com/v1", 3, &["provider.baseUrl", "http"]),
        ("http://", 3, &["provider.baseUrl"]),
        ("", 3, &["provider.baseUrl"]),
        ("http://no-such-host.invalid", 4, &["no-such-host.invalid", "base URL"]),
        ("http://127.0.0.1:1", 4, &["127.0.0.1:1", "is the server running"]),
    ];
    for format in crate::WireFormat::ALL {
        for (url, code, words) in cases {
            let home = TempHome::new();
            let mut config = config("http://127.0.0.1:9", format);
            config["provider"]["baseUrl"] = json!(url);
            if format == WireFormat::OpenAiResponses {
                config["models"]["providers"]["responses"] = json!({"api": "openai-responses"});
            }
            home.write_config(&config);
            assert_fails(&run(&home, &["run", "hello"]), code, words);
            let request = assert_goes_on(&home, format, "main");
            // What could not be sent was kept; what could not begin was not.
            assert_eq!(crate::count(&request, "hello"), usize::from(code == 4), "{url}");
        }
    }
}

#[test]
fn a_workspace_that_cannot_be_one() {
    let format = WireFormat::AnthropicMessages;
    let server = serve_text(format, "never");
    let home = TempHome::new();
    let file = home.write("a-file", "not a directory");
    for workspace in [file.display().to_string(), format!("{}/below", file.display())] {
        let mut config = config(server.url(), format);
        config["agent"]["workspaceDir"] = json!(workspace);
        home.write_config(&config);
        assert_fails(&run(&home, &["run", "hello"]), 1, &["workspace", &workspace, "directory"]);
    }
    assert_eq!(server.all_requests().len(), 0);
    assert_nothing_stored(&home);
    assert_goes_on(&home, format, "main");
}
