//! The answers "always" and the questions that wait, in one record.

use std::sync::Arc;

use myclaw_agent::approvals::{Approvals, ApprovalsError, KeepApprovals};
use myclaw_store::{Change, Records};
use serde_json::Value;

use crate::blocking::Blocking;

/// As JSON, because a later version of the program may have written it.
const APPROVALS: Records<Value> = Records::new(KIND);
pub(crate) const KIND: &str = "approvals";
/// The key of the only one.
pub(crate) const KEY: &str = "all";

#[derive(Debug)]
pub(crate) struct RecordedApprovals(Arc<Blocking>);

impl RecordedApprovals {
    pub(crate) fn new(records: Arc<Blocking>) -> Self {
        Self(records)
    }

    fn read(&self, value: Option<Value>) -> Result<Approvals, ApprovalsError> {
        let place = format!("{}/{KEY}", self.0.server());
        value.map_or_else(
            || Ok(Approvals::default()),
            |value| Approvals::read(value, place.as_ref()),
        )
    }

    /// Changes what is stored, again if somebody else has changed it meanwhile.
    fn update(
        &self,
        mut change: impl FnMut(Approvals) -> Approvals,
        read: impl Fn(Option<Value>) -> Result<Approvals, ApprovalsError>,
    ) -> Result<(), ApprovalsError> {
        let mut problem = None;
        let decide = |before: Option<Value>| match read(before) {
            Ok(before) => match serde_json::to_value(change(before)) {
                Ok(after) => Change::put(after, None),
                Err(error) => {
                    problem = Some(ApprovalsError::Elsewhere(error.to_string()));
                    Change::Keep
                }
            },
            Err(error) => {
                problem = Some(error);
                Change::Keep
            }
        };
        let updated = self.0.wait(|store| APPROVALS.update(store, KEY, decide));
        updated.map_err(|error| ApprovalsError::Elsewhere(error.to_string()))?;
        problem.map_or(Ok(()), Err)
    }
}

impl KeepApprovals for RecordedApprovals {
    fn load(&self) -> Result<Approvals, ApprovalsError> {
        let found = self.0.wait(|store| APPROVALS.get(store, KEY));
        let found = found.map_err(|error| ApprovalsError::Elsewhere(error.to_string()))?;
        self.read(found.map(|stored| stored.row))
    }

    fn change(&self, change: &mut dyn FnMut(&mut Approvals)) -> Result<(), ApprovalsError> {
        let changed = |mut kept: Approvals| {
            change(&mut kept);
            kept
        };
        self.update(changed, |value| self.read(value))
    }

    fn clear(&self) -> Result<usize, ApprovalsError> {
        let mut count = 0;
        let cleared = |before: Approvals| {
            count = before.count();
            Approvals::default()
        };
        self.update(cleared, |value| match self.read(value) {
            Err(ApprovalsError::Damaged { .. }) => Ok(Approvals::default()),
            read => read,
        })?;
        Ok(count)
    }
}
