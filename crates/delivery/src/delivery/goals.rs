//! Goals continue after a restart: a record says in which sessions this gateway, or another, may work on one.
//!
//! The goal itself, with what is left of its bounds, is in the list of sessions. The record is there before the work begins, and
//! goes when the work is over, so one that is found at the start is of a process that was killed, or of nothing any more.

use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::goal::GoalOrder;
use myclaw_store::{Change, Place, Records};
use serde::{Deserialize, Serialize};

use super::Delivery;
use super::desk::Desk;
use crate::DeliveryError;
use crate::ledger::now_ms;
use crate::sharing::desk_of;

/// The sessions, by their keys.
const GOALS: Records<Begun> = Records::new("goal");
/// Their queue, by the time at which the work began.
const AT_WORK: &str = "goals";
/// Pause between two looks for goals of gateways that are gone.
const LOOK: Duration = Duration::from_secs(5);

/// Work that was ordered.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Begun {
    /// The goal as it was written, if it was a new one: a session that has not begun has no other place for it.
    goal: Option<String>,
}

impl Delivery {
    /// Notes that work on a goal begins in a session.
    pub(super) async fn goal_begins(
        &self,
        desk: &Desk,
        order: &GoalOrder,
    ) -> Result<(), DeliveryError> {
        let (store, key) = (self.ledger().store(), desk.session.key().as_str());
        let goal = match order {
            GoalOrder::Begin(text) => Some(text.clone()),
            _ => None,
        };
        let begun = |_| Change::put(Begun { goal: goal.clone() }, Place::new(AT_WORK, now_ms()));
        GOALS.update(store, key, begun).await?;
        desk.has_goal(true);
        Ok(())
    }

    /// Forgets that, where the work is over.
    pub(super) fn look_after_goal(self: &Arc<Self>, desk: &Arc<Desk>) {
        if desk.session.has_goal_at_work() || !desk.has_goal(false) {
            return;
        }
        let (this, desk) = (Arc::clone(self), Arc::clone(desk));
        self.process.tasks.spawn(async move { this.goal_is_over(&desk).await });
    }

    async fn goal_is_over(&self, desk: &Desk) {
        let key = desk.session.key().as_str();
        if let Err(error) = GOALS.delete(self.ledger().store(), key).await {
            tracing::warn!(session = key, %error, "the next start looks for a goal that is over");
        }
    }

    /// Continues the goals that killed processes have left.
    pub(super) async fn take_up_goals(self: &Arc<Self>) -> Result<(), DeliveryError> {
        for left in GOALS.all(self.ledger().store(), AT_WORK).await? {
            let (session, begun): (String, _) = (left.id, left.row.goal);
            if self.desks().get(&session).is_some_and(|desk| desk.session.has_goal_at_work()) {
                continue;
            }
            let claims = self.ledger().claims();
            if claims.is_shared() && !claims.holds(&desk_of(&session)) {
                let Some(held) = claims.acquire(&desk_of(&session)).await? else { continue };
                held.release().await?;
            }
            let opened = self.desk_in(&mut self.desks(), &session);
            let desk = match opened {
                Ok(desk) => desk,
                Err(error) => {
                    // Its agent may be gone from the config since.
                    tracing::warn!(session, %error, "a goal is not taken up");
                    continue;
                }
            };
            let this = Arc::clone(self);
            self.process.tasks.spawn(async move {
                desk.has_goal(true);
                match desk.session.go_on_with_goal(begun).await {
                    Ok(_) => this.look_after_goal(&desk),
                    // It is tried again, at the latest by the next start.
                    Err(error) => {
                        tracing::warn!(session, error = error.message, "a goal does not go on");
                    }
                }
            });
        }
        Ok(())
    }

    /// Takes up the goals of gateways that are gone, for ever.
    pub(super) async fn follow_goals(self: &Arc<Self>) {
        loop {
            if let Err(error) = self.take_up_goals().await {
                tracing::warn!(%error, "the goals of other gateways are not seen; trying again");
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
