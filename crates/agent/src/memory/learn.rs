//! Learning by itself: before a session is summarised, and when it has become long, one short call of its model lists the facts
//! that are worth remembering.
//!
//! The call reads what people and the agent said, never results of tools, and is bounded in bytes, tokens and time. Whatever
//! goes wrong with it is logged; the turn continues.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    ActiveModel, CompactionVerdict, Hook, HookError, PendingCompaction, RunError, RunResult,
};
use myclaw_files::{Documents, Durability};
use myclaw_llm::BUILTIN_PROVIDER;
use myclaw_memory::{FactOrigin, MOST_FACT_CHARS, NewFact, Notebook, NotebookError, outline};
use myclaw_session::{Role, SessionKey};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::forgotten::Forgotten;
use super::origin::{has_quotes, outside_tool};
use crate::blocking::blocking;
use crate::session::is_remark;
use crate::trial::TrialQuestion;
use crate::{SessionConfig, exhausted_today};

const PROMPT: &str = include_str!("../../prompts/learn.md");
/// Most bytes of the conversation: some 6,000 tokens.
const MOST_BYTES: usize = 24 * 1024;
/// Most bytes of one message in it.
const MOST_MESSAGE_BYTES: usize = 2_000;
/// Longest answer, in tokens.
const MOST_OUTPUT: u64 = 400;
/// Longest that the call may take. Somebody may wait for the end of the turn.
const LONGEST: Duration = Duration::from_secs(20);
/// Messages of people and of the agent after which a session counts as long.
const LONG: u64 = 40;
/// Most facts of one call.
const MOST_FACTS: usize = 8;
/// Most messages of a log that are looked at.
const MOST_ROWS: usize = 1_000;
/// The document that says how far each session was read.
const NAME: &str = "learned.json";
/// Most sessions in it.
const MOST_SESSIONS: usize = 2_000;

/// How far a session was read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Mark {
    /// The last message that was read.
    row: String,
    /// Messages of the session by then.
    messages: u64,
}

struct LearnHook {
    session: SessionConfig,
    notebook: Notebook,
    model: ActiveModel,
}

/// What became of the facts of a call.
#[derive(Default)]
struct Learned {
    /// Those that are kept.
    count: usize,
    /// Those that are too long.
    long: usize,
}

/// What the call reads.
struct Part {
    text: String,
    last_row: String,
    after: Vec<String>,
}

impl SessionConfig {
    /// Learns from the session's runs with `models`; `None` where the agent does not learn by itself.
    pub(crate) fn learn_hook(&self, models: &[ActiveModel]) -> Option<Arc<dyn Hook>> {
        let model = models.first().filter(|active| active.model.provider != BUILTIN_PROVIDER)?;
        let notebook = self.notebook().filter(|_| self.config.memory.learn)?;
        Some(Arc::new(LearnHook { session: self.clone(), notebook, model: model.clone() }))
    }
}

impl Hook for LearnHook {
    fn name(&self) -> &str {
        "memory"
    }

    fn heeds_start(&self) -> bool {
        false
    }

    fn before_session_compact<'a>(
        &'a self,
        _compaction: &'a mut PendingCompaction<'_>,
    ) -> BoxFuture<'a, Result<CompactionVerdict, HookError>> {
        Box::pin(async {
            self.learn().await?;
            Ok(CompactionVerdict::Proceed)
        })
    }

    fn agent_end<'a>(
        &'a self,
        outcome: &'a Result<RunResult, RunError>,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            if outcome.is_ok() && self.is_long().await {
                self.learn().await?;
            }
            Ok(())
        })
    }
}

impl LearnHook {
    /// Whether the session has become long since it was last read.
    async fn is_long(&self) -> bool {
        let (catalog, key) =
            (Arc::clone(self.session.home.catalog()), self.session.session_key.clone());
        let marks = self.marks();
        let counted = blocking(move || {
            let entry = catalog.entry(&key).ok().flatten();
            let messages = entry.and_then(|entry| entry.messages).unwrap_or_default();
            let read = marks.read().get(key.as_str()).map_or(0, |mark| mark.messages);
            messages.saturating_sub(read) >= LONG
        });
        counted.await.unwrap_or(false)
    }

    /// Makes the call. What fails is logged.
    ///
    /// # Errors
    /// Facts were too long to be kept, which the user reads.
    async fn learn(&self) -> Result<(), HookError> {
        let cancel = CancellationToken::new();
        let _stop = cancel.clone().drop_guard();
        match tokio::time::timeout(LONGEST, self.try_learn(&cancel)).await {
            Ok(Ok(Learned { long: 0, count })) => tracing::debug!(count, "learned facts"),
            Ok(Ok(Learned { long, .. })) => {
                return Err(HookError(format!(
                    "{long} of what it learned has over {MOST_FACT_CHARS} characters and is not kept; say in one short sentence what \
                     the agent should remember"
                )));
            }
            Ok(Err(why)) => tracing::warn!(%why, "nothing was learned"),
            Err(_) => tracing::warn!("nothing was learned in time"),
        }
        Ok(())
    }

    async fn try_learn(&self, cancel: &CancellationToken) -> Result<Learned, String> {
        let (home, agent) = (self.session.home.clone(), self.session.agent.clone());
        let (reading, model) = (self.reading(), self.model.model.clone());
        let prepared = blocking(move || {
            // A limit that is reached holds for this call too.
            let is_exhausted =
                exhausted_today(&home, &agent, &model).map_or(true, |it| it.is_some());
            if is_exhausted { Ok(None) } else { reading.part() }
        });
        let Some(part) = prepared.await.map_err(|error| error.message)?? else {
            return Ok(Learned::default());
        };
        let forgotten = self.session.forgotten();
        let before = forgotten.state();
        let known = outline(&self.notebook.facts().unwrap_or_default(), self.notebook.workspace());
        let text = format!(
            "{PROMPT}\nKnown already:\n{known}\n\n<conversation>\n{}</conversation>",
            part.text
        );
        let question =
            TrialQuestion { text: &text, picture: None, tools: &[], max_output: MOST_OUTPUT };
        let answer = self.session.ask_once(&self.model, question, cancel).await?;
        let (reading, notebook) = (self.reading(), self.notebook.clone());
        let known_secrets = Arc::clone(&self.session.home.known_secrets);
        let origin = FactOrigin {
            row: part.last_row.clone(),
            after: part.after,
            is_learned: true,
            ..self.session.origins().of_day()
        };
        let keeping = blocking(move || {
            // Something was forgotten meanwhile, and it may be in the answer.
            if forgotten.state() != before {
                return Err("something was forgotten meanwhile".to_owned());
            }
            let mut learned = Learned::default();
            for fact in facts_in(&answer).filter(|fact| !forgotten.has_fact(fact)) {
                let text = &known_secrets.without(fact);
                let new = NewFact { text, origin: origin.clone(), replaces: None };
                match notebook.add(new) {
                    Ok(_) => learned.count += 1,
                    Err(NotebookError::Long(_)) => learned.long += 1,
                    Err(error) => return Err(error.to_string()),
                }
            }
            reading.keep_mark(&part.last_row).map_err(|error| error.to_string())?;
            Ok(learned)
        });
        keeping.await.map_err(|error| error.message)?
    }

    fn marks(&self) -> Marks {
        Marks(self.session.agent_memory().documents)
    }

    fn reading(&self) -> Reading {
        Reading {
            session: self.session.session_key.clone(),
            catalog: Arc::clone(self.session.home.catalog()),
            marks: self.marks(),
            forgotten: self.session.forgotten(),
        }
    }
}

/// The facts of an answer.
fn facts_in(answer: &str) -> impl Iterator<Item = &str> {
    let facts = answer.lines().filter_map(|line| line.trim().strip_prefix("- "));
    facts.map(str::trim).filter(|fact| !fact.is_empty()).take(MOST_FACTS)
}

/// Reads what of a session was not read yet.
struct Reading {
    session: SessionKey,
    catalog: Arc<dyn myclaw_session::Catalog>,
    marks: Marks,
    forgotten: Forgotten,
}

impl Reading {
    /// The newest part that was not read yet, the oldest message first; `None` if no person said anything.
    fn part(&self) -> Result<Option<Part>, String> {
        let mark = self.marks.read().remove(self.session.as_str()).unwrap_or_default();
        let hidden = self.forgotten.hidden().remove(self.session.as_str()).unwrap_or_default();
        let Some(log) = self.catalog.read(&self.session).map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        let (mut lines, mut after) = (Vec::new(), Vec::new());
        let (mut last_row, mut bytes, mut rows) = (String::new(), 0, 0);
        log.visit_newest(&mut |message| {
            let id = message.id.to_string();
            rows += 1;
            if id == mark.row || rows > MOST_ROWS || bytes > MOST_BYTES {
                return ControlFlow::Break(());
            }
            let is_said = match message.role {
                Role::User => !is_remark(&message.content) && !has_quotes(&message),
                Role::Assistant => true,
                Role::Tool => {
                    after.extend(outside_tool(&message));
                    false
                }
                Role::System => false,
            };
            let text = message.content.trim();
            if is_said && !text.is_empty() && !hidden.contains(&id) {
                if message.role == Role::User && last_row.is_empty() {
                    last_row = id;
                }
                let text = &text[..text.floor_char_boundary(MOST_MESSAGE_BYTES)];
                let text = text.replace('<', "‹");
                bytes += text.len();
                lines.push(format!("{}: {text}\n", message.role.as_str()));
            }
            ControlFlow::Continue(())
        })
        .map_err(|error| error.to_string())?;
        lines.reverse();
        after.sort();
        after.dedup();
        Ok((!last_row.is_empty()).then(|| Part { text: lines.concat(), last_row, after }))
    }

    fn keep_mark(&self, row: &str) -> io::Result<()> {
        let entry = self.catalog.entry(&self.session).ok().flatten();
        let messages = entry.and_then(|entry| entry.messages).unwrap_or_default();
        self.marks.keep(self.session.as_str(), &Mark { row: row.to_owned(), messages })
    }
}

/// How far the sessions of the agent were read.
struct Marks(Arc<dyn Documents>);

impl Marks {
    fn read(&self) -> BTreeMap<String, Mark> {
        let document = self.0.read(NAME).ok().flatten();
        document.map(|document| Self::of_text(&document.text)).unwrap_or_default()
    }

    fn of_text(text: &str) -> BTreeMap<String, Mark> {
        serde_json::from_str(text).unwrap_or_default()
    }

    fn keep(&self, session: &str, mark: &Mark) -> io::Result<()> {
        self.0.change(NAME, Durability::Unsynced, &mut |before| {
            let mut marks = before.map(Self::of_text).unwrap_or_default();
            while marks.len() >= MOST_SESSIONS {
                // Rows have ids in the order of time.
                let oldest = marks.iter().min_by(|left, right| left.1.row.cmp(&right.1.row));
                let Some(oldest) = oldest.map(|(session, _)| session.clone()) else { break };
                marks.remove(&oldest);
            }
            marks.insert(session.to_owned(), mark.clone());
            serde_json::to_string(&marks).unwrap_or_default()
        })
    }
}
