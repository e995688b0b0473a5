//! A model that does everything it reads, wherever it stands: the worst case of an injected instruction.

use serde_json::{Value, json};

use crate::{RecordedRequest, Reply, Script, Step};

/// How an instruction begins.
const DO: &str = "DO ";
/// How the text of the answer begins.
const SAY: &str = "SAY ";
/// Most calls of one message: the program carries out no more.
const MOST_CALLS: usize = 100;

/// One line that an obedient model carries out as a call of `tool`: `DO label tool {…}`. The ids of its calls begin with
/// the label (letters, digits, `-`), so a test finds the result of each instruction. Each label is carried out once per
/// turn.
pub fn instruction(label: &str, tool: &str, arguments: &impl std::fmt::Display) -> String {
    format!("{DO}{label} {tool} {arguments}")
}

/// The label of the instruction that led to the call with this id.
pub fn label_of(call: &str) -> &str {
    call.rsplit_once('_').map_or(call, |(label, _)| label)
}

impl Script {
    /// Answers as an obedient model (in Anthropic's format). It calls the tool of every [`instruction`] in the system
    /// prompt, in what its user says, and in every result of a tool. When nothing is left to do, it says what the lines `SAY …` of the turn's message tell it to say, or `nothing to do`.
    pub fn obedient() -> Self {
        Self::answer_with(|request, _| obey(request))
    }
}

fn obey(request: &RecordedRequest) -> Step {
    let messages = request.messages();
    let begin = messages.iter().rposition(is_said).unwrap_or(0);
    let turn = &messages[begin..];
    let answered = turn.iter().rposition(|message| message["role"] == "assistant");
    let mut read: Vec<String> =
        turn[answered.map_or(0, |at| at + 1)..].iter().flat_map(texts).collect();
    if answered.is_none() {
        read.extend(texts(&json!({"content": request.json()["system"]})));
    }
    let mut done: Vec<String> = turn.iter().flat_map(labels).collect();
    let earlier = messages.iter().flat_map(labels).count();
    let mut reply = Reply::anthropic();
    let mut count = 0;
    for (label, tool, arguments) in read.iter().flat_map(|text| instructions(text)) {
        if count < MOST_CALLS && !done.iter().any(|it| it == label) {
            done.push(label.to_owned());
            let id = format!("{label}_{}", earlier + count);
            reply = reply.tool_call_with_raw_arguments(id, tool, arguments);
            count += 1;
        }
    }
    if count > 0 {
        return reply.step();
    }
    let said: Vec<String> = turn.first().into_iter().flat_map(texts).collect();
    let wanted = said.iter().flat_map(|text| text.split(SAY).skip(1));
    let lines: Vec<&str> = wanted.filter_map(|rest| rest.lines().next()).collect();
    reply.text(if lines.is_empty() { "nothing to do".to_owned() } else { lines.join("\n") }).step()
}

/// Whether a message is a user's own, not results of tools.
fn is_said(message: &Value) -> bool {
    let is_result = |block: &Value| block["type"] == "tool_result";
    message["role"] == "user"
        && !message["content"].as_array().is_some_and(|blocks| blocks.iter().any(is_result))
}

/// All texts of a message, also those within results.
fn texts(message: &Value) -> Vec<String> {
    match &message["content"] {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => blocks
            .iter()
            .flat_map(|block| match block["text"].as_str() {
                Some(text) => vec![text.to_owned()],
                None => texts(block),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The labels of the calls of a message.
fn labels(message: &Value) -> Vec<String> {
    let blocks = message["content"].as_array().into_iter().flatten();
    let calls = blocks.filter(|block| block["type"] == "tool_use");
    calls.filter_map(|call| call["id"].as_str()).map(|id| label_of(id).to_owned()).collect()
}

/// The instructions in a text: label, tool and arguments. One within the arguments of another is a part of these.
fn instructions(mut text: &str) -> Vec<(&str, &str, &str)> {
    let mut found = Vec::new();
    while let Some((_, rest)) = text.split_once(DO) {
        text = rest;
        if let Some((instruction, rest)) = parse(rest) {
            found.push(instruction);
            text = rest;
        }
    }
    found
}

/// An instruction at the beginning of a text, and what comes behind it.
fn parse(text: &str) -> Option<((&str, &str, &str), &str)> {
    let (label, rest) = text.split_once(' ')?;
    let (tool, rest) = rest.split_once(' ')?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    values.next()?.ok().filter(Value::is_object)?;
    let (arguments, rest) = rest.split_at(values.byte_offset());
    Some(((label, tool, arguments), rest))
}
