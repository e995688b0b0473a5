//! `myclaw groups` and `myclaw workflows`, and bad input for `myclaw host`.

use super::*;

fn run(bench: &Bench, arguments: &[&str]) -> ChildOutput {
    RunningChild::run(&mut bench.command(arguments))
}

#[test]
fn groups_are_added_listed_shown_and_removed() {
    let bench = Bench::new("");
    assert!(run(&bench, &["groups", "list"]).stdout().contains("no groups yet"));
    bench.add("owner", "main", &[]);
    bench.add(
        "fam@g.us",
        "family",
        &["--name", "Family", "--trigger", "!bot", "--mount", "/srv/a:b:rw"],
    );
    let list = run(&bench, &["groups", "list"]).stdout();
    assert_eq!(list, "main    main    owner     every message\nfamily  Family  fam@g.us  !bot\n");
    let json = run(&bench, &["groups", "list", "--json"]).stdout();
    let last: Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    assert_eq!(
        last,
        json!({
            "jid": "fam@g.us", "name": "Family", "folder": "family", "trigger": "!bot", "listens": "trigger",
            "mounts": [{"hostPath": "/srv/a", "containerPath": "b", "access": "readWrite"}],
        })
    );
    let shown = run(&bench, &["groups", "show", "family"]).stdout();
    assert!(
        shown.contains("host/groups/family") && shown.contains("/srv/a (read and write)"),
        "{shown}"
    );
    run(&bench, &["groups", "remove", "family"]).assert_code(0);
    assert_eq!(run(&bench, &["groups", "list"]).stdout().lines().count(), 1);
}

#[test]
fn bad_groups_are_refused_with_a_reason() {
    let bench = Bench::with_groups("");
    let cases: [(&[&str], i32, &str); 8] = [
        (&["groups", "add", "x", "--folder", "../x"], 2, "cannot be a folder"),
        (&["groups", "add", "x", "--folder", "global"], 2, "what all groups share"),
        (&["groups", "add", "x", "--folder", "Family"], 1, "belongs to the chat fam@g.us already"),
        (&["groups", "add", "owner", "--folder", "x"], 1, "belongs to the group main already"),
        (&["groups", "add", "x", "--folder", "x", "--mount", "rel:a"], 2, "cannot be read"),
        (&["groups", "add", "", "--folder", "x"], 1, "a chat is named by"),
        (&["groups", "show", "none"], 1, "there is no group none"),
        (&["groups", "remove", "none"], 1, "there is no group"),
    ];
    for (arguments, code, problem) in cases {
        let output = run(&bench, arguments);
        output.assert_code(code);
        assert!(output.stderr().contains(problem), "{arguments:?}: {}", output.stderr());
    }
    fs::write(bench.host("groups.json"), "{").unwrap();
    for arguments in [&["groups", "list"][..], &["host", "--backend", "process"]] {
        let output = run(&bench, arguments);
        output.assert_code(1);
        assert!(output.stderr().contains("is no list of groups"), "{}", output.stderr());
    }
}

#[test]
fn a_host_that_cannot_start_runners_says_so() {
    let bench = Bench::with_groups("");
    let output = run(&bench, &["host", "--backend", "process", "--runner", "/nonexistent/runner"]);
    output.assert_code(1);
    assert!(output.stderr().contains("/nonexistent/runner"), "{}", output.stderr());
}

fn workflows(bench: &Bench, registry: &str) {
    let directory = bench.host("groups/main/workflows");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("registry.json"), registry).unwrap();
    for (name, mode) in [("weather.sh", 0o755), ("plain.sh", 0o644)] {
        fs::write(directory.join(name), "#!/bin/sh\necho \"sunny in $CITY\"\n").unwrap();
        fs::set_permissions(directory.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
}

#[test]
fn workflows_are_listed_found_and_run() {
    let bench = Bench::new("");
    workflows(
        &bench,
        r#"[{"name": "weather", "description": "Tell the weather of a city", "run": "./weather.sh", "args": ["city"]},
            {"name": "mail", "description": "Send an invoice", "run": "exit 3"}]"#,
    );
    let list = run(&bench, &["workflows", "list"]).stdout();
    assert_eq!(list, "weather  city  Tell the weather of a city\nmail     -     Send an invoice\n");
    let found = run(&bench, &["workflows", "search", "sending", "invoices"]).stdout();
    assert_eq!(found, "mail  -  Send an invoice\n");
    // Without a model in the directory, the same way, and it says so.
    let search = ["workflows", "search", "sending", "invoices", "--weights", "none"];
    let output = run(&bench, &search);
    assert_eq!(output.stdout(), "mail  -  Send an invoice\n");
    assert!(output.stderr().contains("none"), "{}", output.stderr());
    let output = run(&bench, &["workflows", "run", "weather", "city=Rome"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "sunny in Rome\n");
    let failed = run(&bench, &["workflows", "run", "mail"]);
    failed.assert_code(1);
    assert!(failed.stdout().contains("[exit code 3]"), "{}", failed.stdout());
    for (arguments, code, problem) in [
        (&["workflows", "run", "weather", "PATH=/tmp"][..], 1, "cannot be passed"),
        (&["workflows", "run", "weather", "city"], 2, "has no value"),
        (&["workflows", "run", "nothing"], 1, "there is no workflow"),
    ] {
        let output = run(&bench, arguments);
        output.assert_code(code);
        assert!(output.stderr().contains(problem), "{}", output.stderr());
    }
    assert_eq!(run(&bench, &["workflows", "check"]).stdout(), "the workflows can be used\n");
}

#[test]
fn the_check_names_every_problem() {
    let bench = Bench::new("");
    assert!(run(&bench, &["workflows", "check"]).assert_code(1).stdout().contains("there is no "));
    workflows(&bench, "not JSON");
    assert!(
        run(&bench, &["workflows", "check"]).assert_code(1).stdout().contains("is not a JSON list")
    );
    workflows(
        &bench,
        r#"[{"name": "a", "description": "x", "run": "./missing.sh"},
            {"name": "b", "description": "x", "run": "./plain.sh"},
            {"name": "b", "description": "", "run": "sh plain.sh"},
            {"name": "c", "description": "x", "run": "bash missing.sh --fast"},
            {"name": "d"},
            {"name": "e", "description": "x", "run": "echo fine | cat"}]"#,
    );
    let output = run(&bench, &["workflows", "check"]);
    output.assert_code(1);
    let stdout = output.stdout();
    let lines: Vec<&str> = stdout.lines().collect();
    let wanted = [
        "workflow 1 (a): there is no file ./missing.sh",
        "workflow 2 (b): ./plain.sh is not executable; run chmod +x on it",
        "workflow 3 (b): another one has the same name",
        "workflow 3 (b): it has no description",
        "workflow 4 (c): there is no file missing.sh",
        "workflow 5 (d): `description` is missing",
    ];
    assert_eq!(lines.len(), wanted.len(), "{stdout}");
    for (line, wanted) in lines.iter().zip(wanted) {
        assert!(line.starts_with(wanted), "{line}");
    }
    assert!(output.stderr().contains("6 problems"), "{}", output.stderr());
}
