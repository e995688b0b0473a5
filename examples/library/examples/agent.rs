//! One turn of the built-in model with a tool and a hook of this program's own:
//! `cargo run --example agent -- "run the command `echo hello`"`.
//!
//! `cargo run --example agent -- --memory "run the command `echo hello`"` does the same wholly in memory: no file is read but
//! the config and the `.env`, and none is left: tools work with files, and those are in a directory that ends with the program.

use std::io::Write;
use std::process::{ExitCode, Termination};
use std::sync::Arc;

use myclaw_agent::config::{Environment, load_or_default};
use myclaw_agent::llm::{StreamEvent, ToolSchema};
use myclaw_agent::sessions::SessionKey;
use myclaw_agent::{
    AgentRunEvent, BoxFuture, Hook, HookError, PendingToolCall, RunAgentParams, Stores, Tool,
    ToolCallVerdict, ToolError, ToolInvocation, ToolOutput, helper_main, run_agent,
};
use serde_json::json;

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
    let mut arguments = std::env::args().skip(1).peekable();
    let is_in_memory = arguments.next_if(|argument| argument == "--memory").is_some();
    let message = arguments.next().unwrap_or_else(|| "run `echo hello`".to_owned());
    // Keys, the model and the hooks of the config are found as the program `myclaw` finds them.
    let environment = Environment::from_process();
    let config = load_or_default(&environment)?.config;

    let mut params = RunAgentParams::new(SessionKey::for_cli("main", "example"), message, config);
    params.model = Some("builtin/demo".to_owned());
    params.tools.push(Arc::new(Shout::new()));
    params.hooks.push(Arc::new(Announce));
    params.on_event = Some(Arc::new(|event| {
        if let AgentRunEvent::LlmStream { event: StreamEvent::TextDelta { delta, .. } } = event.kind
        {
            print!("{delta}");
            let _ignored = std::io::stdout().flush();
        }
    }));

    // Removed at the end of this function.
    let scratch = is_in_memory.then(tempfile::tempdir).transpose()?;
    if let Some(scratch) = &scratch {
        params.stores = Some(Stores::in_memory(scratch.path()));
        params.system_prompt = Some("You are brief.".to_owned());
        params.working_directory = Some(std::env::current_dir()?);
    }
    let stores = params.stores.clone();

    let result = run_agent(params).await?;
    println!("\n{} model calls", result.iterations);
    if let Some(stores) = stores {
        let (_, count) = stores.catalog.latest(1)?;
        println!("{count} session in memory, which ends with this program");
    }
    Ok(())
}

/// Takes the place of the built-in `bash`: shouts the command instead of running it.
struct Shout {
    schema: ToolSchema,
}

impl Shout {
    fn new() -> Self {
        Self {
            schema: ToolSchema {
                name: "bash".to_owned(),
                description: "Gives the command back in capitals.".to_owned(),
                parameters: json!({
                    "type": "object",
                    "properties": {"command": {"type": "string"}},
                    "required": ["command"],
                }),
            },
        }
    }
}

impl Tool for Shout {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let text = invocation.call.arguments["command"].as_str().unwrap_or_default().to_uppercase();
        Box::pin(async move { Ok(ToolOutput::text(text)) })
    }
}

/// Says on standard error which tool is about to run.
struct Announce;

impl Hook for Announce {
    fn name(&self) -> &str {
        "announce"
    }

    fn tool_call<'a>(
        &'a self,
        call: &'a mut PendingToolCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        eprintln!("[{} {}]", call.tool_name, serde_json::Value::from(call.arguments.clone()));
        Box::pin(async { Ok(ToolCallVerdict::Allow) })
    }
}
