//! What a run in a session needs.

use std::sync::Arc;
use std::time::Duration;

use myclaw_auth::CooldownRules;
use myclaw_config::{AgentId, Config, IterationCap, RunLimits};
use myclaw_engine::{
    ActiveModel, Bound, ConfigKeys, Lane, RefusalRule, RunParams, RunRules, RunStores,
};
use myclaw_hooks::{RunInfo, command_hooks};
use myclaw_session::{PeerKind, SessionKey, Spending};
use myclaw_tools::{ToolOptions, builtin_tools};

use super::{
    CRON_CHANNEL, RunAdditions, RunOptions, SUBAGENT_CHANNEL, SessionConfig, call_limits,
    default_thinking,
};
use crate::AgentError;
use crate::blocking::blocking;
use crate::browser_tool::browser_tool;
use crate::outputs::OutputsHook;
use crate::permissions::{self, Permissions};
use crate::plan::PlanTool;
use crate::selection::{Selection, Wanted, select};
use crate::web_tools::web_tools;

impl SessionConfig {
    /// Whether it is the owner's main session with the agent.
    pub fn is_main(&self) -> bool {
        permissions::is_main(self)
    }

    /// Finds the models of the session: the one that `requested` names, else what the config or this machine gives.
    ///
    /// # Errors
    /// The name cannot be used, the provider is not known or not allowed, or its key is missing.
    pub async fn select_model(&self, requested: Option<&str>) -> Result<Selection, AgentError> {
        let stored = self.home.stored_keys(&self.agent);
        let wanted = Wanted {
            requested,
            configured: self.agent.model.as_deref(),
            fallbacks: &self.agent.fallbacks,
            stored: &stored,
        };
        select(&self.config, &self.home.environment, wanted).await
    }

    /// What a run in the session needs: tools, skills and hooks, limits and stores. It has no message yet.
    ///
    /// # Errors
    /// A hook, a rule or a directory of the config cannot be used.
    pub async fn run_params(
        &self,
        selection: &Selection,
        added: RunAdditions,
    ) -> Result<RunParams, AgentError> {
        if self.home.has_no_packages() {
            return self.params_of_run(selection, added).await;
        }
        // All of the run uses the same bytes, which are read once.
        let session = self.clone();
        let packages = blocking(move || session.read_packages()).await?;
        let this = Self { run_packages: Some(Arc::new(packages)), ..self.clone() };
        this.params_of_run(selection, added).await
    }

    async fn params_of_run(
        &self,
        selection: &Selection,
        added: RunAdditions,
    ) -> Result<RunParams, AgentError> {
        let run = RunInfo {
            session_key: self.session_key.to_string(),
            agent: self.agent.id.to_string(),
            working_directory: self.working_directory().to_owned(),
            start_directory: self.start_directory().to_owned(),
        };
        let command_timeout = Duration::from_secs(self.config.tools.bash.timeout_seconds);
        let mut params = self.bare_run(selection.models.clone());
        params.auth_profile.clone_from(&self.auth_profile);
        params.lane = lane(&self.session_key);
        let permissions = Arc::new(Permissions::of_run(self, &added, &params)?);
        // Without the tool `process` nobody could look after a job.
        let jobs = if permissions.offers("process") { Some(self.jobs().await) } else { None };
        let (place, skills) = self.place_and_skills().await?;
        let commands = self.command_place(&place, &permissions, &params.rules.closed)?;
        let diagnostics = self.diagnostics_hook(&permissions, commands.clone(), jobs.clone());
        let options = ToolOptions { command_timeout, jobs, commands, memory: self.memory() };
        params.tools = place.tools(builtin_tools(options));
        params.tools.extend(self.memory_write_tool());
        params.tools.push(Arc::new(PlanTool(self.clone())));
        params.tools.extend(web_tools(self, &params.models, &params.tools)?);
        params.tools.extend(browser_tool(self)?);
        params.tools.extend(self.picture_tool());
        params.tools.extend(self.mcp_tools(&permissions, added.approver.as_ref()).await?);
        params.skills = skills;
        params.hooks = command_hooks(&self.config, run.clone())?;
        params.hooks.extend(self.package_hooks(run).await?);
        params.hooks.push(Arc::new(OutputsHook {
            known: self.known_secrets(),
            directory: self.home.side_files().artifact_directory(&self.session_key),
        }));
        params.hooks.extend(self.quota_hook());
        self.take_up_commands_if_free().await;
        params.hooks.extend(self.command_changes_hook());
        params.hooks.extend(diagnostics);
        params.project = self.project_instructions().await;
        let project_hook = params.project.as_ref().map(|project| self.project_hook(project));
        params.hooks.extend(project_hook);
        params.system_prompt.clone_from(&added.system_prompt);
        permissions::apply(self, permissions, added, &mut params);
        if params.system_prompt.is_none() {
            params.memory = self.outline_for(&params.tools).await?;
        }
        if params.memory.is_some() {
            params.hooks.push(self.outline_hook());
            params.hooks.extend(self.learn_hook(&params.models));
        }
        Ok(params)
    }

    /// As [`SessionConfig::run_params`], without tools, skills and hooks.
    pub fn bare_run(&self, models: Vec<ActiveModel>) -> RunParams {
        let (key, workspace) = (self.session_key.clone(), self.agent.workspace.clone());
        let mut params = RunParams::go_on(key, models, self.rules(), self.stores(), workspace);
        params.working_directory = self.directory.clone().or_else(|| self.own_workspace.clone());
        params.prompt_files = self.prompt_files();
        params.mode = self.mode.clone();
        params.listed_with = self.listed_with.lock().clone();
        params
    }

    /// The limits and modes of the session's runs.
    fn rules(&self) -> RunRules {
        let Self { config, agent, options, .. } = self;
        let parts = self.session_key.parts();
        RunRules {
            thinking: default_thinking(agent),
            max_iterations: options.max_turns.map_or(agent.max_iterations, IterationCap::Limited),
            max_retries: agent.max_retries,
            cut_answers: self.cut_answers,
            max_tool_result_chars: agent.max_tool_result_chars,
            workspace_only: config.tools.fs.workspace_only,
            closed: self.closed_paths(),
            known_secrets: self.known_secrets(),
            compaction: agent.compaction.clone(),
            refusals: RefusalRule::default(),
            context_pruning: agent.context_pruning,
            history_limit: match permissions::is_of_heartbeats(&self.session_key) {
                // What an earlier heartbeat found is in the files of the workspace, as far as it matters.
                true => Some(1),
                false => config.history_limit(&parts.channel, parts.peer_kind == PeerKind::Direct),
            },
            limits: RunLimits {
                run_cost: options.max_cost.unwrap_or(agent.limits.run_cost),
                ..agent.limits
            },
            shared_cost: options.max_cost.map(|_| options.cost.clone()),
            steering: agent.steering_mode,
            follow_ups: agent.follow_up_mode,
            quiet: Duration::from_millis(config.messages.queue.debounce_ms),
            lanes: config.agents.defaults.lanes,
            call: call_limits(config),
            time_zone: agent.user_timezone.clone(),
            config_keys: config_keys(Arc::clone(config), agent.id.clone(), options),
            cooldowns: CooldownRules::from(&config.auth.cooldowns),
        }
    }

    /// The stores of the session's runs: what stays on disk after a run.
    fn stores(&self) -> RunStores {
        RunStores {
            sessions: self.sessions(),
            side_files: Arc::clone(self.home.side_files()),
            spending: self.spending(),
            keys: Some(self.home.keys_of(&self.agent)),
        }
    }

    /// Where the calls of the session are counted, for the bounds of a command and of a goal too.
    pub(crate) fn spending(&self) -> Arc<dyn Spending> {
        self.options.cost.counting(Arc::clone(&self.home.stores().spending))
    }
}

/// The lane of the runs of a session.
fn lane(key: &SessionKey) -> Lane {
    match key.parts().channel.as_str() {
        CRON_CHANNEL => Lane::Cron,
        SUBAGENT_CHANNEL => Lane::Subagent,
        _ => Lane::Main,
    }
}

/// The options of the command and the config keys that set the limits of the agent.
fn config_keys(config: Arc<Config>, agent: AgentId, options: &RunOptions) -> ConfigKeys {
    let (has_turns, has_cost) = (options.max_turns.is_some(), options.max_cost.is_some());
    ConfigKeys::new(move |bound| match bound {
        Bound::MaxIterations if has_turns => "--max-turns".to_owned(),
        Bound::RunCost if has_cost => "--max-cost".to_owned(),
        bound => config.deciding_key(&agent, bound.config_key()).to_string(),
    })
}
