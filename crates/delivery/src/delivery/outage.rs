//! Failures of models that may be over soon: the messages stay open, and runs are begun until one succeeds.

use std::time::Duration;

use super::desk::{Desk, Patience, RunFailure};
use super::{Delivery, Report};
use crate::DeliveryError;
use crate::failure_text::for_people;
use crate::ledger::OpenMessage;
use crate::route::Route;

/// How long a model may be away: a restart of a server with a large model takes minutes.
const LONGEST: Duration = Duration::from_secs(10 * 60);
/// Failed runs (a few seconds) after which a notice in the chat announces a wait.
const TOLD_AFTER: u32 = 3;

impl Delivery {
    /// Lets the messages of a failed run wait for the next one. False if they have waited for long enough, or the owner wants
    /// no retries.
    pub(super) async fn waits_out(
        &self,
        desk: &Desk,
        failure: &RunFailure,
        open: &[OpenMessage],
    ) -> Result<bool, DeliveryError> {
        if desk.session.config().agent.max_retries == 0 && !failure.is_of_sessions() {
            return Ok(false);
        }
        let Patience::Wait(pause, attempts) = desk.waits_for_models(LONGEST) else {
            return Ok(false);
        };
        let key = desk.session.key().as_str().to_owned();
        tracing::warn!(
            session = key,
            seconds = pause.as_secs(),
            error = failure.message,
            "the model or the session cannot be reached; its messages wait"
        );
        if attempts >= TOLD_AFTER {
            self.tell_of_wait(failure, open).await?;
        }
        let this = self.process.this.clone();
        self.process.tasks.spawn(async move {
            tokio::time::sleep(pause).await;
            let desk = this.upgrade().and_then(|this| this.desks().get(&key).cloned());
            if let Some(desk) = desk {
                desk.wake.notify_one();
            }
        });
        Ok(true)
    }

    /// How many messages wait for models that cannot be reached. The next process answers them.
    pub(super) fn waiting_count(&self) -> usize {
        let desks = self.desks();
        desks.values().filter(|desk| desk.is_waiting()).map(|desk| desk.open_count()).sum()
    }

    /// Tells the chats of these messages once that their answers take longer.
    async fn tell_of_wait(
        &self,
        failure: &RunFailure,
        open: &[OpenMessage],
    ) -> Result<(), DeliveryError> {
        let minutes = LONGEST.as_secs() / 60;
        let what = if failure.is_of_sessions() { "This conversation" } else { "The model" };
        let text = format!(
            "{what} cannot be reached at the moment. I keep trying for {minutes} minutes; you need not send anything again."
        );
        let mut told: Vec<&Route> = Vec::new();
        let waiting = open.iter().filter(|message| failure.ids.contains(&message.id.entry()));
        for message in waiting.filter(|message| message.row.route.is_chat()) {
            let route = &message.row.route;
            if route.leads_somewhere() && message.row.occasion.is_none() && !told.contains(&route) {
                told.push(route);
                // Once for each message, whatever is killed meanwhile.
                self.say(route, &format!("wait {}", message.id), &text).await?;
            }
        }
        Ok(())
    }
}

/// Classes of failures of models that say enough: the rest is for the owner.
const SAID_BY_CLASS: [&str; 9] = [
    "timeout",
    "network",
    "server_error",
    "rate_limit",
    "all_models_failed",
    "auth",
    "billing",
    "quota",
    "context_overflow",
];

impl Report {
    /// For messages of a failed run. It names no address and no option of the command line: its reader may not be the
    /// owner, who finds both in the log.
    pub(super) fn of_run(failure: &RunFailure) -> Self {
        let class = failure.class.to_owned();
        let mut report = Self { class, message: failure.for_others.clone() };
        if SAID_BY_CLASS.contains(&failure.class) {
            report.message = report.for_people().to_owned();
        }
        report
    }

    pub(super) fn for_people(&self) -> &str {
        for_people(&self.class, &self.message)
    }
}
