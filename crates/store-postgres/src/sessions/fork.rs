//! Where a fork branches off.

use myclaw_session::rows::{self, Following};
use myclaw_session::{EntryId, SessionError, SessionKey};
use tokio_postgres::types::Type;

use super::core::{Core, column};
use super::reader::PostgresReader;
use super::sql;
use crate::pool::Parameter;

/// The last entry that a fork takes, and the last of them that has an id.
pub(super) fn cut(
    core: &Core,
    parent: &PostgresReader,
    from: &SessionKey,
    at: Option<EntryId>,
) -> Result<(i64, EntryId), SessionError> {
    let Some(at) = at else {
        let all: [Parameter<'_>; 2] = [(&parent.id, Type::INT8), (&parent.last, Type::INT8)];
        let found = core.rows("fork", sql::LAST_WITH_ID, &all)?;
        let row = found.first().ok_or_else(|| SessionError::EmptySession { key: from.clone() })?;
        let id: &str = column(row, 1)?;
        return Ok((parent.last, EntryId::from_text(id)));
    };
    let missing = || SessionError::NoSuchEntry { key: from.clone(), id: at };
    let (place, _) = parent.place(at)?.ok_or_else(missing)?;
    let (mut count, mut last) = (place, at);
    let mut undecided = 0;
    for entry in parent.forward(place) {
        undecided += 1;
        match rows::following(&entry?) {
            Following::Result(id) => {
                count += undecided;
                undecided = 0;
                last = id;
            }
            Following::End => break,
            Following::Undecided => {}
        }
    }
    Ok((count, last))
}
