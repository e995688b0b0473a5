//! The page about the planner is true: every line of it is run.

use super::session::PlannerSession;

const PAGE: &str = include_str!("../../../../../docs/use/demo-model.md");

/// The lines of the page's examples: a request, and the calls it leads to.
fn documented() -> Vec<(String, Vec<String>)> {
    let mut examples = Vec::new();
    let mut is_example = false;
    for line in PAGE.lines() {
        if line.starts_with("```") {
            is_example = line == "```demo";
        } else if is_example {
            let mut parts = line.split(" -> ").map(|part| part.trim().to_owned());
            let request = parts.next().expect("a request");
            examples.push((request, parts.collect()));
        }
    }
    examples
}

#[tokio::test]
async fn every_documented_request_leads_to_the_documented_calls() {
    let examples = documented();
    assert!(examples.len() > 20, "the page's examples are found");
    let mut differences = Vec::new();
    for (request, expected) in examples {
        let mut session = PlannerSession::new(&request);
        let mut calls = Vec::new();
        while session.ask().await.message.tool_calls().count() > 0 {
            let call = session.step("7").await;
            calls.push(format!("{} {}", call.name, serde_json::Value::Object(call.arguments)));
        }
        if calls != expected {
            differences
                .push(format!("{request}\n  documented: {expected:?}\n  made:       {calls:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
