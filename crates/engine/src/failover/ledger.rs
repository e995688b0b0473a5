//! Records the outcome of each key's use in the agent's store.

use std::collections::HashSet;
use std::time::Duration;

use myclaw_auth::{AuthStore, AuthStoreError, CooldownRules, Failure, FailureReason};

use crate::Notice;

/// Records the outcome of each key's use, for later runs and other processes.
#[derive(Debug)]
pub(crate) struct KeyLedger {
    store: Option<AuthStore>,
    rules: CooldownRules,
    /// The profiles whose use in this run is recorded, by their names in the store.
    noted: HashSet<String>,
    /// Whether a failure to write was reported. It is reported once.
    has_complained: bool,
}

/// The use of a profile: which model, and when.
#[derive(Debug, Clone)]
pub(crate) struct Use {
    /// The profile's name in the store.
    pub(crate) profile: String,
    /// The model's id.
    pub(crate) model: String,
    /// In milliseconds since the Unix epoch.
    pub(crate) at_ms: u64,
}

impl KeyLedger {
    /// Creates a ledger that writes to `store`, or nowhere if it is `None`.
    pub(crate) fn new(store: Option<AuthStore>, rules: CooldownRules) -> Self {
        Self { store, rules, noted: HashSet::new(), has_complained: false }
    }

    /// Records that a call failed. Returns a notice the first time the store cannot be written.
    pub(crate) async fn failed(
        &mut self,
        call: Use,
        reason: FailureReason,
        retry_after: Option<Duration>,
    ) -> Option<Notice> {
        let rules = self.rules;
        self.noted.remove(&call.profile);
        self.write(move |store| {
            store.record(|file| {
                let failure =
                    Failure { model: &call.model, reason, retry_after, at_ms: call.at_ms };
                file.record_failure(&call.profile, &failure, &rules);
            })
        })
        .await
    }

    /// Records that a call succeeded. This happens once per run, and only if there are failures to clear or several
    /// keys to rotate. Returns a notice as [`KeyLedger::failed`] does.
    pub(crate) async fn succeeded(
        &mut self,
        call: Use,
        had_failures: bool,
        profile_count: usize,
    ) -> Option<Notice> {
        let is_known = self.store.as_ref().is_some_and(AuthStore::exists);
        let is_of_use = had_failures || is_known || profile_count > 1;
        if !is_of_use || (!self.noted.insert(call.profile.clone()) && !had_failures) {
            return None;
        }
        self.write(move |store| {
            store.record(|file| file.record_success(&call.profile, &call.model, call.at_ms))
        })
        .await
    }

    /// Writes off the async thread.
    async fn write(
        &mut self,
        write: impl FnOnce(AuthStore) -> Result<(), AuthStoreError> + Send + 'static,
    ) -> Option<Notice> {
        let store = self.store.clone()?;
        let written = tokio::task::spawn_blocking(move || write(store)).await;
        let error = match written {
            Ok(Ok(())) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let is_first = !std::mem::replace(&mut self.has_complained, true);
        is_first.then_some(Notice::KeyStoreUnwritable { error })
    }
}
