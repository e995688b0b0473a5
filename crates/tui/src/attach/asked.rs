//! Commands that the gateway obeys, and what they say.

use myclaw_agent::CommandAnswer;
use myclaw_gateway_client::GatewayLink;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::view::View;
use crate::display::Display;
use crate::facts::in_columns;
use myclaw_front::terminal::Style;

impl View {
    /// Has the gateway obey a command; says why if it cannot.
    pub(super) fn ask(&mut self, line: &str, link: &GatewayLink) -> Option<String> {
        self.ask_for_answer("command", json!({"text": line}), link)
    }

    /// Changes the title of the session.
    pub(super) fn entitle(&mut self, title: &str, link: &GatewayLink) -> Option<String> {
        self.ask_for_answer("title", json!({"title": title}), link)
    }

    fn ask_for_answer(
        &mut self,
        method: &'static str,
        mut params: Value,
        link: &GatewayLink,
    ) -> Option<String> {
        if !self.is_connected {
            return Some("not now: there is no connection to the gateway".to_owned());
        }
        params["session"] = json!(self.key());
        self.commands.push(link.ask(method, params));
        None
    }

    /// Shows the answer to a command; gives back one to something else.
    pub(super) fn command_answered(
        &mut self,
        id: &str,
        answer: Result<Value, String>,
        display: &Display,
    ) -> Option<Result<Value, String>> {
        let Some(at) = self.commands.iter().position(|open| open == id) else {
            return Some(answer);
        };
        self.commands.remove(at);
        match answer {
            Ok(answer) => {
                let said: CommandAnswer = match answer["title"].as_str() {
                    Some(title) => format!("the title is: {title}").into(),
                    None => CommandAnswer::deserialize(answer).unwrap_or_default(),
                };
                self.goes_on_in = said
                    .session
                    .clone()
                    .map(|session| (session, said.unsent.clone().unwrap_or_default()));
                in_columns(&said).lines().for_each(|line| display.say(Style::Dim, line));
            }
            Err(message) => display.say(Style::Bad, &message),
        }
        None
    }
}
