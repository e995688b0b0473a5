//! An inbox as rows. Whoever holds it has the lock of one row in a transaction that stays open; what it changes is durable at
//! once, in transactions of their own. The lock goes with its connection, so nobody has to wait for a process that died.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::try_join3;
use myclaw_files::Durability;
use myclaw_session::{
    EntryId, HeldInbox, Inbox, InboxCallback, InboxWatch, Keeper, LockWait, QueuedMessage,
    SessionError, SessionKey, rows,
};
use tokio::sync::OwnedSemaphorePermit;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use super::core::{Core, Watcher, column, failed};
use super::{kept, sql};
use crate::failure::Failure;
use crate::pool::{Lent, Parameter, answer};
use crate::read::stored as as_stored;

/// Longest wait of a change for the lock. A holder writes a few rows and releases it.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// After this time the server takes the lock from a holder that stands still. Whoever waits for it waits longer.
const LONGEST_HOLD: Duration = Duration::from_secs(5);

/// The inbox of a session.
#[derive(Debug)]
pub(super) struct PostgresInbox {
    core: Arc<Core>,
    key: SessionKey,
}

struct Held {
    core: Arc<Core>,
    key: SessionKey,
    /// Keeps other holders of this process away. Readers need none.
    turn: Option<OwnedSemaphorePermit>,
    /// What the database has; `None` if nothing waited there a moment ago.
    stored: Option<Stored>,
    has_news: bool,
}

/// The lock of an inbox in the database.
struct Stored {
    mailbox: i64,
    /// The connection with the lock.
    lock: Lent,
    /// The bodies of the messages, which came with the lock, until they are changed.
    bodies: Option<Vec<String>>,
}

#[derive(Debug)]
struct Watch {
    core: Arc<Core>,
    id: u64,
}

/// How a lock is shared.
#[derive(Clone, Copy)]
enum Sharing {
    Alone,
    WithReaders,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Held").field(&self.key).finish()
    }
}

impl PostgresInbox {
    pub(super) fn new(core: &Arc<Core>, key: &SessionKey) -> Self {
        Self { core: Arc::clone(core), key: key.clone() }
    }

    /// Holds the inbox; `None` if there is no such inbox, and nothing is kept for it.
    fn take(&self, wait: LockWait, sharing: Sharing) -> Result<Option<Held>, SessionError> {
        let turn = match sharing {
            Sharing::Alone => Some(self.turn(wait)?),
            Sharing::WithReaders => None,
        };
        let key = self.key.as_str();
        let stored = match turn.is_some() && self.core.kept.were_all(key) {
            true => None,
            false => self.take_stored(wait, sharing)?,
        };
        let has_some = stored.is_some() || self.core.kept.bytes(key) > 0;
        Ok(has_some.then(|| self.held(turn, stored)))
    }

    fn held(&self, turn: Option<OwnedSemaphorePermit>, stored: Option<Stored>) -> Held {
        Held { core: Arc::clone(&self.core), key: self.key.clone(), turn, stored, has_news: false }
    }

    /// Waits for the other holders of this process.
    fn turn(&self, wait: LockWait) -> Result<OwnedSemaphorePermit, SessionError> {
        let (began, turn) = (Instant::now(), self.core.kept.turn(self.key.as_str()));
        if let Ok(permit) = Arc::clone(&turn).try_acquire_owned() {
            return Ok(permit);
        }
        let LockWait::Until(longest) = wait else { return Err(self.locked(Duration::ZERO)) };
        let waiting = async { tokio::time::timeout(longest, turn.acquire_owned()).await };
        // Nobody closes the semaphore.
        let permit = self.core.run(waiting).ok().and_then(Result::ok);
        permit.ok_or_else(|| self.locked(began.elapsed()))
    }

    fn locked(&self, waited: Duration) -> SessionError {
        let path = self.core.place(&self.key).with_extension("inbox");
        SessionError::Locked { path, process_id: None, waited }
    }

    /// Takes the lock in the database; `None` if there is no such inbox.
    fn take_stored(
        &self,
        wait: LockWait,
        sharing: Sharing,
    ) -> Result<Option<Stored>, SessionError> {
        let core = &self.core;
        let began = Instant::now();
        let taken = core.run(async {
            let attempts = core.holders.attempts();
            loop {
                match attempts.within(self.lock(wait, sharing)).await {
                    Ok(taken) => return Ok(taken),
                    Err(failure) => attempts.after(failure, core.pool.server()).await?,
                }
            }
        });
        match taken.map_err(|error| failed("hold the inbox of", error))? {
            Locking::Missing => Ok(None),
            Locking::Taken(mailbox, bodies, lock) => {
                Ok(Some(Stored { mailbox, lock: *lock, bodies: Some(bodies) }))
            }
            Locking::Busy => Err(self.locked(began.elapsed())),
        }
    }

    /// The same, and makes the inbox if there is none.
    fn take_or_create(&self) -> Result<Stored, SessionError> {
        loop {
            if let Some(stored) = self.take_stored(LockWait::Until(LONGEST_WAIT), Sharing::Alone)? {
                return Ok(stored);
            }
            self.core.rows_of(&self.key, "create the inbox of", sql::ADD_MAILBOX, &[])?;
        }
    }

    /// Tells those who watch the inbox.
    fn notify(&self) {
        let notified: Vec<InboxCallback> = {
            let watchers = self.core.watchers.lock();
            let mine = watchers.all.values().filter(|watcher| watcher.key == self.key.as_str());
            mine.map(|watcher| Arc::clone(&watcher.notify)).collect()
        };
        notified.iter().for_each(|notify| notify());
    }

    fn full(&self) -> SessionError {
        let path = self.core.place(&self.key).with_extension("inbox");
        SessionError::InboxFull { path, limit: rows::MAX_INBOX_BYTES }
    }

    async fn lock(&self, wait: LockWait, sharing: Sharing) -> Result<Locking, Failure> {
        let client = self.core.holders.get().await?;
        let limit = match wait {
            LockWait::Fail => Duration::ZERO,
            LockWait::Until(longest) => longest,
        };
        // No limit would be 0.
        let begin = format!(
            "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '{}s'; SET LOCAL lock_timeout = '{}ms'",
            LONGEST_HOLD.as_secs(),
            limit.as_millis().clamp(1, 600_000)
        );
        let row_lock = match sharing {
            // Rows of messages refer to this one, and adding them is no conflict.
            Sharing::Alone => "FOR NO KEY UPDATE",
            Sharing::WithReaders => "FOR SHARE",
        };
        let no_wait = if limit.is_zero() { " NOWAIT" } else { "" };
        let sql = format!("{} {row_lock}{no_wait}", sql::MAILBOX);
        let key = self.key.as_str();
        let named: [Parameter<'_>; 2] = [(&self.core.partition, Type::INT8), (&key, Type::TEXT)];
        // One round trip. What waits is read when the lock is taken, because almost every holder wants it.
        let locked = try_join3(
            client.batch_execute(&begin),
            client.query_typed(&sql, &named),
            client.query_typed(sql::PENDING_OF, &named),
        );
        match locked.await {
            Ok(((), rows, waiting)) => match rows.first() {
                Some(row) => {
                    let bodies = waiting.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>();
                    Ok(Locking::Taken(row.try_get(0)?, bodies?, Box::new(client)))
                }
                None => {
                    answer(client.batch_execute("ROLLBACK")).await?;
                    client.give_back();
                    Ok(Locking::Missing)
                }
            },
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                answer(client.batch_execute("ROLLBACK")).await?;
                client.give_back();
                Ok(Locking::Busy)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Stored {
    fn pending(&self, core: &Core) -> Result<Vec<QueuedMessage>, SessionError> {
        if let Some(bodies) = &self.bodies {
            let read = |body: &String| rows::read_queued(body.as_bytes());
            return Ok(bodies.iter().filter_map(read).collect());
        }
        let mailbox: [Parameter<'_>; 1] = [(&self.mailbox, Type::INT8)];
        let found = core.rows("read the inbox of", sql::PENDING, &mailbox)?;
        let mut pending = Vec::with_capacity(found.len());
        for row in &found {
            let body: &str = column(row, 0)?;
            pending.extend(rows::read_queued(body.as_bytes()));
        }
        Ok(pending)
    }
}

impl Held {
    /// Whether the transaction that appended to the log has removed all of these messages. Says so once.
    fn are_gone(&self, ids: &[EntryId]) -> bool {
        let mut taken = self.core.taken.lock();
        let Some(of_log) = taken.get_mut(self.key.as_str()) else { return false };
        let are_gone = ids.iter().all(|id| of_log.contains(id.as_str()));
        if are_gone {
            of_log.retain(|taken| !ids.iter().any(|id| id.as_str() == taken));
        }
        are_gone
    }
}

/// The outcome of taking a lock.
enum Locking {
    Missing,
    Busy,
    Taken(i64, Vec<String>, Box<Lent>),
}

impl Inbox for PostgresInbox {
    fn hold_within(&self, wait: LockWait) -> Result<Option<Box<dyn HeldInbox>>, SessionError> {
        let held = self.take(wait, Sharing::Alone)?;
        Ok(held.map(|held| Box::new(held) as Box<dyn HeldInbox>))
    }

    fn hold_or_create(&self) -> Result<Box<dyn HeldInbox>, SessionError> {
        let turn = self.turn(LockWait::Until(LONGEST_WAIT))?;
        Ok(Box::new(self.held(Some(turn), Some(self.take_or_create()?))))
    }

    fn pending_within(&self, wait: LockWait) -> Result<Vec<QueuedMessage>, SessionError> {
        self.take(wait, Sharing::WithReaders)?.map_or(Ok(Vec::new()), |held| held.pending())
    }

    fn bytes(&self) -> u64 {
        let found = self.core.rows_of(&self.key, "read the inbox of", sql::INBOX_BYTES, &[]);
        let bytes = found.ok().and_then(|rows| column::<i64>(rows.first()?, 0).ok());
        let key = self.key.as_str();
        self.core.kept.looked(key, bytes == Some(0));
        // Whoever reads it because there may be something gets the failure.
        bytes.map_or(1, crate::read::number) + self.core.kept.bytes(key)
    }

    fn forget_kept(&self) {
        self.core.kept.clear(self.key.as_str());
    }

    fn push(&self, message: &QueuedMessage) -> Result<(), SessionError> {
        match message.keeper {
            Keeper::Inbox => self.hold_or_create()?.change(std::slice::from_ref(message), &[]),
            Keeper::Sender => self.push_once(message).map(drop),
        }
    }

    fn push_once(&self, message: &QueuedMessage) -> Result<bool, SessionError> {
        if message.keeper == Keeper::Sender {
            let pushed = self.core.kept.push_once(self.key.as_str(), message);
            let is_new = pushed.ok_or_else(|| self.full())?;
            if is_new {
                self.notify();
            }
            return Ok(is_new);
        }
        let mut held = self.hold_or_create()?;
        if held.pending()?.iter().any(|waiting| waiting.id == message.id) {
            return Ok(false);
        }
        held.change(std::slice::from_ref(message), &[])?;
        Ok(true)
    }

    fn watch(&self, notify: InboxCallback) -> Box<dyn InboxWatch> {
        let mut watchers = self.core.watchers.lock();
        watchers.last += 1;
        let id = watchers.last;
        let key = self.key.as_str().to_owned();
        watchers.all.insert(id, Watcher { key, notify, seen: None });
        Box::new(Watch { core: Arc::clone(&self.core), id })
    }
}

impl HeldInbox for Held {
    fn pending(&self) -> Result<Vec<QueuedMessage>, SessionError> {
        let stored = self.stored.as_ref().map_or(Ok(Vec::new()), |it| it.pending(&self.core))?;
        Ok(kept::merged(stored, self.core.kept.of(self.key.as_str())))
    }

    fn write(
        &mut self,
        messages: &[QueuedMessage],
        settled: &[EntryId],
        _durability: Durability,
    ) -> Result<(), SessionError> {
        let key = self.key.as_str();
        let (kept, others): (Vec<&QueuedMessage>, Vec<&QueuedMessage>) =
            messages.iter().partition(|message| message.keeper == Keeper::Sender);
        let kept: Vec<QueuedMessage> = kept.into_iter().cloned().collect();
        let mine = self.core.kept.among(key, settled);
        let rest: Vec<EntryId> = settled.iter().filter(|id| !mine.contains(id)).copied().collect();
        if others.is_empty() && self.are_gone(&rest) {
            if let Some(stored) = &mut self.stored {
                stored.bodies = None;
            }
        } else if !others.is_empty() || !rest.is_empty() {
            self.write_stored(&others, &rest)?;
        }
        if !self.core.kept.change(self.key.as_str(), &mine, &kept) {
            return Err(self.inbox().full());
        }
        self.has_news |= !messages.is_empty();
        Ok(())
    }
}

impl Held {
    fn inbox(&self) -> PostgresInbox {
        PostgresInbox::new(&self.core, &self.key)
    }

    /// Adds and settles messages in the database.
    fn write_stored(
        &mut self,
        messages: &[&QueuedMessage],
        settled: &[EntryId],
    ) -> Result<(), SessionError> {
        let inbox = self.inbox();
        let stored = match &mut self.stored {
            Some(stored) => stored,
            none => none.insert(inbox.take_or_create()?),
        };
        let path = || self.core.place(&self.key).with_extension("inbox");
        let encode = |message: &QueuedMessage| {
            serde_json::to_string(message)
                .map_err(|source| SessionError::Encode { path: path(), source })
        };
        let bodies: Vec<String> = messages.iter().copied().map(encode).collect::<Result<_, _>>()?;
        let more: usize = bodies.iter().map(String::len).sum();
        let Some(room) = rows::MAX_INBOX_BYTES.checked_sub(more as u64) else {
            return Err(inbox.full());
        };
        let room = as_stored(room);
        let ids: Vec<&str> = messages.iter().map(|message| message.id.as_str()).collect();
        let settled: Vec<&str> = settled.iter().map(EntryId::as_str).collect();
        let parameters: [Parameter<'_>; 5] = [
            (&stored.mailbox, Type::INT8),
            (&settled, Type::TEXT_ARRAY),
            (&ids, Type::TEXT_ARRAY),
            (&bodies, Type::TEXT_ARRAY),
            (&room, Type::INT8),
        ];
        stored.bodies = None;
        let changed = self.core.rows("write to the inbox of", sql::CHANGE_INBOX, &parameters)?;
        if !messages.is_empty() && changed.is_empty() {
            return Err(inbox.full());
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(Stored { lock, .. }) = self.stored.take() {
            // Where this fails the connection is closed, which ends the lock too.
            self.core.run(async {
                if answer(lock.batch_execute("ROLLBACK")).await.is_ok() {
                    lock.give_back();
                }
            });
        }
        drop(self.turn.take());
        self.core.kept.tidy_up(self.key.as_str());
        if self.has_news {
            // Those who are notified find the inbox free.
            self.inbox().notify();
        }
    }
}

impl InboxWatch for Watch {
    fn notice_other_processes(&self) {
        let key = {
            let watchers = self.core.watchers.lock();
            watchers.all.get(&self.id).map(|watcher| watcher.key.clone())
        };
        let Some(key) = key else { return };
        let newest = self.core.run(self.core.newest_messages(std::slice::from_ref(&key)));
        // Without an answer the first look finds everything new.
        let seen = newest.ok().and_then(|newest| newest.get(&key).copied()).unwrap_or(0);
        if let Some(watcher) = self.core.watchers.lock().all.get_mut(&self.id) {
            watcher.seen = Some(seen);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.core.watchers.lock().all.remove(&self.id);
    }
}
