//! What channels hand over, and what they ask to be kept.

use myclaw_channels::{Arrival, Intake, Receipt, Refusal};
use myclaw_store::{BoxFuture, Change};

use super::{MEMORY, Router, is_final};
use crate::DeliveryError;
use crate::rows::PartId;

impl Intake for Router {
    fn take(&self, arrival: Arrival) -> BoxFuture<'_, Result<Receipt, Refusal>> {
        Box::pin(async {
            self.route(arrival).await.map_err(|error| match is_final(&error) {
                true => Refusal::Unusable(error.to_string()),
                false => later(&error),
            })
        })
    }

    fn wants_files<'a>(&'a self, arrival: &'a Arrival) -> BoxFuture<'a, Result<bool, Refusal>> {
        Box::pin(async { self.wants(arrival.clone()).await.map_err(|error| later(&error)) })
    }

    fn refuse(&self, arrival: Arrival, reason: String) -> BoxFuture<'_, Result<Receipt, Refusal>> {
        Box::pin(async move {
            let refused = self.refuse_arrival(&arrival, reason).await;
            refused.map_err(|error| match is_final(&error) {
                true => Refusal::Unusable(error.to_string()),
                false => later(&error),
            })
        })
    }

    fn recall<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<String>, Refusal>> {
        Box::pin(async move {
            let store = self.delivery.ledger().store();
            let known = MEMORY.get(store, key).await.map_err(|error| later(&error.into()))?;
            Ok(known.map(|known| known.row))
        })
    }

    fn remember<'a>(&'a self, key: &'a str, text: &'a str) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            let store = self.delivery.ledger().store();
            let put = |_| Change::put(text.to_owned(), None);
            let stored = MEMORY.update(store, key, put).await;
            stored.map(drop).map_err(|error| later(&error.into()))
        })
    }

    fn undelivered<'a>(
        &'a self,
        part: &'a str,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            let part = PartId::from_text(part);
            self.delivery.ledger().undelivered(&part, reason).await.map_err(|error| later(&error))
        })
    }
}

/// An error of the store, for a channel.
fn later(error: &DeliveryError) -> Refusal {
    Refusal::Later(error.to_string())
}
