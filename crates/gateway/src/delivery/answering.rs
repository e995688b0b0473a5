//! Step 5: stores what is said to the senders of messages, and tells everybody who waits.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use serde_json::json;

use super::{Delivery, Report, occasion, split};
use crate::GatewayError;
use crate::hub;
use crate::ledger::{OpenMessage, now_ms};
use crate::rows::{Incoming, MessageState, Outgoing, PartId, PartKind, PartState, Route};

impl Delivery {
    pub(super) async fn report(
        &self,
        messages: Vec<OpenMessage>,
        report: &Report,
    ) -> Result<(), GatewayError> {
        let first = messages.first().map(|message| message.id.to_string()).unwrap_or_default();
        self.answer(&messages, PartKind::Report, &first, &report.message, &|parts| {
            MessageState::Reported {
                class: report.class.clone(),
                message: report.message.clone(),
                parts,
            }
        })
        .await
    }

    /// Stores what is said to the senders of `messages`, once per route, and sends it.
    pub(super) async fn answer(
        &self,
        messages: &[OpenMessage],
        kind: PartKind,
        said: &str,
        text: &str,
        state: &(dyn Fn(Vec<PartId>) -> MessageState + Sync),
    ) -> Result<(), GatewayError> {
        let mut routes: Vec<&Route> = messages.iter().map(|message| &message.row.route).collect();
        let mut seen = HashSet::new();
        routes.retain(|route| seen.insert(*route));
        let mut parts: Vec<(PartId, Outgoing)> = Vec::new();
        for route in routes {
            let of_route = || messages.iter().filter(|message| message.row.route == *route);
            let Some(text) = occasion::spoken(of_route(), kind, text) else { continue };
            let texts = split::split(&text, self.outbox.most_chars(route));
            let session = of_route().next().map_or("", |message| message.row.session.as_str());
            let count = texts.len();
            for (part, text) in texts.into_iter().enumerate() {
                let row = Outgoing {
                    route: route.clone(),
                    session: session.to_owned(),
                    answers: of_route().map(|message| message.id.clone()).collect(),
                    kind,
                    part,
                    parts: count,
                    text,
                    created_at: now_ms(),
                    state: PartState::Queued,
                };
                parts.push((PartId::of(session, said, route, part), row));
            }
        }
        let of_message = |message: &OpenMessage| {
            let mine = parts.iter().filter(|(_, part)| part.route == message.row.route);
            state(mine.map(|(id, _)| id.clone()).collect())
        };
        let messages = &occasion::with_result(messages, kind, text);
        let stored = self.ledger.settle(messages, &of_message, parts.clone()).await?;
        self.open.fetch_sub(messages.len(), Ordering::SeqCst);
        let bytes = messages.iter().map(|message| picture_bytes(&message.row)).sum();
        self.pictures.fetch_sub(bytes, Ordering::SeqCst);
        self.metrics.ended(messages.len(), kind);
        for message in messages {
            let state = of_message(message);
            let event = json!({"type": "message", "messageId": message.id, "outcome": state});
            self.hub.publish_with(&message.row.session, &event, |live| match &state {
                MessageState::Reported { class, message: why, .. } => live.reported(hub::Report {
                    message_id: message.id.clone(),
                    text: message.row.text.clone(),
                    class: class.clone(),
                    message: why.clone(),
                    ts: now_ms(),
                }),
                _ => live.answered(&message.id),
            });
            if let Some(waiter) = self.waiters().get(&message.id) {
                waiter.notify_waiters();
            }
        }
        self.outbox.push(stored);
        Ok(())
    }
}

/// Bytes of a message's pictures.
pub(super) fn picture_bytes(row: &Incoming) -> usize {
    row.images.iter().map(|image| image.data.len()).sum()
}
