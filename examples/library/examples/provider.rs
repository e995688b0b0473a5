//! A provider of this program's own: the model is a function. `cargo run --example provider -- "Hello"`.

use std::process::{ExitCode, Termination};

use myclaw_agent::config::{Environment, load_or_default};
use myclaw_agent::llm::{
    AssistantMessage, CallFailure, ContentBlock, EventSink, HttpOptions, Message, ModelRequest,
    Provider, StopReason, StreamEvent, Usage,
};
use myclaw_agent::sessions::SessionKey;
use myclaw_agent::{
    BoxFuture, CancellationToken, Engine, RunAgentParams, Stores, helper_main, key_resolver,
    run_agent_with,
};

fn main() -> ExitCode {
    // In sandboxed sessions this program is its own helper process.
    if let Some(end) = helper_main() {
        return end.report();
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let message = std::env::args().nth(1).unwrap_or_else(|| "Hello".to_owned());
    let config = load_or_default(&Environment::from_process())?.config;
    // Every model of this engine is answered by the provider. Keep the engine for several runs.
    let engine = Engine::new(Backwards, key_resolver(HttpOptions::default()));
    let mut params = RunAgentParams::new(SessionKey::for_cli("main", "provider"), message, config);
    params.model = Some("builtin/demo".to_owned());
    params.stores = Some(Stores::in_memory(std::env::temp_dir().join("myclaw-example-provider")));
    params.system_prompt = Some("You are brief.".to_owned());
    params.working_directory = Some(std::env::current_dir()?);
    let result = run_agent_with(&engine, params).await?;
    println!("{}", result.reply);
    Ok(())
}

/// Says the last message of the user backwards.
struct Backwards;

impl Provider for Backwards {
    fn call<'a>(
        &'a self,
        request: ModelRequest<'a>,
        cancel: &'a CancellationToken,
        sink: EventSink<'a>,
    ) -> BoxFuture<'a, Result<AssistantMessage, CallFailure>> {
        Box::pin(async move {
            if cancel.is_cancelled() {
                return Err(CallFailure::Aborted { partial: None });
            }
            let said = request.messages.as_slice().iter().rev().find_map(|message| match message {
                Message::User(user) => user.content.iter().find_map(|block| match block {
                    ContentBlock::Text(text) => Some(text.text.as_str()),
                    _ => None,
                }),
                _ => None,
            });
            let text: String = said.unwrap_or_default().trim().chars().rev().collect();
            sink(StreamEvent::Start);
            sink(StreamEvent::TextStart { index: 0 });
            sink(StreamEvent::TextDelta { index: 0, delta: text.clone() });
            sink(StreamEvent::TextEnd { index: 0 });
            let message = AssistantMessage {
                content: vec![ContentBlock::text(text)],
                api: request.model.api,
                provider: request.model.provider.clone(),
                model: request.model.id.clone(),
                usage: Usage::default(),
                stop_reason: StopReason::Stop,
                error_message: None,
                timestamp: 0,
            };
            let reason = StopReason::Stop;
            sink(StreamEvent::Done { reason, message: Box::new(message.clone()) });
            Ok(message)
        })
    }
}
