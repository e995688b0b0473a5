//! The corpus of real errors over real sockets: what the driver reports is what the classifier says of the body.

use std::collections::HashMap;

use myclaw_llm::{Api, ErrorClass, Repeat, StopReason};
use serde::Deserialize;
use serde_json::json;

use crate::decoding::{delta, finish, openai};
use crate::support::*;

/// Cases of all formats that the rules have never seen; see the README of the data.
const HELD_OUT: &str = include_str!("../data/errors/held-out.jsonl");

const CORPUS: [(Api, &str); 5] = [
    (Api::OpenaiCompletions, include_str!("../data/errors/openai-completions.jsonl")),
    (Api::OpenaiResponses, include_str!("../data/errors/openai-responses.jsonl")),
    (Api::AnthropicMessages, include_str!("../data/errors/anthropic-messages.jsonl")),
    (Api::GoogleGenerativeAi, include_str!("../data/errors/google-generative-ai.jsonl")),
    (Api::BedrockConverse, include_str!("../data/errors/bedrock-converse.jsonl")),
];

#[derive(Deserialize)]
struct Case {
    #[serde(rename = "where")]
    place: Place,
    status: u16,
    #[serde(default)]
    headers: HashMap<String, String>,
    body: String,
    class: ErrorClass,
    code: Option<String>,
    source: String,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Place {
    Http,
    Page,
    Event,
}

impl Case {
    fn refusal(&self) -> Vec<Step> {
        let mut lines: Vec<String> =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let kind = if self.place == Place::Page { "text/html" } else { "application/json" };
        lines.push(format!("content-type: {kind}"));
        lines.push(format!("content-length: {}", self.body.len()));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut bytes = head(&format!("{} Refused", self.status), &lines).into_bytes();
        bytes.extend_from_slice(self.body.as_bytes());
        vec![Step::Send(bytes)]
    }
}

/// A refusal is read before any format is, so it makes no difference in which the request was written.
#[tokio::test]
async fn every_real_refusal_gets_its_class() {
    let wrong = refused(CORPUS.map(|(_, lines)| lines)).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the rules make of errors that they were not written for.
#[tokio::test]
async fn refusals_that_the_rules_have_never_seen_get_their_class() {
    assert!(HELD_OUT.lines().count() >= 105);
    let wrong = refused([HELD_OUT]).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The cases whose class is wrong.
async fn refused(corpus: impl IntoIterator<Item = &'static str>) -> Vec<String> {
    let mut wrong = Vec::new();
    for lines in corpus {
        for line in lines.lines() {
            let case: Case = serde_json::from_str(line).unwrap();
            if case.place == Place::Event {
                continue;
            }
            // A refused option is left out, and the request made again.
            let server = Server::start(vec![case.refusal(); 4]).await;
            let outcome = call(&provider(), &model(Api::OpenaiCompletions, &server.url())).await;
            let error = outcome.error();
            let found = (error.class, error.status, &error.code);
            let expected = (case.class, Some(case.status), &case.code);
            if found != expected {
                wrong.push(format!(
                    "found {found:?}, expected {expected:?}: {} {}",
                    case.source, error.message
                ));
            }
        }
    }
    wrong
}

/// The same error inside a stream that began with 200, and instead of one.
#[tokio::test]
async fn every_real_error_in_a_stream_gets_its_class() {
    for (api, lines) in CORPUS {
        // The decoders of the other formats have tests of their own.
        if !matches!(api, Api::OpenaiCompletions | Api::OpenaiResponses) {
            continue;
        }
        for line in lines.lines() {
            let case: Case = serde_json::from_str(line).unwrap();
            if case.place != Place::Event {
                continue;
            }
            for steps in [
                stream(format!("data: {}\n\n", case.body)),
                answer("200 OK", "application/json", &case.body),
            ] {
                let server = Server::start([steps]).await;
                let outcome = call(&provider(), &model(api, &server.url())).await;
                let error = outcome.error();
                assert_eq!(
                    (error.class, error.status, &error.code),
                    (case.class, Some(200), &case.code),
                    "{} {}",
                    case.source,
                    error.message
                );
            }
        }
    }
}

/// Words that hosts put where a finish reason belongs.
#[test]
fn a_finish_reason_may_be_a_failure() {
    for (reason, class) in [
        ("error", ErrorClass::Timeout),
        ("network_error", ErrorClass::Timeout),
        ("insufficient_system_resource", ErrorClass::Timeout),
        ("abort", ErrorClass::Timeout),
        ("model_context_window_exceeded", ErrorClass::ContextOverflow),
    ] {
        let error = openai(&[finish(reason)]).0.unwrap_err();
        assert_eq!(
            (error.class, error.status, error.code.as_deref()),
            (class, Some(200), Some(reason))
        );
        assert_eq!(error.message, format!("ended the answer as failed ({reason})"));
    }
    for (reason, stop) in [
        ("model_context_window_exceeded", StopReason::Length),
        ("sensitive", StopReason::Refusal),
        ("content_filter", StopReason::Refusal),
    ] {
        let text = delta(json!({"content": "so far"}));
        assert_eq!(openai(&[text, finish(reason)]).0.unwrap().stop_reason, stop, "{reason}");
    }
}

/// A gateway may end in peace what failed behind it; if something arrived, it is an answer.
#[test]
fn the_reason_of_the_host_behind_a_gateway_counts_when_nothing_arrived() {
    let ended = json!({"choices": [{
        "delta": {"content": ""}, "finish_reason": "stop", "native_finish_reason": "network_error",
    }]});
    let error = openai(std::slice::from_ref(&ended)).0.unwrap_err();
    assert_eq!((error.class, error.code.as_deref()), (ErrorClass::Timeout, Some("network_error")));
    let text = delta(json!({"content": "so far"}));
    assert_eq!(openai(&[text, ended]).0.unwrap().stop_reason, StopReason::Stop);
}

/// What the model said is no part of an error: here it speaks of a window and a quota.
#[test]
fn the_words_of_a_model_do_not_classify() {
    let text = delta(json!({"content": "the context window and the quota"}));
    assert_eq!(openai(&[text, finish("error")]).0.unwrap_err().class, ErrorClass::Timeout);
    let failed = json!({"choices": [{
        "delta": {"content": "quota"},
        "error": {"code": 502, "message": "Upstream idle"},
        "finish_reason": "error",
    }]});
    let error = openai(&[failed]).0.unwrap_err();
    assert_eq!(
        (error.class, error.message.as_str()),
        (ErrorClass::Timeout, "reported an error: Upstream idle")
    );
}

#[test]
fn an_answer_without_anything_is_known_as_empty() {
    let empty = |chunks: &[serde_json::Value]| openai(chunks).0.unwrap().is_empty_answer();
    assert!(empty(&[delta(json!({"role": "assistant", "content": ""})), finish("stop")]));
    assert!(empty(&[delta(json!({"content": " \n"})), finish("stop")]));
    assert!(empty(&[delta(json!({"reasoning_content": "hm"})), finish("stop")]));
    assert!(!empty(&[delta(json!({"content": "no"})), finish("stop")]));
    assert!(!empty(&[finish("content_filter")]));
    assert!(!empty(&[finish("length")]));
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}}]});
    assert!(!empty(&[delta(call), finish("stop")]));
}

#[tokio::test]
async fn only_a_local_server_that_is_not_there_is_not_worth_another_try() {
    let port = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    };
    let refused =
        call(&provider(), &model(Api::OpenaiCompletions, &format!("http://127.0.0.1:{port}/v1")))
            .await;
    assert_eq!(refused.error().repeat, Repeat::Pointless);
    let server = Server::start([answer("503 Busy", "application/json", "")]).await;
    let busy = call(&provider(), &model(Api::OpenaiCompletions, &server.url())).await;
    assert_eq!(busy.error().repeat, Repeat::MayHelp);
}
