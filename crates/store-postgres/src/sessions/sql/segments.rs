//! The statements about the old parts of logs.

/// The columns of a segment, as [`super::super::segments::Segment`] reads them.
const COLUMNS: &str = "SELECT segment.session, from_seq, to_seq, blob, digest, place
    FROM myclaw.segment JOIN myclaw.blob ON blob.id = segment.blob";

/// The segment of session `$1` with the entry `$2`.
pub(in crate::sessions) fn with_entry() -> String {
    format!("{COLUMNS} WHERE segment.session = $1 AND from_seq <= $2 AND to_seq >= $2")
}

/// The segments of session `$1`, the oldest first.
pub(in crate::sessions) fn of_session() -> String {
    format!("{COLUMNS} WHERE segment.session = $1 ORDER BY from_seq")
}

/// The segments of the sessions of partition `$1` with all groups of characters of one of `count` lists, from `$2` on. Without
/// lists all of them.
pub(in crate::sessions) fn with_grams(count: usize) -> String {
    let lists: Vec<String> = (0..count).map(|number| format!("grams @> ${}", number + 2)).collect();
    let is_wanted = if lists.is_empty() { "true".to_owned() } else { lists.join(" OR ") };
    format!(
        "{COLUMNS} JOIN myclaw.session ON session.id = segment.session
         WHERE session.partition = $1 AND ({is_wanted}) ORDER BY segment.session, from_seq"
    )
}

/// How many of the first entries of session `$1` are sealed.
pub(in crate::sessions) const SEALED: &str = "SELECT sealed FROM myclaw.session WHERE id = $1";
/// The place of the sealed entry whose id has the number `$2`.
pub(in crate::sessions) const SEALED_PLACE: &str = "
    SELECT from_seq - 1 + array_position(ids, $2) FROM myclaw.segment
    WHERE session = $1 AND $2 = ANY (ids) ORDER BY from_seq LIMIT 1";
/// The sessions of partition `$1` that wait longest, at which nobody has looked in the last `$7` milliseconds. Each is worth it if
/// `$3` of its entries can be sealed and it was not written to since `$4`, or if `$5` of them can be; `$2` stay in any case. And
/// nobody has it, or its owner is this process, whose sessions `$6` are.
pub(in crate::sessions) const TAKE_SEALABLE: &str = "
    UPDATE myclaw.sealable SET tried = clock_timestamp() FROM myclaw.session
    WHERE sealable.session = session.id AND sealable.session IN (
        SELECT sealable.session FROM myclaw.sealable JOIN myclaw.session ON session.id = sealable.session
        WHERE partition = $1 AND tried <= clock_timestamp() - $7 * interval '1 millisecond'
            AND (SELECT seals_from <= clock_timestamp() FROM myclaw.format)
        ORDER BY tried LIMIT 500 FOR UPDATE OF sealable SKIP LOCKED
    )
    RETURNING session.id, epoch, sealed, last_seq, tried,
        (lease_until <= clock_timestamp() OR session.id = ANY ($6))
            AND last_seq - sealed - $2 >= CASE WHEN written_at < $4 THEN $3 ELSE $5 END";
/// Nothing is left to seal of session `$1` that was taken at `$2`, until it has another summary.
pub(in crate::sessions) const ALL_SEALED: &str =
    "DELETE FROM myclaw.sealable WHERE session = $1 AND tried = $2";
/// The entries behind `$2` up to `$3`.
pub(in crate::sessions) const TO_SEAL: &str = "
    SELECT id, kind, body FROM myclaw.entry WHERE session = $1 AND seq > $2 AND seq <= $3 ORDER BY seq";
/// Under epoch `$2`, the entries of session `$1` behind `$3` up to `$4` are the content `$5` from now on.
pub(in crate::sessions) const SEAL: &str = "
    WITH sealed AS (
        UPDATE myclaw.session SET sealed = $4 WHERE id = $1 AND epoch = $2 AND sealed = $3 RETURNING id
    ), gone AS (
        DELETE FROM myclaw.entry USING sealed WHERE session = sealed.id AND seq > $3 AND seq <= $4
    )
    INSERT INTO myclaw.segment (session, from_seq, to_seq, blob, digest, ids, grams, about_seq, about)
    SELECT sealed.id, $3 + 1, $4, $5, $6, $7, $8, $9, $10 FROM sealed RETURNING session";
/// Under epoch `$2`, the segment of session `$1` from `$3` on has the content `$4`.
pub(in crate::sessions) const SEAL_AGAIN: &str = "
    WITH mine AS (SELECT id FROM myclaw.session WHERE id = $1 AND epoch = $2 FOR UPDATE)
    UPDATE myclaw.segment SET blob = $4, digest = $5, ids = $6, grams = $7, about_seq = $8, about = $9
    FROM mine WHERE session = mine.id AND from_seq = $3 RETURNING session";
