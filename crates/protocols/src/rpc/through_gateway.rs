//! `myclaw rpc` on a session of a gateway, which does the work. What the gateway has no method for is refused.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use myclaw_agent::approvals::Question;
use myclaw_front::exit::CliError;
use myclaw_front::gateway::{connect, params_of, read_question, refuse, session_of};
use myclaw_front::print::note;
use myclaw_front::terminal::escaped;
use myclaw_front::time::new_session_name;
use myclaw_gateway_client::{GatewayAddress, GatewayLink, LinkNews};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Wire;
use super::approvals::Answer;
use super::reply::{Ready, Reply};
use super::request::{
    BadRequest, Block, Command, Message, Name, Prompt, Request, Spoken, described,
};
use crate::args::RpcArgs;
use crate::lines::{Line, standard_input};
use requests::{OFFERED, message_of, request, shaped};

mod requests;

/// Longest wait for the end of what is aborted.
const ABORT_TIME: Duration = Duration::from_secs(10);

/// Serves the client program until it closes standard input and everything is answered.
pub(super) async fn serve(
    args: &RpcArgs,
    gateway: GatewayAddress,
    wire: &Wire,
    stop: CancellationToken,
) -> Result<(), CliError> {
    let begun = async {
        refuse(&[("--continue", args.last.continue_last)])?;
        let session = session_of(&args.session)?;
        let socket = connect(&gateway).await?;
        Ok(GatewayLink::begin(gateway, socket, session))
    };
    let link = begun.await.inspect_err(|error| wire.not_ready(error))?;
    let mut lines = standard_input()
        .map_err(|error| CliError::failure(format!("cannot read standard input: {error}")))?;
    let mut remote = Remote::new(link, wire.clone());
    let (mut is_open, mut deadline) = (true, None);
    while is_open || !remote.is_done() {
        tokio::select! {
            news = remote.link.news.recv() => remote.heed(news).await?,
            line = lines.recv(), if is_open && remote.takes_lines() => match line {
                Some(line) => remote.take(line).await,
                None => is_open = false,
            },
            () = stop.cancelled(), if deadline.is_none() => {
                is_open = false;
                remote.link.ask("abort", json!({"session": remote.key}));
                deadline = Some(Instant::now() + ABORT_TIME);
            }
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => break,
        }
    }
    if deadline.is_some() { Err(CliError::aborted()) } else { Ok(()) }
}

/// A command whose reply waits for the gateway.
struct Awaited {
    id: Option<Value>,
    name: &'static str,
    is_message: bool,
}

struct Remote {
    link: GatewayLink,
    wire: Wire,
    is_ready: bool,
    is_connected: bool,
    /// The key of the current session.
    key: String,
    model: Value,
    mode: Value,
    is_busy: bool,
    /// Commands by the ids of their requests.
    awaited: HashMap<String, Awaited>,
    /// The command that changes the session, until that is watched.
    changing: Option<Awaited>,
    /// Own messages without an end: the request of each by its id in the gateway.
    own: BTreeMap<String, String>,
    /// Messages that no run has taken, with their texts.
    waiting: Vec<(String, Value)>,
    /// Open questions by the ids of their calls, each with its id.
    questions: HashMap<String, (Value, Question)>,
}

impl Remote {
    fn new(link: GatewayLink, wire: Wire) -> Self {
        Self {
            link,
            wire,
            is_ready: false,
            is_connected: true,
            key: String::new(),
            model: Value::Null,
            mode: Value::Null,
            is_busy: false,
            awaited: HashMap::new(),
            changing: None,
            own: BTreeMap::new(),
            waiting: Vec::new(),
            questions: HashMap::new(),
        }
    }

    /// Whether the next line may be read: replies come in the order of the commands, except for those that call a model.
    fn takes_lines(&self) -> bool {
        let is_late = |awaited: &Awaited| matches!(awaited.name, "compact" | "ask_aside");
        self.is_ready && self.changing.is_none() && self.awaited.values().all(is_late)
    }

    /// Whether nothing is waited for at the end of the input.
    fn is_done(&self) -> bool {
        let is_idle = self.own.is_empty() && !self.is_busy;
        self.is_ready && self.awaited.is_empty() && self.changing.is_none() && is_idle
    }

    async fn heed(&mut self, news: Option<LinkNews>) -> Result<(), CliError> {
        match news {
            None => return Err(CliError::failure("the connection to the gateway has ended")),
            Some(LinkNews::Refused(why)) => {
                let error = CliError::failure_of_class("gateway", why);
                if !self.is_ready {
                    self.wire.not_ready(&error);
                }
                return Err(error);
            }
            Some(LinkNews::Lost(why)) => self.lost(&why),
            Some(LinkNews::Watched { state, .. }) => self.watched(&state),
            Some(LinkNews::History(_)) => {}
            Some(LinkNews::Answer { id, answer }) => self.answered(&id, answer).await,
            Some(LinkNews::Event(event)) => self.event(event),
        }
        Ok(())
    }

    /// Messages are sent again when the gateway is back; the other requests get an error.
    fn lost(&mut self, why: &str) {
        if std::mem::replace(&mut self.is_connected, false) {
            note(format_args!("myclaw: {}; trying again", escaped(why)));
        }
        let lost = self.awaited.extract_if(|_, awaited| !awaited.is_message);
        let lost: Vec<Awaited> =
            lost.map(|(_, awaited)| awaited).chain(self.changing.take()).collect();
        for awaited in lost {
            let why = "the connection to the gateway was lost before it answered; ask again";
            self.reply(&awaited, &Err(CliError::failure_of_class("gateway", why)));
        }
    }

    fn watched(&mut self, state: &Value) {
        self.is_connected = true;
        self.key = state["session"].as_str().unwrap_or_default().to_owned();
        self.mode = state["mode"].clone();
        self.is_busy = state["busy"] == true;
        let waiting = state["live"]["waiting"].as_array().into_iter().flatten();
        self.waiting = waiting.filter_map(message_of).collect();
        self.questions.clear();
        for question in state["approvals"].as_array().into_iter().flatten() {
            self.asked(question);
        }
        if let Some(awaited) = self.changing.take() {
            // The gateway answers what was said before, without anybody who listens.
            for request in std::mem::take(&mut self.own).into_values() {
                self.link.settle(&request);
            }
            self.reply(&awaited, &Ok(json!({"session": self.key})));
        }
        if !self.is_ready {
            self.ask(None, "ready", "model", json!({}));
        }
    }

    async fn answered(&mut self, id: &str, answer: Result<Value, String>) {
        let Some(awaited) = self.awaited.remove(id) else {
            // What became of a message that was asked for again after a loss.
            return self.settled(id, &answer.unwrap_or_default());
        };
        let answer = answer.map_err(|why| CliError::failure_of_class("gateway", why));
        if awaited.name == "ready" {
            self.model = answer.map_or(Value::Null, |answer| answer["model"].clone());
            let model = self.model.as_str().unwrap_or_default().to_owned();
            let version = env!("CARGO_PKG_VERSION");
            self.wire
                .output
                .push_json(&Ready { version, session: &self.key, model }, self.wire.mode);
            self.wire.output.flush();
            self.is_ready = true;
            return;
        }
        if let ("fork", Ok(made)) = (awaited.name, &answer) {
            // The new session becomes the current one.
            self.link.watch(made["key"].as_str().unwrap_or_default()).await;
            self.changing = Some(awaited);
            return;
        }
        if awaited.is_message {
            match &answer {
                Ok(state) if state["state"] == "open" => {
                    let message = state["messageId"].as_str().unwrap_or_default().to_owned();
                    self.own.insert(message, id.to_owned());
                }
                _ => self.link.settle(id),
            }
        }
        let state = if self.is_busy { "queued" } else { "started" };
        let reply = answer.map(|answer| shaped(awaited.name, answer, state));
        if let ("set_model", Ok(answer)) = (awaited.name, &reply) {
            self.model = answer["model"].clone();
        }
        self.reply(&awaited, &reply);
    }

    /// A message has its end.
    fn settled(&mut self, request: &str, outcome: &Value) {
        if outcome["state"] != "open" {
            self.own.retain(|_, own| own != request);
            self.link.settle(request);
        }
    }

    fn event(&mut self, mut event: Value) {
        match event["type"].as_str().unwrap_or_default() {
            "accepted" => return self.waiting.extend(message_of(&event)),
            "message" => {
                let message = event["messageId"].as_str().unwrap_or_default().to_owned();
                self.waiting.retain(|(id, _)| *id != message);
                if let Some(request) = self.own.remove(&message) {
                    self.link.settle(&request);
                }
                if event["outcome"]["state"] == "answered" {
                    return;
                }
            }
            "reply" => return,
            "approval" => return self.asked(&event),
            "approval_closed" => {
                return self.questions.retain(|_, (id, _)| *id != event["id"]);
            }
            "taken" => {
                let ids = event["ids"].as_array().cloned().unwrap_or_default();
                self.waiting.retain(|(id, _)| !ids.iter().any(|taken| taken == id));
            }
            "mode_changed" => self.mode = event["to"].clone(),
            "model_chosen" => self.model = event["choices"]["model"].clone(),
            "run_start" => self.is_busy = true,
            "run_end" => {
                self.is_busy = false;
                event["idle"] = json!(self.waiting.is_empty());
            }
            _ => {}
        }
        event["session"] = json!(self.key);
        self.wire.output.push_json(&event, self.wire.mode);
        self.wire.output.flush();
    }

    /// Passes a question on in the form of the protocol.
    fn asked(&mut self, event: &Value) {
        let question = read_question(event);
        let mut shown = json!(question);
        (shown["type"], shown["session"]) = (json!("approval_requested"), json!(self.key));
        self.wire.output.push_json(&shown, self.wire.mode);
        self.wire.output.flush();
        let call = question.tool_call_id.clone();
        self.questions.insert(call, (event["id"].clone(), question));
    }

    fn reply(&self, awaited: &Awaited, outcome: &Result<Value, CliError>) {
        self.wire.reply(&Reply::to(awaited.id.as_ref(), awaited.name, outcome));
    }

    async fn take(&mut self, line: Line) {
        let (id, request) = match line {
            Line::Text(text) => Request::parse(&text),
            Line::Unusable(why) => (None, Err(BadRequest::unreadable(&why))),
        };
        match request {
            Ok(Request { name, session, command }) => {
                if let Err(error) = self.obey(id.clone(), name, session, command).await {
                    self.wire.reply(&Reply::to(id.as_ref(), name, &Err(error)));
                }
            }
            Err(bad) => self.wire.reply(&Reply::to_bad_request(id.as_ref(), &bad)),
        }
    }

    /// Begins what a command asks for; the reply comes with the gateway's answer.
    async fn obey(
        &mut self,
        id: Option<Value>,
        name: &'static str,
        session: Option<String>,
        command: Command,
    ) -> Result<(), CliError> {
        if !self.is_connected && name != "prompt" {
            return Err(CliError::failure_of_class(
                "gateway",
                "there is no connection to the gateway now; ask again later",
            ));
        }
        let is_other = session.as_ref().is_some_and(|session| *session != self.key);
        let about = json!({"session": session.unwrap_or_else(|| self.key.clone())});
        let with = |name: &str, value: Value| {
            let mut about = about.clone();
            about[name] = value;
            about
        };
        let (method, params) = match command {
            Command::Prompt(prompt) => {
                if is_other {
                    return Err(CliError::usage(
                        "prompt: not the current session; `switch_session` first",
                    ));
                }
                return self.prompt(id, name, prompt);
            }
            Command::Approve(answer) => {
                ("approve", self.approval(&answer.tool_call_id.clone(), answer.into())?)
            }
            Command::GetState => {
                let waiting: Vec<Value> =
                    self.waiting.iter().map(|(_, message)| message.clone()).collect();
                let state = json!({
                    "session": self.key, "model": self.model, "mode": self.mode,
                    "work": self.is_busy.then_some("turn"), "idle": !self.is_busy, "waiting": waiting,
                });
                self.reply(&Awaited { id, name, is_message: false }, &Ok(state));
                return Ok(());
            }
            Command::GetCommands => {
                let offered = |command: &Value| OFFERED.iter().any(|name| command["name"] == *name);
                let commands: Vec<Value> = described().into_iter().filter(offered).collect();
                self.reply(
                    &Awaited { id, name, is_message: false },
                    &Ok(json!({"commands": commands})),
                );
                return Ok(());
            }
            Command::NewSession(Name { name: wanted }) => {
                self.change(id, name, wanted.unwrap_or_else(|| new_session_name(|_| false))).await;
                return Ok(());
            }
            Command::SwitchSession(Name { name: wanted }) => {
                let wanted = wanted
                    .ok_or_else(|| CliError::usage("switch_session: missing field `name`"))?;
                self.change(id, name, wanted).await;
                return Ok(());
            }
            command => request(name, command, with)?,
        };
        self.ask(id, name, method, if params.is_null() { about } else { params });
        Ok(())
    }

    fn ask(
        &mut self,
        id: Option<Value>,
        name: &'static str,
        method: &'static str,
        mut params: Value,
    ) {
        if params["session"].is_null() && method != "approve" {
            params["session"] = json!(self.key);
        }
        let request = self.link.ask(method, params);
        self.awaited.insert(request, Awaited { id, name, is_message: false });
    }

    async fn change(&mut self, id: Option<Value>, name: &'static str, session: String) {
        self.changing = Some(Awaited { id, name, is_message: false });
        self.link.watch(&session).await;
    }

    fn prompt(
        &mut self,
        id: Option<Value>,
        name: &'static str,
        prompt: Prompt,
    ) -> Result<(), CliError> {
        let Prompt { message: Message { message, images, skill }, mode } = prompt;
        if mode.is_some() || skill.is_some() {
            return Err(CliError::usage(
                "prompt: `mode` and `skill` cannot be used on a session of a gateway; its messages.queue.mode decides",
            ));
        }
        let (mut texts, mut pictures) = (Vec::new(), images);
        match message {
            Spoken::Text(text) => texts.push(text),
            Spoken::Blocks(blocks) => {
                for block in blocks {
                    match block {
                        Block::Text { text } => texts.push(text),
                        Block::Image(picture) => pictures.push(picture),
                    }
                }
            }
        }
        let pictures = pictures.into_iter().map(|picture| json!({"data": picture.data})).collect();
        let request = self.link.send(&texts.join("\n"), pictures).ok_or_else(|| {
            CliError::failure_of_class(
                "queue_full",
                "prompt: too many messages wait for the gateway",
            )
        })?;
        self.awaited.insert(request, Awaited { id, name, is_message: true });
        Ok(())
    }

    /// The answer to a question as the gateway takes it.
    fn approval(&self, call: &str, answer: Answer) -> Result<Value, CliError> {
        let (id, question) = self.questions.get(call).ok_or_else(|| {
            CliError::usage(format!(
                "approve: no question about the call `{call}` waits in this session"
            ))
        })?;
        let mut params = params_of(answer.into(), question).ok_or_else(|| {
            CliError::usage(format!(
                "approve: the question about the call `{call}` does not offer this answer"
            ))
        })?;
        params["id"] = id.clone();
        Ok(params)
    }
}
