//! Parts that were not delivered, or perhaps not: the notices about them, and how people get them again.

use myclaw_store::{Change, Commit, Place, RecordId, Records, Refusal, Write};
use serde::{Deserialize, Serialize};

use super::{Ledger, OUTGOING, OVER, Stored, TROUBLE, UnsentPart, inserts, now_ms, place_of};
use crate::DeliveryError;
use crate::route::Route;
use crate::rows::{Outgoing, PartId, PartState, hash};

/// What may be missing in a chat.
const MISSING: Records<Missing> = Records::new("missing");
/// Most parts of a chat that can be had again; the oldest ones are given up first.
const MOST_MISSING: usize = 50;
/// How often a change is tried again because another one came first.
const MOST_RACES: usize = 8;

/// The uncertain parts of a route: they may have been delivered.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Missing {
    /// The oldest first.
    parts: Vec<PartId>,
    /// The newest part that tells of them.
    notice: Option<PartId>,
}

/// What may be missing in a chat, and the writes that make an end of it.
pub struct Again {
    pub(crate) parts: Vec<Outgoing>,
    pub(crate) writes: Vec<Write>,
}

impl Ledger {
    /// The parts that were not delivered, or perhaps not, the oldest first.
    pub async fn trouble(&self) -> Result<Vec<UnsentPart>, DeliveryError> {
        Ok(OUTGOING.all(self.store(), TROUBLE).await?)
    }

    /// Records that a part was not delivered although its channel had taken it. A part that is not known is no error, nor
    /// is one of which that is known.
    ///
    /// # Errors
    /// The store fails, or the part is still being sent.
    pub(crate) async fn undelivered(&self, id: &PartId, reason: &str) -> Result<(), DeliveryError> {
        let mut is_sending = false;
        let fail = |row: Option<Outgoing>| {
            let is_open =
                |row: &Outgoing| matches!(row.state, PartState::Queued | PartState::Sending { .. });
            is_sending = row.as_ref().is_some_and(is_open);
            match row {
                Some(mut row)
                    if matches!(row.state, PartState::Sent { .. } | PartState::Uncertain) =>
                {
                    row.state = PartState::Failed { reason: reason.to_owned() };
                    let place = place_of(&row);
                    Change::put(row, place)
                }
                _ => Change::Keep,
            }
        };
        let failed = OUTGOING.update(self.store(), id.as_str(), fail).await?;
        if let Some(failed) = failed {
            let (part, channel) = (id.as_str(), failed.row.route.channel.as_str());
            tracing::warn!(part, channel, %reason, "a reply was not delivered");
        }
        if is_sending {
            return Err(DeliveryError::Unusable("the part is still being sent".to_owned()));
        }
        Ok(())
    }

    /// Records a part as uncertain, and stores `notice`, the message to its reader, in the same
    /// transaction. `None` if an earlier notice is still to be sent, which tells of this part too, or if somebody else has
    /// changed the part or has its account.
    pub async fn uncertain(
        &self,
        part: &UnsentPart,
        notice: (PartId, Outgoing),
        account: Option<&RecordId>,
    ) -> Result<Option<UnsentPart>, DeliveryError> {
        let key = key_of(&part.row.route);
        for _ in 0..MOST_RACES {
            let known = MISSING.get(self.store(), &key).await?;
            let (version, mut missing) =
                known.map_or_else(Default::default, |it| (Some(it.version), it.row));
            let is_told = match &missing.notice {
                Some(id) => self.part(id).await?.is_some_and(|it| it.state == PartState::Queued),
                None => false,
            };
            if missing.parts.len() >= MOST_MISSING {
                missing.parts.remove(0);
            }
            missing.parts.push(part.id.clone());
            let mut writes = replacement(part, place_of(&part.row))?;
            let notices = if is_told { Vec::new() } else { vec![notice.clone()] };
            if !is_told {
                missing.notice = Some(notice.0.clone());
            }
            writes.push(MISSING.put(&key, version, &missing, Place::new(OVER, now_ms()))?);
            writes.extend(inserts(&notices)?);
            match self.store.commit(self.under(account, writes.into())).await? {
                Commit::Done(version) => {
                    let stored = notices.into_iter().next();
                    return Ok(stored.map(|(id, row)| Stored::new(id, version, row)));
                }
                Commit::Refused(Refusal::Changed { id, .. })
                    if id == OUTGOING.id(part.id.as_str()) =>
                {
                    return Ok(None);
                }
                Commit::Refused(Refusal::Fenced(_)) => return Ok(None),
                // A message of the chat has just asked for what was missing before.
                Commit::Refused(_) => {}
            }
        }
        Err(DeliveryError::Internal("a part that may be missing is not noted".to_owned()))
    }

    /// Tells a chat again of what may be missing, if it may not have been told: the earlier notice was interrupted. `said` names
    /// the occasion.
    pub(crate) async fn remind(
        &self,
        route: &Route,
        said: &str,
    ) -> Result<Option<UnsentPart>, DeliveryError> {
        let key = key_of(route);
        let known = MISSING.get(self.store(), &key).await?;
        let Some(Stored { version, row: missing, .. }) = known else { return Ok(None) };
        let Some(told) = &missing.notice else { return Ok(None) };
        let notice = self.part(told).await?.filter(|notice| notice.state == PartState::Uncertain);
        let Some(notice) = notice else { return Ok(None) };
        let id = PartId::of(&notice.session, said, route, 0);
        let (created_at, state) = (now_ms(), PartState::Queued);
        let row = Outgoing { created_at, state, ..notice };
        let missing = Missing { notice: Some(id.clone()), ..missing };
        let place = Place::new(OVER, now_ms());
        let mut writes = vec![MISSING.put(&key, Some(version), &missing, place)?];
        writes.extend(inserts(&[(id.clone(), row.clone())])?);
        Ok(match self.store.commit(writes.into()).await? {
            Commit::Done(version) => Some(Stored::new(id, version, row)),
            // Another message of the chat has just done it.
            Commit::Refused(_) => None,
        })
    }

    /// What may be missing in a chat.
    pub async fn missing(&self, route: &Route) -> Result<Again, DeliveryError> {
        let key = key_of(route);
        let (mut parts, mut writes) = (Vec::new(), Vec::new());
        let Some(missing) = MISSING.get(self.store(), &key).await? else {
            return Ok(Again { parts, writes });
        };
        writes.push(MISSING.remove(&key, missing.version));
        for id in missing.row.parts {
            let Some(stored) = OUTGOING.get(self.store(), id.as_str()).await? else { continue };
            // Its vendor may have said meanwhile that it was not delivered.
            if matches!(stored.row.state, PartState::Uncertain | PartState::Failed { .. }) {
                // It is no trouble any more: its copy takes its place.
                writes.extend(replacement(&stored, Place::new(OVER, now_ms()))?);
                parts.push(stored.row);
            }
        }
        Ok(Again { parts, writes })
    }
}

/// Stores a part at `place`, if it is still in the version that is known.
pub(super) fn replacement(part: &UnsentPart, place: Place) -> Result<Vec<Write>, DeliveryError> {
    Ok(OUTGOING.put_any_size(part.id.as_str(), Some(part.version), &part.row, place)?)
}

fn key_of(Route { channel, account, chat }: &Route) -> String {
    hash("u", &[channel, account, chat])
}
