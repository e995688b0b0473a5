//! Finding and running workflows.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use myclaw_testkit::wait_until_gone;
use serde_json::{Value, json};

use crate::{Bench, SECRET};

const REGISTRY: &str = r#"[
  {"name": "weather", "description": "Show the weather forecast of a city", "run": "./weather.sh", "args": ["city"]},
  {"name": "send-invoice", "description": "Send an invoice to a customer by mail", "run": "./invoice.sh"},
  {"name": "slow", "description": "Take long", "run": "sleep 70 & echo $! > pid; sleep 60"},
  {"name": "loud", "description": "Print much", "run": "head -c 3000000 /dev/zero | tr '\\0' x; echo end"},
  {"name": "missing", "description": "Nothing there", "run": "./not-there.sh"}
]"#;

fn prepare(bench: &Bench) {
    bench.write("w/group/workflows/registry.json", REGISTRY);
    bench.write(
        "w/group/workflows/weather.sh",
        "#!/bin/sh\necho \"sunny in $CITY, $START_DATE, $N\"; pwd; env\n",
    );
    bench.write("w/group/workflows/invoice.sh", "#!/bin/sh\n");
    let script = bench.path("w/group/workflows/weather.sh");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
}

fn run(name: &str, args: Value, options: &[&str]) -> String {
    let mut arguments = json!({"name": name});
    arguments["args"] = args;
    Bench::call("run_workflow", arguments, prepare, options)
}

#[test]
fn a_search_ranks_by_keywords_and_says_so() {
    let found = Bench::call(
        "search_tools",
        json!({"query": "mail invoices to my customers"}),
        prepare,
        &[],
    );
    let expected = "Ranked by keywords, the best first:\n- send-invoice: Send an invoice to a customer by mail\nRun one with run_workflow.";
    assert_eq!(found, expected);
    let nothing = Bench::call("search_tools", json!({"query": "play music"}), prepare, &[]);
    assert_eq!(
        nothing,
        "No workflow fits (ranked by keywords). There are: weather, send-invoice, slow, loud, missing. Use the other tools."
    );
    let listed = Bench::call("list_workflows", json!({}), prepare, &[]);
    assert!(
        listed.starts_with("- weather: Show the weather forecast of a city (args: city)\n"),
        "{listed}"
    );
    let none = Bench::call("list_workflows", json!({}), |_| {}, &[]);
    assert_eq!(none, "There are no workflows.");
}

#[test]
fn a_workflow_gets_its_arguments_as_variables() {
    let output = run("weather", json!({"city": "Rome $(id)", "start-date": "today", "n": 3}), &[]);
    assert!(output.starts_with("sunny in Rome $(id), today, 3\n"), "{output}");
    assert!(output.contains("/w/group/workflows\n"), "{output}");
    assert!(!output.contains(SECRET), "{output}");
}

#[test]
fn arguments_that_decide_which_code_runs_are_refused() {
    for name in [
        "path",
        "LD_PRELOAD",
        "ld-library-path",
        "bash_env",
        "IFS",
        "env",
        "PYTHONPATH",
        "git_ssh_command",
    ] {
        let mut args = json!({"city": "Rome"});
        args[name] = json!("/tmp/evil");
        let output = run("weather", args, &[]);
        assert!(output.contains("cannot be passed: the variable"), "{name}: {output}");
    }
}

#[test]
fn a_workflow_ends_at_its_limit_with_everything_it_started() {
    let mut pid = None;
    let bench = {
        use myclaw_testkit::{Reply, Script};
        Bench::new(Script::from([
            Reply::openai().tool_call("call_1", "run_workflow", json!({"name": "slow"})),
            Reply::openai().text("Done."),
        ]))
    };
    prepare(&bench);
    bench.run(bench.job("Do it", json!({})), &["--workflow-limit", "1s"]).assert_code(0);
    pid.replace(fs::read_to_string(bench.path("w/group/workflows/pid")).unwrap());
    wait_until_gone(pid.unwrap().trim().parse().unwrap());
    assert!(bench.result(1).contains("after 1 seconds"), "{}", bench.result(1));
}

#[test]
fn a_workflow_that_cannot_run_says_what_to_do() {
    let output = run("loud", json!({}), &[]);
    assert!(output.len() < 1024 * 1024 + 200, "{}", output.len());
    assert!(output.contains("bytes are shown]"), "{}", &output[output.len() - 200..]);
    assert!(run("send-invoice", json!({}), &[]).contains("chmod +x"));
    assert!(run("missing", json!({}), &[]).contains("[exit code 127"));
    assert!(
        run("nothing", json!({}), &[])
            .contains("there is no workflow \"nothing\"; there are: weather")
    );
    let broken = |text: &'static str| {
        let prepare = move |bench: &Bench| bench.write("w/group/workflows/registry.json", text);
        Bench::call("search_tools", json!({"query": "x"}), prepare, &[])
    };
    for text in
        ["{", "{}", r#"[{"name": "a"}]"#, r#"[{"name": "a", "description": "", "run": ""}]"#]
    {
        let output = broken(text);
        assert!(output.contains("is no list of workflows"), "{output}");
    }
}
