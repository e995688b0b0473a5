//! The status line: where the tools work, what answers, how full its context window is, and what it has cost.

mod command;

use std::path::{Path, PathBuf};

use myclaw_agent::{Session, last_usage, selection::Selection, spent_today, window_tokens};
use myclaw_config::StatusPart;
use myclaw_engine::{AgentRunEvent, Mode};
use myclaw_files::{EntryKind, SharedDirectory, canonical};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

pub(super) use command::printed;
use myclaw_front::sessions::Sessions;
use myclaw_front::terminal::{escaped, truncated};

/// Between two parts.
const SEPARATOR: &str = " · ";

/// What the status line shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Status {
    directory: String,
    /// The last part of the directory.
    short_directory: String,
    branch: Option<String>,
    model: String,
    short_model: String,
    thinking: Option<String>,
    /// What is to be said of the goal.
    pub(super) goal: Option<String>,
    /// The permission mode, and whether the session is sandboxed, if there is anything to say.
    mode: Option<String>,
    is_sandboxed: bool,
    /// Tokens that fit into the context window; zero if that is unknown.
    window: u64,
    /// Tokens of the last call.
    pub(super) used: u64,
    /// US dollars since the session began that the chat continues, or since the chat did.
    pub(super) cost: f64,
    /// US dollars today, over all sessions.
    pub(super) cost_today: f64,
    /// The name of the session.
    session: String,
    /// The parts that the config names, if it does.
    parts: Option<Vec<StatusPart>>,
    /// What the owner's command has printed, in place of the parts.
    pub(super) printed: Option<String>,
}

impl Status {
    /// Reads everything that may have changed between two turns.
    pub(super) fn refresh(
        &mut self,
        session: &Session,
        selection: &Selection,
        sessions: &Sessions,
    ) {
        let config = session.config();
        let directory = config.working_directory();
        let user_home = std::env::var_os("HOME").map(PathBuf::from);
        self.directory =
            match user_home.and_then(|home| Some(directory.strip_prefix(home).ok()?.to_owned())) {
                Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
                Some(below) => format!("~/{}", below.display()),
                None => directory.display().to_string(),
            };
        self.short_directory = directory
            .file_name()
            .map_or_else(|| self.directory.clone(), |name| name.to_string_lossy().into_owned());
        self.branch = git_branch(directory);
        self.session = sessions.name_of(session.key());
        self.parts.clone_from(&config.config.terminal.status_line);
        self.model = selection.reference.to_string();
        self.short_model = selection.model().id.clone();
        let (_, level) = session.thinking(selection);
        let offers = selection.model().offered_thinking_levels().len() > 1;
        self.thinking = offers.then(|| format!("thinking {level}"));
        self.is_sandboxed = config.is_sandboxed();
        self.show_mode(session.mode());
        self.window = selection.model().context_window;
        if let Ok(spent) = spent_today(&config.home) {
            self.cost_today = spent.micro_dollars as f64 / 1_000_000.0;
        }
        if self.used == 0 {
            self.continue_from(session, sessions);
        }
    }

    /// Takes in the permission mode. Nothing is said of the usual one.
    pub(super) fn show_mode(&mut self, mode: Mode) {
        let sandboxed = self.is_sandboxed.then_some("sandboxed");
        let mode = match mode {
            Mode::Auto => None,
            Mode::Sandbox if self.is_sandboxed => None,
            mode => Some(mode.as_str()),
        };
        let words: Vec<&str> = mode.into_iter().chain(sandboxed).collect();
        self.mode = (!words.is_empty()).then(|| words.join(", "));
    }

    /// Takes over what an earlier chat has used in the session. What cannot be read is not shown.
    fn continue_from(&mut self, session: &Session, sessions: &Sessions) {
        self.used =
            last_usage(&*sessions.catalog, session.key()).map_or(0, |usage| window_tokens(&usage));
        if self.cost == 0.0
            && let Ok(Some(entry)) = sessions.catalog.entry(session.key())
        {
            self.cost = entry.micro_dollars.unwrap_or(0) as f64 / 1_000_000.0;
        }
    }

    /// Adds what an event says.
    pub(super) fn heed(&mut self, event: &AgentRunEvent) {
        match event {
            AgentRunEvent::LlmEnd { message } if window_tokens(&message.usage) > 0 => {
                self.used = window_tokens(&message.usage);
            }
            AgentRunEvent::ModeChanged { to } => self.show_mode(*to),
            AgentRunEvent::LlmUsage { usage, .. } => {
                self.cost += usage.cost.total;
                self.cost_today += usage.cost.total;
            }
            _ => {}
        }
    }

    /// Takes in that the model is sent about this many tokens from now on.
    pub(super) fn compacted(&mut self, tokens: u64) {
        self.used = tokens;
    }

    /// How full the context window is: `12% of 200k`; `None` before the first call.
    pub(super) fn context(&self) -> Option<String> {
        if self.window == 0 || self.used == 0 {
            return None;
        }
        let percent = self.used.saturating_mul(100) / self.window;
        Some(format!("{percent}% of {}", short_count(self.window)))
    }

    /// What there is to show, for the owner's command.
    pub(super) fn facts(&self) -> Value {
        json!({
            "directory": self.directory,
            "branch": self.branch,
            "session": self.session,
            "model": self.model,
            "thinking": self.thinking,
            "mode": self.mode,
            "goal": self.goal,
            "contextTokens": self.used,
            "contextWindow": self.window,
            "cost": self.cost,
            "costToday": self.cost_today,
        })
    }

    /// The parts that the config names, or what its command has printed. Where the terminal is narrow, the last parts go first.
    fn chosen(&self, columns: usize) -> Option<String> {
        let branch = self.branch.as_ref().map(|branch| format!(" ({branch})")).unwrap_or_default();
        let of = |part: &StatusPart| match part {
            StatusPart::Directory => Some(format!("{}{branch}", self.directory)),
            StatusPart::Model => Some(self.model.clone()),
            StatusPart::Thinking => self.thinking.clone(),
            StatusPart::Context => self.context(),
            StatusPart::Cost => self.shown_cost(),
            StatusPart::Today => self.shown_today(),
            StatusPart::Session => Some(self.session.clone()),
        };
        let mut parts: Vec<String> = match (&self.printed, &self.parts) {
            (Some(printed), _) => vec![printed.clone()],
            (None, Some(parts)) => parts.iter().filter_map(of).collect(),
            (None, None) => return None,
        };
        let first: Vec<String> = self.warning().into_iter().collect();
        loop {
            let all: Vec<&str> = first.iter().chain(&parts).map(String::as_str).collect();
            let line = escaped(&all.join(SEPARATOR)).replace(['\n', '\t'], " ");
            if line.width() <= columns || parts.len() < 2 {
                return Some(truncated(&line, columns));
            }
            parts.pop();
        }
    }

    /// What the agent may do, if it is not the usual, and its goal: this is never left out.
    fn warning(&self) -> Option<String> {
        let words = [&self.mode, &self.goal].into_iter().flatten().cloned();
        words.reduce(|mode, goal| mode + SEPARATOR + &goal)
    }

    fn shown_cost(&self) -> Option<String> {
        (self.cost > 0.0).then(|| format!("${:.4}", self.cost))
    }

    fn shown_today(&self) -> Option<String> {
        (self.cost_today >= 0.005).then(|| format!("${:.2} today", self.cost_today))
    }

    /// The line in at most `columns` columns: what matters least is left out first.
    pub(super) fn line(&self, columns: usize) -> String {
        if let Some(line) = self.chosen(columns) {
            return line;
        }
        let branch = self.branch.as_ref().map(|branch| format!(" ({branch})")).unwrap_or_default();
        let context = self.context();
        let (today, cost) = (self.shown_today(), self.shown_cost());
        let long = Some(format!("{}{branch}", self.directory));
        let short = Some(format!("{}{branch}", self.short_directory));
        let (model, short_model) = (Some(self.model.clone()), Some(self.short_model.clone()));
        let thinking = self.thinking.clone();
        let mode = self.warning();
        let candidates = [
            vec![
                mode.clone(),
                long,
                model.clone(),
                thinking.clone(),
                context.clone(),
                cost.clone(),
                today.clone(),
            ],
            vec![
                mode.clone(),
                short.clone(),
                model,
                thinking,
                context.clone(),
                cost.clone(),
                today,
            ],
            vec![mode.clone(), short, short_model.clone(), context.clone(), cost.clone()],
            vec![mode.clone(), short_model.clone(), context.clone(), cost],
            vec![mode, short_model, context],
        ];
        let mut line = String::new();
        for parts in candidates {
            let parts: Vec<String> =
                parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
            line = escaped(&parts.join(SEPARATOR)).replace(['\n', '\t'], " ");
            if line.width() <= columns {
                return line;
            }
        }
        truncated(&line, columns)
    }
}

/// `850`, `128k`, `1M`.
pub(super) fn short_count(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}M", count / 1_000_000),
    }
}

/// The branch that is checked out in the Git repository around `directory`, or the commit if there is none. The tools may
/// have put anything there, so little is read, and only from regular files.
fn git_branch(directory: &Path) -> Option<String> {
    /// Longest beginning of a commit's hash that is shown.
    const HASH_CHARS: usize = 8;
    /// Most bytes of a file that names a branch or a directory. Paths have at most as many.
    const MAX_BYTES: u64 = 4096;
    const NAME: &str = ".git";
    let read = |directory: &SharedDirectory, name: &str| {
        String::from_utf8(directory.read(name, MAX_BYTES).ok()?).ok()
    };
    let above = directory.ancestors().find(|it| it.join(NAME).symlink_metadata().is_ok())?;
    let above = SharedDirectory::open(above).ok()?;
    let file = above.path().join(NAME);
    let kind = above.facts(NAME).ok()??.kind;
    let repository = match kind {
        // In a linked work tree and in a submodule it is a file that names the directory.
        EntryKind::File => above.path().join(read(&above, NAME)?.strip_prefix("gitdir:")?.trim()),
        _ => file.clone(),
    };
    let repository = SharedDirectory::open(&repository).ok()?;
    // Anybody who may write here can name any repository. Only that of a linked work tree names the file in turn.
    let names_file = || {
        let named = repository.path().join(read(&repository, "gitdir")?.trim());
        Some(canonical(named).ok()? == canonical(&file).ok()?)
    };
    let is_own = kind == EntryKind::Directory
        || is_around(above.path(), repository.path())
        || names_file() == Some(true);
    if !is_own {
        return None;
    }
    let head = read(&repository, "HEAD")?;
    let head = head.trim();
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => Some(branch.to_owned()),
        None => Some(head.chars().take(HASH_CHARS).collect()),
    }
}

/// Whether a repository is below the directory, or in the repository of one above, as that of a submodule is.
fn is_around(directory: &Path, repository: &Path) -> bool {
    let (Ok(directory), Ok(repository)) = (canonical(directory), canonical(repository)) else {
        return false;
    };
    let is_in = |above: &Path| repository.starts_with(above.join(".git"));
    repository.starts_with(&directory) || directory.ancestors().any(is_in)
}

#[cfg(test)]
mod tests;
