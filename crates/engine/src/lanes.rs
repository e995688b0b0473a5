//! Lanes: how many runs go on at once.
//!
//! A run first waits for its session's lane, which is one run wide, and inside it for a global lane. Everybody takes
//! them in this order and nobody takes a second lane of a kind, so no two runs wait for each other. Within a lane the
//! first to come is the first to go. A permit frees its places when it is dropped, however the run ends, and a lane
//! that nobody is in is forgotten: an idle session costs nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use myclaw_config::LaneWidths;
use myclaw_session::SessionKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a run is for; each has its own global lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Lane {
    /// A message.
    #[default]
    Main,
    /// The clock.
    Cron,
    /// Another run, which does not wait for it.
    Subagent,
    /// Another run, which waits for it.
    Nested,
}

impl Lane {
    fn width(self, widths: &LaneWidths) -> usize {
        match self {
            Self::Main => widths.main,
            Self::Cron => widths.cron,
            Self::Subagent => widths.subagent,
            Self::Nested => widths.nested,
        }
    }
}

/// Which lanes a run wants to enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneRequest {
    /// Its session.
    pub session_key: SessionKey,
    /// Its global lane.
    pub lane: Lane,
    /// How wide the global lanes are. Holds from when a lane was last empty.
    pub widths: LaneWidths,
}

/// The right to run, until it is dropped.
pub struct LanePermit(#[expect(dead_code, reason = "held for what its drop does")] Box<dyn Send>);

impl LanePermit {
    /// A permit that drops `guard` when the run is over.
    pub fn new(guard: impl Send + 'static) -> Self {
        Self(Box::new(guard))
    }
}

/// Decides when a run may begin. Give one of your own to a run if something else counts too.
pub trait Enqueue: Send + Sync {
    /// Completes when the run may begin. Dropping the future gives the place in the queue up.
    fn enter(&self, request: LaneRequest) -> BoxFuture<'_, LanePermit>;
}

/// The lanes of one process.
#[derive(Clone, Default)]
pub struct Lanes {
    lanes: Arc<Mutex<HashMap<LaneName, State>>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum LaneName {
    Session(SessionKey),
    Global(Lane),
}

struct State {
    /// Hands its places out in the order in which they were asked for.
    places: Arc<Semaphore>,
    /// Those who are in the lane or wait for it.
    users: usize,
}

impl Lanes {
    /// How many lanes are in use, those of sessions included.
    pub fn in_use(&self) -> usize {
        self.lock().len()
    }

    async fn enter_one(&self, name: LaneName, width: usize) -> Place {
        let visit = self.visit(name, width);
        let places = Arc::clone(&visit.places);
        let permit = places.acquire_owned().await.ok();
        Place { _permit: permit, _visit: visit }
    }

    fn visit(&self, name: LaneName, width: usize) -> Visit {
        let mut lanes = self.lock();
        let state = lanes
            .entry(name.clone())
            .or_insert_with(|| State { places: Arc::new(Semaphore::new(width)), users: 0 });
        state.users += 1;
        Visit { lanes: self.clone(), name, places: Arc::clone(&state.places) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LaneName, State>> {
        // The map is whole after every statement, so a panic elsewhere does not spoil it.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Enqueue for Lanes {
    fn enter(&self, request: LaneRequest) -> BoxFuture<'_, LanePermit> {
        Box::pin(async move {
            let session = self.enter_one(LaneName::Session(request.session_key), 1).await;
            let width = request.lane.width(&request.widths);
            let global = self.enter_one(LaneName::Global(request.lane), width).await;
            LanePermit::new((global, session))
        })
    }
}

/// A place in a lane. The permit goes back before the visit ends.
struct Place {
    /// The semaphore is never closed, so there is always one.
    _permit: Option<OwnedSemaphorePermit>,
    _visit: Visit,
}

/// Somebody in a lane or waiting for it.
struct Visit {
    lanes: Lanes,
    name: LaneName,
    places: Arc<Semaphore>,
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut lanes = self.lanes.lock();
        if let Some(state) = lanes.get_mut(&self.name) {
            state.users -= 1;
            if state.users == 0 {
                lanes.remove(&self.name);
                if lanes.is_empty() {
                    lanes.shrink_to_fit();
                }
            }
        }
    }
}
