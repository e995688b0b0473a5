//! Step 6: sends the parts of replies.
//!
//! The parts of one route are sent in order; routes do not wait for each other. How far a part is, is in the store
//! before and after each attempt, as far as the channel cannot find out by itself.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::task::TaskTracker;

use crate::GatewayError;
use crate::channel::{AfterInterruption, Channel, SendFailure};
use crate::ledger::{Ledger, UnsentPart};
use crate::rows::{PartState, Route};

/// Most attempts to send a part. With the pauses between them they take about ten minutes.
const MOST_ATTEMPTS: u32 = 10;
/// Pause after the first attempt; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause that a channel can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// The parts that are to be sent.
pub(crate) struct Outbox {
    ledger: Ledger,
    channels: Vec<Arc<dyn Channel>>,
    routes: Mutex<HashMap<Route, VecDeque<UnsentPart>>>,
    tasks: TaskTracker,
}

impl Outbox {
    pub(crate) fn new(
        ledger: Ledger,
        channels: Vec<Arc<dyn Channel>>,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        Arc::new(Self { ledger, channels, routes: Mutex::default(), tasks })
    }

    /// Sends parts, after those of their routes that wait already.
    pub(crate) fn push(self: &Arc<Self>, parts: Vec<UnsentPart>) {
        let mut routes = self.lock();
        for part in parts {
            let route = part.row.route.clone();
            match routes.get_mut(&route) {
                Some(waiting) => waiting.push_back(part),
                None => {
                    routes.insert(route.clone(), VecDeque::from([part]));
                    let this = Arc::clone(self);
                    self.tasks.spawn(async move { this.serve(&route).await });
                }
            }
        }
    }

    /// Most characters of one part on a route.
    pub(crate) fn most_chars(&self, route: &Route) -> Option<usize> {
        self.channel(route).and_then(|channel| channel.capabilities().most_chars)
    }

    fn channel(&self, route: &Route) -> Option<&Arc<dyn Channel>> {
        self.channels.iter().find(|channel| channel.name() == route.channel)
    }

    async fn serve(&self, route: &Route) {
        while let Some(part) = self.next(route) {
            if let Err(error) = self.deliver(part).await {
                // The part stays unsent in the store, and the next start goes on with it.
                tracing::error!(channel = %route.channel, %error, "the state of a reply is not stored");
            }
        }
    }

    /// The next part of a route. Without one, the route is idle from now on.
    fn next(&self, route: &Route) -> Option<UnsentPart> {
        let mut routes = self.lock();
        let part = routes.get_mut(route)?.pop_front();
        if part.is_none() {
            routes.remove(route);
        }
        part
    }

    /// Sends a part, until it is sent or cannot be.
    async fn deliver(&self, mut part: UnsentPart) -> Result<(), GatewayError> {
        let Some(channel) = self.channel(&part.row.route).cloned() else {
            let reason = format!("there is no channel {}", part.row.route.channel);
            return self.end(part, PartState::Failed { reason }).await;
        };
        let interrupted = channel.capabilities().after_interruption;
        let mut attempt = 0;
        if let PartState::Sending { attempt: before } = part.row.state {
            attempt = before;
            match interrupted {
                AfterInterruption::Report => return self.end(part, PartState::Uncertain).await,
                AfterInterruption::Look => {
                    if let Some(id) = self.look(&channel, &part).await {
                        return self.end(part, PartState::Sent { id }).await;
                    }
                }
                AfterInterruption::SendAgain => {}
            }
        }
        let mut pause = FIRST_PAUSE;
        loop {
            attempt += 1;
            // Where sending again does no harm, nobody needs to know that it was begun.
            if interrupted != AfterInterruption::SendAgain {
                part.row.state = PartState::Sending { attempt };
                part.version = self.ledger.mark(&part).await?;
            }
            let (wait, reason) = match channel.send(&part.id, &part.row).await {
                Ok(id) => return self.end(part, PartState::Sent { id }).await,
                Err(SendFailure::Never { reason }) => {
                    return self.end(part, PartState::Failed { reason }).await;
                }
                Err(SendFailure::Later { after, reason }) => (after.unwrap_or(pause), reason),
                Err(SendFailure::Unknown { reason }) => match interrupted {
                    AfterInterruption::Report => {
                        return self.end(part, PartState::Uncertain).await;
                    }
                    AfterInterruption::Look => match self.look(&channel, &part).await {
                        Some(id) => return self.end(part, PartState::Sent { id }).await,
                        None => (pause, reason),
                    },
                    AfterInterruption::SendAgain => (pause, reason),
                },
            };
            if attempt >= MOST_ATTEMPTS {
                return self.end(part, PartState::Failed { reason }).await;
            }
            tracing::info!(channel = channel.name(), attempt, %reason, "a reply was not sent");
            tokio::time::sleep(wait.min(LONGEST_PAUSE)).await;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }

    /// Looks until the channel answers: sending without knowing could deliver the part twice.
    async fn look(&self, channel: &Arc<dyn Channel>, part: &UnsentPart) -> Option<String> {
        let mut pause = FIRST_PAUSE;
        loop {
            match channel.find(&part.id, &part.row).await {
                Ok(found) => return found,
                Err(failure) => tracing::info!(channel = channel.name(), ?failure, "no look"),
            }
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }

    async fn end(&self, mut part: UnsentPart, state: PartState) -> Result<(), GatewayError> {
        let (id, channel) = (part.id.as_str(), part.row.route.channel.as_str());
        match &state {
            PartState::Failed { reason } => {
                tracing::warn!(part = id, channel, %reason, "a reply cannot be delivered");
            }
            PartState::Uncertain => {
                tracing::warn!(part = id, channel, "a reply may not have been delivered");
            }
            _ => {}
        }
        part.row.state = state;
        self.ledger.mark(&part).await.map(|_| ())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Route, VecDeque<UnsentPart>>> {
        // The map is whole after every statement, so a panic elsewhere does not spoil it.
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
