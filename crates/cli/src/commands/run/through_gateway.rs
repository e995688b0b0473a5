//! `myclaw run` on a session of a gateway, which does the work.

use std::pin::Pin;
use std::sync::Arc;

use myclaw_agent::approvals::Question;
use myclaw_engine::RunResult;
use myclaw_front::approval::{ApprovalAnswer, TerminalApprover};
use myclaw_front::attachments::{Attachment, for_gateway};
use myclaw_front::exit::CliError;
use myclaw_front::gateway::{connect, failure_of, params_of, read_question, refuse, session_of};
use myclaw_front::interrupt::Interrupts;
use myclaw_front::print::note;
use myclaw_front::report::Verbosity;
use myclaw_front::runtime;
use myclaw_front::shown::Shown;
use myclaw_front::terminal::{JsonMode, Output, escaped};
use myclaw_front::text_report::TextReporter;
use myclaw_gateway_client::{GatewayAddress, GatewayLink, Lacking, LinkNews, TakeUp};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Asked, fitting, print_value};
use crate::args::RunArgs;

/// Events that say what becomes of messages, which are not events of a run.
const OF_MESSAGES: [&str; 5] = ["accepted", "reply", "message", "approval", "approval_closed"];

/// Sends the message to the session, and prints the turn that answers it.
pub(super) fn run(
    args: &RunArgs,
    gateway: GatewayAddress,
    (asked, pictures): (Asked, Vec<Attachment>),
    (output, json_mode): (&Arc<Output>, Option<JsonMode>),
    cancel: CancellationToken,
) -> Result<(), CliError> {
    refuse(&[
        ("--goal", args.goal.is_some()),
        ("--worktree", args.worktree.worktree.is_some()),
        ("--continue", args.last.continue_last),
        ("--allow-tool", !args.bounds.allow_tool.is_empty()),
        ("--deny-tool", !args.bounds.deny_tool.is_empty()),
        ("--max-turns", args.bounds.max_turns.is_some()),
        ("--max-cost", args.bounds.max_cost.is_some()),
    ])?;
    let session = session_of(&args.session)?;
    let Asked { text, form, .. } = asked;
    let verbosity = if args.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    let interrupts = Interrupts::install()?;
    let armed = interrupts.arm(cancel.clone());
    let work = async {
        let socket = connect(&gateway).await?;
        let shows_answer = json_mode.is_none() && form.is_none();
        let mut turn = Turn {
            link: GatewayLink::begin(gateway, socket, session.clone()),
            session,
            output,
            json_mode,
            reporter: TextReporter::new(Arc::clone(output), verbosity, shows_answer),
            arriving: TakeUp::default(),
            has_gap: false,
            approver: TerminalApprover::on_terminal(output),
            question: None,
            cancel,
        };
        let mut pictures = for_gateway(pictures);
        let value = fitting(text, form.as_ref(), async |text| {
            turn.answer(&text, std::mem::take(&mut pictures)).await
        })
        .await?;
        if let Some(value) = value {
            print_value(output, json_mode, &value);
        }
        Ok(())
    };
    runtime::block_on(armed.unless_quit(output.flushing(work)))?
}

/// A question of the gateway that is asked on the terminal.
struct OpenQuestion {
    id: Value,
    question: Question,
    answer: Pin<Box<dyn Future<Output = std::io::Result<ApprovalAnswer>>>>,
}

struct Turn<'a> {
    link: GatewayLink,
    /// Its name or key.
    session: String,
    output: &'a Arc<Output>,
    json_mode: Option<JsonMode>,
    reporter: TextReporter,
    /// The text of the message that arrives: after a lost connection it may come again.
    arriving: TakeUp,
    /// Whether text of the message that arrives may be missing on the screen.
    has_gap: bool,
    approver: Option<Arc<TerminalApprover>>,
    question: Option<OpenQuestion>,
    cancel: CancellationToken,
}

/// The message, as far as the gateway has said what becomes of it.
#[derive(Default)]
struct Sent {
    /// The id of the request.
    request: String,
    /// Its id in the gateway.
    message: Option<String>,
    /// Events that came before its id did.
    early: Vec<Value>,
    /// The event with which the run begins that may take it.
    run_start: Option<Value>,
    /// Whether a run has taken it, so that its events are shown.
    is_taken: bool,
}

impl Turn<'_> {
    /// Sends a message, shows what happens, and gives the answer.
    async fn answer(&mut self, text: &str, pictures: Vec<Value>) -> Result<String, CliError> {
        let request = self
            .link
            .send(text, pictures)
            .ok_or_else(|| CliError::failure("the connection to the gateway has ended"))?;
        let mut sent = Sent { request, ..Sent::default() };
        let cancel = self.cancel.clone();
        let mut is_aborting = false;
        let outcome = loop {
            tokio::select! {
                biased;
                () = cancel.cancelled(), if !is_aborting => {
                    is_aborting = true;
                    self.link.ask("abort", json!({"session": self.session}));
                }
                answer = asked(&mut self.question) => self.pass_on(answer),
                news = self.link.news.recv() => {
                    if let Some(outcome) = self.heed(news, &mut sent, is_aborting)? {
                        break outcome;
                    }
                }
            }
        };
        self.question = None;
        self.link.settle(&sent.request);
        if let Some(failure) = failure_of(&outcome) {
            self.reporter.show(Shown::TextEnd);
            return Err(failure);
        }
        let reply = outcome["reply"].as_str().unwrap_or_default().to_owned();
        if std::mem::take(&mut self.has_gap) {
            // Once more, and whole.
            self.reporter.show(Shown::TextEnd);
            self.reporter.message_begins();
        }
        self.reporter.show(Shown::Answer(reply.clone()));
        Ok(reply)
    }

    /// Takes in news; gives the outcome of the message once it is known.
    fn heed(
        &mut self,
        news: Option<LinkNews>,
        sent: &mut Sent,
        is_aborting: bool,
    ) -> Result<Option<Value>, CliError> {
        match news {
            None => return Err(CliError::failure("the connection to the gateway has ended")),
            Some(LinkNews::Refused(why)) => {
                return Err(CliError::failure_of_class("gateway", why));
            }
            // The gateway may be away for long. The message counts if it was acknowledged.
            Some(LinkNews::Lost(_)) if is_aborting => return Err(CliError::aborted()),
            Some(LinkNews::Lost(why)) => {
                note(format_args!("myclaw: {}; trying again", escaped(&why)));
            }
            Some(LinkNews::Watched { state, is_resumed }) => {
                self.question = None;
                if sent.is_taken && !is_resumed {
                    self.catch_up(&state["live"]["step"]);
                }
                let open = state["approvals"].as_array().into_iter().flatten();
                open.filter(|_| sent.is_taken).for_each(|question| self.ask(question));
            }
            Some(LinkNews::History(_)) => {}
            Some(LinkNews::Answer { id, answer }) if id == sent.request => {
                let state = answer.map_err(|why| CliError::failure_of_class("gateway", why))?;
                if state["state"] != "open" {
                    return Ok(Some(state));
                }
                sent.message = state["messageId"].as_str().map(str::to_owned);
                for event in std::mem::take(&mut sent.early) {
                    self.event(event, sent);
                }
            }
            // An answer to an abort or an approval: an error means that it came too late.
            Some(LinkNews::Answer { .. }) => {}
            Some(LinkNews::Event(event)) if sent.message.is_none() => sent.early.push(event),
            Some(LinkNews::Event(event)) => self.event(event, sent),
        }
        Ok(None)
    }

    /// Shows what is missing on the screen of what the model says at this moment.
    fn catch_up(&mut self, step: &Value) {
        self.has_gap = true;
        let Some(blocks) = step["blocks"].as_object().filter(|_| step["isComplete"] != true) else {
            return;
        };
        self.arriving.run_begins();
        for (_, block) in blocks.iter().filter(|(_, block)| block["type"] == "text") {
            self.has_gap = false;
            self.show_text(block["text"].as_str().unwrap_or_default());
        }
    }

    fn event(&mut self, event: Value, sent: &mut Sent) {
        let kind = event["type"].as_str().unwrap_or_default();
        let message = sent.message.as_deref();
        match kind {
            // The answer has the reply.
            "message" if event["messageId"].as_str() == message => {
                self.link.ask_again(&sent.request);
            }
            "run_start" => sent.run_start = Some(event),
            "taken" if !sent.is_taken => {
                let mut ids = event["ids"].as_array().into_iter().flatten();
                if ids.any(|id| id.as_str() == message) {
                    sent.is_taken = true;
                    sent.run_start.take().into_iter().for_each(|event| self.show(&event));
                    self.print_json(&event);
                }
            }
            _ if !sent.is_taken => {}
            "approval" => self.ask(&event),
            "approval_closed" => {
                if self.question.as_ref().is_some_and(|open| open.id == event["id"]) {
                    self.question = None;
                }
            }
            _ => self.show(&event),
        }
    }

    /// Prints an event of the run.
    fn show(&mut self, event: &Value) {
        self.print_json(event);
        let kind = event["type"].as_str().unwrap_or_default();
        match kind {
            "run_start" => self.arriving.run_begins(),
            "llm_start" => {
                self.has_gap = false;
                self.arriving.call_begins();
                self.reporter.message_begins();
            }
            "llm_end" => self.arriving.is_whole(),
            _ => {}
        }
        match Shown::of_json(event) {
            Shown::Text(more) => self.show_text(&more),
            // It comes with the end of the message.
            Shown::Answer(_) => self.reporter.say_usage(&result_of(&event["result"])),
            shown => self.reporter.show(shown),
        }
    }

    fn show_text(&mut self, more: &str) {
        match self.arriving.arrives(more) {
            Lacking::Nothing => {}
            Lacking::More(more) => self.reporter.show(Shown::Text(more)),
            Lacking::Anew(all) => {
                self.reporter.show(Shown::TextEnd);
                self.reporter.show(Shown::Text(all));
            }
        }
    }

    fn print_json(&self, event: &Value) {
        let is_of_run = !OF_MESSAGES.iter().any(|kind| event["type"] == *kind);
        if let Some(mode) = self.json_mode.filter(|_| is_of_run) {
            self.output.push_json(event, mode);
            self.output.flush();
        }
    }

    /// Asks on the terminal. Without a terminal, another client of the gateway has to answer.
    fn ask(&mut self, event: &Value) {
        let question = read_question(event);
        let Some(approver) = self.approver.clone() else {
            note(format_args!(
                "myclaw: {} waits for an approval; answer it with `myclaw attach`, or on the page",
                escaped(&question.tool_name)
            ));
            return;
        };
        let asked = question.clone();
        let answer = Box::pin(async move { approver.ask(&asked).await });
        self.question = Some(OpenQuestion { id: event["id"].clone(), question, answer });
    }

    /// Passes the user's answer on.
    fn pass_on(&mut self, answer: std::io::Result<ApprovalAnswer>) {
        let Some(OpenQuestion { id, question, .. }) = self.question.take() else { return };
        match answer {
            Ok(answer) => {
                if let Some(mut params) = params_of(answer, &question) {
                    params["id"] = id;
                    self.link.ask("approve", params);
                }
            }
            Err(error) => note(format_args!("myclaw: the terminal cannot ask: {error}")),
        }
    }
}

/// The answer to the question that is open; never ends without one.
async fn asked(question: &mut Option<OpenQuestion>) -> std::io::Result<ApprovalAnswer> {
    match question {
        Some(open) => (&mut open.answer).await,
        None => std::future::pending().await,
    }
}

/// What a turn used, as the gateway says it.
fn result_of(result: &Value) -> RunResult {
    let text = |name: &str| result[name].as_str().unwrap_or_default().to_owned();
    let mut of = RunResult::default();
    of.usage = serde_json::from_value(result["usage"].clone()).unwrap_or_default();
    of.iterations =
        result["iterations"].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
    (of.provider, of.model) = (text("provider"), text("model"));
    of
}
