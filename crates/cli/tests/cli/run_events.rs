//! The lines of `myclaw run --json` fit the schema that the docs name.

use std::path::Path;

use boon::{Compiler, SchemaIndex, Schemas};
use myclaw_testkit::{Reply, Step, TempHome};
use serde_json::{Value, json};

use crate::{run, serve};

struct Schema(Schemas, SchemaIndex);

impl Schema {
    fn read() -> Self {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/develop/run-events.schema.json");
        let schema = serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON");
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.add_resource("events.json", schema).expect("a schema");
        let index = compiler.compile("events.json", &mut schemas).expect("a schema");
        Self(schemas, index)
    }

    /// The types of the lines, each of which fits.
    fn check(&self, output: &str) -> Vec<String> {
        let lines = output.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        let check = |line: Value| {
            if let Err(error) = self.0.validate(&line, self.1) {
                panic!("{line}\n{error:#}");
            }
            line["type"].as_str().expect("a type").to_owned()
        };
        lines.map(check).collect()
    }
}

#[test]
fn every_line_of_real_runs_fits_the_schema() {
    let call =
        |id: &str, tool: &str, arguments: Value| Reply::anthropic().tool_call(id, tool, arguments);
    let steps: Vec<Step> = vec![
        Reply::anthropic()
            .thinking("let me see", "signature")
            .text("Looking.")
            .tool_call("call_1", "bash", json!({"command": "echo one"}))
            .step(),
        call("call_2", "write", json!({"path": "a.txt", "content": "one"})).step(),
        call("call_3", "read", json!({"path": "missing.txt"})).step(),
        Step::status(
            529,
            &[],
            r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
        ),
        Reply::anthropic().text("{\"n\": 1}").step(),
    ];
    let (server, home) = serve(steps);
    let mut seen = Vec::new();
    let schema = Schema::read();
    let form = home.write("form.json", r#"{"type": "object", "required": ["n"]}"#);
    let output =
        run(&home, &["run", "--json", "--output-schema", form.to_str().expect("UTF-8"), "go"]);
    output.assert_code(0);
    seen.extend(schema.check(&output.stdout()));
    // A refused call, a bound, and no answer.
    server.push(call("call_4", "bash", json!({"command": "echo two"})));
    server.push(Reply::anthropic().text("Not finished."));
    let bounded = run(&home, &["run", "--json", "--mode", "ask", "--max-turns", "1", "go"]);
    bounded.assert_code(1);
    seen.extend(schema.check(&bounded.stdout()));
    server.push(Step::status(401, &[], "{}"));
    let failed = run(&home, &["run", "--json", "go"]);
    failed.assert_code(4);
    seen.extend(schema.check(&failed.stdout()));
    let missing = run(&TempHome::new(), &["run", "--json", "--agent", "nobody", "go"]);
    seen.extend(schema.check(&missing.stdout()));
    for kind in [
        "run_start",
        "run_end",
        "llm_start",
        "llm_stream",
        "llm_end",
        "llm_usage",
        "tool_start",
        "tool_end",
        "retry",
        "bound_reached",
        "done",
        "output",
        "error",
    ] {
        assert!(seen.iter().any(|seen| seen == kind), "{kind} was not seen: {seen:?}");
    }
}
