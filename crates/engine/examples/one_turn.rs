//! One turn through the library call: `cargo run --example one_turn -- "List the files in my workspace"`.
//!
//! Without arguments it asks the built-in planner; `MODEL=provider/model` chooses another, with the key from the
//! settings file.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use myclaw_config::{Environment, load_or_default};
use myclaw_engine::{AgentRunEvent, ModelChoice, RunAgentParams, run_agent};
use myclaw_llm::{StreamEvent, parse_model_ref};
use myclaw_session::SessionKey;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let message =
        std::env::args().nth(1).unwrap_or_else(|| "List the files in my workspace".to_owned());
    let model = std::env::var("MODEL").unwrap_or_else(|_| "builtin/demo".to_owned());

    let environment = Environment::from_process();
    let config = load_or_default(&environment)?.config;
    let choice = ModelChoice::from_config(&config, &parse_model_ref(&model)?);

    let mut params = RunAgentParams::new(SessionKey::for_cli("main", "example"), message, config);
    params.model = Some(choice);
    params.tools = myclaw_tools::builtin_tools(Duration::from_secs(600));
    params.on_event = Some(Arc::new(|event| match event.kind {
        AgentRunEvent::LlmStream { event: StreamEvent::TextDelta { delta, .. } } => {
            print!("{delta}");
            let _ignored = std::io::stdout().flush();
        }
        AgentRunEvent::ToolStart { tool_name, .. } => eprintln!("[{tool_name}]"),
        _ => {}
    }));

    let result = run_agent(params).await?;
    eprintln!("\n{} model calls, {} tokens", result.iterations, result.usage.total_tokens);
    Ok(())
}
