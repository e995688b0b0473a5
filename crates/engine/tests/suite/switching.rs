//! A session that continues with another model: each format accepts what each other one recorded, and the log does not
//! change.

use std::fs;
use std::sync::Arc;

use crate::common::{Bench, run_agent};
use futures_util::future::BoxFuture;
use myclaw_engine::{ActiveModel, RunParams, Tool, ToolError, ToolInvocation, ToolOutput};
use myclaw_llm::wire::encode;
use myclaw_llm::{
    Api, AssistantMessage, CallLimits, ContentBlock, ImageContent, InputKind, Message, Model,
    ModelRequest, PairedMessages, Quirks, StopReason, TextContent, ThinkingContent, ThinkingForm,
    ThinkingLevel, ToolCall, ToolResultMessage, ToolSchema, ToolUse, Usage, UserMessage,
};
use myclaw_testkit::{ModelServer, Reply, Step, WireFormat, validate_body, validate_pairing};
use serde_json::{Map, Value, json};

/// Every wire format. One line makes a new one part of all tests here.
const FORMATS: [(WireFormat, Api); 5] = [
    (WireFormat::AnthropicMessages, Api::AnthropicMessages),
    (WireFormat::OpenAiCompletions, Api::OpenaiCompletions),
    (WireFormat::OpenAiResponses, Api::OpenaiResponses),
    (WireFormat::GoogleGenerativeAi, Api::GoogleGenerativeAi),
    (WireFormat::BedrockConverse, Api::BedrockConverse),
];

const THOUGHT: &str = "The user wants two files.";
const SIGNATURE: &str = "c2lnbmF0dXJlLW9mLWEtdGhvdWdodA==";
const REDACTED: &str = "ZW5jcnlwdGVkLXRob3VnaHQ=";

/// An id that only the sender's format permits.
const ODD_ID: &str = "call|0123456789:0123456789:0123456789:0123456789:0123456789:0123456789:äöü";

/// A tool that gives a picture.
struct Camera(ToolSchema);

impl Tool for Camera {
    fn schema(&self) -> &ToolSchema {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        _invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let output = ToolOutput { content: vec![picture()], ..ToolOutput::text("") };
        Box::pin(async { Ok(output) })
    }
}

fn camera() -> Arc<dyn Tool> {
    Arc::new(Camera(ToolSchema {
        name: "camera".to_owned(),
        description: "Takes a picture.".to_owned(),
        parameters: json!({"type": "object", "properties": {}}),
    }))
}

fn picture() -> ContentBlock {
    ContentBlock::Image(ImageContent { data: "aGk=".to_owned(), mime_type: "image/png".to_owned() })
}

/// What `bench` is asked, with a model that thinks and takes `input`.
fn params(bench: &Bench, message: &str, input: &[InputKind]) -> RunParams {
    let mut params = bench.params(message);
    let model = Model { reasoning: true, input: input.to_vec(), ..bench.model() };
    let profiles = params.models.remove(0).profiles;
    params.models = vec![ActiveModel::new(model, profiles)];
    params.thinking = Some(ThinkingLevel::High);
    params.tools.push(camera());
    params
}

/// A session with thoughts, parallel calls, pictures and failures, recorded in `format`.
async fn recorded(format: WireFormat) -> Bench {
    let script = [
        Step::from(
            Reply::new(format)
                .thinking(THOUGHT, SIGNATURE)
                .redacted_thinking(REDACTED)
                .text("I look at both.")
                .tool_call(ODD_ID, "echo", json!({"text": "one"}))
                .tool_call("b", "camera", json!({}))
                .tool_call("c", "echo", json!({"text": "fail"})),
        ),
        // Ids that were used before, without a word next to them.
        Step::from(Reply::new(format).tool_call("b", "echo", json!({"text": "again"}))),
        Step::from(Reply::new(format).thinking("Done with it.", SIGNATURE).text("There you are.")),
        Step::from(Reply::new(format).text("Half an ans").fails_with("overloaded_error", "busy")),
    ];
    let bench = Bench::new(format, script).await;
    let mut first = params(&bench, "look", &[InputKind::Text, InputKind::Image]);
    first.user_message.push(picture());
    run_agent(first).await.unwrap();
    let failed = params(&bench, "and again", &[InputKind::Text, InputKind::Image]);
    run_agent(failed).await.unwrap_err();
    bench
}

/// The transcript as it is on disk.
fn log_bytes(bench: &Bench) -> Vec<u8> {
    let directory = bench.home.sessions_directory();
    let mut directories = vec![directory];
    let mut logs = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                logs.push(path);
            }
        }
    }
    assert_eq!(logs.len(), 1, "{logs:?}");
    fs::read(&logs[0]).unwrap()
}

#[tokio::test]
async fn what_one_format_recorded_every_format_continues() {
    for (source, _) in FORMATS {
        for (target, _) in FORMATS {
            let mut bench = recorded(source).await;
            let before = log_bytes(&bench);
            bench.format = target;
            bench.server = ModelServer::start(Reply::new(target).text("Going on.")).await;

            let result = run_agent(params(&bench, "go on", &[InputKind::Text])).await.unwrap();

            let place = format!("{source:?} to {target:?}");
            assert_eq!(result.reply, "Going on.", "{place}");
            assert!(log_bytes(&bench).starts_with(&before), "{place}: the log was changed");
            let requests = bench.server.requests();
            assert_eq!(requests.len(), 1, "{place}");
            assert_eq!(validate_pairing(&requests[0]), Ok(()), "{place}");
            let body = requests[0].body_text();
            assert!(!body.contains("aGk="), "{place}: an image for a model that takes none");
            assert!(body.contains("[image omitted: this model takes no images]"), "{place}");
            assert!(body.contains("Half an ans") && body.contains("There you are."), "{place}");
            let is_signed = body.contains(SIGNATURE) || body.contains(REDACTED);
            let is_tagged = body.contains(r"<thinking>\nThe user wants two files.\n</thinking>");
            if source == target {
                assert!(!is_tagged, "{place}: a model's own thoughts are no text");
            } else {
                assert!(is_tagged && !is_signed, "{place}: {body}");
            }
        }
    }
}

#[tokio::test]
async fn a_session_that_comes_back_has_its_signatures_again() {
    let mut bench = recorded(WireFormat::AnthropicMessages).await;
    bench.format = WireFormat::OpenAiCompletions;
    bench.server = ModelServer::start(Reply::openai().text("Here.")).await;
    run_agent(params(&bench, "you", &[InputKind::Text])).await.unwrap();
    bench.format = WireFormat::AnthropicMessages;
    bench.server = ModelServer::start(Reply::anthropic().text("Back.")).await;
    run_agent(params(&bench, "and you", &[InputKind::Text, InputKind::Image])).await.unwrap();

    let body = bench.server.requests()[0].json().clone();
    let assistant = &body["messages"][1]["content"];
    assert_eq!(
        (&assistant[0], &assistant[1]),
        (
            &json!({"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE}),
            &json!({"type": "redacted_thinking", "data": REDACTED}),
        )
    );
    assert_eq!(body["thinking"]["type"], "enabled");
}

/// Messages that only a log of another program or an older version holds, or a turn that went wrong.
fn odd_messages(api: Api) -> Vec<Message> {
    let user = |text: &str| Message::User(UserMessage::text(text, 1));
    let assistant = |stop_reason, content| {
        Message::Assistant(AssistantMessage {
            content,
            api,
            provider: "testing".to_owned(),
            model: "test-model".to_owned(),
            usage: Usage::default(),
            stop_reason,
            error_message: None,
            timestamp: 1,
        })
    };
    let thinking = |signature: Option<&str>| {
        ContentBlock::Thinking(ThinkingContent {
            thinking: "Hm.".to_owned(),
            thinking_signature: signature.map(str::to_owned),
            redacted: false,
        })
    };
    let call = |id: &str, invalid: Option<&str>| {
        ContentBlock::ToolCall(ToolCall {
            id: id.to_owned(),
            name: "read a file!".to_owned(),
            arguments: Map::new(),
            invalid_arguments: invalid.map(str::to_owned),
            thought_signature: Some(SIGNATURE.to_owned()),
        })
    };
    let result = |id: &str, content| {
        Message::ToolResult(ToolResultMessage {
            tool_call_id: id.to_owned(),
            tool_name: "read a file!".to_owned(),
            content,
            is_error: false,
            details: None,
            timestamp: 1,
        })
    };
    let empty_text = ContentBlock::Text(TextContent::default());
    vec![
        assistant(StopReason::Stop, vec![ContentBlock::text("before anybody spoke")]),
        user("one"),
        // Cut off within its thoughts: with a signature, with half of one, with none.
        assistant(StopReason::Aborted, vec![thinking(Some(SIGNATURE))]),
        user("two"),
        assistant(StopReason::Length, vec![thinking(Some(" ")), empty_text.clone()]),
        assistant(StopReason::Error, vec![thinking(None), call("never-ran", None)]),
        user("three"),
        assistant(StopReason::Refusal, vec![ContentBlock::text("I would rather not.")]),
        user("four"),
        assistant(
            StopReason::ToolUse,
            vec![thinking(Some(SIGNATURE)), empty_text, call(ODD_ID, None), call("", Some("{\"a"))],
        ),
        result("nobody-asked", vec![ContentBlock::text("?")]),
        result(ODD_ID, Vec::new()),
        user(" "),
        assistant(StopReason::Stop, Vec::new()),
        user("five"),
    ]
}

#[test]
fn every_format_accepts_the_odd_messages_of_every_format() {
    let key = "k".to_owned().into();
    let tools = [ToolSchema {
        name: "read".to_owned(),
        description: "Reads.".to_owned(),
        parameters: json!({"type": "object"}),
    }];
    let forms = [ThinkingForm::Budget, ThinkingForm::Adaptive, ThinkingForm::BoundAdaptive];
    for (_, source) in FORMATS {
        let messages = PairedMessages::repair(odd_messages(source));
        for (format, target) in FORMATS {
            for (form, thinking) in
                forms.iter().flat_map(|form| ThinkingLevel::ALL.map(|level| (*form, level)))
            {
                let model = Model {
                    id: "test-model".to_owned(),
                    provider: "testing".to_owned(),
                    api: target,
                    base_url: "http://127.0.0.1:9/v1".to_owned(),
                    reasoning: true,
                    quirks: Quirks { thinking_form: form, ..Quirks::default() },
                    ..myclaw_llm::demo_model()
                };
                let request = ModelRequest {
                    model: &model,
                    system_prompt: "You help.",
                    messages: &messages,
                    tools: &tools,
                    tool_use: ToolUse::Auto,
                    max_output: None,
                    options: None,
                    thinking,
                    api_key: Some(&key),
                    limits: CallLimits::default(),
                };
                let body: Value = serde_json::from_slice(&encode(&request).unwrap().body).unwrap();
                let place = format!("{source:?} to {target:?}, {form:?}, {thinking}: {body:#}");
                assert_eq!(validate_body(format, &body), Ok(()), "{place}");
            }
        }
    }
}
