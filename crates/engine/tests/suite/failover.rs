//! The failover table: what the server sees, request by request, for every class of failure, at every point of an
//! answer, with every number of keys and models left; and how the run ends.
//!
//! The expected course comes from a table of rules that knows nothing of the engine.

use crate::common::{Bench, run_agent};
use myclaw_engine::{ActiveModel, AuthProfile, RunError, RunParams};
use myclaw_llm::{ErrorClass, Model};
use myclaw_testkit::{RecordedRequest, Reply, Script, Step, TempHome, WireFormat};
use serde_json::json;

/// Retries of one model; the default of the config.
const RETRIES: usize = 3;

/// One kind of failure, and how a server expresses it.
struct Failure {
    class: ErrorClass,
    status: u16,
    kind: &'static str,
    message: &'static str,
}

const FAILURES: [Failure; 7] = [
    Failure { class: ErrorClass::Auth, status: 401, kind: "authentication_error", message: "no" },
    Failure { class: ErrorClass::Billing, status: 402, kind: "billing_error", message: "no" },
    Failure { class: ErrorClass::Quota, status: 400, kind: "insufficient_quota", message: "no" },
    Failure { class: ErrorClass::RateLimit, status: 429, kind: "rate_limit_error", message: "no" },
    Failure { class: ErrorClass::Timeout, status: 529, kind: "overloaded_error", message: "no" },
    Failure {
        class: ErrorClass::ContextOverflow,
        status: 400,
        kind: "request_too_large",
        message: "prompt is too long",
    },
    Failure { class: ErrorClass::Unknown, status: 404, kind: "model_not_found", message: "no" },
];

/// How far an answer gets before it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    BeforeAnything,
    AfterStart,
    AfterText,
    InToolCall,
}

const POSITIONS: [Position; 4] =
    [Position::BeforeAnything, Position::AfterStart, Position::AfterText, Position::InToolCall];

/// What does not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sound {
    Nothing,
    SecondKey,
    LastModel,
}

/// What a program reads of a failure of [`FAILURES`]: that of the class `timeout` is a failing server.
fn name_of(class: ErrorClass) -> &'static str {
    if class == ErrorClass::Timeout { "server_error" } else { class.as_str() }
}

/// One cell of the table.
#[derive(Debug, Clone, Copy)]
struct Case {
    failure: usize,
    position: Position,
    keys: usize,
    models: usize,
    sound: Sound,
}

impl Case {
    /// Every cell that makes sense.
    fn all() -> impl Iterator<Item = Self> {
        let mut cases = Vec::new();
        for failure in 0..FAILURES.len() {
            for position in POSITIONS {
                for (keys, models) in
                    [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3), (6, 2)]
                {
                    for sound in [Sound::Nothing, Sound::SecondKey, Sound::LastModel] {
                        cases.push(Self { failure, position, keys, models, sound });
                    }
                }
            }
        }
        cases.into_iter().filter(|case| match case.sound {
            Sound::Nothing => true,
            Sound::SecondKey => case.keys > 1,
            Sound::LastModel => case.models > 1,
        })
    }

    fn class(self) -> ErrorClass {
        FAILURES[self.failure].class
    }

    fn is_sound(self, key: usize, model: usize) -> bool {
        match self.sound {
            Sound::Nothing => false,
            Sound::SecondKey => key == 1,
            Sound::LastModel => model + 1 == self.models,
        }
    }
}

/// A request by the numbers of its key and its model, from 0.
type Request = (usize, usize);

/// How a run ends.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// This model answered.
    Answer(usize),
    /// The error of one model.
    Failed(&'static str),
    /// One line for each of so many models.
    AllFailed(usize),
}

/// What may follow a failure before any output was shown.
enum Rule {
    /// Each key once.
    EachKeyOnce,
    /// Each key once, and again in turn until the retries are used up.
    KeysInTurn,
    /// Another key does not help; another model may.
    NextModel,
    /// Nothing helps.
    Nothing,
}

fn rule(class: ErrorClass) -> Rule {
    match class {
        ErrorClass::Auth | ErrorClass::Billing | ErrorClass::Quota => Rule::EachKeyOnce,
        ErrorClass::RateLimit | ErrorClass::Timeout => Rule::KeysInTurn,
        ErrorClass::Unknown => Rule::NextModel,
        ErrorClass::ContextOverflow => Rule::Nothing,
    }
}

/// The course that the rules prescribe.
fn expected(case: Case) -> (Vec<Request>, Outcome) {
    let class = case.class();
    let is_visible = case.position == Position::AfterText;
    let mut requests = Vec::new();
    for model in 0..case.models {
        let keys: Vec<usize> = match rule(class) {
            _ if is_visible => vec![0],
            Rule::EachKeyOnce => (0..case.keys).collect(),
            Rule::KeysInTurn => (0..case.keys).cycle().take(case.keys.max(1 + RETRIES)).collect(),
            Rule::NextModel | Rule::Nothing => vec![0],
        };
        for key in keys {
            requests.push((key, model));
            if case.is_sound(key, model) {
                return (requests, Outcome::Answer(model));
            }
        }
        if is_visible || matches!(rule(class), Rule::Nothing) {
            return (requests, Outcome::Failed(name_of(class)));
        }
    }
    let outcome = match case.models {
        1 => Outcome::Failed(name_of(class)),
        models => Outcome::AllFailed(models),
    };
    (requests, outcome)
}

fn event(data: &serde_json::Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

/// The answer that fails at this point.
fn failing(failure: &Failure, position: Position) -> Step {
    let error =
        json!({"type": "error", "error": {"type": failure.kind, "message": failure.message}});
    let start = json!({"type": "message_start", "message": {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "usage": {"input_tokens": 7, "output_tokens": 1},
    }});
    let block = |block: serde_json::Value| json!({"type": "content_block_start", "index": 0, "content_block": block});
    let delta = |delta: serde_json::Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    let visible = match position {
        Position::BeforeAnything => {
            return Step::status(failure.status, &[], error.to_string());
        }
        Position::AfterStart => Vec::new(),
        Position::AfterText => vec![
            block(json!({"type": "text", "text": ""})),
            delta(json!({"type": "text_delta", "text": "Let me"})),
        ],
        Position::InToolCall => vec![
            block(json!({"type": "tool_use", "id": "call_a", "name": "echo", "input": {}})),
            delta(json!({"type": "input_json_delta", "partial_json": "{\"text\": \"one\"}"})),
        ],
    };
    let events = std::iter::once(&start).chain(&visible).chain([&error]);
    Step::event_stream(events.map(event).collect::<String>())
}

fn key_name(key: usize, model: usize) -> String {
    format!("key-{key}-of-{model}")
}

fn model_name(model: usize) -> String {
    format!("model-{model}")
}

fn request_of(request: &RecordedRequest) -> Request {
    let (key, model) = (
        request.header("x-api-key").unwrap().to_owned(),
        request.json()["model"].as_str().unwrap().to_owned(),
    );
    let model = model.strip_prefix("model-").unwrap().parse().unwrap();
    let key = key.strip_prefix("key-").unwrap().split('-').next().unwrap().parse().unwrap();
    assert_eq!(request.header("x-api-key").unwrap(), key_name(key, model), "a foreign key");
    (key, model)
}

/// The models of a run, each with keys and a provider of its own.
fn choices(bench: &Bench, models: usize, keys: usize) -> Vec<ActiveModel> {
    (0..models)
        .map(|model| {
            let profiles = (0..keys).map(|key| {
                AuthProfile::with_key(format!("profile-{key}"), key_name(key, model).into())
            });
            let named = Model {
                id: model_name(model),
                provider: format!("provider-{model}"),
                ..bench.model()
            };
            ActiveModel::new(named, profiles.collect())
        })
        .collect()
}

async fn run(
    bench: &Bench,
    models: Vec<ActiveModel>,
) -> Result<myclaw_engine::RunResult, RunError> {
    run_agent(RunParams { models, ..bench.params("go") }).await
}

fn outcome(result: &Result<myclaw_engine::RunResult, RunError>) -> Outcome {
    match result {
        Ok(result) => {
            assert_eq!(result.reply, "Here you are.");
            Outcome::Answer(result.model.strip_prefix("model-").unwrap().parse().unwrap())
        }
        Err(RunError::AllModelsFailed(failures)) => Outcome::AllFailed(failures.len()),
        Err(error) => Outcome::Failed(error.class()),
    }
}

async fn check(case: Case) {
    let script = Script::answer_with(move |request, _| {
        let (key, model) = request_of(request);
        if case.is_sound(key, model) {
            Reply::anthropic().text("Here you are.").into()
        } else {
            failing(&FAILURES[case.failure], case.position)
        }
    });
    let mut bench = Bench::new(WireFormat::AnthropicMessages, script).await;
    bench.home = TempHome::in_memory();

    let result = run(&bench, choices(&bench, case.models, case.keys)).await;

    let seen: Vec<Request> =
        bench.server.requests().iter().map(|request| request_of(request)).collect();
    let description = format!("{:?} {case:?}", case.class());
    assert_eq!((seen, outcome(&result)), expected(case), "{description}");
    assert_eq!(bench.events_named("tool_start").len(), 0, "no call of a failed answer runs");
    let answered = result.is_ok() as usize;
    let is_visible = case.position == Position::AfterText;
    let kept = if is_visible && result.is_err() { 1 } else { answered };
    assert_eq!(bench.rows().len(), 1 + kept, "{description}");
}

#[tokio::test]
async fn every_cell_of_the_table() {
    let mut count = 0;
    for case in Case::all() {
        check(case).await;
        count += 1;
    }
    assert_eq!(count, 7 * 4 * (10 + 7 + 7));
}
