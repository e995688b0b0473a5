//! Step `fit`: makes the request fit the model's context window.
//!
//! **What arrives** is the end of the log, and the refusal of a provider that found the request too large. **What leaves**
//! are entries of the log after which the next request is smaller, or an error with advice.
//!
//! Requests are made smaller by entries of the log, so that every later request of the session begins with the same
//! bytes: a compaction replaces older messages by a summary, a reduction leaves out parts of long messages. The
//! messages themselves stay in the file.
//!
//! When a provider refuses a request, the rungs of a ladder are tried in order, each at most once between two
//! successful calls, and only if it makes the request smaller. So the ladder always ends: with a request that fits, or
//! with a clear error after at most one refused call for each rung and one before.
//!
//! **What may fail:** the call for the summary. If that failure will pass, the summary is postponed and the next rung is
//! tried; otherwise a text without a model takes its place. Sizes are estimates until a provider has counted or refused a
//! request; from then on its numbers count.
//!
//! **Why this shape:** what is left out is decided once and written down. If it were decided anew for each request, the
//! beginning of the request would change from turn to turn, and the provider's cache would be of no use.

mod compact;
mod history;
mod newest;
mod plan;
mod prune;
mod reduce;
mod summary;

use myclaw_config::{CompactionConfig, ContextPruning};
use myclaw_llm::{Model, ModelError};
use myclaw_session::{EntryId, MovedAside, Reduction, ReductionEntry};

use super::Shared;
use crate::estimate::{message_tokens, request_tokens};
use crate::open_log::Opening;
use crate::{ActiveModel, Notice, RefusalRule, RunError};

pub use compact::{CompactionOutcome, CompactionReport};
pub(super) use summary::{SummaryRequest, Writers};

/// The step and its state.
pub(crate) struct Fit {
    /// When and how older messages are summarised.
    compaction: CompactionConfig,
    refusals: RefusalRule,
    /// Whether old tool results are sent shorter.
    pruning: ContextPruning,
    /// Most messages of a chat that are sent.
    history_limit: Option<usize>,
    opening: Opening,
    recovery: Recovery,
    /// The outlook at the last pruning that found nothing.
    fruitless_pruning: Option<prune::Outlook>,
}

/// The rungs that may still be tried before the next successful call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Recovery {
    compacted_ahead: bool,
    kept_newest: bool,
    next: Rung,
}

/// The ladder, from its first rung to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Rung {
    /// The older messages become a summary.
    #[default]
    Summary,
    /// Tool results of more than 20,000 characters are cut to that length.
    LongResults,
    /// Every long text is cut, including the user's and the model's. Cut messages of the model also lose the thinking.
    LongTexts,
    /// All messages but the newest, with its results, become a summary. If that is not worthwhile or not enough, long
    /// texts are cut again by the size that was refused.
    NewestOnly,
    /// No rung is left.
    End,
}

impl Rung {
    fn next(self) -> Self {
        match self {
            Self::Summary => Self::LongResults,
            Self::LongResults => Self::LongTexts,
            Self::LongTexts => Self::NewestOnly,
            Self::NewestOnly | Self::End => Self::End,
        }
    }
}

/// Most of the window, as one part in this many, that is reserved for output, even if the model may write a longer
/// answer. Otherwise a model whose output limit equals its window could take no input.
const LARGEST_OUTPUT_SHARE: u64 = 4;

/// Most of the window, as one part in this many, that the config can reserve.
const LARGEST_RESERVE_SHARE: u64 = 2;

/// Quarters of a refused size that a request may use.
const SAFE_QUARTERS: u64 = 3;

/// Tokens that a request to a model may hold: its window minus the part reserved for the answer.
pub(crate) fn input_budget(model: &Model, config: &CompactionConfig) -> u64 {
    let window = model.context_window;
    let reserve = match config.reserve_tokens {
        Some(tokens) => tokens.min(window / LARGEST_RESERVE_SHARE),
        None => model.max_output.min(window / LARGEST_OUTPUT_SHARE),
    };
    window - reserve
}

impl Fit {
    pub(crate) fn new(
        compaction: CompactionConfig,
        refusals: RefusalRule,
        pruning: ContextPruning,
        history_limit: Option<usize>,
        opening: Opening,
    ) -> Self {
        Self {
            compaction,
            refusals,
            pruning,
            history_limit,
            opening,
            recovery: Recovery::default(),
            fruitless_pruning: None,
        }
    }

    /// Makes every rung available again, because a call succeeded or another model is now active.
    pub(super) fn answered(&mut self) {
        self.recovery = Recovery::default();
    }

    /// Reports unreadable lines, and cuts a chat if the config limits its history.
    pub(super) fn account_for_older_messages(
        &mut self,
        shared: &mut Shared,
    ) -> Result<(), RunError> {
        if self.opening.skipped_lines > 0 {
            let path = shared.run.store.describe(&shared.run.session_key).into();
            shared.notice(Notice::UnreadableLines { count: self.opening.skipped_lines, path });
        }
        if let Some(moved) = self.opening.moved_aside.take() {
            let path = shared.run.store.describe(&shared.run.session_key).into();
            let MovedAside { path: moved_to, bytes } = moved;
            shared.notice(Notice::TornEndMoved { path, bytes, moved_to });
        }
        self.limit_history(shared)
    }

    /// Makes room before the window is full: prunes as the config says, then compacts if the summary would make a real
    /// difference. A request that certainly cannot fit climbs the ladder without asking the provider first.
    ///
    /// If only the end of the log was loaded, it is compacted once here, so that the next request and all later ones
    /// begin with the same bytes.
    pub(super) async fn before_call(
        &mut self,
        shared: &mut Shared,
        writers: &mut dyn Writers,
    ) -> Result<(), RunError> {
        if self.opening.cut_before.take().is_some() {
            shared.notice(Notice::SessionTooLong {});
            self.compact(shared, writers, compact::Trigger::Opening).await?;
        }
        self.cut_oversized_answers(shared, writers.active())?;
        self.prune(shared, writers.active())?;
        if !self.recovery.compacted_ahead && self.is_full(shared, writers.active()) {
            self.recovery.compacted_ahead = true;
            self.compact(shared, writers, compact::Trigger::Estimate).await?;
        }
        while is_certain_to_overflow(shared, writers.active())
            && self.climb(shared, writers).await?
        {}
        Ok(())
    }

    /// Applies the next rung that makes the request smaller, after the active model refused it.
    ///
    /// # Errors
    /// [`RunError::ContextOverflow`] when no rung is left; without a ladder, the refusal itself.
    pub(super) async fn recover(
        &mut self,
        shared: &mut Shared,
        writers: &mut dyn Writers,
        error: &ModelError,
    ) -> Result<(), RunError> {
        if let RefusalRule::KeepNewest(count) = self.refusals {
            return self.keep_newest(shared, count.get(), error);
        }
        let model = writers.active().reference();
        let tokens = text_size(shared);
        let now_ms = shared.now_ms();
        shared.log.note_refusal(model.clone(), tokens, now_ms)?;
        if self.climb(shared, writers).await? {
            return Ok(());
        }
        Err(RunError::ContextOverflow { model, detail: error.message.clone() })
    }

    /// Compacts on request; `focus` says what the summary should concentrate on.
    pub(super) async fn compact_manually(
        &mut self,
        shared: &mut Shared,
        writers: &mut dyn Writers,
        focus: Option<&str>,
    ) -> Result<CompactionReport, RunError> {
        self.compact(shared, writers, compact::Trigger::Manual { focus }).await
    }

    /// Applies rungs until one makes the request smaller; returns false when the ladder has ended.
    async fn climb(
        &mut self,
        shared: &mut Shared,
        writers: &mut dyn Writers,
    ) -> Result<bool, RunError> {
        while self.recovery.next != Rung::End {
            let rung = self.recovery.next;
            self.recovery.next = rung.next();
            let is_smaller = match rung {
                Rung::Summary => {
                    let trigger = compact::Trigger::Refusal;
                    self.compact(shared, writers, trigger).await?.is_smaller()
                }
                Rung::LongResults => self.cut_long_results(shared)?,
                Rung::LongTexts => self.cut_long_texts(shared, writers.active())?,
                Rung::NewestOnly => {
                    let trigger = compact::Trigger::LastResort;
                    let is_smaller = self.compact(shared, writers, trigger).await?.is_smaller();
                    let model = writers.active();
                    if is_smaller && !is_certain_to_overflow(shared, model) {
                        true
                    } else {
                        self.cut_long_texts(shared, model)? || is_smaller
                    }
                }
                Rung::End => false,
            };
            if is_smaller {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the next request is larger than planned. The estimate from text lengths counts only if the model has
    /// refused a request; otherwise the provider's own count is more accurate.
    fn is_full(&self, shared: &Shared, model: &ActiveModel) -> bool {
        let refused = shared.log.smallest_refused(&model.reference());
        estimated_tokens(shared) > input_budget(&model.model, &self.compaction)
            || (refused.is_some() && text_size(shared) > self.room(shared, model))
    }

    /// Tokens that a request may hold, judged by its length alone: less than the window if the model has refused a
    /// request of that size or smaller.
    fn room(&self, shared: &Shared, model: &ActiveModel) -> u64 {
        let refused = shared.log.smallest_refused(&model.reference());
        let budget = input_budget(&model.model, &self.compaction);
        refused.map_or(u64::MAX, |tokens| tokens / 4 * SAFE_QUARTERS).min(budget)
    }
}

fn is_certain_to_overflow(shared: &Shared, model: &ActiveModel) -> bool {
    let refused = shared.log.smallest_refused(&model.reference());
    estimated_tokens(shared) > model.model.context_window
        || refused.is_some_and(|tokens| text_size(shared) >= tokens)
}

/// Stores reductions, if there are any, and applies them to what is sent.
fn append_reductions(
    shared: &mut Shared,
    reason: &str,
    messages: Vec<Reduction>,
) -> Result<bool, RunError> {
    if messages.is_empty() {
        return Ok(false);
    }
    let (id, ts) = (EntryId::generate(), shared.now_ms());
    let reason = reason.to_owned();
    shared.log.append_change(ReductionEntry { id, ts, reason, messages })?;
    Ok(true)
}

/// Estimated tokens of the next request.
fn estimated_tokens(shared: &Shared) -> u64 {
    request_tokens(shared.log.messages(), shared.prompt.tokens())
}

/// Tokens of the next request, judged by its length alone. Two requests can be compared by it even if a provider has
/// counted one of them.
fn text_size(shared: &Shared) -> u64 {
    let messages = shared.log.messages();
    shared.prompt.tokens() + messages.iter().map(message_tokens).sum::<u64>()
}
