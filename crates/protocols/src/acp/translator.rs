//! Translates the events of a session into updates for the client.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    ClientCapabilities, CompactionId, CompactionStatus, CompactionUpdate, ContentBlock,
    ContentChunk, Cost, CurrentModeUpdate, MessageId, Notice, NoticeSeverity, SessionUpdate,
    ToolCallUpdate, UsageUpdate,
};
use myclaw_agent::approvals::Question;
use myclaw_agent::{Done, FailureClass, Next, Outcome, SessionWork};
use myclaw_engine::{AgentRunEvent, ApprovalRequest};
use myclaw_llm::{AssistantMessage, StopReason, StreamEvent};
use myclaw_session::EntryId;

use super::plan::shown_plan;
use super::tools::{self, Ending};
use myclaw_front::coming_call::ComingCall;
use myclaw_front::report::narrate;
use myclaw_front::terminal::Style;

/// Optional abilities of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    /// Notices apart from messages of the agent.
    pub(super) notices: bool,
    /// Compactions.
    pub(super) compaction: bool,
    /// It gives the text of its files, with changes that are not saved.
    pub(super) reads_files: bool,
    /// It takes new texts of files.
    pub(super) writes_files: bool,
    /// It runs commands in terminals of its own.
    pub(super) has_terminals: bool,
    /// It shows forms for questions that want words.
    pub(super) forms: bool,
}

impl From<&ClientCapabilities> for Abilities {
    fn from(client: &ClientCapabilities) -> Self {
        let session = client.session.as_ref();
        Self {
            notices: session.is_some_and(|session| session.notices.is_some()),
            compaction: session.is_some_and(|session| session.compaction.is_some()),
            reads_files: client.fs.read_text_file,
            writes_files: client.fs.write_text_file,
            has_terminals: client.terminal,
            forms: client.elicitation.as_ref().is_some_and(|asking| asking.form.is_some()),
        }
    }
}

/// Bytes of arguments from which a call is announced before it is complete. Shorter ones are there at once.
const LONG_ARGUMENTS: usize = 256;

/// A call that runs.
struct Running {
    /// The client's id for it.
    id: String,
    /// The end of its output.
    printed: String,
}

/// Translates the events of one session.
pub(super) struct Translator {
    pub(super) abilities: Abilities,
    /// Directory of its tools; absolute.
    pub(super) directory: PathBuf,
    /// The model's context window, in tokens.
    pub(super) window: u64,
    /// Dollars that the session has cost, if that is known.
    pub(super) spent: Option<f64>,
    work: Option<SessionWork>,
    /// The id of the arriving message, which is also part of the ids of its calls.
    message: EntryId,
    /// Whether that message has shown text, and whether any of the turn has.
    message_has_text: bool,
    turn_has_text: bool,
    /// The calls that run, by the model's id.
    calls: BTreeMap<String, Running>,
    /// The call whose arguments stream in, and the client's id for it.
    coming: Option<(String, ComingCall)>,
    /// The client's ids of calls that were announced and do not run yet.
    announced: BTreeSet<String>,
    last_stop: Option<StopReason>,
    compaction: Option<CompactionId>,
    /// Notices that wait for the next turn, for clients that cannot show them outside of one.
    later: Vec<String>,
}

impl Translator {
    /// A translator for a session that has cost `spent` dollars so far.
    pub(super) fn new(
        abilities: Abilities,
        directory: PathBuf,
        window: u64,
        spent: Option<f64>,
    ) -> Self {
        Self {
            abilities,
            directory,
            window,
            spent,
            work: None,
            message: EntryId::generate(),
            message_has_text: false,
            turn_has_text: false,
            calls: BTreeMap::new(),
            coming: None,
            announced: BTreeSet::new(),
            last_stop: None,
            compaction: None,
            later: Vec::new(),
        }
    }

    /// The current work of the session.
    pub(super) fn work(&self) -> Option<SessionWork> {
        self.work
    }

    /// Why the last message of the turn ended.
    pub(super) fn last_stop(&self) -> Option<StopReason> {
        self.last_stop
    }

    /// Work begins.
    pub(super) fn begin(&mut self, work: SessionWork) -> Vec<SessionUpdate> {
        self.work = Some(work);
        self.message = EntryId::generate();
        self.message_has_text = false;
        self.turn_has_text = false;
        self.last_stop = None;
        if work == SessionWork::Compaction && self.abilities.compaction {
            let id = CompactionId::new(EntryId::generate().as_str());
            self.compaction = Some(id.clone());
            return vec![compaction(id, CompactionStatus::InProgress)];
        }
        let later = std::mem::take(&mut self.later);
        later.into_iter().map(|line| thought(format!("{line}\n\n"))).collect()
    }

    /// Translates an event of a turn.
    pub(super) fn translate(&mut self, event: &AgentRunEvent) -> Vec<SessionUpdate> {
        match event {
            AgentRunEvent::LlmStart { .. } => {
                self.message = EntryId::generate();
                self.message_has_text = false;
                self.withdraw_announced()
            }
            AgentRunEvent::LlmStream { event } => self.stream(event).into_iter().collect(),
            AgentRunEvent::LlmEnd { message } => vec![self.message_end(message)],
            AgentRunEvent::ToolStart { tool_name, tool_call_id, arguments } => {
                let id = tools::call_id(&self.message, tool_call_id);
                let call = tools::started(&self.directory, &id, tool_name, arguments);
                let update = if self.announced.remove(&id) {
                    SessionUpdate::ToolCallUpdate(call.into())
                } else {
                    SessionUpdate::ToolCall(call)
                };
                self.calls.insert(tool_call_id.clone(), Running { id, printed: String::new() });
                vec![update]
            }
            AgentRunEvent::ToolExecutionUpdate { tool_call_id, text, details, .. } => {
                let Some(call) = self.calls.get_mut(tool_call_id) else { return Vec::new() };
                if let Some(terminal) = details.as_ref().and_then(tools::terminal) {
                    return vec![SessionUpdate::ToolCallUpdate(tools::in_terminal(
                        &call.id, terminal,
                    ))];
                }
                let update = tools::progress(&call.id, &mut call.printed, text);
                vec![SessionUpdate::ToolCallUpdate(update)]
            }
            AgentRunEvent::ToolEnd { tool_call_id, is_error, text, details, .. } => {
                let Some(call) = self.calls.remove(tool_call_id) else { return Vec::new() };
                let ending = Ending { is_error: *is_error, text, details: details.as_ref() };
                let update = tools::ended(&self.directory, &call.id, &ending);
                let plan = shown_plan(details.as_ref());
                plan.into_iter().chain([SessionUpdate::ToolCallUpdate(update)]).collect()
            }
            // Reported at the end of the command.
            AgentRunEvent::Compaction { .. } if self.work == Some(SessionWork::Compaction) => {
                Vec::new()
            }
            AgentRunEvent::Compaction { .. } if self.abilities.compaction => {
                let id = CompactionId::new(EntryId::generate().as_str());
                vec![compaction(id, CompactionStatus::Completed)]
            }
            AgentRunEvent::ModeChanged { to } => {
                vec![SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(to.as_str()))]
            }
            // The client shows its own messages already, and gets the end of the turn as the response.
            AgentRunEvent::Taken { .. }
            | AgentRunEvent::Done { .. }
            | AgentRunEvent::ApprovalResolved { .. } => Vec::new(),
            event => narrate(event)
                .and_then(|(style, line)| self.notice(severity(style), line))
                .into_iter()
                .collect(),
        }
    }

    /// A call that needs an approval, under the id that it has when it runs.
    pub(super) fn call_to_approve(
        &self,
        request: &ApprovalRequest,
        question: &Question,
    ) -> ToolCallUpdate {
        let id = tools::call_id(&self.message, &request.call.tool_call_id);
        tools::to_approve(&self.directory, &id, request, question)
    }

    /// Work is over.
    pub(super) fn end(&mut self, outcome: &Outcome, next: Next) -> Vec<SessionUpdate> {
        let calls = std::mem::take(&mut self.calls);
        let mut updates: Vec<SessionUpdate> = calls
            .into_values()
            .map(|call| SessionUpdate::ToolCallUpdate(tools::given_up(&call.id, "aborted")))
            .collect();
        updates.extend(self.withdraw_announced());
        if let Some(id) = self.compaction.take() {
            let update = match outcome {
                Ok(_) => CompactionUpdate::new(id, CompactionStatus::Completed),
                Err(error) if error.class == FailureClass::Aborted => {
                    CompactionUpdate::new(id, CompactionStatus::Cancelled)
                }
                Err(error) => {
                    CompactionUpdate::new(id, CompactionStatus::Failed).error(error.message.clone())
                }
            };
            updates.push(SessionUpdate::CompactionUpdate(update));
        }
        if let (Err(error), Next::GoesOn) = (outcome, next)
            && error.class != FailureClass::Aborted
        {
            // No request is answered with this failure, because a turn follows.
            updates.extend(self.notice(NoticeSeverity::Error, error.message.clone()));
        }
        if let Ok(Done::Answered(result)) = outcome
            && !self.turn_has_text
            && !result.reply.is_empty()
        {
            updates.push(SessionUpdate::AgentMessageChunk(self.chunk(result.reply.clone())));
        }
        self.work = None;
        updates
    }

    /// A notice. Clients without notices get it as a thought within a turn.
    pub(super) fn notice(
        &mut self,
        severity: NoticeSeverity,
        line: String,
    ) -> Option<SessionUpdate> {
        if self.abilities.notices {
            return Some(SessionUpdate::Notice(Notice::new(severity, line)));
        }
        if self.work.is_none() {
            self.later.push(line);
            return None;
        }
        Some(thought(format!("{line}\n\n")))
    }

    fn stream(&mut self, event: &StreamEvent) -> Option<SessionUpdate> {
        match event {
            StreamEvent::TextDelta { delta, .. } if !delta.is_empty() => {
                self.message_has_text = true;
                self.turn_has_text = true;
                Some(SessionUpdate::AgentMessageChunk(self.chunk(delta.clone())))
            }
            // Blocks of text stand apart.
            StreamEvent::TextStart { .. } if self.message_has_text => {
                Some(SessionUpdate::AgentMessageChunk(self.chunk("\n\n".to_owned())))
            }
            StreamEvent::ThinkingDelta { delta, .. } if !delta.is_empty() => {
                Some(SessionUpdate::AgentThoughtChunk(self.chunk(delta.clone())))
            }
            StreamEvent::ToolCallStart { index, id, name } => {
                let id = tools::call_id(&self.message, id);
                self.coming = Some((id, ComingCall::new(*index, name)));
                None
            }
            StreamEvent::ToolCallDelta { index, delta, .. } => self.preview_call(*index, delta),
            _ => None,
        }
    }

    /// Announces a call with long arguments, or shows more of it.
    fn preview_call(&mut self, block: usize, fragment: &str) -> Option<SessionUpdate> {
        let (id, coming) = self.coming.as_mut()?;
        let arguments = coming.push(block, fragment)?;
        if coming.kept() < LONG_ARGUMENTS || arguments.is_empty() {
            return None;
        }
        let call = tools::coming(&self.directory, id, &coming.tool, &arguments);
        if self.announced.insert(id.clone()) {
            return Some(SessionUpdate::ToolCall(call));
        }
        Some(SessionUpdate::ToolCallUpdate(call.into()))
    }

    /// Ends announced calls that will not run: their message broke off, or they were refused.
    fn withdraw_announced(&mut self) -> Vec<SessionUpdate> {
        self.coming = None;
        let announced = std::mem::take(&mut self.announced).into_iter();
        announced
            .map(|id| SessionUpdate::ToolCallUpdate(tools::given_up(&id, "this call did not run")))
            .collect()
    }

    fn chunk(&self, text: String) -> ContentChunk {
        let message = MessageId::new(self.message.as_str());
        ContentChunk::new(ContentBlock::from(text)).message_id(message)
    }

    fn message_end(&mut self, message: &AssistantMessage) -> SessionUpdate {
        self.last_stop = Some(message.stop_reason);
        self.spent = self.spent.map(|spent| spent + message.usage.cost.total);
        usage(message.usage.total_tokens, self.window, self.spent)
    }
}

/// The use of the context window, and the cost of the session.
pub(super) fn usage(used: u64, window: u64, spent: Option<f64>) -> SessionUpdate {
    let cost = spent.map(|dollars| Cost::new(dollars, "USD"));
    SessionUpdate::UsageUpdate(UsageUpdate::new(used, window).cost(cost))
}

fn thought(text: String) -> SessionUpdate {
    SessionUpdate::AgentThoughtChunk(ContentChunk::new(ContentBlock::from(text)))
}

fn compaction(id: CompactionId, status: CompactionStatus) -> SessionUpdate {
    SessionUpdate::CompactionUpdate(CompactionUpdate::new(id, status))
}

fn severity(style: Style) -> NoticeSeverity {
    match style {
        Style::Warning => NoticeSeverity::Warning,
        Style::Bad => NoticeSeverity::Error,
        _ => NoticeSeverity::Info,
    }
}

#[cfg(test)]
mod tests;
