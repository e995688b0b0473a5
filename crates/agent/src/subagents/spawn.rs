//! The tool that starts a sub-agent.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_config::{AgentId, Subagents as Rules};
use myclaw_engine::{
    CallArguments, CallSubject, Mode, SharedSchemas, Tool, ToolAliases, ToolContext,
    ToolDeclaration, ToolError, ToolInvocation, ToolOutput, ToolUpdate,
};
use myclaw_files::now_ms;
use myclaw_llm::{ThinkingLevel, ToolSchema};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::declared::{SPAWN, SPAWN_DECLARATION};
use super::record::{Child, child_session, hash};
use super::words::{Ending, call_result, label_of};
use super::{Outcome, Running, SubagentTools};
use crate::agent_files::{AgentFile, AgentFileOrigin, AgentFiles};
use crate::blocking::blocking;
use crate::worktrees::Repository;
use crate::{AgentError, SessionConfig};

/// Largest task, in bytes.
const MOST_TASK_BYTES: usize = 64 * 1024;
/// Lines about what a sub-agent does that wait to be shown.
const MOST_SHOWN: usize = 64;
/// The field of a result's details that names the sub-agent.
const FIELD: &str = "subagent";

/// As models know the tool from other agents.
const ALIASES: ToolAliases = ToolAliases {
    names: &["Task", "Agent", "spawn_agent"],
    arguments: &[
        ("prompt", "task"),
        ("description", "label"),
        ("subagent_type", "agentId"),
        ("agent", "agentId"),
        ("run_in_background", "background"),
    ],
    unlisted: &[("model", "string"), ("thinking", "string"), ("runTimeoutSeconds", "integer")],
};

/// What the schema depends on.
type Offered = (Vec<String>, bool, bool);

/// The tool of one session.
pub(super) struct SpawnTool {
    subagents: Arc<SubagentTools>,
    caller: SessionConfig,
    files: AgentFiles,
    has_background: bool,
    schema: Arc<ToolSchema>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    task: String,
    label: Option<String>,
    agent_id: Option<String>,
    model: Option<String>,
    thinking: Option<String>,
    run_timeout_seconds: Option<u64>,
    #[serde(default)]
    background: bool,
    #[serde(default)]
    worktree: bool,
}

impl SpawnTool {
    pub(super) fn new(
        subagents: Arc<SubagentTools>,
        caller: SessionConfig,
        has_background: bool,
    ) -> Self {
        static SCHEMAS: SharedSchemas<Offered> = SharedSchemas::new();
        let files = caller.agent_files();
        let is_git = caller.project_root().is_some_and(|root| root.join(".git").exists());
        let offered = (offered(&caller, &files), has_background, is_git);
        let schema = SCHEMAS.get(offered, schema);
        Self { subagents, caller, files, has_background, schema }
    }

    /// The sub-agent that a call asks for: a new one, or the one with the same order whose result is due.
    async fn child(&self, call: &str, model: &str, given: Arguments) -> Result<Child, AgentError> {
        let is_background = given.background && self.has_background;
        let in_worktree = given.worktree;
        let mut child = self.wanted(call, model, given).await?;
        if in_worktree {
            self.give_worktree(&mut child).await?;
        }
        let rules = self.caller.config.subagents(&self.caller.agent.id);
        let (records, key) =
            (self.subagents.records(&self.caller), self.caller.session_key.clone());
        let running: Vec<String> =
            self.subagents.of(&key).iter().map(|one| one.child.id.clone()).collect();
        blocking(move || {
            let mut taken = Err(AgentError::aborted());
            records.change(&key, &mut |children| {
                // After a crash a model does not know whether its call succeeded, and repeats it.
                if let Some(same) = children.iter_mut().find(|other| other.order == child.order) {
                    if !running.contains(&same.id) {
                        same.background = is_background;
                    }
                    taken = Ok(same.clone());
                    return;
                }
                if children.len() >= rules.max_children {
                    taken = Err(AgentError::usage(format!(
                        "{} sub-agents of this session work already, which is the limit \
                         (subagents.maxChildrenPerAgent); wait until one ends",
                        children.len()
                    )));
                    return;
                }
                children.push(child.clone());
                taken = Ok(child.clone());
            })?;
            taken
        })
        .await?
    }

    /// Makes a worktree for a new sub-agent.
    async fn give_worktree(&self, child: &mut Child) -> Result<(), AgentError> {
        let (records, key) =
            (self.subagents.records(&self.caller), self.caller.session_key.clone());
        let known = blocking(move || records.of(&key)).await??;
        if known.iter().any(|other| other.order == child.order) {
            return Ok(());
        }
        if matches!(self.caller.mode.get(), Mode::ReadOnly | Mode::Plan) {
            return Err(AgentError::usage(format!(
                "no worktree is made in the mode {}; leave `worktree` out",
                self.caller.mode.get()
            )));
        }
        let repository = Repository::of(self.caller.working_directory()).await?;
        let prepared = repository.prepare(None).await?;
        child.directory = Some(prepared.directory);
        child.worktree = Some(prepared.worktree.name);
        Ok(())
    }

    /// A new sub-agent, as the arguments describe it, if the rules permit it.
    async fn wanted(&self, call: &str, model: &str, given: Arguments) -> Result<Child, AgentError> {
        let caller = &self.caller;
        let rules = caller.config.subagents(&caller.agent.id);
        if given.task.trim().is_empty() || given.task.len() > MOST_TASK_BYTES {
            return Err(AgentError::usage(format!(
                "`task` has 1 to {MOST_TASK_BYTES} bytes; say what is to be done"
            )));
        }
        let (file, agent) = self.agent(&rules, given.agent_id.as_deref())?;
        let chosen = given.model.or_else(|| file.and_then(|file| file.model.clone()));
        if let Some(model) = chosen.as_ref().filter(|model| !rules.allows_model(model)) {
            return Err(AgentError::usage(format!(
                "{model} may not be chosen for a sub-agent (subagents.models); leave `model` out"
            )));
        }
        let is_own = agent == caller.agent.id;
        let model = chosen
            .or_else(|| rules.model.clone())
            .or_else(|| Some(model.to_owned()).filter(|model| is_own && !model.is_empty()));
        let usual = rules.thinking.map(|level| level.as_str().to_owned());
        let thinking = given.thinking.or(usual);
        if let Some(word) = &thinking {
            word.parse::<ThinkingLevel>().map_err(|error| AgentError::usage(error.to_string()))?;
        }
        let label = given.label.as_deref().and_then(label_of);
        let texts = [
            if given.worktree { "worktree" } else { "" },
            given.task.as_str(),
            label.as_deref().unwrap_or_default(),
            given.agent_id.as_deref().unwrap_or_default(),
            model.as_deref().unwrap_or_default(),
        ];
        let started_at = now_ms();
        let id = Child::id_of(&caller.session_key, call, started_at);
        let longest = rules.run_timeout.as_secs();
        let seconds = given.run_timeout_seconds.map_or(longest, |asked| asked.clamp(1, longest));
        let mut narrowed = caller.narrowed.clone();
        narrowed.extend(
            (caller.options.tools != Default::default()).then(|| caller.options.tools.clone()),
        );
        narrowed.extend(file.and_then(AgentFile::rules));
        let child = Child {
            session: child_session(agent.as_str(), &id),
            order: hash("o", &texts),
            id,
            task: given.task,
            label,
            file: file.map(|file| file.name.clone()),
            agent: agent.to_string(),
            model,
            thinking,
            // A plan of a sub-agent would be asked about; it only reads.
            mode: file.and_then(|file| file.mode).map(|mode| match mode {
                Mode::Plan => Mode::ReadOnly,
                mode => mode,
            }),
            directory: None,
            worktree: None,
            narrowed,
            principals: caller.principals(),
            started_at,
            deadline: started_at.saturating_add(seconds.saturating_mul(1_000)),
            background: given.background && self.has_background,
        };
        // A mistake is said now, not in a result.
        let (of, new) = (caller.clone(), child.clone());
        let config = blocking(move || super::work::config_of(&of, &new)).await??;
        config.select_model(child.model.as_deref()).await?;
        Ok(child)
    }

    /// The file and the agent of the config that a name means.
    fn agent(
        &self,
        rules: &Rules,
        name: Option<&str>,
    ) -> Result<(Option<&AgentFile>, AgentId), AgentError> {
        let own = &self.caller.agent.id;
        let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) else {
            return Ok((None, own.clone()));
        };
        if let Some(file) = self.files.get(name) {
            return Ok((Some(file), own.clone()));
        }
        let agent = AgentId::new(name);
        match rules.allows_agent(own, &agent) && self.caller.config.agent_ids().contains(&agent) {
            true => Ok((None, agent)),
            false => Err(AgentError::usage(format!(
                "there is no agent `{name}` that may be started; the description of this tool names them, and without \
                 `agentId` it is one like you"
            ))),
        }
    }

    /// Waits for the result, and shows meanwhile what the sub-agent does.
    async fn result(
        &self,
        running: &Running,
        invocation: &ToolInvocation<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let (sender, mut lines) = mpsc::channel(MOST_SHOWN);
        *running.shown.lock() = Some(sender);
        let mut outcome = running.outcome.clone();
        let outcome = loop {
            tokio::select! {
                biased;
                ended = outcome.wait_for(Option::is_some) => {
                    break ended.ok().and_then(|ended| ended.clone());
                }
                () = invocation.cancel.cancelled(), if !running.cancel.is_cancelled() => {
                    running.cancel.cancel();
                }
                Some(text) = lines.recv() => {
                    (invocation.on_update)(ToolUpdate { text, details: None });
                }
            }
        };
        let Some(outcome) = outcome else {
            return Err(ToolError::Aborted("the program ended before the sub-agent".to_owned()));
        };
        if invocation.cancel.is_cancelled() {
            self.subagents.forget(&self.caller, &running.child).await;
            return Err(ToolError::Aborted("the sub-agent was stopped".to_owned()));
        }
        Ok(output(&running.child, &outcome))
    }
}

impl Tool for SpawnTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn declaration(&self) -> ToolDeclaration {
        SPAWN_DECLARATION
    }

    fn aliases(&self) -> ToolAliases {
        ALIASES
    }

    fn is_described_by_others(&self) -> bool {
        self.files.agents.iter().any(|file| file.origin == AgentFileOrigin::Project)
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        Ok(CallSubject::of(arguments))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let failed = |error: AgentError| ToolError::Failed(error.message);
            let arguments = Value::Object(invocation.call.arguments.as_map().clone());
            let given = Arguments::deserialize(arguments)
                .map_err(|error| ToolError::Failed(error.to_string()))?;
            let call = invocation.call;
            let child = self.child(&call.tool_call_id, &call.model, given).await.map_err(failed)?;
            let running = match self.subagents.begin(&self.caller, child.clone()) {
                Ok(running) => running,
                Err(error) => {
                    self.subagents.forget(&self.caller, &child).await;
                    return Err(failed(error));
                }
            };
            match running.child.background {
                true => Ok(begun(&running.child)),
                false => self.result(&running, &invocation).await,
            }
        })
    }
}

/// The result of a call that does not wait.
fn begun(child: &Child) -> ToolOutput {
    let text = format!(
        "The sub-agent \"{}\" works in the session {}. Its result comes to you as a message; go on, or end your turn.",
        child.named().name,
        child.session
    );
    ToolOutput::text(text)
}

fn output(child: &Child, outcome: &Outcome) -> ToolOutput {
    let text = call_result(&child.named(), outcome.how, outcome.seconds, &outcome.said);
    let details = json!({
        FIELD: {
            "id": child.id,
            "session": child.session.as_str(),
            "status": outcome.how,
            "seconds": outcome.seconds,
            "usage": outcome.usage,
        }
    });
    ToolOutput {
        details: Some(details),
        is_error: outcome.how != Ending::Completed,
        ..ToolOutput::text(text)
    }
}

/// The agents that a session may start, a line each.
fn offered(caller: &SessionConfig, files: &AgentFiles) -> Vec<String> {
    let own = &caller.agent.id;
    let rules = caller.config.subagents(own);
    let others = caller.config.agent_ids().into_iter();
    let others = others.filter(|id| id != own && rules.allows_agent(own, id));
    let files = files.agents.iter().map(|file| format!("{}: {}", file.name, file.description));
    files.chain(others.map(|id| id.to_string())).collect()
}

fn schema((agents, has_background, is_git): &Offered) -> ToolSchema {
    let mut description = include_str!("spawn.md").trim().to_owned();
    let text = json!({"type": "string"});
    let mut properties = json!({"task": text, "label": text});
    if !agents.is_empty() {
        description.push_str("\nThe agents (agentId):");
        agents.iter().for_each(|line| description.push_str(&format!("\n- {line}")));
        properties["agentId"] = text;
    }
    if *is_git {
        properties["worktree"] =
            json!({"type": "boolean", "description": "In a git worktree of its own"});
    }
    if *has_background {
        properties["background"] = json!({"type": "boolean"});
    }
    let parameters = json!({"type": "object", "properties": properties, "required": ["task"]});
    ToolSchema { name: SPAWN.to_owned(), description, parameters }
}
