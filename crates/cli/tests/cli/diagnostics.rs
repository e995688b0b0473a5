//! Errors that edits add, from language servers.

use std::fs;
use std::path::PathBuf;

use myclaw_testkit::{
    ChildOutput, LanguageServer, ModelServer, RunningChild, Signal, TempHome, WireFormat,
    wait_until_gone,
};
use serde_json::{Value, json};

use crate::mcp::{calls, results};
use crate::myclaw;
use crate::sandbox::until;

/// A change of the config.
type Change<'a> = &'a dyn Fn(&mut Value);

/// A home with a language server in `tools/`, which reports as its mode says. The model makes the calls of the test.
struct Scene {
    home: TempHome,
    server: LanguageServer,
}

impl Scene {
    fn new(model: &ModelServer, mode: &str, change: impl FnOnce(&mut Value)) -> Self {
        let home = TempHome::new();
        let mut config = TempHome::config_for(model.url(), WireFormat::AnthropicMessages);
        // The longest limit, so that a busy machine changes nothing.
        config["tools"]["diagnostics"]["waitMs"] = json!(10_000);
        config["agents"]["defaults"]["sandbox"]["mode"] = json!("off");
        change(&mut config);
        home.write_config(&config);
        let server = LanguageServer::write(&home.path().join("tools"), mode);
        Self { home, server }
    }

    fn started_file(&self) -> String {
        self.home.path().join("tools/started.txt").display().to_string()
    }

    fn run(&self, options: &[&str]) -> ChildOutput {
        let words: Vec<&str> = ["run", "go on"].iter().chain(options).copied().collect();
        let output =
            RunningChild::run(myclaw(&self.home, &words).env("PATH", self.server.path_variable()));
        output.assert_code(0);
        output
    }
}

fn write(content: &str) -> (&'static str, Value) {
    ("write", json!({"path": "a.py", "content": content}))
}

fn edit(old: &str, new: &str) -> (&'static str, Value) {
    ("edit", json!({"path": "a.py", "oldText": old, "newText": new}))
}

/// Edits that change nothing but comments. A server that starts slowly, on a busy machine, says after one of them what it found.
fn comments(before: &str) -> impl Iterator<Item = (&'static str, Value)> {
    (0..20).map(move |at| edit(before, &format!("# {at}\n{before}")))
}

#[test]
fn each_edit_says_which_errors_it_added_and_none_twice() {
    for mode in ["push", "pull"] {
        let model = calls(&[
            write("one = BAD\nODD\n"),
            edit("one", "# moved\none"),
            edit("ODD", "two = BAD"),
            edit("two = BAD", "two = 2"),
            edit("two = 2", "two = BAD"),
        ]);
        let scene = Scene::new(&model, mode, |_| {});
        scene.run(&[]);
        let found = results(&model);
        let expected = [
            Some(
                "pyright-langserver reports 1 new error in a.py:\\nline 1:7: one = BAD has BAD (bad)",
            ),
            None,
            Some(
                "pyright-langserver reports 1 new error in a.py:\\nline 3:7: two = BAD has BAD (bad)",
            ),
            None,
            Some("line 3:7: two = BAD has BAD (bad)"),
        ];
        assert_eq!(found.len(), expected.len(), "{mode}");
        for (result, expected) in found.iter().zip(expected) {
            match expected {
                Some(text) => assert!(result.contains(text), "{mode}: {result}"),
                None => assert!(!result.contains("pyright"), "{mode}: {result}"),
            }
        }
        let started = scene.server.started();
        assert_eq!(started.len(), 1, "{mode}");
        wait_until_gone(started[0]);
    }
}

#[test]
fn what_came_too_late_is_said_after_a_later_edit() {
    let go = ("bash", json!({"command": "touch ../../tools/go"}));
    let mut wanted = vec![write("one = BAD\n"), go];
    // The server begins when it can; each edit waits for it a little.
    wanted.extend(comments("one"));
    let model = calls(&wanted);
    let scene =
        Scene::new(&model, "late", |config| config["tools"]["diagnostics"]["waitMs"] = json!(500));
    scene.run(&[]);
    let found = results(&model);
    assert!(!found[0].contains("pyright"), "{}", found[0]);
    let said: Vec<&String> =
        found.iter().filter(|result| result.contains("one = BAD has BAD")).collect();
    assert_eq!(said.len(), 1, "{found:?}");
    assert_eq!(scene.server.started().len(), 1);
}

#[test]
fn a_server_that_says_nothing_or_nonsense_disturbs_no_edit() {
    for mode in ["deaf", "noise"] {
        let model = calls(&[write("one = BAD\n"), edit("one", "two")]);
        let scene = Scene::new(&model, mode, |config| {
            config["tools"]["diagnostics"]["waitMs"] = json!(100)
        });
        scene.run(&[]);
        for result in results(&model) {
            assert!(!result.contains("pyright") && result.contains("a.py"), "{mode}: {result}");
        }
        assert_eq!(fs::read_to_string(scene.home.workspace().join("a.py")).unwrap(), "two = BAD\n");
        scene.server.started().into_iter().for_each(wait_until_gone);
    }
}

#[test]
fn a_server_that_ends_at_its_start_disturbs_no_edit_and_one_that_outlives_a_kill_is_ended() {
    let model = calls(&[write("one = BAD\n"), edit("one", "two")]);
    let scene = Scene::new(&model, "push", |_| ());
    let program = scene.home.path().join("tools/pyright-langserver");
    fs::write(&program, "#!/bin/sh\necho no >&2\nexit 1\n").unwrap();
    scene.run(&[]);
    assert!(results(&model).iter().all(|result| !result.contains("pyright")));
    assert_eq!(fs::read_to_string(scene.home.workspace().join("a.py")).unwrap(), "two = BAD\n");
    // One that heeds neither the end of its input nor a signal.
    let deaf =
        "#!/bin/sh\ntrap '' TERM INT HUP\necho $$ >> started.txt\nwhile :; do sleep 0.1; done\n";
    fs::write(&program, deaf.replace("started.txt", &scene.started_file())).unwrap();
    let model = calls(&[write("three = BAD\n")]);
    scene.home.use_server(&model, WireFormat::AnthropicMessages);
    let running = RunningChild::spawn(
        myclaw(&scene.home, &["run", "go on"]).env("PATH", scene.server.path_variable()),
    );
    until("a server", || !scene.server.started().is_empty());
    running.signal(Signal::Kill);
    running.wait(std::time::Duration::from_secs(60));
    RunningChild::run(&mut myclaw(&scene.home, &["run", "hello"])).assert_code(0);
    scene.server.started().into_iter().for_each(wait_until_gone);
}

#[test]
fn no_server_starts_where_the_config_the_mode_or_the_rules_forbid_it() {
    let off = |config: &mut Value| config["tools"]["diagnostics"]["enabled"] = json!(false);
    let listed = |config: &mut Value| {
        config["tools"]["exec"] = json!({"security": "allowlist", "allowlist": ["ls"]})
    };
    let denied = |config: &mut Value| config["tools"]["deny"] = json!(["bash"]);
    let permitted = |config: &mut Value| {
        config["tools"]["exec"] =
            json!({"security": "allowlist", "allowlist": ["pyright-langserver"]});
    };
    let cases: [(&str, Change<'_>, usize); 4] = [
        ("off", &off, 0),
        ("a list without it", &listed, 0),
        ("no commands", &denied, 0),
        ("a list with it", &permitted, 1),
    ];
    for (name, change, count) in cases {
        let model = calls(&[write("one = BAD\n")]);
        let scene = Scene::new(&model, "push", change);
        scene.run(&[]);
        assert_eq!(scene.server.started().len(), count, "{name}");
        assert_eq!(
            results(&model)[0].contains("pyright"),
            count == 1,
            "{name}: {:?}",
            results(&model)
        );
    }
}

#[test]
fn a_program_of_the_project_is_no_language_server_unless_the_project_is_trusted() {
    for is_trusted in [false, true] {
        let model = calls(&[write("one = BAD\n")]);
        let scene = Scene::new(&model, "push", |config| {
            if is_trusted {
                config["tools"]["diagnostics"]["trustedProjects"] = json!(["~/project"]);
            }
        });
        let project = scene.home.path().join("project");
        fs::create_dir_all(project.join(".git")).unwrap();
        let own = LanguageServer::write(&project.join("bin"), "push");
        let mut command = myclaw(&scene.home, &["run", "go on", "-C", "project"]);
        RunningChild::run(command.env("PATH", own.path_variable())).assert_code(0);
        assert_eq!(own.started().len(), usize::from(is_trusted), "{is_trusted}");
    }
}

#[test]
fn in_a_sandboxed_session_the_server_runs_in_the_sandbox() {
    let mut wanted = vec![write("one = BAD\n")];
    wanted.extend(comments("one"));
    let model = calls(&wanted);
    let scene = Scene::new(&model, "push", |config| {
        config["agents"]["defaults"]["sandbox"] = json!({
            "mode": "all", "confinement": {"readOnly": ["~/tools"]},
        });
    });
    let outcome = scene.run(&[]);
    let found = results(&model).concat();
    assert!(found.contains("one = BAD has BAD"), "{found}\n{}", outcome.stderr());
    // It could not say that it started, since the directory is read-only there.
    assert!(scene.server.started().is_empty());
}

#[test]
fn pyright_itself_reports_what_an_edit_broke() {
    let Some(program) =
        std::env::var_os("MYCLAW_PYRIGHT").map(PathBuf::from).filter(|path| path.exists())
    else {
        myclaw_testkit::skip_without("MYCLAW_PYRIGHT is not set; scripts/test sets it");
        return;
    };
    let good = "def twice(number: int) -> int:\n    return number * 2\n\n\nprint(twice(3))\n";
    let mut wanted = vec![write(good), edit("twice(3)", "twice(\"x\")")];
    wanted.extend(comments("def twice"));
    let model = calls(&wanted);
    let scene = Scene::new(&model, "push", |_| {});
    fs::remove_file(scene.home.path().join("tools/pyright-langserver")).unwrap();
    std::os::unix::fs::symlink(program, scene.home.path().join("tools/pyright-langserver"))
        .unwrap();
    scene.run(&[]);
    let found = results(&model);
    let said: Vec<&String> =
        found.iter().filter(|result| result.contains("reportArgumentType")).collect();
    assert_eq!(said.len(), 1, "{found:?}");
    assert!(said[0].contains("reports 1 new error in a.py"), "{}", said[0]);
}
