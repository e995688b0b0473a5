//! Lanes: limits on how many runs go on at a time.
//!
//! A run first waits for its session's lane, which is one run wide, and then, while holding it, for a global lane.
//! Every run takes them in this order and takes only one lane of each kind, so two runs never wait for each other. A
//! lane is first come, first served. A permit frees its places when it is dropped, however the run ends. A lane without
//! runs is forgotten, so an idle session costs nothing.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_config::LaneWidths;
use myclaw_session::SessionKey;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The origin of a run. Each has its own global lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Started by a message.
    #[default]
    Main,
    /// Started by the clock.
    Cron,
    /// Started by another run, which does not wait for it.
    Subagent,
    /// Started by another run, which waits for it.
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

/// The lanes that a run needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneRequest {
    /// Its session.
    pub session_key: SessionKey,
    /// Its global lane.
    pub lane: Lane,
    /// Widths of the global lanes. A new width takes effect when the lane is next empty.
    pub widths: LaneWidths,
}

/// The right to run, until it is dropped.
pub struct LanePermit(#[expect(dead_code, reason = "held for what its drop does")] Box<dyn Send>);

impl LanePermit {
    /// Creates a permit that drops `guard` when the run is over.
    pub fn new(guard: impl Send + 'static) -> Self {
        Self(Box::new(guard))
    }
}

/// Decides when a run may begin. Implement it if the start of a run depends on more than lanes.
pub trait Enqueue: Send + Sync {
    /// Completes when the run may begin. Dropping the future gives up the place in the queue.
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
    /// Hands out its places in the order of the requests.
    places: Arc<Semaphore>,
    /// Runs in the lane or waiting for it.
    users: usize,
}

impl Lanes {
    /// Number of lanes in use, including those of sessions.
    pub fn in_use(&self) -> usize {
        self.lanes.lock().len()
    }

    async fn enter_one(&self, name: LaneName, width: usize) -> Place {
        let visit = self.visit(name, width);
        let places = Arc::clone(&visit.places);
        let permit = places.acquire_owned().await.ok();
        Place { _permit: permit, _visit: visit }
    }

    fn visit(&self, name: LaneName, width: usize) -> Visit {
        let mut lanes = self.lanes.lock();
        let state = lanes
            .entry(name.clone())
            .or_insert_with(|| State { places: Arc::new(Semaphore::new(width)), users: 0 });
        state.users += 1;
        Visit { lanes: self.clone(), name, places: Arc::clone(&state.places) }
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

/// A place in a lane. The permit is returned before the visit ends.
struct Place {
    /// The semaphore is never closed, so this is always `Some`.
    _permit: Option<OwnedSemaphorePermit>,
    _visit: Visit,
}

/// A run that is in a lane or waits for it.
struct Visit {
    lanes: Lanes,
    name: LaneName,
    places: Arc<Semaphore>,
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut lanes = self.lanes.lanes.lock();
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
