//! What the last tool calls printed, in full, and what the parts of a chat know in common.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use myclaw_agent::plan::Plan;
use myclaw_config::ThemeName;
use myclaw_engine::AgentRunEvent;
use myclaw_llm::Usage;
use parking_lot::{Mutex, MutexGuard};

use super::attention::Attention;
use super::status::Status;
use myclaw_front::terminal::{Output, Style, StyledLine};

/// Calls whose output is kept.
const MOST_CALLS: usize = 20;
/// Bytes of one output that are kept: the end of what is longer.
const MOST_BYTES: usize = 256 * 1024;

/// The output for answers.
pub(super) enum View {
    /// A terminal that is drawn on.
    Terminal,
    /// Plain text, as `myclaw run` prints it.
    Plain(Arc<Output>),
}

/// State that outlives a turn and that the display, the prompt and the commands share.
#[derive(Debug, Default)]
pub(super) struct Common {
    status: Mutex<Option<Status>>,
    /// Of all calls of models since the chat began, also those that wrote summaries or failed.
    usage: Mutex<Usage>,
    outputs: Mutex<VecDeque<Vec<StyledLine>>>,
    shows_thinking: AtomicBool,
    /// Where the tools work; empty for the working directory of this process.
    place: Mutex<PathBuf>,
    /// The agent's plan, and whether it changed since it was printed.
    plan: Mutex<(Option<Plan>, bool)>,
    /// The theme, if this chat has changed it.
    theme: Mutex<Option<ThemeName>>,
    /// The warnings that were said.
    warnings: Mutex<BTreeSet<String>>,
    /// Calls the user.
    pub(super) attention: Attention,
}

impl Common {
    /// The status; `None` if it is not shown.
    pub(super) fn status(&self) -> MutexGuard<'_, Option<Status>> {
        self.status.lock()
    }

    /// What the chat has used.
    pub(super) fn usage(&self) -> Usage {
        *self.usage.lock()
    }

    /// Adds what an event says about usage and the context window.
    pub(super) fn heed(&self, event: &AgentRunEvent) {
        self.heed_usage(event);
        if let Some(status) = self.status().as_mut() {
            status.heed(event);
        }
    }

    /// Adds what an event says about usage.
    pub(super) fn heed_usage(&self, event: &AgentRunEvent) {
        if let AgentRunEvent::LlmUsage { usage, .. } = event {
            self.usage.lock().add_call(usage);
        }
    }

    /// The theme in use.
    pub(super) fn theme(&self, usual: ThemeName) -> ThemeName {
        self.theme.lock().unwrap_or(usual)
    }

    /// Another theme is in use, if there is one.
    pub(super) fn set_theme(&self, theme: Option<ThemeName>) {
        let mut current = self.theme.lock();
        *current = theme.or(*current);
    }

    /// Shows what is to be said of the goal in the status line.
    pub(super) fn show_goal(&self, goal: Option<String>) {
        self.status().get_or_insert_default().goal = goal;
    }

    /// The agent's plan.
    pub(super) fn plan(&self) -> Option<Plan> {
        self.plan.lock().0.clone()
    }

    /// The agent has another plan, or the chat another session.
    pub(super) fn set_plan(&self, plan: Option<Plan>) {
        let is_new = plan.is_some();
        *self.plan.lock() = (plan, is_new);
    }

    /// The plan, if it was not printed since it changed.
    pub(super) fn plan_to_print(&self) -> Option<Plan> {
        let mut plan = self.plan.lock();
        std::mem::take(&mut plan.1).then(|| plan.0.clone()).flatten()
    }

    /// Where the tools work.
    pub(super) fn place(&self) -> PathBuf {
        self.place.lock().clone()
    }

    /// The tools work here from now on.
    pub(super) fn work_in(&self, place: &Path) {
        *self.place.lock() = place.to_owned();
    }

    /// Whether `warning` is said for the first time.
    pub(super) fn is_news(&self, warning: &str) -> bool {
        let mut warnings = self.warnings.lock();
        warnings.insert(warning.to_owned())
    }

    /// Whether what the model thinks is shown.
    pub(super) fn shows_thinking(&self) -> bool {
        self.shows_thinking.load(Ordering::Relaxed)
    }

    /// Shows or hides what the model thinks.
    pub(super) fn show_thinking(&self, is_shown: IsShown) {
        self.shows_thinking.store(is_shown == IsShown::Yes, Ordering::Relaxed);
    }

    /// Shows what was hidden, or hides it. Returns a message about it.
    pub(super) fn toggle_thinking(&self) -> &'static str {
        match self.shows_thinking.fetch_xor(true, Ordering::Relaxed) {
            true => "what the model thinks is hidden",
            false => "what the model thinks is shown",
        }
    }

    /// Keeps the output of a call.
    pub(super) fn keep(&self, mut lines: Vec<StyledLine>) {
        let mut bytes = 0;
        let fits = lines.iter().rev().take_while(|line| {
            bytes += line.text.len();
            bytes <= MOST_BYTES
        });
        let surplus = lines.len() - fits.count();
        if surplus > 1 {
            // The heading stays.
            let remark =
                format!("… {} lines are left out: the end of the output is kept", surplus - 1);
            lines.splice(1..surplus, [StyledLine::new(Style::Warning, remark)]);
        }
        let mut outputs = self.outputs.lock();
        if outputs.len() >= MOST_CALLS {
            outputs.pop_front();
        }
        outputs.push_back(lines);
    }

    /// All kept outputs with an empty line between them, and the line at which the last one begins.
    pub(super) fn page(&self) -> (Vec<StyledLine>, usize) {
        let outputs = self.outputs.lock();
        let mut lines = Vec::new();
        let mut start = 0;
        for output in outputs.iter() {
            if !lines.is_empty() {
                lines.push(StyledLine::new(Style::Dim, ""));
            }
            start = lines.len();
            lines.extend(output.iter().cloned());
        }
        (lines, start)
    }
}

/// Whether something is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IsShown {
    Yes,
    No,
}
