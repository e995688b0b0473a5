//! What is known about the session, and what the news change on the screen.

use std::collections::VecDeque;

use myclaw_engine::Mode;
use myclaw_gateway_client::{GatewayLink, Lacking, LinkNews, TakeUp};
use myclaw_session::TAKEN_IDS;
use serde_json::{Value, json};

use super::command::{self, Command};
use super::{Talk, show_sessions, text};
use crate::display::Display;
use crate::talk::WAITING;
use myclaw_front::approval::{ApprovalAnswer, asking, lines, read_answer};
use myclaw_front::exit::CliError;
use myclaw_front::gateway::{params_of, read_question};
use myclaw_front::report::first_line;
use myclaw_front::shown::Shown;
use myclaw_front::terminal::{Style, StyledLine};

/// Most own messages that are recognised in the history.
const MOST_RECENT: usize = 100;

/// A message of this front-end whose end is not known.
struct Own {
    /// The id of the request.
    id: String,
    text: String,
    session: String,
    /// Its id in the gateway, once that has it.
    message: Option<String>,
}

/// The session as far as it is known.
#[derive(Default)]
pub(super) struct View {
    /// Whether the state of the session has arrived.
    is_known: bool,
    pub(super) is_connected: bool,
    /// Whether a run is in progress.
    is_busy: bool,
    /// Its key.
    session: String,
    own: Vec<Own>,
    /// The gateway's ids of own messages, the newest last: their text is on the screen already.
    recent: VecDeque<String>,
    /// Messages that no run has taken: id and text.
    waiting: Vec<(String, String)>,
    /// Questions that wait for an answer; the first one is on the screen.
    questions: VecDeque<Value>,
    /// The newest row that was shown.
    newest_row: Option<String>,
    /// The requests for the newest row and for the sessions, while their answers are awaited.
    newest_request: Option<String>,
    sessions: Option<String>,
    /// The requests for what commands say.
    pub(super) commands: Vec<String>,
    /// The session that the last command has made, and what is to be typed there.
    pub(super) goes_on_in: Option<(String, String)>,
    /// The model call that is running, until the history before it is on the screen.
    live: Value,
    /// Whether text of the present turn was shown, so that the gateway's answer is not needed.
    has_text: bool,
    /// The text of the message that arrives.
    arriving: TakeUp,
    /// Whether a model was called in the present run: messages that it takes from then on came in between.
    has_called: bool,
    /// The permission mode.
    pub(super) mode: Mode,
}

impl View {
    /// The key of the session.
    pub(super) fn key(&self) -> &str {
        &self.session
    }

    /// Whether nothing is running that the user waits for.
    pub(super) fn rests(&self) -> bool {
        let is_settled = self.own.is_empty() && !self.is_busy;
        let is_awaited = self.sessions.is_some() || !self.commands.is_empty();
        self.is_known && !(is_awaited && self.is_connected) && (is_settled || !self.is_connected)
    }

    /// Messages that the gateway has not confirmed.
    pub(super) fn unsent(&self) -> usize {
        self.own.iter().filter(|own| own.message.is_none()).count()
    }

    /// Whether news are a reason to interrupt the user, who types.
    pub(super) fn is_worth_a_look(&self, news: &LinkNews) -> bool {
        match news {
            // What the end of a turn still brings is on the screen already.
            LinkNews::Event(event) if text(event, "type") == "reply" => match text(event, "kind") {
                "report" => !self.is_about_own(event),
                _ => !self.has_text,
            },
            LinkNews::Event(event) => {
                matches!(
                    text(event, "type"),
                    "run_start" | "accepted" | "approval" | "notice" | "mode_changed"
                )
            }
            LinkNews::Lost(_) => self.is_connected,
            LinkNews::Answer { .. } => !self.own.is_empty(),
            LinkNews::Watched { .. } | LinkNews::History(_) | LinkNews::Refused(_) => true,
        }
    }

    /// Whether a reply is one to an own message.
    fn is_about_own(&self, reply: &Value) -> bool {
        let mut ids = reply["messageIds"].as_array().into_iter().flatten();
        ids.any(|id| self.recent.iter().any(|own| id == own.as_str()))
    }

    /// Another session will be watched.
    pub(super) fn change_session(&mut self) {
        let (is_connected, mut own) = (self.is_connected, std::mem::take(&mut self.own));
        // The answers to the others are in the session that they were sent to.
        own.retain(|own| own.message.is_none());
        *self = Self { is_connected, own, is_known: !is_connected, ..Self::default() };
    }

    pub(super) fn await_sessions(&mut self, request: String) {
        self.sessions = Some(request).filter(|_| self.is_connected);
    }

    /// Sends a message of the user. If it does not leave at once, says what becomes of it.
    pub(super) fn say(&mut self, text: &str, link: &GatewayLink) -> Option<&'static str> {
        let Some(id) = link.send(text, Vec::new()) else {
            return Some("not sent: too many messages wait; send it again later");
        };
        let session = self.session.clone();
        self.own.push(Own { id, text: text.to_owned(), session, message: None });
        (!self.is_connected).then_some("it is sent when the gateway is back")
    }

    /// Aborts the run, and waits for no command any more; false if that cannot be asked for.
    pub(super) fn abort(&mut self, link: &GatewayLink, display: &Display) -> bool {
        self.commands.clear();
        if self.is_connected {
            link.ask("abort", json!({"session": self.session}));
            display.say(Style::Dim, "stopping");
        }
        self.is_connected
    }

    /// Obeys a line that was typed while the agent works.
    pub(super) fn talk(&mut self, line: &str, link: &GatewayLink, display: &Display) -> Talk {
        let asked = self.questions.front().map(|question| (question, read_question(question)));
        let answer = asked.and_then(|(question, asked)| {
            read_answer(line, &asked).map(|answer| (answer, question, asked))
        });
        if let Some((answer, question, asked)) = answer {
            let is_view = answer == ApprovalAnswer::View;
            let Some(mut params) = params_of(answer, &asked) else {
                if !is_view {
                    self.remind(display);
                }
                return self.page().filter(|_| is_view).map_or(Talk::Stay, Talk::Page);
            };
            params["id"] = question["id"].clone();
            self.questions.pop_front();
            link.ask("approve", params);
            self.ask_next(display);
            return Talk::Stay;
        }
        let answer = match command::parse(line) {
            Command::Say(text) => match self.say(&text, link) {
                Some(why) => why.to_owned(),
                None => format!("sent: {}", first_line(&text)),
            },
            Command::Queue => self.queue(),
            Command::Mode(name) => self.obey_mode(name.as_deref(), link).unwrap_or_default(),
            Command::Stop => {
                self.abort(link, display);
                return Talk::Stay;
            }
            Command::Leave => return Talk::Leave,
            Command::Help => command::HELP.to_owned(),
            Command::Ask(line) => self.ask(&line, link).unwrap_or_default(),
            Command::Title(title) => self.entitle(&title, link).unwrap_or_default(),
            Command::Sessions | Command::Session(_) | Command::Theme(_) => {
                "that has to wait until this is done".to_owned()
            }
            Command::Unknown(message) => message,
        };
        answer.lines().for_each(|line| display.say(Style::Dim, line));
        self.remind(display);
        Talk::Stay
    }

    /// Says what the first question can be answered with.
    fn remind(&self, display: &Display) {
        if let Some(question) = self.questions.front() {
            let asking = asking(&read_question(question));
            display.say(Style::Warning, &format!("still asked: {asking}"));
            display.wait_for(WAITING);
        }
    }

    /// The messages that wait, one a line.
    pub(super) fn queue(&self) -> String {
        let unsent = self.own.iter().filter(|own| own.message.is_none());
        let unsent = unsent.map(|own| format!("not sent yet  {}", first_line(&own.text)));
        let waiting =
            self.waiting.iter().map(|(_, text)| format!("waits         {}", first_line(text)));
        let lines: Vec<String> = waiting.chain(unsent).collect();
        if lines.is_empty() { "nothing waits".to_owned() } else { lines.join("\n") }
    }

    /// Takes in news, and shows them.
    pub(super) fn heed(
        &mut self,
        news: LinkNews,
        link: &GatewayLink,
        display: &Display,
    ) -> Result<(), CliError> {
        match news {
            LinkNews::Event(event) => self.event(&event, link, display),
            LinkNews::Watched { state, is_resumed } => self.watched(&state, is_resumed, display),
            LinkNews::History(rows) => self.history(&rows, display),
            LinkNews::Answer { id, answer } => self.answer(&id, answer, link, display),
            LinkNews::Lost(why) => {
                // Nobody answers them any more.
                self.commands.clear();
                if std::mem::replace(&mut self.is_connected, false) {
                    display.say(Style::Warning, &format!("{why}; trying again"));
                }
                self.is_known = true;
            }
            LinkNews::Refused(why) => return Err(CliError::failure_of_class("gateway", why)),
        }
        Ok(())
    }

    fn watched(&mut self, state: &Value, is_resumed: bool, display: &Display) {
        let was_lost = self.newest_row.is_some() && !self.is_connected;
        self.is_connected = true;
        self.is_busy = state["busy"] == true;
        self.session = text(state, "session").to_owned();
        self.learn_mode(state, display);
        let questions = state["approvals"].as_array().cloned().unwrap_or_default();
        self.questions = questions.into();
        let waiting = state["live"]["waiting"].as_array().into_iter().flatten();
        self.waiting = waiting.map(waiting_message).collect();
        if was_lost {
            display.say(Style::Dim, "the gateway is back");
        }
        if is_resumed {
            self.is_known = true;
            self.ask_next(display);
        } else {
            // The history comes first, then what is not in it.
            self.live = state["live"]["step"].clone();
            self.is_known = false;
        }
    }

    /// Shows the rows that were not shown.
    fn history(&mut self, rows: &[Value], display: &Display) {
        let seen = self.newest_row.clone();
        let place = rows.iter().position(|row| Some(text(row, "id")) == seen.as_deref());
        let after = place.map_or(0, |at| at + 1);
        let recent = std::mem::take(&mut self.recent);
        let is_own = |row: &Value| {
            let mut ids = row["meta"][TAKEN_IDS].as_array().into_iter().flatten();
            ids.any(|id| recent.iter().any(|own| id == own.as_str()))
        };
        for row in &rows[after..] {
            let content = text(row, "content");
            match text(row, "role") {
                "user" if seen.is_some() && is_own(row) => {}
                "user" => {
                    display.show(Shown::Line(Style::Bold, format!("> {}", first_line(content))))
                }
                "assistant" if !content.is_empty() => {
                    self.arriving.run_begins();
                    self.show_text(content, display);
                    self.arriving.is_whole();
                    display.show(Shown::TextEnd);
                }
                "tool" => {
                    let is_error = row["meta"]["isError"] == true;
                    let (mark, style) =
                        if is_error { ('✗', Style::Bad) } else { ('✓', Style::Dim) };
                    display.show(Shown::Line(style, format!("{mark} {}", first_line(content))));
                }
                _ => {}
            }
        }
        self.recent = recent;
        self.newest_row =
            rows.last().map(|row| text(row, "id").to_owned()).or(self.newest_row.take());
        self.newest_row.get_or_insert_default();
        self.is_known = true;
        self.show_step(display);
        self.ask_next(display);
    }

    /// Shows what the model says at this moment, and the tools that run.
    fn show_step(&mut self, display: &Display) {
        let step = self.live.take();
        if step["isComplete"] != true {
            let blocks = step["blocks"].as_object().into_iter().flatten();
            self.arriving.run_begins();
            for (_, block) in blocks.filter(|(_, block)| block["type"] == "text") {
                self.show_text(text(block, "text"), display);
            }
        }
        for tool in
            step["tools"].as_array().into_iter().flatten().filter(|tool| tool["end"].is_null())
        {
            let mut event = tool.clone();
            event["type"] = json!("tool_start");
            display.show(Shown::of_json(&event));
        }
    }

    /// Shows what is not on the screen yet of the text that arrives.
    fn show_text(&mut self, more: &str, display: &Display) {
        self.has_text = true;
        match self.arriving.arrives(more) {
            Lacking::Nothing => {}
            Lacking::More(more) => display.show(Shown::Text(more)),
            Lacking::Anew(all) => {
                display.show(Shown::TextEnd);
                display.show(Shown::Text(all));
            }
        }
    }

    fn event(&mut self, event: &Value, link: &GatewayLink, display: &Display) {
        match text(event, "type") {
            "run_start" => {
                (self.is_busy, self.has_text, self.has_called) = (true, false, false);
                self.arriving.run_begins();
            }
            "run_end" => {
                self.is_busy = false;
                self.remember_newest(link);
            }
            "accepted" => {
                let message = waiting_message(event);
                if !self.recent.contains(&message.0) {
                    display.say(Style::Bold, &format!("> {}", first_line(&message.1)));
                }
                self.waiting.push(message);
            }
            "taken" => {
                let ids: Vec<_> = event["ids"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .collect();
                self.waiting.retain(|(id, _)| !ids.contains(&id.as_str()));
                self.arriving.is_whole();
                if self.has_called {
                    display.show(Shown::of_json(event));
                }
            }
            "mode_changed" => self.mode_changed(event, display),
            "message" => self.ended(text(event, "messageId"), &event["outcome"], link, display),
            "reply" if text(event, "kind") == "report" => {
                // Of own messages it is in their outcomes.
                if !self.is_about_own(event) {
                    display.say(Style::Bad, text(event, "text"));
                }
            }
            "reply" if !self.has_text && !self.is_busy => {
                display.show(Shown::Text(text(event, "text").to_owned()));
                display.show(Shown::TextEnd);
            }
            "approval" => {
                self.questions.push_back(event.clone());
                if self.questions.len() == 1 {
                    self.ask_next(display);
                }
            }
            "approval_closed" => {
                let was_first =
                    self.questions.front().is_some_and(|first| first["id"] == event["id"]);
                self.questions.retain(|question| question["id"] != event["id"]);
                if was_first {
                    self.ask_next(display);
                }
            }
            kind => {
                self.has_called |= kind == "llm_start";
                match kind {
                    "llm_start" => self.arriving.call_begins(),
                    "llm_end" => self.arriving.is_whole(),
                    _ => {}
                }
                match Shown::of_json(event) {
                    Shown::Text(more) => self.show_text(&more, display),
                    shown => {
                        self.has_text |= matches!(shown, Shown::Answer(_));
                        display.show(shown);
                    }
                }
            }
        }
    }

    /// The row up to which everything is on the screen, for the time after a restart of the gateway.
    fn remember_newest(&mut self, link: &GatewayLink) {
        let params = json!({"session": self.session, "limit": 1});
        self.newest_request = Some(link.ask("history", params));
    }

    fn answer(
        &mut self,
        id: &str,
        answer: Result<Value, String>,
        link: &GatewayLink,
        display: &Display,
    ) {
        if self.newest_request.as_deref() == Some(id) {
            self.newest_request = None;
            let rows = answer.ok().and_then(|answer| answer["messages"].as_array().cloned());
            let newest = rows.iter().flatten().next_back().map(|row| text(row, "id").to_owned());
            self.newest_row = newest.or(self.newest_row.take());
            return;
        }
        if self.sessions.as_deref() == Some(id) {
            self.sessions = None;
            match answer {
                Ok(found) => show_sessions(&found, &self.session, display),
                Err(message) => display.say(Style::Bad, &message),
            }
            return;
        }
        let Some(answer) = self.command_answered(id, answer, display) else { return };
        let Some(at) = self.own.iter().position(|own| own.id == id) else {
            // Also a session that cannot be watched.
            self.is_known = true;
            if let Err(message) = answer {
                display.say(Style::Bad, &message);
            }
            return;
        };
        match answer {
            Ok(state) => {
                let message = text(&state, "messageId").to_owned();
                if self.recent.len() >= MOST_RECENT {
                    self.recent.pop_front();
                }
                self.recent.push_back(message.clone());
                let is_elsewhere = self.own[at].session != self.session;
                self.own[at].message = Some(message.clone());
                if is_elsewhere || text(&state, "state") != "open" {
                    self.ended(&message, &state, link, display);
                }
            }
            Err(message) => {
                let own = self.own.remove(at);
                link.settle(&own.id);
                display.say(Style::Bad, &format!("not sent: {}: {message}", first_line(&own.text)));
            }
        }
    }

    /// A message has its end.
    fn ended(&mut self, message: &str, outcome: &Value, link: &GatewayLink, display: &Display) {
        self.waiting.retain(|(id, _)| id != message);
        let Some(at) = self.own.iter().position(|own| own.message.as_deref() == Some(message))
        else {
            return;
        };
        let own = self.own.remove(at);
        link.settle(&own.id);
        match text(outcome, "state") {
            "reported" => display.say(Style::Bad, text(outcome, "message")),
            "dropped" => display.say(Style::Bad, text(outcome, "reason")),
            _ => {}
        }
    }

    /// Shows the first question.
    fn ask_next(&self, display: &Display) {
        let Some(question) = self.questions.front() else { return };
        for line in lines(&read_question(question)) {
            display.say(line.style, &line.text);
        }
        display.wait_for(WAITING);
    }

    /// All of the first question.
    pub(super) fn page(&self) -> Option<Vec<StyledLine>> {
        self.questions.front().map(|question| lines(&read_question(question)))
    }
}

fn waiting_message(message: &Value) -> (String, String) {
    (text(message, "messageId").to_owned(), text(message, "text").to_owned())
}
