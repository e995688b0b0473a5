//! Finding and running workflows.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use myclaw_testkit::{Reply, Script, wait_until_gone};
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
    let expected = "Ranked by keywords, the best first:\n- send-invoice: Send an invoice to a customer by mail\nRun one with run_workflow.\nA search by meaning is not possible: there is no model in ";
    assert!(found.starts_with(expected), "{found}");
    let nothing = Bench::call("search_tools", json!({"query": "play music"}), prepare, &[]);
    let expected = "No workflow fits (ranked by keywords). There are: weather, send-invoice, slow, loud, missing. Use the other tools.\n";
    assert!(nothing.starts_with(expected), "{nothing}");
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

/// A model with random weights, in which `invoice` and `bill` mean the same, `customer` and `buyer`, and so on.
fn tiny_model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../embed/tests/data/tiny")
}

fn with_model(bench: &Bench) {
    prepare(bench);
    let directory = bench.path("h/.stingyclaw/transformers");
    fs::create_dir_all(&directory).unwrap();
    for name in ["model.onnx", "vocab.txt"] {
        fs::copy(tiny_model().join(name), directory.join(name)).unwrap();
    }
}

fn search(query: &str, prepare: impl FnOnce(&Bench), options: &[&str]) -> String {
    Bench::call("search_tools", json!({"query": query}), prepare, options)
}

#[test]
fn with_a_model_a_search_goes_by_meaning() {
    // No word of the query is in the registry.
    let query = "dispatch bill buyer email";
    let found = search(query, with_model, &[]);
    let expected = "Ranked by meaning, the best first:\n- send-invoice: Send an invoice to a customer by mail\n";
    assert!(found.starts_with(expected), "{found}");
    assert!(search(query, prepare, &[]).starts_with("No workflow fits"));
}

#[test]
fn vectors_are_kept_and_made_again_for_what_changed() {
    let call = || Reply::openai().tool_call("call_1", "search_tools", json!({"query": "bill"}));
    let bench = Bench::new(Script::from([
        call(),
        Reply::openai().text("Done."),
        call(),
        Reply::openai().text("Done."),
        call(),
        Reply::openai().text("Done."),
    ]));
    with_model(&bench);
    let search = || {
        bench.run(bench.job("Do it", json!({})), &[]).assert_code(0);
    };
    let cache = "w/group/workflows/.embeddings-cache.json";
    let entries = || -> Value {
        let cache: Value = serde_json::from_slice(&fs::read(bench.path(cache)).unwrap()).unwrap();
        assert!(cache["model"].as_str().unwrap().starts_with("model-32-"), "{cache}");
        cache["entries"].clone()
    };
    search();
    let first = entries();
    assert_eq!(first.as_array().unwrap().len(), 5);
    bench.write("w/group/workflows/registry.json", &REGISTRY.replace("Take long", "Play music"));
    search();
    let second = entries();
    for (before, after) in first.as_array().unwrap().iter().zip(second.as_array().unwrap()) {
        assert_eq!(before == after, before["name"] != "slow", "{before} {after}");
    }
    bench.write(cache, "{\"model\": ");
    search();
    assert_eq!(entries(), second);
}

#[test]
fn without_a_usable_model_the_result_says_why_keywords_were_used() {
    let query = "mail invoices to my customers";
    let by_keywords = "Ranked by keywords, the best first:\n- send-invoice: Send an invoice to a customer by mail\n";
    let damage = |bench: &Bench| {
        with_model(bench);
        bench.write("h/.stingyclaw/transformers/model.onnx", "not a model");
    };
    let damaged = search(query, damage, &[]);
    assert!(damaged.contains("model.onnx cannot be used: "), "{damaged}");
    assert!(damaged.contains("replace it"), "{damaged}");
    assert!(damaged.starts_with(by_keywords), "{damaged}");
    let url = "--download-weights=http://127.0.0.1:9/";
    let refused = search(query, prepare, &[url]);
    assert!(
        refused.contains(
            "http://127.0.0.1:9/onnx/model_quantized.onnx cannot be downloaded: Connection refused"
        ),
        "{refused}"
    );
    assert!(refused.starts_with(by_keywords), "{refused}");
}

#[test]
fn a_missing_model_is_downloaded_at_the_first_search() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("--download-weights=http://{}/mirror", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let name = line.split(' ').nth(1).unwrap().strip_prefix("/mirror/").unwrap();
            let content = fs::read(tiny_model().join(name)).unwrap();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                content.len()
            );
            stream.write_all(&[head.as_bytes(), content.as_slice()].concat()).unwrap();
        }
    });
    let bench = Bench::new(Script::from([
        Reply::openai().tool_call("call_1", "search_tools", json!({"query": "bill"})),
        Reply::openai().text("Done."),
    ]));
    prepare(&bench);
    let sums: String = ["model.onnx", "vocab.txt"]
        .iter()
        .map(|name| {
            let digest = ring::digest::digest(
                &ring::digest::SHA256,
                &fs::read(tiny_model().join(name)).unwrap(),
            );
            let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{digest}  {name}\n")
        })
        .collect();
    bench.write("sums", &sums);
    let sums = bench.path("sums");
    let options = ["--weights-checksums", sums.to_str().unwrap(), url.as_str()];
    let output = bench.run(bench.job("Do it", json!({})), &options);
    output.assert_code(0);
    assert!(output.stderr().contains("downloading http://127.0.0.1"), "{}", output.stderr());
    assert!(bench.result(1).starts_with("Ranked by meaning"), "{}", bench.result(1));
    server.join().unwrap();
}

#[test]
fn a_source_that_cannot_be_used_is_refused_at_the_start() {
    let bench = Bench::new(Script::new());
    let job = bench.job("Do it", json!({}));
    let output = bench.run(&*job, &["--download-weights=ftp://example.org"]);
    output.assert_code(2);
    assert!(output.stderr().contains("is no address of http or https"), "{}", output.stderr());
    bench.write("sums", "nothing\n");
    let sums = bench.path("sums");
    let output =
        bench.run(&*job, &["--download-weights", "--weights-checksums", sums.to_str().unwrap()]);
    output.assert_code(2);
    assert!(output.stderr().contains("line 1 of the checksums"), "{}", output.stderr());
}
