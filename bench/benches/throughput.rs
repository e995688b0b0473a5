//! How fast answers are read: bytes and deltas a second in each wire format, compared with a bare decoder and a bare HTTP
//! client, and through the engine to the callback of a run.
//!
//! Everything is counted in processor time of one thread, so the server's thread does not count, and a busy machine
//! disturbs little. The ways take turns; the table has their medians.
#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has nothing to report")]

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use myclaw_agent::{Home, SessionConfig, SessionOptions, engine};
use myclaw_config::{Config, Environment, Paths};
use myclaw_engine::{
    ActiveModel, AgentRunEvent, AuthProfile, Engine, EventCallback, RunEvent, RunParams,
};
use myclaw_llm::wire::{AnswerBody, Decoder, EncodedRequest, Progress, encode};
use myclaw_llm::{
    Api, CallLimits, ContentBlock, HttpOptions, InputKind, Message, Model, ModelRequest,
    PairedMessages, Price, Quirks, StreamEvent, ThinkingLevel, ThinkingLevels, ToolUse,
    UserMessage, install_crypto_provider,
};
use myclaw_testkit::{ModelServer, Reply, Script, TempHome, WireFormat};
use rustix::time::{ClockId, clock_gettime};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

/// Deltas of an answer.
const DELTAS: usize = 20_000;

/// Rounds that count, and rounds that do not.
const ROUNDS: usize = 15;
const WARM_UP: usize = 2;

/// What arrives at once from a fast server.
const PIECE: usize = 16 * 1024;

/// Lengths, their checksum, and the checksum at the end of a message of an event stream.
const PRELUDE: usize = 12;
const TRAILER: usize = 4;

const FORMATS: [(WireFormat, Api); 5] = [
    (WireFormat::AnthropicMessages, Api::AnthropicMessages),
    (WireFormat::OpenAiCompletions, Api::OpenaiCompletions),
    (WireFormat::OpenAiResponses, Api::OpenaiResponses),
    (WireFormat::GoogleGenerativeAi, Api::GoogleGenerativeAi),
    (WireFormat::BedrockConverse, Api::BedrockConverse),
];

/// What all ways of one format took, round by round: processor time.
#[derive(Default)]
struct Measured {
    message: Vec<Duration>,
    values: Vec<Duration>,
    syntax: Vec<Duration>,
    client: Vec<Duration>,
    engine: Vec<Duration>,
    /// From the first delta that the callback of a run saw to the last, by the clock.
    arrival: Vec<Duration>,
}

fn main() {
    println!(
        "{DELTAS} deltas, median of {ROUNDS} rounds, seconds of one thread's processor time.\n"
    );
    println!(
        "| format | body | message | bare, JSON values | ratio | bare, JSON syntax | ratio | HTTP client | engine | engine, by the clock |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (format, api) in FORMATS {
        let body = Reply::new(format).repeated_text(" word", DELTAS).stream_body("m");
        let measured = measure(format, api, &body);
        println!("{}", row(format, body.len(), &measured));
    }
}

fn row(format: WireFormat, bytes: usize, measured: &Measured) -> String {
    let megabytes = bytes as f64 / 1e6;
    let rates = |seconds: f64| {
        format!("{:.0} MB/s, {:.2} M deltas/s", megabytes / seconds, DELTAS as f64 / seconds / 1e6)
    };
    let message = median(&measured.message);
    let ratio = |bare: &[Duration]| format!("{:.2} ×", message / median(bare));
    let cells = [
        format!("{format:?}"),
        format!("{megabytes:.2} MB"),
        rates(message),
        rates(median(&measured.values)),
        ratio(&measured.values),
        rates(median(&measured.syntax)),
        ratio(&measured.syntax),
        rates(median(&measured.client)),
        rates(median(&measured.engine)),
        format!("{:.2} M deltas/s", DELTAS as f64 / median(&measured.arrival) / 1e6),
    ];
    format!("| {} |", cells.join(" | "))
}

fn median(times: &[Duration]) -> f64 {
    let mut times: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn measure(format: WireFormat, api: Api, body: &[u8]) -> Measured {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a tokio runtime");
    let reply = Reply::new(format).repeated_text(" word", DELTAS);
    let script = Script::repeat(reply).accept_invalid_requests().keep_last_bodies(1);
    let server = ModelServer::spawn_blocking_thread(script);
    let model = model(api, server.url());
    let client = bare_client();
    let request = request(&model);
    let run = EngineRun::new(&model);
    let mut measured = Measured::default();
    for round in 0..WARM_UP + ROUNDS {
        let message = processor_time_of(|| read_message(&model, body));
        let values = processor_time_of(|| bare::<Value>(format, body));
        let syntax = processor_time_of(|| bare::<IgnoredAny>(format, body));
        let fetched = processor_time_of(|| {
            runtime.block_on(in_own_task(fetch(client.clone(), request.clone())))
        });
        let engine = processor_time_of(|| runtime.block_on(run.turn(round)));
        if round >= WARM_UP {
            measured.message.push(message);
            measured.values.push(values);
            measured.syntax.push(syntax);
            measured.client.push(fetched);
            measured.engine.push(engine);
            measured.arrival.push(run.arrivals.between());
        }
    }
    measured
}

/// The processor time of `work`, which says how many deltas there were.
fn processor_time_of(work: impl FnOnce() -> usize) -> Duration {
    let before = processor_time();
    let deltas = work();
    let taken = processor_time() - before;
    assert!(deltas >= DELTAS, "only {deltas} deltas");
    taken
}

/// Of this thread, in user and system mode.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a time since the thread began")
}

/// From bytes to stream events and the finished message, as the driver does it.
fn read_message(model: &Model, body: &[u8]) -> usize {
    let mut decoder = Decoder::new(model, &[], 0).expect("a format with a wire form");
    let mut answer = AnswerBody::default();
    let mut deltas = 0;
    let mut sink = |event| {
        deltas += usize::from(matches!(black_box(event), StreamEvent::TextDelta { .. }));
    };
    for piece in body.chunks(PIECE) {
        let progress = answer.feed(piece, &mut decoder, &mut sink).expect("a sound stream");
        if progress == Some(Progress::Ended) {
            break;
        }
    }
    black_box(decoder.finish(&mut sink).expect("a whole message"));
    deltas
}

/// Splits events and parses their JSON, and nothing else. The whole body is there at once and no checksum is looked at.
fn bare<T: DeserializeOwned>(format: WireFormat, body: &[u8]) -> usize {
    let mut events = 0;
    let mut parse = |data: &[u8]| {
        if data != b"[DONE]" {
            black_box(serde_json::from_slice::<T>(data).expect("JSON"));
            events += 1;
        }
    };
    if format == WireFormat::BedrockConverse {
        let mut rest = body;
        while let Some((lengths, _)) = rest.split_first_chunk::<8>() {
            let number = |at| u32::from_be_bytes([0, 1, 2, 3_usize].map(|byte| lengths[at + byte]));
            let (message, after) = rest.split_at(number(0) as usize);
            parse(&message[PRELUDE + number(4) as usize..message.len() - TRAILER]);
            rest = after;
        }
    } else {
        for line in body.split(|&byte| byte == b'\n') {
            if let Some(data) = line.strip_prefix(b"data: ") {
                parse(data);
            }
        }
    }
    events
}

fn bare_client() -> reqwest::Client {
    install_crypto_provider();
    reqwest::Client::builder().tls_certs_only([]).no_proxy().build().expect("an HTTP client")
}

/// In parallel with the connection, which is a task too, as the program does it.
async fn in_own_task<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    tokio::spawn(work).await.expect("no panic")
}

/// Reads the same bytes from the server and drops them.
async fn fetch(client: reqwest::Client, request: EncodedRequest) -> usize {
    let EncodedRequest { url, headers, body } = request;
    let request = client.post(url).headers(headers).body(body);
    let mut response = request.send().await.expect("an answer");
    let mut bytes = 0;
    while let Some(chunk) = response.chunk().await.expect("a sound body") {
        bytes += black_box(chunk).len();
    }
    // Each delta is five bytes, and what is around it.
    bytes / 5
}

fn request(model: &Model) -> EncodedRequest {
    let messages =
        PairedMessages::repair(vec![Message::User(UserMessage::text("How are you?", 0))]);
    encode(&ModelRequest {
        model,
        system_prompt: "You are a benchmark.",
        messages: &messages,
        tools: &[],
        tool_use: ToolUse::Auto,
        max_output: None,
        options: None,
        thinking: ThinkingLevel::Off,
        api_key: Some(&"none".to_owned().into()),
        limits: CallLimits::default(),
    })
    .expect("a request")
}

/// Turns of one engine, each in a session of its own.
struct EngineRun {
    engine: Arc<Engine>,
    choice: ActiveModel,
    home: Home,
    arrivals: Arc<Arrivals>,
    on_event: EventCallback,
    _home: TempHome,
}

/// When deltas came.
#[derive(Default)]
struct Arrivals {
    count: AtomicUsize,
    first_and_last: Mutex<Option<(Instant, Instant)>>,
}

impl EngineRun {
    fn new(model: &Model) -> Self {
        let home = TempHome::new();
        let paths = Paths::in_state_dir(home.state_directory());
        let arrivals = Arc::new(Arrivals::default());
        let seen = Arc::clone(&arrivals);
        let on_event = move |event: RunEvent| {
            if let AgentRunEvent::LlmStream { event: StreamEvent::TextDelta { delta, .. } } =
                event.kind
            {
                black_box(delta);
                seen.note();
            }
        };
        let profile = AuthProfile::with_key("bench".to_owned(), "none".to_owned().into());
        Self {
            engine: Arc::new(engine(HttpOptions::default())),
            choice: ActiveModel::new(model.clone(), vec![profile]),
            home: Home::new(Environment::default(), paths),
            arrivals,
            on_event: Arc::new(on_event),
            _home: home,
        }
    }

    async fn turn(&self, number: usize) -> usize {
        self.arrivals.forget();
        let options = SessionOptions {
            session: Some(format!("bench-{number}")),
            ..SessionOptions::default()
        };
        let paths = Some(self.home.paths.clone());
        let config = Arc::new(Config { paths, ..Config::default() });
        let session = SessionConfig::new(self.home.clone(), config, &options);
        let params = RunParams {
            user_message: vec![ContentBlock::text("How are you?")],
            on_event: Some(Arc::clone(&self.on_event)),
            ..session.expect("a session").bare_run(vec![self.choice.clone()])
        };
        let engine = Arc::clone(&self.engine);
        in_own_task(async move { engine.run(params).await }).await.expect("a turn");
        self.arrivals.count.load(Ordering::Relaxed)
    }
}

impl Arrivals {
    fn forget(&self) {
        self.count.store(0, Ordering::Relaxed);
        *self.first_and_last.lock().expect("one thread") = None;
    }

    /// The clock is read at the first delta and at the last, so that this costs next to nothing.
    fn note(&self) {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if number == 1 || number == DELTAS {
            let now = Instant::now();
            let mut first_and_last = self.first_and_last.lock().expect("one thread");
            let first = first_and_last.map_or(now, |(first, _)| first);
            *first_and_last = Some((first, now));
        }
    }

    fn between(&self) -> Duration {
        let first_and_last = *self.first_and_last.lock().expect("one thread");
        first_and_last.map_or(Duration::ZERO, |(first, last)| last - first)
    }
}

fn model(api: Api, url: &str) -> Model {
    let path = match api {
        Api::OpenaiCompletions | Api::OpenaiResponses => "/v1",
        Api::GoogleGenerativeAi => "/v1beta",
        Api::AnthropicMessages | Api::BedrockConverse | Api::Builtin => "",
    };
    Model {
        id: "m".to_owned(),
        provider: "p".to_owned(),
        api,
        base_url: format!("{url}{path}"),
        reasoning: false,
        thinking_levels: ThinkingLevels::default(),
        input: vec![InputKind::Text],
        price: Some(Price::default()),
        context_window: 200_000,
        max_output: 8_192,
        quirks: Quirks::default(),
    }
}
