//! Hooks that are written for Claude Code, as packages of others have them: the input that they read, and the effect of what
//! they print and of their exit code (code.claude.com/docs/en/hooks, read in November 2026).
//!
//! Their `allow` allows nothing that the policy does not.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_config::{CommandLine, ConfigError, Paths};
use myclaw_engine::{
    AgentStart, CompactionVerdict, Hook, HookError, PendingCompaction, PendingToolCall,
    PreparedCall, RunError, RunResult, ToolCallVerdict, ToolOutput,
};
use myclaw_llm::{ContentBlock, joined_text};
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::command::{Check, Command, Finished};
use crate::run_info::RunInfo;

/// The exit code with which a hook refuses; its errors are the reason.
const REFUSES: i32 = 2;
/// Where a session begins, for hooks that ask.
const BEGINS: &str = "startup";

/// An event of Claude Code that has a counterpart here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaudeEvent {
    /// Before a tool is called.
    PreToolUse,
    /// After that.
    PostToolUse,
    /// When the user has said something.
    UserPromptSubmit,
    /// When a session begins; here, with each run.
    SessionStart,
    /// Before messages become a summary.
    PreCompact,
    /// When the agent has answered.
    Stop,
}

impl ClaudeEvent {
    /// The event of that name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "PreToolUse" => Self::PreToolUse,
            "PostToolUse" => Self::PostToolUse,
            "UserPromptSubmit" => Self::UserPromptSubmit,
            "SessionStart" => Self::SessionStart,
            "PreCompact" => Self::PreCompact,
            "Stop" => Self::Stop,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::PreCompact => "PreCompact",
            Self::Stop => "Stop",
        }
    }
}

/// A tool that Claude Code has too: its name here and there, and what its arguments are called here and there.
type Counterpart = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

static TOOLS: [Counterpart; 9] = [
    ("bash", "Bash", &[]),
    ("read", "Read", &[("path", "file_path"), ("startLine", "offset")]),
    ("write", "Write", &[("path", "file_path")]),
    (
        "edit",
        "Edit",
        &[
            ("path", "file_path"),
            ("oldText", "old_string"),
            ("newText", "new_string"),
            ("all", "replace_all"),
        ],
    ),
    ("grep", "Grep", &[("ignoreCase", "-i"), ("context", "-C"), ("limit", "head_limit")]),
    ("find", "Glob", &[]),
    ("ls", "LS", &[]),
    ("web_fetch", "WebFetch", &[]),
    ("web_search", "WebSearch", &[]),
];

/// One command for one event.
struct ClaudeHook {
    event: ClaudeEvent,
    /// What it is for: names of tools, or how something began; everything without it.
    matcher: Option<Regex>,
    command: Command,
    run: Arc<RunInfo>,
}

/// A command of a package for an event of Claude Code. `check` is called before each start.
///
/// # Errors
/// [`ConfigError::NoHome`] for a path that begins with `~` where there is no home.
pub fn claude_hook(
    (event, matcher): (ClaudeEvent, Option<&str>),
    (line, timeout_seconds): (&str, u64),
    paths: &Paths,
    (root, check): (&Path, &Check),
    run: RunInfo,
) -> Result<Arc<dyn Hook>, ConfigError> {
    let line = CommandLine::Shell(line.to_owned());
    let command = Command::new(&line, timeout_seconds, paths)?.of_package(root, Arc::clone(check));
    let command = command.with_variable("CLAUDE_PROJECT_DIR", &run.working_directory);
    let matcher = matcher.and_then(whole);
    Ok(Arc::new(ClaudeHook { event, matcher, command, run: Arc::new(run) }))
}

/// A pattern for a whole name; `None` for one that means all.
fn whole(matcher: &str) -> Option<Regex> {
    let matcher = matcher.trim();
    if matcher.is_empty() || matcher == "*" {
        return None;
    }
    let pattern = Regex::new(&format!("^(?:{matcher})$"));
    // What is no pattern is a name.
    pattern.or_else(|_| Regex::new(&format!("^{}$", regex::escape(matcher)))).ok()
}

/// What a hook has said.
#[derive(Debug, Default)]
struct Said {
    /// Why something must not happen.
    refusal: Option<String>,
    /// Why somebody should be asked.
    question: Option<String>,
    /// Other arguments of a call.
    input: Option<Map<String, Value>>,
    /// Text for the model.
    context: Option<String>,
}

impl Said {
    /// Reads what a command has printed, and its exit code. As in Claude Code, an exit code that is neither 0 nor 2 is a failure
    /// that stops nothing.
    fn of(event: ClaudeEvent, finished: &Finished) -> Self {
        let errors = finished.errors.trim();
        if finished.code == REFUSES {
            let why = if errors.is_empty() { "it gave no reason" } else { errors };
            return Self { refusal: Some(why.to_owned()), ..Self::default() };
        }
        if finished.code != 0 {
            tracing::warn!(code = finished.code, errors, "a hook of a package failed");
            return Self::default();
        }
        let output = finished.output.trim();
        let Ok(answer @ Value::Object(_)) = serde_json::from_str::<Value>(output) else {
            let adds = matches!(event, ClaudeEvent::UserPromptSubmit | ClaudeEvent::SessionStart);
            let context = (adds && !output.is_empty()).then(|| output.to_owned());
            return Self { context, ..Self::default() };
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let special = &answer["hookSpecificOutput"];
        let reason = text(&special["permissionDecisionReason"])
            .or_else(|| text(&answer["reason"]))
            .unwrap_or_else(|| "it gave no reason".to_owned());
        let decision =
            special["permissionDecision"].as_str().or_else(|| answer["decision"].as_str());
        let stops = answer["continue"] == false;
        let refuses = matches!(decision, Some("deny" | "block"));
        Self {
            refusal: match stops {
                true => Some(text(&answer["stopReason"]).unwrap_or_else(|| reason.clone())),
                false => refuses.then(|| reason.clone()),
            },
            question: (decision == Some("ask")).then_some(reason),
            input: special["updatedInput"].as_object().cloned(),
            context: text(&special["additionalContext"]).filter(|text| !text.trim().is_empty()),
        }
    }
}

impl ClaudeHook {
    fn is_for(&self, event: ClaudeEvent, what: &str) -> bool {
        self.event == event && self.matcher.as_ref().is_none_or(|matcher| matcher.is_match(what))
    }

    async fn ask(&self, fields: Value) -> Result<Said, HookError> {
        let RunInfo { session_key, working_directory, start_directory, .. } = &*self.run;
        let mut input = json!({
            "session_id": session_key,
            // Sessions are not kept in the form of Claude Code.
            "transcript_path": "",
            "cwd": working_directory.to_string_lossy(),
            "permission_mode": "default",
            "hook_event_name": self.event.name(),
        });
        if let (Some(input), Value::Object(mut fields)) = (input.as_object_mut(), fields) {
            input.append(&mut fields);
        }
        let finished = self.command.finish(start_directory, &input).await?;
        Ok(Said::of(self.event, &finished))
    }

    fn call(&self, name: &str, id: &str, arguments: &Map<String, Value>) -> Value {
        json!({
            "tool_name": name_there(name),
            "tool_use_id": id,
            "tool_input": arguments_there(name, arguments, &self.run.working_directory),
        })
    }
}

/// The name of a tool in Claude Code.
fn name_there(name: &str) -> String {
    match TOOLS.iter().find(|(here, ..)| *here == name) {
        Some((_, there, _)) => (*there).to_owned(),
        None if name.contains("__") => format!("mcp__{name}"),
        None => name.to_owned(),
    }
}

fn names_of(name: &str) -> &'static [(&'static str, &'static str)] {
    match TOOLS.iter().find(|(here, ..)| *here == name) {
        Some((_, _, names)) => names,
        None => &[],
    }
}

/// The arguments of a call as Claude Code calls them; paths of files are absolute there.
fn arguments_there(name: &str, arguments: &Map<String, Value>, directory: &Path) -> Value {
    let names = names_of(name);
    let changed = arguments.iter().map(|(key, value)| {
        let there =
            names.iter().find(|(here, _)| here == key).map_or(key.as_str(), |(_, there)| *there);
        let value = match value.as_str() {
            Some(path) if there == "file_path" => json!(directory.join(path).to_string_lossy()),
            _ => value.clone(),
        };
        (there.to_owned(), value)
    });
    Value::Object(changed.collect())
}

/// The way back.
fn arguments_here(name: &str, arguments: Map<String, Value>) -> Map<String, Value> {
    let names = names_of(name);
    let here = |key: String| match names.iter().find(|(_, there)| *there == key) {
        Some((here, _)) => (*here).to_owned(),
        None => key,
    };
    arguments.into_iter().map(|(key, value)| (here(key), value)).collect()
}

impl Hook for ClaudeHook {
    fn name(&self) -> &str {
        self.command.name()
    }

    fn before_agent_start<'a>(
        &'a self,
        start: &'a mut AgentStart,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            let prompt = joined_text(&start.user_message, "\n");
            let fields = match self.event {
                ClaudeEvent::SessionStart if self.is_for(self.event, BEGINS) => {
                    json!({"source": BEGINS})
                }
                ClaudeEvent::UserPromptSubmit if !start.user_message.is_empty() => {
                    json!({"prompt": prompt})
                }
                _ => return Ok(()),
            };
            let said = self.ask(fields).await?;
            if self.event == ClaudeEvent::SessionStart {
                if let Some(text) = said.context {
                    start.system_prompt.push_str("\n\n");
                    start.system_prompt.push_str(&text);
                }
                // A session begins whatever such a hook says.
                return Ok(());
            }
            if let Some(why) = said.refusal {
                return Err(HookError(why));
            }
            start.user_message.extend(said.context.map(ContentBlock::text));
            Ok(())
        })
    }

    fn tool_call<'a>(
        &'a self,
        call: &'a mut PendingToolCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        Box::pin(async move {
            let name = call.tool_name.as_str();
            if !self.is_for(ClaudeEvent::PreToolUse, &name_there(name)) {
                return Ok(ToolCallVerdict::Allow);
            }
            let said = self.ask(self.call(name, &call.tool_call_id, &call.arguments)).await?;
            if let Some(reason) = said.refusal {
                return Ok(ToolCallVerdict::Block { reason });
            }
            if let Some(input) = said.input {
                call.arguments = arguments_here(name, input);
            }
            Ok(said
                .question
                .map_or(ToolCallVerdict::Allow, |reason| ToolCallVerdict::Ask { reason }))
        })
    }

    fn tool_result<'a>(
        &'a self,
        call: &'a PreparedCall,
        output: &'a mut ToolOutput,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            if !self.is_for(ClaudeEvent::PostToolUse, &name_there(&call.tool_name)) {
                return Ok(());
            }
            let mut fields =
                self.call(&call.tool_name, &call.tool_call_id, call.arguments.as_map());
            let text = joined_text(&output.content, "\n");
            fields["tool_response"] = match call.tool_name.as_str() {
                "bash" => {
                    json!({"stdout": text, "stderr": "", "interrupted": false, "is_error": output.is_error})
                }
                _ => {
                    json!({"content": text, "success": !output.is_error, "is_error": output.is_error})
                }
            };
            let said = self.ask(fields).await?;
            // The tool has run: what a hook says of that is for the model.
            for text in [said.refusal, said.context].into_iter().flatten() {
                output.content.push(ContentBlock::text(format!("[hook {}] {text}", self.name())));
            }
            Ok(())
        })
    }

    fn before_session_compact<'a>(
        &'a self,
        compaction: &'a mut PendingCompaction<'_>,
    ) -> BoxFuture<'a, Result<CompactionVerdict, HookError>> {
        Box::pin(async move {
            let asked = json!(compaction);
            let trigger = if asked["reason"] == "manual" { "manual" } else { "auto" };
            if !self.is_for(ClaudeEvent::PreCompact, trigger) {
                return Ok(CompactionVerdict::Proceed);
            }
            let focus = asked["focus"].as_str().unwrap_or_default();
            let said = self.ask(json!({"trigger": trigger, "custom_instructions": focus})).await?;
            Ok(match said.refusal {
                Some(reason) => CompactionVerdict::Veto { reason },
                None => CompactionVerdict::Proceed,
            })
        })
    }

    fn agent_end<'a>(
        &'a self,
        outcome: &'a Result<RunResult, RunError>,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            if self.event != ClaudeEvent::Stop || outcome.is_err() {
                return Ok(());
            }
            // That the turn is over cannot be changed here, and so do hooks know that they should not try.
            self.ask(json!({"stop_hook_active": true})).await.map(drop)
        })
    }
}

#[cfg(test)]
mod tests;
