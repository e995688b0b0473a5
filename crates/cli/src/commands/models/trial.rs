//! `myclaw models test`: one tiny real call, and what worked in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_auth::{AuthFile, OrderRules, arrange};
use myclaw_config::SecretString;
use myclaw_engine::{ModelChoice, key_resolver};
use myclaw_llm::{
    Api, AssistantMessage, CallFailure, CallLimits, DemoProvider, HttpOptions, HttpProvider,
    Message, ModelRequest, PairedMessages, Provider, StreamEvent, ThinkingLevel, ToolSchema,
    ToolUse, Usage, UserMessage,
};
use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::show::api_name;
use crate::args::ModelArgs;
use crate::config_check::load_checked;
use crate::exit::CliError;
use crate::interrupt::Interrupts;
use crate::model_choice::{Wanted, choose};
use crate::print::{Printer, columns, without_login};
use crate::report::{first_line, tokens_and_cost};
use crate::runtime;
use crate::settings::{Home, config_error, stored_keys};
use crate::time::now_ms;

/// Output limit of the call: enough for a sentence and a call, even of a model that always thinks a little.
const MAX_OUTPUT: u64 = 2_048;

/// The tool that the model is asked to call.
const TOOL: &str = "report";

const QUESTION: &str = "This is a test of the connection. Write one short sentence that greets the user, and then call \
                        the tool `report` with the word \"ready\".";

/// Calls the model and prints what worked.
pub(super) fn run(args: &ModelArgs) -> Result<(), CliError> {
    let home = Home::find()?;
    let config = load_checked(&home.environment).map_err(|error| config_error(&error))?.config;
    let interrupts = Interrupts::install()?;
    let cancel = CancellationToken::new();
    let armed = interrupts.arm(cancel.clone());
    let trial = runtime::block_on(armed.unless_quit(async {
        let agent = config.agent_settings(None).map_err(|error| config_error(&error))?;
        let stored = stored_keys(&agent);
        let wanted = Wanted {
            requested: Some(&args.model),
            configured: None,
            fallbacks: &[],
            stored: &stored,
        };
        let chosen = choose(&config, &home.environment, wanted).await?;
        let choice = ModelChoice::from_config(&chosen.config, &chosen.reference);
        let key = FirstKey::of(&choice, &stored, &home, &cancel).await?;
        let timeouts = &config.models.timeouts;
        let limits = CallLimits {
            connect: timeouts.connect(),
            first_event: timeouts.first_event(),
            between_events: timeouts.between_events(),
        };
        Trial::run(&choice, key, home.http_options(), limits, &cancel).await
    }))??;
    let mut printer = Printer::stdout();
    if args.json {
        printer.json(&trial)?;
    } else {
        printer.safe_lines(std::iter::once(trial.heading()).chain(columns(&trial.rows())))?;
    }
    printer.finish()
}

/// What one call showed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Trial {
    model: String,
    api: &'static str,
    base_url: String,
    /// The auth profile that was used.
    profile: String,
    text: String,
    /// The arguments of the call, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call: Option<String>,
    thinking: ThinkingLevel,
    /// Pieces in which the answer came.
    pieces: u32,
    usage: Usage,
    first_piece_ms: u64,
    total_ms: u64,
}

/// The key that a run would try first.
struct FirstKey {
    profile: String,
    secret: Option<SecretString>,
}

impl FirstKey {
    async fn of(
        choice: &ModelChoice,
        stored: &AuthFile,
        home: &Home,
        cancel: &CancellationToken,
    ) -> Result<Self, CliError> {
        let model = &choice.model;
        let rules = OrderRules {
            provider: &model.provider,
            model: &model.id,
            pinned: None,
            now_ms: now_ms(),
        };
        let first = arrange(&choice.profiles, stored, &rules).into_iter().next();
        let Some(profile) = first.map(|arranged| arranged.profile) else {
            return Ok(Self { profile: String::new(), secret: None });
        };
        let secret = key_resolver(home.http_options())
            .resolve(&profile, now_ms(), cancel)
            .await
            .map_err(|error| CliError::model("auth", format!("the key {}: {error}", profile.id)))?;
        Ok(Self { profile: profile.id, secret })
    }
}

/// What is noted while the answer comes.
#[derive(Default)]
struct Arrival {
    pieces: u32,
    first: Option<Duration>,
}

impl Trial {
    async fn run(
        choice: &ModelChoice,
        key: FirstKey,
        options: HttpOptions,
        limits: CallLimits,
        cancel: &CancellationToken,
    ) -> Result<Self, CliError> {
        let model = &choice.model;
        let messages =
            PairedMessages::repair(vec![Message::User(UserMessage::text(QUESTION, now_ms()))]);
        let tools = [report_tool()];
        let thinking = model.thinking_level(ThinkingLevel::Off);
        let request = ModelRequest {
            model,
            system_prompt: "",
            messages: &messages,
            tools: &tools,
            tool_use: ToolUse::Auto,
            max_output: Some(MAX_OUTPUT.min(model.max_output)),
            thinking,
            api_key: key.secret.as_ref(),
            limits,
        };
        let began = Instant::now();
        let mut arrival = Arrival::default();
        let mut sink = |event: StreamEvent| {
            if event.is_visible_output() {
                arrival.pieces += 1;
                arrival.first.get_or_insert_with(|| began.elapsed());
            }
        };
        let outcome = provider_of(model.api, options).call(request, cancel, &mut sink).await;
        let total = began.elapsed();
        let message = outcome.map_err(|failure| failed(&failure, choice))?;
        Ok(Self {
            model: choice.reference(),
            api: api_name(model.api),
            base_url: without_login(&model.base_url),
            profile: key.profile,
            text: message.text(),
            tool_call: reported(&message),
            thinking,
            pieces: arrival.pieces,
            usage: message.usage,
            first_piece_ms: milliseconds(arrival.first.unwrap_or(total)),
            total_ms: milliseconds(total),
        })
    }

    fn heading(&self) -> String {
        let Self { model, api, base_url, profile, .. } = self;
        match base_url.as_str() {
            "" => format!("{model} answers ({api})"),
            base_url => format!("{model} answers ({api} at {base_url}, key {profile})"),
        }
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let row = |name: &str, works: bool, what: String| {
            let works = if works { "ok" } else { "no" };
            vec![name.to_owned(), works.to_owned(), what]
        };
        let text = match self.text.trim() {
            "" if self.tool_call.is_some() => "nothing beside the tool call".to_owned(),
            "" => "nothing".to_owned(),
            text => first_line(text),
        };
        let call = match &self.tool_call {
            Some(arguments) => format!("{TOOL} {arguments}"),
            None => {
                "the model was asked to call a tool and did not; an agent needs that".to_owned()
            }
        };
        let streaming = match self.pieces {
            0 | 1 => "the answer came in one piece".to_owned(),
            pieces => format!("{pieces} pieces, the first after {} ms", self.first_piece_ms),
        };
        let usage = match self.usage.total_tokens {
            0 => "no token counts came; cost will show as zero".to_owned(),
            _ => tokens_and_cost(&self.usage),
        };
        vec![
            row("text", !self.text.trim().is_empty(), text),
            row("tool call", self.tool_call.is_some(), call),
            row("streaming", self.pieces > 1, streaming),
            row("usage", self.usage.total_tokens > 0, usage),
            row("latency", true, format!("{} ms", self.total_ms)),
        ]
    }
}

fn provider_of(api: Api, options: HttpOptions) -> Arc<dyn Provider> {
    match api {
        Api::Builtin => Arc::new(DemoProvider),
        Api::AnthropicMessages
        | Api::OpenaiCompletions
        | Api::OpenaiResponses
        | Api::GoogleGenerativeAi
        | Api::BedrockConverse => {
            Arc::new(HttpProvider::new(options).with_access(myclaw_llm_cloud::access()))
        }
    }
}

fn report_tool() -> ToolSchema {
    ToolSchema {
        name: TOOL.to_owned(),
        description: "Reports one word to the user.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"word": {"type": "string", "description": "The word."}},
            "required": ["word"],
        }),
    }
}

/// The arguments with which the model called the tool, if it did so rightly.
fn reported(message: &AssistantMessage) -> Option<String> {
    let call =
        message.tool_calls().find(|call| call.name == TOOL && call.invalid_arguments.is_none())?;
    serde_json::to_string(&call.arguments).ok()
}

fn failed(failure: &CallFailure, choice: &ModelChoice) -> CliError {
    match failure {
        CallFailure::Aborted { .. } => {
            CliError { message: "aborted".to_owned(), ..CliError::aborted() }
        }
        CallFailure::Failed { error, .. } => {
            let prefix = format!("{}: ", choice.model.provider);
            let message = error.message.strip_prefix(&prefix).unwrap_or(&error.message);
            let message = format!("{} does not work: {message}", choice.reference());
            CliError::model(error.class.as_str(), message)
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
