//! `myclaw mcp serve`: MyClaw as a server of the Model Context Protocol, for the program that has started it. One JSON-RPC
//! message per line.
//!
//! What the messages mean is in [`serve`](myclaw_agent::mcp::serve); this module reads and writes them. Requests are
//! answered at the same time, each as soon as its answer is known.

mod place;
mod turns;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_agent::mcp::serve::{Asks, Call, Client, Message, Peer, Refusal, Request};
use myclaw_agent::{Driver, SessionConfig, engine};
use myclaw_front::args::SessionArgs;
use myclaw_front::exit::CliError;
use myclaw_front::home::{begin_to_write, find_home, load_session};
use myclaw_front::terminal::{Destination, JsonMode, Output};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::lines::{Line, standard_input};
use super::serve_until_over;
use crate::args::McpServeArgs;
use place::Places;
use turns::Turns;

/// Serves the client until it closes standard input or sends a signal.
pub fn run(args: McpServeArgs) -> Result<(), CliError> {
    let args = SessionArgs::from(args);
    // Mistakes in the config file are reported now rather than with the first request.
    let mut config = load_session(find_home()?, &args.options())?;
    begin_to_write(&config.home)?;
    if args.directory.is_none() {
        config.directory = config.project_here();
    }
    let stop = CancellationToken::new();
    let wire = Wire {
        output: Arc::new(Output::stdout(stop.clone())),
        mode: JsonMode::for_destination(Destination::of_stdout()),
        asks: Arc::default(),
    };
    let output = Arc::clone(&wire.output);
    serve_until_over(&output, stop.clone(), serve(args, config, wire, stop))
}

async fn serve(
    args: SessionArgs,
    config: SessionConfig,
    wire: Wire,
    stop: CancellationToken,
) -> Result<(), CliError> {
    let places = Arc::new(Places::default());
    let listener = Arc::clone(&places);
    let driver = Driver::new(
        engine(config.home.http_options()),
        stop.clone(),
        Arc::new(move |key, event| listener.on_event(key, &event)),
        Some(Arc::clone(&places) as _),
    );
    let mut lines = standard_input()
        .map_err(|error| CliError::failure(format!("cannot read standard input: {error}")))?;
    let turns = Arc::new(Turns::new(Arc::clone(&driver), places, config, args));
    let mut server =
        Server { turns, wire, running: Arc::default(), client: None, stop: stop.clone() };
    loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            () = stop.cancelled() => break,
        };
        match line {
            Some(line) => server.take(line),
            None => break,
        }
    }
    // The client has closed the connection or is about to: running turns are aborted in good order.
    stop.cancel();
    driver.finish().await;
    Ok(())
}

/// Standard output, a message a line.
#[derive(Clone)]
struct Wire {
    output: Arc<Output>,
    mode: JsonMode,
    asks: Arc<Asks>,
}

impl Wire {
    fn send(&self, message: &Value) {
        self.output.push_json(message, self.mode);
        self.output.flush();
    }
}

impl Peer for Wire {
    fn notify(&self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn ask<'a>(&'a self, method: &'a str, params: Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move { self.asks.ask(method, params, &|message| self.send(&message)).await })
    }
}

struct Server {
    turns: Arc<Turns>,
    wire: Wire,
    /// The requests that are being answered, by their ids.
    running: Arc<Mutex<HashMap<String, CancellationToken>>>,
    /// What the client has said at the beginning of the session, if it has begun one.
    client: Option<Client>,
    stop: CancellationToken,
}

impl Server {
    fn take(&mut self, line: Line) {
        let message = match line {
            Line::Text(text) => Message::parse(text.as_bytes()),
            Line::Unusable(why) => Err(Refusal::unreadable(why).answer(&Value::Null)),
        };
        match message {
            Ok(Message::Request(request)) => self.request(request),
            Ok(Message::Notification { method, params }) => {
                let id = params.get("requestId").map(Value::to_string);
                if method == "notifications/cancelled"
                    && let Some(call) = id.and_then(|id| self.running.lock().remove(&id))
                {
                    call.cancel();
                }
            }
            Ok(Message::Response { id, outcome }) => drop(self.wire.asks.answer(&id, outcome)),
            Err(answer) => self.wire.send(&answer),
        }
    }

    fn request(&mut self, request: Request) {
        let client = match (self.client, request.method.as_str()) {
            (_, "initialize") if !Client::is_stateless_request(&request) => {
                let client = Client::of_initialize(&request);
                self.client = Some(client);
                Ok(client)
            }
            (Some(client), _) if !Client::is_stateless_request(&request) => Ok(client),
            _ => Client::of_request(&request),
        };
        let client = match client {
            Ok(client) => client,
            Err(refusal) => return self.wire.send(&refusal.answer(&request.id)),
        };
        let (id, cancel) = (request.id.to_string(), self.stop.child_token());
        self.running.lock().insert(id.clone(), cancel.clone());
        let (backend, peer) = (Arc::clone(&self.turns) as _, Arc::new(self.wire.clone()));
        let call = Call { backend, client, peer, request, cancel };
        let (running, wire) = (Arc::clone(&self.running), self.wire.clone());
        self.turns.driver.spawn(async move {
            // What listens for as long as the client likes ends with it.
            let outcome = tokio::select! {
                biased;
                outcome = call.outcome() => outcome,
                () = over(&call) => return,
            };
            // Nobody reads the answer to a cancelled request.
            if running.lock().remove(&id).is_some() {
                wire.send(&call.request.answer(outcome));
            }
        });
    }
}

/// Returns when a request that never ends by itself is cancelled.
async fn over(call: &Call) {
    call.cancel.cancelled().await;
    if call.request.method != "subscriptions/listen" {
        std::future::pending::<()>().await;
    }
}
