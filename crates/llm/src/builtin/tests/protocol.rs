//! How the planner behaves as a provider, whatever it is asked.

use tokio_util::sync::CancellationToken;

use super::super::*;
use super::session::PlannerSession;
use crate::{Api, ContentBlock, Cost, InputKind, Message, StreamEvent, ThinkingLevel, UserMessage};

#[tokio::test]
async fn events_build_up_the_message() {
    let answer = PlannerSession::new("read README.md lines 1-10").ask().await;
    let (mut text, mut arguments, mut fragments) = (String::new(), String::new(), 0);
    for event in &answer.events {
        match event {
            StreamEvent::TextDelta { index: 0, delta } => {
                assert_eq!(delta.split_whitespace().count(), 1, "a word at a time: {delta:?}");
                text.push_str(delta);
            }
            StreamEvent::ToolCallDelta { index: 1, delta, .. } => {
                fragments += 1;
                arguments.push_str(delta);
            }
            _ => {}
        }
    }
    let call = answer.call().clone();
    assert_eq!(text, "I call `read` to read lines 1 to 10 of `README.md`.");
    assert_eq!(arguments, r#"{"path":"README.md","startLine":1,"endLine":10}"#);
    assert!(fragments >= 3, "{fragments} fragments");
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&arguments).ok(),
        Some(call.arguments.clone().into())
    );
    let frame: Vec<&StreamEvent> = answer
        .events
        .iter()
        .filter(|event| {
            !matches!(event, StreamEvent::TextDelta { .. } | StreamEvent::ToolCallDelta { .. })
        })
        .collect();
    let expected = [
        StreamEvent::Start,
        StreamEvent::TextStart { index: 0 },
        StreamEvent::TextEnd { index: 0 },
        StreamEvent::ToolCallStart { index: 1, id: call.id.clone(), name: "read".to_owned() },
        StreamEvent::ToolCallEnd { index: 1, tool_call: call },
        StreamEvent::Done {
            reason: StopReason::ToolUse,
            message: Box::new(answer.message.clone()),
        },
    ];
    assert_eq!(frame, expected.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn the_message_says_where_it_comes_from_and_costs_nothing() {
    let mut session = PlannerSession::new("ls");
    session.tools.clear();
    session.messages = vec![Message::User(UserMessage::text("help", 77))];
    let message = session.ask().await.message;
    let text = message.text();
    // "You are MyClaw." and "help" are 19 bytes.
    let usage = crate::Usage {
        input: 5,
        output: text.len().div_ceil(4) as u64,
        total_tokens: 5 + text.len().div_ceil(4) as u64,
        ..crate::Usage::default()
    };
    let expected = AssistantMessage {
        content: vec![ContentBlock::text(text)],
        api: Api::Builtin,
        provider: "builtin".to_owned(),
        model: "demo".to_owned(),
        usage,
        stop_reason: StopReason::Stop,
        error_message: None,
        timestamp: 77,
    };
    assert_eq!(message, expected);
    assert_eq!(message.usage.cost, Cost::default());
}

#[tokio::test]
async fn the_same_request_gives_the_same_bytes() {
    for request in ["list the files then read README.md", "help", "write \"x\" to a.md"] {
        let session = PlannerSession::new(request);
        let (first, second) = (session.ask().await, session.ask().await);
        assert_eq!(first.message, second.message);
        assert_eq!(first.events, second.events);
    }
}

#[tokio::test]
async fn call_ids_are_unique_within_a_session() {
    let mut session = PlannerSession::new("ls then ls then ls");
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(session.step("a.md").await.id);
    }
    let reply = session.ask().await.message;
    session.messages.push(Message::Assistant(reply));
    session.user("ls then ls then ls");
    ids.push(session.step("a.md").await.id);
    // Even when everything before was left out of the request: the time differs.
    let last = session.messages.split_off(8);
    let mut shortened = PlannerSession::new("");
    shortened.messages = last;
    shortened.messages.retain(|message| matches!(message, Message::User(_)));
    ids.push(shortened.step("a.md").await.id);
    let first_alone = PlannerSession::new("ls then ls then ls").step("a.md").await.id;
    assert_eq!(first_alone, ids[0]);
    let unique: std::collections::HashSet<&String> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
}

#[tokio::test]
async fn an_abort_before_the_first_word_leaves_nothing() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (outcome, events) = PlannerSession::new("ls").ask_with(&cancel, |_| {}).await;
    assert_eq!(outcome, Err(CallFailure::Aborted { partial: None }));
    let error = "the model call was aborted".to_owned();
    assert_eq!(events.last(), Some(&StreamEvent::Error { reason: StopReason::Aborted, error }));
}

#[tokio::test]
async fn an_abort_keeps_what_had_arrived_and_no_half_call() {
    let cancel = CancellationToken::new();
    let session = PlannerSession::new("read README.md");
    let (outcome, events) = session
        .ask_with(&cancel, |event| {
            if matches!(event, StreamEvent::ToolCallDelta { .. }) {
                cancel.cancel();
            }
        })
        .await;
    let Err(CallFailure::Aborted { partial: Some(partial) }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(partial.content, vec![ContentBlock::text("I call `read` to read `README.md`.")]);
    assert_eq!(partial.stop_reason, StopReason::Aborted);
    assert_eq!(partial.error_message.as_deref(), Some("the model call was aborted"));
    let deltas =
        events.iter().filter(|event| matches!(event, StreamEvent::ToolCallDelta { .. })).count();
    assert_eq!(deltas, 1, "nothing is sent behind the abort");
}

#[tokio::test]
async fn the_output_limit_is_kept() {
    let mut session = PlannerSession::new("help");
    session.max_output = Some(5);
    let message = session.ask().await.message;
    assert_eq!(message.stop_reason, StopReason::Length);
    assert_eq!(message.text(), "I am MyClaw's ");
    assert!(message.usage.output <= 5);

    let mut session = PlannerSession::new("read README.md");
    session.max_output = Some(11);
    let message = session.ask().await.message;
    assert_eq!(message.stop_reason, StopReason::Length);
    assert_eq!(
        message.content,
        vec![ContentBlock::text("I call `read` to read `README.md`.")],
        "half a call is left out"
    );
}

#[tokio::test]
async fn another_id_is_refused() {
    let model = Model { id: "gpt".to_owned(), ..demo_model() };
    let messages = crate::PairedMessages::default();
    let request = ModelRequest {
        model: &model,
        system_prompt: "",
        messages: &messages,
        tools: &[],
        tool_use: crate::ToolUse::Auto,
        max_output: None,
        options: None,
        thinking: ThinkingLevel::Off,
        api_key: None,
        limits: crate::CallLimits::default(),
    };
    let mut events = Vec::new();
    let outcome = DemoProvider
        .call(request, &CancellationToken::new(), &mut |event| events.push(event))
        .await;
    let error = "there is no built-in model `gpt`; the only one is builtin/demo".to_owned();
    assert_eq!(outcome, Err(ModelError::new(ErrorClass::Unknown, error.clone()).into()));
    assert_eq!(events, [StreamEvent::Error { reason: StopReason::Error, error }]);
}

#[test]
fn the_model_takes_text_and_costs_nothing() {
    let model = demo_model();
    assert_eq!((model.provider.as_str(), model.id.as_str()), ("builtin", "demo"));
    assert_eq!(
        (model.api, model.input, model.reasoning),
        (Api::Builtin, vec![InputKind::Text], false)
    );
}

#[tokio::test]
async fn without_a_user_message_it_says_what_it_can_do() {
    let mut session = PlannerSession::new("");
    assert!(session.ask().await.text().contains("- `run \"COMMAND\"`"));
    session.messages.clear();
    assert!(session.ask().await.text().contains("demo planner, not a language model"));
}

#[tokio::test]
async fn it_never_passes_for_a_language_model() {
    for question in ["Who are you?", "are you an AI?", "Hello! Who are you?"] {
        let text = PlannerSession::new(question).ask().await.text();
        assert!(text.starts_with("I am `builtin/demo`, the demo planner"), "{question}: {text}");
        assert!(text.contains("I am not a language model"), "{question}: {text}");
        assert!(
            text.contains("ANTHROPIC_API_KEY") && text.contains("`myclaw init`"),
            "{question}: {text}"
        );
    }
}

#[tokio::test]
async fn an_unquoted_command_is_not_run() {
    let text = PlannerSession::new("run cargo test").ask().await.text();
    assert_eq!(text, "I run a command only if it is in quotes, so that it is clear where it ends.");
}

#[tokio::test]
async fn whatever_it_does_not_know_gets_help_and_no_call() {
    let requests = [
        "write a poem",
        "read me a story",
        "what is the meaning of life?",
        "then",
        "\"",
        "find",
        "read lines 9-3 of a.md",
        "read a.md lines 9-3",
        "read a.md lines 0-3",
        "ls then",
        "ls then ls then ls then ls then ls then ls then ls",
        "run \"\u{201c}",
        "delete everything",
    ];
    for request in requests {
        let text = PlannerSession::new(request).ask().await.text();
        assert!(
            text.starts_with("I am MyClaw's built-in demo planner")
                || text.starts_with("I run a command only")
        );
    }
    let long = format!("list the files {}", "then list the files ".repeat(2_000));
    assert!(
        PlannerSession::new(&long)
            .ask()
            .await
            .text()
            .starts_with("I am MyClaw's built-in demo planner")
    );
}

#[tokio::test]
async fn a_missing_tool_is_named() {
    let mut session = PlannerSession::new("read a.md then run \"ls\"");
    session.tools.retain(|tool| tool.name != "bash");
    session.step("text").await;
    let text = session.ask().await.text();
    assert_eq!(
        text,
        "I called `read` to read `a.md`. It returned:\n\n```\ntext\n```\n\nTo run `ls`, I need the tool `bash`, which I may \
         not call here."
    );
    session.tools.clear();
    session.user("ls");
    let text = session.ask().await.text();
    assert_eq!(
        text,
        "To list the files in the working directory, I need the tool `ls`, which I may not call here."
    );
}

#[tokio::test]
async fn a_chain_goes_step_by_step_and_reports_all_of_it() {
    let mut session = PlannerSession::new("list the files then read README.md");
    assert_eq!(session.step("README.md\nsrc/").await.name, "ls");
    let second = session.ask().await;
    assert_eq!(second.message.text(), "I call `read` to read `README.md`.");
    assert_eq!(session.step("# Title").await.name, "read");
    assert_eq!(
        session.ask().await.text(),
        "I called `ls` to list the files in the working directory. It returned:\n\n```\nREADME.md\nsrc/\n```\n\nI called `read` to \
         read `README.md`. It returned:\n\n```\n# Title\n```"
    );
}

#[tokio::test]
async fn a_chain_ends_at_the_first_failure() {
    let mut session = PlannerSession::new("read a.md then ls then ls docs");
    session.fail("a.md: no such file").await;
    assert_eq!(
        session.ask().await.text(),
        "I called `read` to read `a.md`, and it failed:\n\n```\na.md: no such file\n```\n\nI stopped there; 2 more of your \
         requests were not done."
    );
}

#[tokio::test]
async fn a_later_message_decides() {
    let mut session = PlannerSession::new("list the files then read README.md");
    session.step("README.md").await;
    session.user("find *.rs");
    assert_eq!(session.step("src/main.rs").await.name, "find");
    assert_eq!(
        session.ask().await.text(),
        "I called `find` to find `*.rs` in the working directory. It returned:\n\n```\nsrc/main.rs\n```"
    );
}

#[tokio::test]
async fn results_of_another_model_are_not_taken_for_its_own() {
    let mut session = PlannerSession::new("ls");
    session.step("a.md").await;
    for message in &mut session.messages {
        if let Message::Assistant(assistant) = message {
            assistant.provider = "anthropic".to_owned();
        }
    }
    assert_eq!(session.ask().await.call().name, "ls");
}

#[tokio::test]
async fn an_interrupted_call_is_reported_as_such() {
    let mut session = PlannerSession::new("run \"sleep 9\"");
    session.step("").await;
    // The process died while the tool ran: the result is not in the log.
    session.messages.pop();
    let text = session.ask().await.text();
    assert!(text.starts_with("I called `bash` to run `sleep 9`, and it failed:"), "{text}");
    assert!(text.contains(crate::INTERRUPTED_RESULT), "{text}");
}

#[tokio::test]
async fn a_request_for_a_summary_gets_an_extract() {
    let lines: Vec<String> = (0..200).map(|number| format!("[User]: message {number}")).collect();
    let text_before = lines.join("\n");
    let mut session = PlannerSession::new(&format!(
        "Summarise the conversation.\n<conversation>\n{text_before}\n</conversation>\nKeep it short."
    ));
    session.tools.clear();
    let text = session.ask().await.text();
    assert!(
        text.starts_with(
            "Extract by the built-in demo planner (200 lines shortened, not a summary):\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("- [User]: message 0\n") && text.ends_with("- [User]: message 199"),
        "{text}"
    );
    assert!(text.len() < text_before.len() / 2);
}

#[tokio::test]
async fn a_forbidden_tool_is_not_called() {
    let mut session = PlannerSession::new("ls");
    session.tool_use = crate::ToolUse::Forbidden;
    let text = session.ask().await.text();
    assert_eq!(
        text,
        "To list the files in the working directory, I need the tool `ls`, which I may not call here."
    );
}

#[tokio::test]
async fn a_long_result_is_shortened_and_no_text_ends_its_fence() {
    let mut session = PlannerSession::new("read a.md");
    session.step(&format!("````\n{}", "é".repeat(5_000))).await;
    let text = session.ask().await.text();
    let shown = "é".repeat(3_995);
    assert_eq!(
        text,
        format!(
            "I called `read` to read `a.md`. It returned:\n\n`````\n````\n{shown}\n`````\n\nThe rest is left out here."
        )
    );
}
