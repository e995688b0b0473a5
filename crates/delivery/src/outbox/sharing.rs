//! Several gateways on one store: this one sends the parts of the accounts that it holds.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use myclaw_store::RecordId;

use super::Outbox;
use crate::DeliveryError;
use crate::ledger::{LOOK_PAUSE, UnsentPart};
use crate::route::Route;
use crate::sharing::account_of;

impl Outbox {
    /// Whether this process sends what goes out on a route.
    pub(crate) fn is_mine(&self, route: &Route) -> bool {
        self.account(route).is_none_or(|account| self.ledger.claims().holds(&account))
    }

    /// Polls `work` only as long as this process holds the claim of the route's account that it has now; `None` if it lost that
    /// claim, even if it has a newer one. Another process may do the same work from then on. A process that stood still notices
    /// the loss here, before its next step.
    pub(super) async fn while_mine<T>(
        &self,
        route: &Route,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut work = pin!(work);
        let claims = self.ledger.claims();
        let held = self.account(route).map(|account| (claims.epoch(&account), account));
        let is_mine = || match &held {
            Some((epoch, account)) => epoch.is_some() && claims.epoch(account) == *epoch,
            None => true,
        };
        poll_fn(|context| match is_mine() {
            true => work.as_mut().poll(context).map(Some),
            false => Poll::Ready(None),
        })
        .await
    }

    /// The account under which parts for a route are sent. `None` where every process may send them: it is alone, the part is
    /// for the clients of the server, or no channel takes it.
    pub(super) fn account(&self, route: &Route) -> Option<RecordId> {
        let is_shared = self.ledger.claims().is_shared() && !self.channels.is_own(route);
        (is_shared && self.channels.of(route).is_some())
            .then(|| account_of(&route.channel, &route.account))
    }

    /// The part as it is now, if this process is to send it.
    pub(super) async fn to_deliver(
        &self,
        part: UnsentPart,
    ) -> Result<Option<UnsentPart>, DeliveryError> {
        if !self.ledger.claims().is_shared() || self.channels.is_own(&part.row.route) {
            return Ok(Some(part));
        }
        match self.is_mine(&part.row.route) {
            true => self.ledger.unsent(&part.id).await,
            false => Ok(None),
        }
    }

    /// Takes the parts that other gateways have stored or left, now and after each change, and each time that this process gets
    /// an account.
    pub async fn follow(self: &Arc<Self>) {
        let claims = self.ledger.claims();
        let (mut parts, mut accounts) = (self.ledger.watch_unsent(), self.channels.watch());
        loop {
            match self.ledger.unsent_parts().await {
                Ok(parts) => self.push(parts),
                Err(error) => {
                    tracing::warn!(%error, "the parts of other gateways are not seen; trying again");
                }
            }
            // Who waits for a part that another gateway sends reads it again.
            self.ended.notify_waiters();
            tokio::time::sleep(LOOK_PAUSE.min(claims.look()) / 10).await;
            tokio::select! {
                () = parts.changed() => {}
                _ = accounts.changed() => {}
                () = tokio::time::sleep(claims.look()) => {}
            }
        }
    }
}
