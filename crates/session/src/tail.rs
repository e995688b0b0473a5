//! Reads the end of a log backwards, as far as the next step needs it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::ControlFlow;
use std::time::UNIX_EPOCH;

use crate::backward::BackwardLines;
use crate::line::{self, Line};
use crate::reader::read_header;
use crate::repair::MovedAside;
use crate::wanted::WantedId;
use crate::{
    CompactionEntry, Entry, EntryId, Reduction, ReductionEntry, RefusalEntry, Role,
    TranscriptMessage, UnsignedEntry,
};

/// Occurs in every line that holds a compaction.
const COMPACTION_TYPE: &[u8] = b"\"compaction\"";

/// How much of a log to take.
#[derive(Debug, Clone, Copy)]
pub struct TailLimit {
    /// Highest total cost of the messages. They begin with a user message, so the last turn is included whole even if
    /// it alone costs more.
    pub max_cost: u64,
    /// The cost of a message, or of the part that is still sent, in any unit that the caller counts: bytes, or tokens
    /// of a model's context window.
    pub cost: fn(&TranscriptMessage, Option<&Reduction>) -> u64,
    /// Entries that are ignored because the config has switched off the feature that made them.
    pub switched_off: SwitchedOff,
}

/// The features that the config has switched off. Messages that earlier runs left out because of them are read again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwitchedOff {
    /// The limit on how many messages are sent: compactions without a summary are ignored.
    pub history_limit: bool,
    /// Pruning: reductions with the reason [`ReductionEntry::PRUNING`] are ignored.
    pub pruning: bool,
}

impl TailLimit {
    /// Everything since the last compaction.
    pub const UNLIMITED: Self = Self {
        max_cost: u64::MAX,
        cost: |_message, _reduction| 0,
        switched_off: SwitchedOff { history_limit: false, pruning: false },
    };
}

/// The end of a log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tail {
    /// The latest summary, if it is in the part that was read.
    pub compaction: Option<CompactionEntry>,
    /// The messages that no summary replaces, the oldest first. They begin with [`CompactionEntry::first_kept_id`]; if
    /// the log does not contain that message, all messages are kept.
    pub messages: Vec<TranscriptMessage>,
    /// Messages that are sent only in part.
    pub reductions: HashMap<EntryId, Reduction>,
    /// By model: tokens of the request that it refused as too long, from the newest entry.
    pub refused: HashMap<String, u64>,
    /// By model: when the newest message was written whose signatures it has rejected, in milliseconds since the Unix
    /// epoch. The entry follows these messages, so it is found whenever one of them is read.
    pub unsigned: HashMap<String, u64>,
    /// How many of the messages, counted from the newest, were written after the last summary or reduction; `None` if
    /// there is neither.
    pub behind_last_change: Option<usize>,
    /// True if the limit left messages out. Messages that a summary replaces are not counted.
    pub older_messages_exist: bool,
    /// How many lines of the part that was read are not entries and were skipped.
    pub skipped_lines: usize,
    /// True if opening the log found a last line without its end, as a crash leaves it, and repaired it.
    pub repaired_torn_tail: bool,
    /// The bytes that opening the log moved out of it, because they were not a whole line.
    pub moved_aside: Option<MovedAside>,
}

/// Reads the end of a log whose parts come newest first.
pub(crate) fn read_tail<R: Read + Seek>(
    parts: impl IntoIterator<Item = R>,
    limit: TailLimit,
) -> io::Result<Tail> {
    let mut collector = Collector::new(limit);
    for part in parts {
        if collect(&mut collector, BackwardLines::new(part)?)? == Next::Stop {
            break;
        }
    }
    Ok(collector.finish())
}

fn collect<R: Read + Seek>(
    collector: &mut Collector,
    mut lines: BackwardLines<R>,
) -> io::Result<Next> {
    while let Some(found) = lines.next_line()? {
        let next = match line::decode(found.bytes, found.offset) {
            Line::Entry(entry) => collector.entry(entry),
            Line::Header(_) | Line::Blank => Next::Continue,
            Line::Corrupt => {
                collector.skipped_lines += usize::from(found.terminated);
                Next::Continue
            }
        };
        if next == Next::Stop {
            return Ok(Next::Stop);
        }
    }
    Ok(Next::Continue)
}

/// The end of a session whose entries are in memory.
pub(crate) fn tail_of(entries: &[Entry], limit: TailLimit) -> Tail {
    let newest_first = entries.iter().rev().cloned().map(Ok::<_, std::convert::Infallible>);
    let Ok(tail) = tail_of_newest(newest_first, limit);
    tail
}

/// The end of a session whose entries come newest first. Reads no more of them than it needs.
pub(crate) fn tail_of_newest<E>(
    newest_first: impl Iterator<Item = Result<Entry, E>>,
    limit: TailLimit,
) -> Result<Tail, E> {
    let mut collector = Collector::new(limit);
    for entry in newest_first {
        if collector.entry(entry?) == Next::Stop {
            break;
        }
    }
    Ok(collector.finish())
}

/// The `count` messages before the one with the id `before`, or the last ones, the oldest first; `None` if no message
/// has that id.
pub(crate) fn read_messages_before<R: Read + Seek>(
    parts: impl IntoIterator<Item = R>,
    before: Option<EntryId>,
    count: usize,
) -> io::Result<Option<Vec<TranscriptMessage>>> {
    let mut messages = Vec::new();
    let is_found = visit_messages_before(parts, before, &mut |message| {
        messages.extend((messages.len() < count).then_some(message));
        if messages.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    messages.reverse();
    Ok(is_found.then_some(messages))
}

/// Passes the messages before the one with the id `before`, or all of them, to `visit`, the last one first, until it breaks
/// off. Whether there is a message with that id.
pub(crate) fn visit_messages_before<R: Read + Seek>(
    parts: impl IntoIterator<Item = R>,
    before: Option<EntryId>,
    visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
) -> io::Result<bool> {
    let mut sought = before.map(WantedId::new);
    for part in parts {
        let mut lines = BackwardLines::new(part)?;
        while let Some(found) = lines.next_line()? {
            if sought.as_ref().is_some_and(|id| !id.may_be_in(found.bytes, found.offset)) {
                continue;
            }
            let Line::Entry(Entry::Message(message)) = line::decode(found.bytes, found.offset)
            else {
                continue;
            };
            if sought.is_none() {
                if visit(message).is_break() {
                    return Ok(true);
                }
            } else if Some(message.id) == before {
                sought = None;
            }
        }
    }
    Ok(sought.is_none())
}

/// The last compaction, if there is one. Only lines that may be one are decoded.
pub(crate) fn read_last_compaction<R: Read + Seek>(
    parts: impl IntoIterator<Item = R>,
) -> io::Result<Option<CompactionEntry>> {
    for part in parts {
        let mut lines = BackwardLines::new(part)?;
        while let Some(found) = lines.next_line()? {
            if memchr::memmem::find(found.bytes, COMPACTION_TYPE).is_some()
                && let Line::Entry(Entry::Compaction(compaction)) =
                    line::decode(found.bytes, found.offset)
            {
                return Ok(Some(compaction));
            }
        }
    }
    Ok(None)
}

/// Gives messages without a time that of the message before, else that of the beginning of the log: 1970 would
/// certainly be wrong. Neither changes when the log grows, because a model must be sent the same bytes again.
pub(crate) fn fill_missing_times(messages: &mut [TranscriptMessage], beginning: impl Fn() -> u64) {
    let mut last = None;
    for message in messages {
        if message.ts == 0 {
            message.ts = last.unwrap_or_else(&beginning);
        }
        last = Some(message.ts);
    }
}

/// When the log in `file` began, in milliseconds since the Unix epoch: from its header, else from the creation time of
/// the file.
pub(crate) fn beginning_ms(file: &File) -> u64 {
    let header = read_header(file).ok().flatten();
    if let Some(header) = header.filter(|header| header.created_at > 0) {
        return header.created_at;
    }
    let made = file.metadata().and_then(|found| found.created().or_else(|_| found.modified()));
    let since = made.ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[derive(PartialEq)]
enum Next {
    Continue,
    Stop,
}

struct Collector {
    limit: TailLimit,
    compaction: Option<CompactionEntry>,
    newest_first: Vec<TranscriptMessage>,
    reductions: HashMap<EntryId, Reduction>,
    refused: HashMap<String, u64>,
    unsigned: HashMap<String, u64>,
    behind_last_change: Option<usize>,
    cost: u64,
    /// The number of messages if the list is cut at the oldest user message found so far.
    length_at_user: Option<usize>,
    older_messages_exist: bool,
    skipped_lines: usize,
}

impl Collector {
    fn new(limit: TailLimit) -> Self {
        Self {
            limit,
            compaction: None,
            newest_first: Vec::new(),
            reductions: HashMap::new(),
            refused: HashMap::new(),
            unsigned: HashMap::new(),
            behind_last_change: None,
            cost: 0,
            length_at_user: None,
            older_messages_exist: false,
            skipped_lines: 0,
        }
    }

    fn entry(&mut self, entry: Entry) -> Next {
        match entry {
            Entry::Message(message) => self.message(message),
            Entry::Compaction(compaction) => self.compaction(compaction),
            Entry::Reduction(reduction) => self.reduction(reduction),
            Entry::Refusal(refusal) => self.refusal(refusal),
            Entry::Unsigned(unsigned) => self.unsigned(unsigned),
            Entry::About(_) | Entry::Unknown(_) => Next::Continue,
        }
    }

    fn message(&mut self, message: TranscriptMessage) -> Next {
        let cost = (self.limit.cost)(&message, self.reductions.get(&message.id));
        self.cost = self.cost.saturating_add(cost);
        if let Some(length_at_user) = self.length_at_user
            && self.cost > self.limit.max_cost
        {
            self.older_messages_exist = true;
            self.newest_first.truncate(length_at_user);
            return Next::Stop;
        }
        let is_first_kept =
            self.compaction.as_ref().is_some_and(|latest| latest.first_kept_id == message.id);
        let is_user = message.role == Role::User;
        self.newest_first.push(message);
        if is_user {
            self.length_at_user = Some(self.newest_first.len());
        }
        if is_first_kept { Next::Stop } else { Next::Continue }
    }

    fn compaction(&mut self, compaction: CompactionEntry) -> Next {
        if self.limit.switched_off.history_limit && compaction.summary.is_empty() {
            return Next::Continue;
        }
        if let Some(latest) = &self.compaction {
            return if latest.first_kept_id == compaction.id { Next::Stop } else { Next::Continue };
        }
        self.note_change();
        // Everything after a summary is kept. If the first kept message is there, nothing before it is kept.
        let first_kept = compaction.first_kept_id;
        let keeps_nothing_before = first_kept == compaction.id
            || self.newest_first.iter().any(|message| message.id == first_kept);
        self.compaction = Some(compaction);
        if keeps_nothing_before { Next::Stop } else { Next::Continue }
    }

    /// Entries come newest first, so the reduction that is already known for a message applies.
    fn reduction(&mut self, entry: ReductionEntry) -> Next {
        if self.limit.switched_off.pruning && entry.reason == ReductionEntry::PRUNING {
            return Next::Continue;
        }
        self.note_change();
        for reduction in entry.messages {
            self.reductions.entry(reduction.id).or_insert(reduction);
        }
        Next::Continue
    }

    fn refusal(&mut self, entry: RefusalEntry) -> Next {
        self.refused.entry(entry.model).or_insert(entry.tokens);
        Next::Continue
    }

    fn unsigned(&mut self, entry: UnsignedEntry) -> Next {
        self.unsigned.entry(entry.model).or_insert(entry.until);
        Next::Continue
    }

    fn note_change(&mut self) {
        let newer = self.newest_first.len();
        self.behind_last_change.get_or_insert(newer);
    }

    fn finish(mut self) -> Tail {
        self.newest_first.reverse();
        Tail {
            compaction: self.compaction,
            behind_last_change: self
                .behind_last_change
                .map(|newer| newer.min(self.newest_first.len())),
            messages: self.newest_first,
            reductions: self.reductions,
            refused: self.refused,
            unsigned: self.unsigned,
            older_messages_exist: self.older_messages_exist,
            skipped_lines: self.skipped_lines,
            repaired_torn_tail: false,
            moved_aside: None,
        }
    }
}

#[cfg(test)]
mod tests;
