//! Claims: what only one process may do at a time, such as to work on a session or to listen on an account of a channel.
//!
//! A claim is a record with the name of the thing, which the store gives to one holder at a time ([`Store::claim`]):
//!
//! | field | holds | who needs it |
//! |---|---|---|
//! | value | the holder's name | people, and those who look for the holder |
//! | lease | until when nobody else gets it, by the store's clock | those who want the thing |
//! | epoch | a number that is higher for each later claim | the store, which refuses writes under an older one |
//!
//! **A holder** renews its lease well before it ends ([`Claims::keep`]), writes under the claim ([`Held::under`]), and stops as
//! soon as the claim is lost ([`Held::lost`]). It is lost when somebody else has it, or when its lease could not be renewed in
//! time. A holder that does not notice, because it was paused or its clock is wrong, can do no harm in the store: its writes
//! are refused from the moment on at which another one has the claim.
//!
//! **Others** get the thing when it is released, which they see at once, or when the lease has ended. If several try then, the
//! store decides.
//!
//! Where a lock keeps all other processes away from the store ([`Claims::alone`]), that lock is the claim of everything: a thing
//! is taken without a record, and nothing is renewed.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use myclaw_store::{Batch, Claims, RecordId, Store, StoreError};
//!
//! async fn tidy_up(store: Arc<dyn Store>, batch: Batch) -> Result<(), StoreError> {
//!     let claims = Claims::shared(Arc::clone(&store), "node 1".to_owned(), Duration::from_secs(15));
//!     let Some(held) = claims.acquire(&RecordId::new("task", "tidy up")).await? else {
//!         return Ok(()); // somebody else does it
//!     };
//!     let outcome = store.commit(held.under(batch)).await?; // refused if the claim was lost meanwhile
//!     println!("{outcome:?}");
//!     held.release().await?;
//!     Ok(())
//! }
//! ```

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};

use crate::{
    Batch, Claim, ClaimRequest, Commit, Place, QueueId, RecordId, Store, StoreError, Version, Write,
};

/// How often a lease is renewed before it ends. One lost renewal does no harm.
const RENEWALS: u32 = 3;
/// The last part of a lease, in which its holder counts the claim as lost: work that is stopped then has ended before another
/// holder begins.
const MARGIN: u32 = 6;

/// Time that never goes back, since any moment.
pub type SteadyClock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Claims things for one holder.
pub struct Claims {
    store: Arc<dyn Store>,
    /// `None` where nobody else can have anything.
    sharing: Option<Sharing>,
    held: Mutex<HashMap<RecordId, Entered>>,
    /// Fires when this holder gives something back.
    freed: Notify,
}

struct Sharing {
    holder: String,
    lease: Duration,
    clock: SteadyClock,
}

/// A claim that is held.
struct Entered {
    /// `None` where nobody else can have it.
    claim: Option<Claim>,
    /// Of the record of the claim; `None` if the thing is a record of its own.
    version: Option<Version>,
    /// When the holder counts it as lost, by the steady clock.
    until: Duration,
    is_lost: watch::Sender<bool>,
}

/// The right to do a thing, until it is lost. Dropping it lets the lease run out; [`Held::release`] gives it back at once.
pub struct Held {
    claims: Arc<Claims>,
    id: RecordId,
    claim: Option<Claim>,
    is_lost: watch::Receiver<bool>,
}

/// The value of a claim's record.
#[derive(Serialize, Deserialize)]
struct Holder {
    holder: String,
}

impl Claims {
    /// The claims of a process that has the store for itself.
    pub fn alone(store: Arc<dyn Store>) -> Arc<Self> {
        Self::new(store, None)
    }

    /// The claims of one of several processes. `holder` is its name, which no other process has; `lease` is how long the others
    /// wait for what it held when it dies.
    pub fn shared(store: Arc<dyn Store>, holder: String, lease: Duration) -> Arc<Self> {
        let begun = Instant::now();
        Self::with_clock(store, holder, lease, Arc::new(move || begun.elapsed()))
    }

    /// Like [`Claims::shared`], with another clock for when the holder counts a claim as lost.
    pub fn with_clock(
        store: Arc<dyn Store>,
        holder: String,
        lease: Duration,
        clock: SteadyClock,
    ) -> Arc<Self> {
        Self::new(store, Some(Sharing { holder, lease, clock }))
    }

    fn new(store: Arc<dyn Store>, sharing: Option<Sharing>) -> Arc<Self> {
        Arc::new(Self { store, sharing, held: Mutex::default(), freed: Notify::new() })
    }

    /// The store of the things.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Whether other processes may hold things of the same store.
    pub fn is_shared(&self) -> bool {
        self.sharing.is_some()
    }

    /// The name of the holder; `None` where there is only one.
    pub fn holder(&self) -> Option<&str> {
        self.sharing.as_ref().map(|sharing| sharing.holder.as_str())
    }

    /// How long a lease is; `None` where leases do not end.
    pub fn lease(&self) -> Option<Duration> {
        self.sharing.as_ref().map(|sharing| sharing.lease)
    }

    /// How often those who want something look whether its lease has ended.
    pub fn look(&self) -> Duration {
        self.lease().map_or(Duration::MAX, |lease| lease / RENEWALS)
    }

    /// Claims a thing. `None` if it is held, here or elsewhere.
    ///
    /// # Errors
    /// The store fails. If it claimed the thing nevertheless, the lease runs out.
    pub async fn acquire(self: &Arc<Self>, id: &RecordId) -> Result<Option<Held>, StoreError> {
        let Some(Sharing { holder, lease, clock }) = &self.sharing else {
            return Ok(self.enter(id, None, None, Duration::MAX));
        };
        let value = value_of(id, holder)?;
        let place = Some(Place::last(queue_of(id).name));
        // What was given back has no record, so this is seldom refused.
        let new = Write::Insert { id: id.clone(), value: value.clone(), place: place.clone() };
        drop(self.store.commit(Batch::of(new)).await?);
        let begun = clock();
        let request = ClaimRequest {
            queue: queue_of(id),
            up_to: Place::LAST,
            owner: holder.clone(),
            lease: *lease,
            most: 1,
        };
        let Some((record, claim)) = self.store.claim(request).await?.pop() else {
            return Ok(None);
        };
        let mut version = record.version;
        if record.value != value {
            let named = Write::Replace { id: id.clone(), expected: version, value, place };
            match self.store.commit(Batch::of(named).under(claim.clone())).await? {
                Commit::Done(next) => version = next,
                // The lease has ended meanwhile, and somebody else has it.
                Commit::Refused(_) => return Ok(None),
            }
        }
        Ok(self.enter(id, Some(claim), Some(version), begun))
    }

    /// Claims a thing as soon as it is free.
    ///
    /// # Errors
    /// The store fails.
    pub async fn own(self: &Arc<Self>, id: &RecordId) -> Result<Held, StoreError> {
        let mut changes = self.is_shared().then(|| self.store.watch(queue_of(id)));
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // From here on, nothing that is given back is missed.
            freed.as_mut().enable();
            if let Some(held) = self.acquire(id).await? {
                return Ok(held);
            }
            let by_others = async {
                match &mut changes {
                    // That a lease ends is no change.
                    Some(changes) => {
                        drop(tokio::time::timeout(self.look(), changes.changed()).await)
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = freed => {}
                () = by_others => {}
            }
        }
    }

    /// Holds a record of its own that [`Store::claim`] gave: renews its lease too. `None` if somebody else has claimed it since.
    ///
    /// # Errors
    /// The store fails.
    pub async fn adopt(self: &Arc<Self>, claim: Claim) -> Result<Option<Held>, StoreError> {
        let id = claim.id.clone();
        let Some(Sharing { lease, clock, .. }) = &self.sharing else {
            return Ok(self.enter(&id, Some(claim), None, Duration::MAX));
        };
        let begun = clock();
        let is_mine = self.store.renew(claim.clone(), *lease).await?;
        Ok(is_mine.then(|| self.enter(&id, Some(claim), None, begun)).flatten())
    }

    /// Who holds a thing, or held it last; `None` if it is free. Where there is one holder only, nothing has a record.
    ///
    /// # Errors
    /// The store fails.
    pub async fn holder_of(&self, id: &RecordId) -> Result<Option<String>, StoreError> {
        let Some(record) = self.store.get(id.clone()).await? else { return Ok(None) };
        let holder: Holder = serde_json::from_slice(&record.value)
            .map_err(|error| StoreError::Row { id: id.to_string(), problem: error.to_string() })?;
        Ok(Some(holder.holder))
    }

    /// Whether this holder has a thing.
    pub fn holds(&self, id: &RecordId) -> bool {
        let held = self.held.lock();
        held.get(id).is_some_and(|entered| self.is_in_time(entered))
    }

    /// The number of the claim under which this holder has a thing: higher than that of every holder before. `None` if it does
    /// not have it, or nobody else could.
    pub fn epoch(&self, id: &RecordId) -> Option<u64> {
        let held = self.held.lock();
        let entered = held.get(id).filter(|entered| self.is_in_time(entered))?;
        entered.claim.as_ref().map(|claim| claim.epoch)
    }

    /// The batch, under the claim of this thing. A batch of a holder that has it no more is refused.
    #[must_use]
    pub fn under(&self, id: &RecordId, batch: Batch) -> Batch {
        if self.sharing.is_none() {
            return batch;
        }
        let claim = self.held.lock().get(id).and_then(|entered| entered.claim.clone());
        // No claim has the epoch 0.
        batch.under(claim.unwrap_or_else(|| Claim { id: id.clone(), epoch: 0 }))
    }

    /// Renews all leases in time, forever. What could not be renewed in time is lost when its time is over, also while the
    /// store does not answer.
    pub async fn keep(&self) {
        let Some(sharing) = &self.sharing else { return std::future::pending().await };
        let pause = sharing.lease / RENEWALS;
        let renewing = async {
            loop {
                tokio::time::sleep(pause).await;
                self.renew().await;
            }
        };
        let expiring = async {
            loop {
                // What is claimed meanwhile lasts longer than a pause.
                tokio::time::sleep(self.expire(sharing).min(pause)).await;
            }
        };
        tokio::join!(renewing, expiring);
    }

    /// Gives up what could not be renewed in time. Returns after how long the next one ends.
    fn expire(&self, Sharing { clock, .. }: &Sharing) -> Duration {
        let now = clock();
        let mut held = self.held.lock();
        for (_, late) in held.extract_if(|_, entered| entered.until <= now) {
            let _ = late.is_lost.send_replace(true);
        }
        held.values().map(|entered| entered.until - now).min().unwrap_or(Duration::MAX)
    }

    /// Renews all leases once. Those that somebody else has are lost, and so are those whose time is over because the store
    /// fails.
    pub async fn renew(&self) {
        let Some(Sharing { lease, clock, .. }) = &self.sharing else { return };
        let begun = clock();
        let held: Vec<Claim> =
            self.held.lock().values().filter_map(|entered| entered.claim.clone()).collect();
        // A store makes calls that wait at the same time durable together.
        let renewals = held.into_iter().map(|claim| async {
            let renewed = self.store.renew(claim.clone(), *lease).await;
            (claim, renewed)
        });
        let mut late = Vec::new();
        for (claim, renewed) in join_all(renewals).await {
            let mut held = self.held.lock();
            let Some(entered) = held.get_mut(&claim.id).filter(|entered| entered.is(&claim)) else {
                // It was given up meanwhile, and others need not wait for a lease that nobody uses.
                late.extend(matches!(renewed, Ok(true)).then_some(claim));
                continue;
            };
            match renewed {
                // A lease that was renewed too late may have been lost and stopped by its user already.
                Ok(true) if self.is_in_time(entered) => entered.until = end_of(begun, *lease),
                Err(_) if self.is_in_time(entered) => {}
                Ok(_) | Err(_) => {
                    let _ = entered.is_lost.send_replace(true);
                    held.remove(&claim.id);
                }
            }
        }
        let freed = late.into_iter().map(|claim| self.store.renew(claim, Duration::ZERO));
        // Where this fails, the lease runs out.
        drop(join_all(freed).await);
    }

    fn is_in_time(&self, entered: &Entered) -> bool {
        self.sharing.as_ref().is_none_or(|sharing| (sharing.clock)() < entered.until)
    }

    fn enter(
        self: &Arc<Self>,
        id: &RecordId,
        claim: Option<Claim>,
        version: Option<Version>,
        begun: Duration,
    ) -> Option<Held> {
        let until = self.lease().map_or(Duration::MAX, |lease| end_of(begun, lease));
        let (sender, is_lost) = watch::channel(false);
        let entered = Entered { claim: claim.clone(), version, until, is_lost: sender };
        match self.held.lock().entry(id.clone()) {
            Entry::Vacant(vacant) => drop(vacant.insert(entered)),
            // Without records, this map is what decides.
            Entry::Occupied(_) if self.sharing.is_none() => return None,
            // The store gave it anew, so the one before is lost.
            Entry::Occupied(mut before) => {
                let before = before.insert(entered);
                let _ = before.is_lost.send_replace(true);
            }
        }
        Some(Held { claims: Arc::clone(self), id: id.clone(), claim, is_lost })
    }

    /// Gives everything back, so that others get it at once. For the end of the process.
    ///
    /// # Errors
    /// The store fails. The leases run out then.
    pub async fn release_all(&self) -> Result<(), StoreError> {
        let all: Vec<Entered> = self.held.lock().drain().map(|(_, entered)| entered).collect();
        for entered in &all {
            let _ = entered.is_lost.send_replace(true);
        }
        self.freed.notify_waiters();
        let given_back = all.into_iter().map(|entered| self.give_back(entered));
        join_all(given_back).await.into_iter().try_for_each(|outcome| outcome.map(|_| ()))
    }

    /// Forgets a claim, so that it is not renewed any more. `None` if it is lost.
    fn forget(&self, held: &Held) -> Option<Entered> {
        let mut all = self.held.lock();
        let is_it = all.get(&held.id).is_some_and(|entered| entered.claim == held.claim);
        let entered = if is_it { all.remove(&held.id) } else { None };
        drop(all);
        self.freed.notify_waiters();
        entered
    }

    /// Lets others get a thing at once. False if somebody else has it already.
    async fn give_back(&self, entered: Entered) -> Result<bool, StoreError> {
        let Some(claim) = entered.claim.filter(|_| self.is_shared()) else { return Ok(true) };
        let Some(expected) = entered.version else {
            return self.store.renew(claim, Duration::ZERO).await;
        };
        let gone = Write::Remove { id: claim.id.clone(), expected };
        Ok(matches!(self.store.commit(Batch::of(gone).under(claim)).await?, Commit::Done(_)))
    }
}

impl Entered {
    fn is(&self, claim: &Claim) -> bool {
        self.claim.as_ref() == Some(claim)
    }
}

impl Held {
    /// The thing.
    pub fn id(&self) -> &RecordId {
        &self.id
    }

    /// The batch, under this claim. It is refused if somebody else has the claim.
    #[must_use]
    pub fn under(&self, batch: Batch) -> Batch {
        match self.claim.clone().filter(|_| self.claims.is_shared()) {
            Some(claim) => batch.under(claim),
            None => batch,
        }
    }

    /// Whether it is lost.
    pub fn is_lost(&self) -> bool {
        if self.claims.sharing.is_none() {
            return false;
        }
        let is_mine = {
            let held = self.claims.held.lock();
            held.get(&self.id).is_some_and(|entered| {
                entered.claim == self.claim && self.claims.is_in_time(entered)
            })
        };
        !is_mine
    }

    /// Waits until it is lost.
    pub async fn lost(&self) {
        let mut is_lost = self.is_lost.clone();
        // Without a sender the claim was forgotten.
        let _ = is_lost.wait_for(|is_lost| *is_lost).await;
    }

    /// Gives the claim back, so that others get it at once. False if somebody else has it already.
    ///
    /// # Errors
    /// The store fails. The lease runs out then.
    pub async fn release(self) -> Result<bool, StoreError> {
        match self.claims.forget(&self) {
            Some(entered) => self.claims.give_back(entered).await,
            None => Ok(false),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.claims.forget(self));
    }
}

/// When the holder counts a lease as lost that began then.
fn end_of(begun: Duration, lease: Duration) -> Duration {
    begun.saturating_add(lease - lease / MARGIN)
}

/// The queue in which the record of a claim stands alone, so that it can be claimed and watched by its name.
fn queue_of(id: &RecordId) -> QueueId {
    id.queue(&id.to_string())
}

fn value_of(id: &RecordId, holder: &str) -> Result<Vec<u8>, StoreError> {
    let row = Holder { holder: holder.to_owned() };
    serde_json::to_vec(&row)
        .map_err(|error| StoreError::Row { id: id.to_string(), problem: error.to_string() })
}
