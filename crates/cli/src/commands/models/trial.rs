//! `myclaw models test`: makes one tiny real call and prints what worked.

use std::time::Duration;

use myclaw_agent::{
    SessionConfig, SessionOptions, call_limits,
    config_check::load_checked,
    models::profiles_in_order,
    trial::{Trial, TrialAnswer, TrialFailure, TrialQuestion},
};
use myclaw_engine::{ActiveModel, cleaned_name, written_call};
use myclaw_llm::{AssistantMessage, ThinkingLevel, ToolSchema, Usage};
use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::args::ModelArgs;
use crate::commands::cluster::with_shared_keys;
use myclaw_front::exit::CliError;
use myclaw_front::home::{find_home, load_session};
use myclaw_front::interrupt::Interrupts;
use myclaw_front::print::{Printer, columns, without_login};
use myclaw_front::report::{first_line, tokens_and_cost};
use myclaw_front::runtime;
use myclaw_front::time::now_ms;

/// Output limit of the call: enough for a sentence and a call, even of a model that always thinks a little.
const MAX_OUTPUT: u64 = 2_048;

/// The tool that the model is asked to call.
const TOOL: &str = "report";

const QUESTION: &str = "This is a test of the connection. Write one short sentence that greets the user, and then call \
                        the tool `report` with the word \"ready\".";

/// Calls the model and prints what worked.
pub(super) fn run(args: &ModelArgs) -> Result<(), CliError> {
    let home = find_home()?;
    let home = with_shared_keys(home.clone(), &load_checked(&home.environment)?.config)?;
    let interrupts = Interrupts::install()?;
    let cancel = CancellationToken::new();
    let armed = interrupts.arm(cancel.clone());
    let trial = runtime::block_on(armed.unless_quit(async {
        let config = load_session(home, &SessionOptions::default())?;
        let selection = config.select_model(Some(&args.model)).await?;
        run_trial(&config, &selection.models[0], &cancel).await
    }))??;
    let mut printer = Printer::stdout();
    if args.json {
        printer.json(&trial)?;
    } else {
        printer.safe_lines(std::iter::once(trial.heading()).chain(columns(&trial.rows())))?;
    }
    printer.finish()
}

/// The result of the call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
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
    /// The options that the host refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    /// Number of pieces in which the answer arrived.
    pieces: u32,
    usage: Usage,
    first_piece_ms: u64,
    total_ms: u64,
}

async fn run_trial(
    config: &SessionConfig,
    active: &ActiveModel,
    cancel: &CancellationToken,
) -> Result<Shown, CliError> {
    let model = &active.model;
    let stored = config.home.stored_keys(&config.agent);
    let profile = profiles_in_order(active, &stored, now_ms()).into_iter().next();
    let question = TrialQuestion {
        text: QUESTION,
        picture: None,
        tools: &[report_tool()],
        max_output: MAX_OUTPUT,
    };
    let limits = call_limits(&config.config);
    let answer = Trial::new(config.home.http_options())
        .call(model, profile.as_ref(), question, limits, cancel)
        .await;
    let profile = profile.map(|profile| profile.id).unwrap_or_default();
    let TrialAnswer { message, thinking, left_out, pieces, first_piece, total } =
        answer.map_err(|failure| failed(failure, active, &profile))?;
    Ok(Shown {
        model: active.reference(),
        api: model.api.as_str(),
        base_url: without_login(&model.base_url),
        profile,
        text: message.text(),
        tool_call: reported(&message),
        thinking,
        left_out,
        pieces,
        usage: message.usage,
        first_piece_ms: milliseconds(first_piece),
        total_ms: milliseconds(total),
    })
}

impl Shown {
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
            None if written_call(&self.text, |name| name == TOOL).is_some() => {
                "the model wrote its call as text: its server needs a tool parser; see docs/use/models.md"
                    .to_owned()
            }
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
        let mut rows = vec![
            row("text", !self.text.trim().is_empty(), text),
            row("tool call", self.tool_call.is_some(), call),
            row("streaming", self.pieces > 1, streaming),
            row("usage", self.usage.total_tokens > 0, usage),
            row("latency", true, format!("{} ms", self.total_ms)),
        ];
        if !self.left_out.is_empty() {
            let what = format!("the host refuses {}; left out", self.left_out.join(", "));
            rows.push(row("options", true, what));
        }
        rows
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

/// The arguments with which the model called the tool, if the call is right.
fn reported(message: &AssistantMessage) -> Option<String> {
    let is_call = |name: &str| cleaned_name(name, |name| name == TOOL).is_some();
    let call = message
        .tool_calls()
        .find(|call| is_call(&call.name) && call.invalid_arguments.is_none())?;
    serde_json::to_string(&call.arguments).ok()
}

fn failed(failure: TrialFailure, model: &ActiveModel, profile: &str) -> CliError {
    match failure {
        TrialFailure::Aborted => CliError { message: "aborted".to_owned(), ..CliError::aborted() },
        TrialFailure::Key(why) => CliError::model("auth", format!("the key {profile}: {why}")),
        TrialFailure::Call(error) => {
            let prefix = format!("{}: ", model.model.provider);
            let message = error.message.strip_prefix(&prefix).unwrap_or(&error.message);
            let message = format!("{} does not work: {message}", model.reference());
            CliError::model(error.name(), message)
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
