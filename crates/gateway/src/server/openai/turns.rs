//! What a program hands in: messages, calls that the model made, and their results.
//!
//! The ids of calls name the message whose answer they end. So the results continue its session, or a fork if more was said
//! there since, also where the program hands in the whole conversation. What the program knows from elsewhere is text.

use myclaw_delivery::rows::{Incoming, MessageId, MessageState};
use myclaw_llm::ToolCall;
use serde_json::{Value, json};

use super::{CONTINUE, Said, Source, with_earlier};
use crate::GatewayError;
use crate::server::Server;

/// Before the id of a call.
const PREFIX: &str = "call_";
/// What is asked after results that the session does not know.
const GO_ON: &str = "Go on with these results.";

/// A part of a conversation.
pub(super) enum Turn {
    /// Somebody, by the role, said something.
    Said(String, Said),
    /// The model called a tool of the program.
    Call { id: String, name: String, arguments: String },
    /// That is what came of it.
    Result { call_id: String, said: Said },
}

/// How much of a conversation the session knows that a request names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Handed {
    /// Everything before the last message.
    Again,
    /// Nothing.
    Anew,
}

/// The end of a conversation, with results.
struct Results {
    results: Vec<(String, Said)>,
    /// What was said after the calls.
    after: Vec<Said>,
}

/// The id of a call for the program. It has at most 40 characters for the first ten calls, as programs expect.
pub(super) fn call_id(message: &MessageId, number: usize) -> String {
    format!("{PREFIX}{message}_{number}")
}

/// A call in the form of chat completions.
pub(super) fn wire_call(message: &MessageId, number: usize, call: &ToolCall) -> Value {
    let function = json!({"name": call.name, "arguments": arguments(call)});
    json!({"id": call_id(message, number), "type": "function", "function": function})
}

/// The arguments of a call as the text that OpenAI's protocols have for them.
pub(super) fn arguments(call: &ToolCall) -> String {
    serde_json::to_string(&call.arguments).unwrap_or_default()
}

impl Server {
    /// The session in which a conversation continues, and what is asked there. `named` is the session that the request
    /// names, which knows of the conversation what `handed` says; without one, none knows it.
    pub(super) async fn question_in(
        &self,
        mut turns: Vec<Turn>,
        instructions: Option<String>,
        (named, handed): (Option<String>, Handed),
        source: &Source,
    ) -> Result<(Option<String>, Said), GatewayError> {
        let system = instructions.map(|text| ("system".to_owned(), Said::from(text)));
        let known =
            self.delivery.ledger().message(&MessageId::of(&source.route, &source.id)).await?;
        // The same request again has the same session.
        let named = known.map(|row| row.session).or(named);
        let knows = named.is_some() && handed == Handed::Again;
        let Some(end) = Results::at_end(&mut turns) else {
            let question = last_message(&mut turns)?;
            let begun = turns.pop_if(|turn| matches!(turn, Turn::Said(role, _) if role == "assistant" && question.text == CONTINUE));
            let before = if knows {
                begun.into_iter().collect()
            } else {
                turns.into_iter().chain(begun).collect::<Vec<_>>()
            };
            let before = system.into_iter().chain(before.into_iter().map(as_text)).collect();
            return Ok((named, with_earlier(before, question)));
        };
        if let Some((message, row)) = self.caller_of(&end.results).await? {
            end.check(&message, &row.calls)?;
            let session = match named {
                Some(named) => named,
                None => self.goes_on_from(&message, &row, source.session()).await?,
            };
            let question =
                end.question(|id| number_of(id).and_then(|(_, number)| row.calls.get(number)));
            return Ok((Some(session), with_earlier(system.into_iter().collect(), question)));
        }
        let before = if knows { Vec::new() } else { turns };
        let mut before: Vec<(String, Said)> =
            system.into_iter().chain(before.into_iter().map(as_text)).collect();
        let results = end.results.into_iter();
        before.extend(results.map(|(call_id, said)| as_text(Turn::Result { call_id, said })));
        let mut after = end.after;
        let question = after.pop().unwrap_or_else(|| GO_ON.to_owned().into());
        before.extend(after.into_iter().map(|said| ("user".to_owned(), said)));
        Ok((named, with_earlier(before, question)))
    }

    /// The message whose answer made all of these calls, if the store has it.
    async fn caller_of(
        &self,
        results: &[(String, Said)],
    ) -> Result<Option<(MessageId, Incoming)>, GatewayError> {
        let Some((id, _)) = results.first().and_then(|(id, _)| number_of(id)) else {
            return Ok(None);
        };
        let Some(row) = self.delivery.ledger().message(&id).await? else { return Ok(None) };
        let is_of_it = |call: &str| {
            number_of(call).is_some_and(|(of, number)| of == id && number < row.calls.len())
        };
        let is_answered = matches!(row.state, MessageState::Answered { .. });
        let are_all = is_answered && results.iter().all(|(call, _)| is_of_it(call));
        Ok(are_all.then_some((id, row)))
    }
}

/// The message that a call's id names, and the number of the call.
fn number_of(call: &str) -> Option<(MessageId, usize)> {
    let (message, number) = call.strip_prefix(PREFIX)?.rsplit_once('_')?;
    Some((MessageId::from_text(message), number.parse().ok()?))
}

impl Results {
    /// Takes the results at the end of a conversation out, with what was said after them.
    fn at_end(turns: &mut Vec<Turn>) -> Option<Self> {
        let is_models = |turn: &Turn| match turn {
            Turn::Said(role, _) => role == "assistant",
            Turn::Call { .. } => true,
            Turn::Result { .. } => false,
        };
        let begin = turns.iter().rposition(is_models).map_or(0, |last| last + 1);
        if !turns[begin..].iter().any(|turn| matches!(turn, Turn::Result { .. })) {
            return None;
        }
        let (mut results, mut after) = (Vec::new(), Vec::new());
        for turn in turns.split_off(begin) {
            match turn {
                Turn::Result { call_id, said } => results.push((call_id, said)),
                Turn::Said(_, said) => after.push(said),
                Turn::Call { .. } => {}
            }
        }
        Some(Self { results, after })
    }

    /// Refuses results of which some are missing, or come twice.
    fn check(&self, message: &MessageId, calls: &[ToolCall]) -> Result<(), GatewayError> {
        for number in 0..calls.len() {
            let id = call_id(message, number);
            let count = self.results.iter().filter(|(call, _)| *call == id).count();
            if count != 1 {
                let why = format!(
                    "each call of the last answer needs one result, and {id} has {count}; send all of them together"
                );
                return Err(GatewayError::Unusable(why));
            }
        }
        Ok(())
    }

    /// The results as one message of the program. They are from outside, whatever the program is.
    fn question<'c>(self, call_of: impl Fn(&str) -> Option<&'c ToolCall>) -> Said {
        let mut all = Said::default();
        for (id, said) in self.results {
            let name = call_of(&id).map_or("a tool", |call| call.name.as_str());
            all.text.push_str(&format!("[Result of {name}, {id}]\n"));
            let begin = all.text.len();
            all.add(said);
            all.outside.push(begin..all.text.len());
            all.text.push_str("\n\n");
        }
        for said in self.after {
            all.add(said);
            all.text.push_str("\n\n");
        }
        all.text.truncate(all.text.trim_end().len());
        let end = all.text.len();
        for part in &mut all.outside {
            part.end = part.end.min(end);
        }
        all.outside.retain(|part| part.start < part.end);
        all
    }
}

/// The message to answer. A last message of the assistant is the beginning of an answer, which is to be continued.
fn last_message(turns: &mut Vec<Turn>) -> Result<Said, GatewayError> {
    match turns.pop() {
        Some(Turn::Said(role, said)) if role == "user" => Ok(said),
        Some(turn @ Turn::Said(..)) if matches!(&turn, Turn::Said(role, _) if role == "assistant") =>
        {
            turns.push(turn);
            Ok(CONTINUE.to_owned().into())
        }
        _ => {
            let why =
                "the last message must be the user's, the assistant's, or the result of a tool";
            Err(GatewayError::Unusable(why.to_owned()))
        }
    }
}

/// A part of a conversation for a session that does not know it.
fn as_text(turn: Turn) -> (String, Said) {
    match turn {
        Turn::Said(role, said) => (role, said),
        Turn::Call { id, name, arguments } => {
            ("assistant".to_owned(), format!("[called {name}, {id}, with {arguments}]").into())
        }
        Turn::Result { call_id, mut said } => {
            said.text = format!("[Result of {call_id}]\n{}", said.text);
            ("tool".to_owned(), said)
        }
    }
}
