//! The statements about sessions. `$1` is the partition and `$2` the key, where it is one session by its key.

pub(super) mod segments;

/// Adds a row for a session that may not exist.
pub(super) const ADD: &str =
    "INSERT INTO myclaw.session (partition, key) VALUES ($1, $2) ON CONFLICT DO NOTHING";
/// Makes an owner, `$3`, of a session that nobody has, for `$4` milliseconds. Said twice by the same one, it is the owner still.
pub(super) const TAKE: &str = "
    UPDATE myclaw.session SET epoch = greatest(epoch + 1, nextval('myclaw.epoch')), owner = $3,
        lease_until = clock_timestamp() + $4 * interval '1 millisecond'
    WHERE partition = $1 AND key = $2 AND (lease_until <= clock_timestamp() OR owner = $3)
    RETURNING id, epoch, last_seq, side_files";
pub(super) const IN_USE: &str = "
    SELECT id FROM myclaw.session
    WHERE partition = $1 AND key = $2 AND lease_until > clock_timestamp()";
pub(super) const LOSE: &str = "
    UPDATE myclaw.session SET lease_until = '-infinity' WHERE partition = $1 AND key = $2";
/// Ends what an owner has of session `$1` under epoch `$2`. A session with nothing in it goes.
pub(super) const RELEASE: &str = "
    WITH gone AS (
        DELETE FROM myclaw.session WHERE id = $1 AND epoch = $2 AND last_seq = 0 AND listed IS NULL RETURNING id
    )
    UPDATE myclaw.session SET lease_until = '-infinity', owner = NULL
    WHERE id = $1 AND epoch = $2 AND NOT EXISTS (SELECT FROM gone)";
/// Makes the leases of sessions end in `$3` milliseconds, but for those that were given back while this waited.
pub(super) const RENEW: &str = "
    UPDATE myclaw.session SET lease_until = clock_timestamp() + $3 * interval '1 millisecond'
    FROM unnest($1::bigint[], $2::bigint[]) AS mine (id, epoch)
    WHERE session.id = mine.id AND session.epoch = mine.epoch AND lease_until > '-infinity'";

/// Appends entries to session `$1` under epoch `$2`, behind `$3` of them. They take the messages `$10` out of the inbox, unless
/// the log has one of `$11`, which wait elsewhere. `$12` says that a turn begins, and `$13` for how many milliseconds the owner
/// has the session again, if it was given back. Also says whether the session is listed.
pub(super) const APPEND: &str = "
    WITH moved AS (
        UPDATE myclaw.session SET last_seq = last_seq + $4, header = coalesce(header, $5), written_at = $6,
            listed_at = CASE WHEN in_turn OR ($12 AND listed IS NOT NULL) THEN greatest(listed_at, $6) ELSE listed_at END,
            in_turn = in_turn OR ($12 AND listed IS NOT NULL),
            lease_until = coalesce(clock_timestamp() + $13 * interval '1 millisecond', lease_until),
            knows_taken = knows_taken OR $3 = 0
        WHERE id = $1 AND epoch = $2 AND last_seq = $3
            AND NOT EXISTS (SELECT FROM myclaw.taken WHERE session = $1 AND taken.id = ANY ($11))
        RETURNING id, listed IS NOT NULL AS is_listed
    ), taken AS (
        INSERT INTO myclaw.taken (session, id)
        SELECT moved.id, message.id FROM moved, unnest($10::text[]) AS message (id) ON CONFLICT DO NOTHING
    ), settled AS (
        DELETE FROM myclaw.inbox USING moved, myclaw.session, myclaw.mailbox
        WHERE session.id = moved.id AND mailbox.partition = session.partition AND mailbox.key = session.key
            AND inbox.mailbox = mailbox.id AND inbox.id = ANY ($10)
    ), summarised AS (
        INSERT INTO myclaw.sealable (session) SELECT moved.id FROM moved WHERE 'compaction' = ANY ($8)
        ON CONFLICT (session) DO UPDATE SET tried = '-infinity'
    )
    INSERT INTO myclaw.entry (session, seq, id, kind, body)
    SELECT moved.id, $3 + new.number, new.id, new.kind, new.body
    FROM moved, unnest($7::text[], $8::text[], $9::text[]) WITH ORDINALITY AS new (id, kind, body, number)
    RETURNING (SELECT is_listed FROM moved)";
/// Whether the session knows all messages that its log has taken, and those of `$3` among them.
pub(super) const TAKEN: &str = "
    SELECT knows_taken, ARRAY(SELECT taken.id FROM myclaw.taken WHERE session = session.id AND taken.id = ANY ($3))
    FROM myclaw.session WHERE partition = $1 AND key = $2 AND last_seq > 0";
pub(super) const ADD_TAKEN: &str = "
    INSERT INTO myclaw.taken (session, id) SELECT $1, message.id FROM unnest($2::text[]) AS message (id)
    ON CONFLICT DO NOTHING";
pub(super) const KNOWS_TAKEN: &str = "UPDATE myclaw.session SET knows_taken = true WHERE id = $1";
pub(super) const END: &str = "SELECT last_seq FROM myclaw.session WHERE id = $1 AND epoch = $2";
/// What was written of a session that was never finished.
pub(super) const CLEAR_UNFINISHED: &str =
    "DELETE FROM myclaw.entry WHERE session = $1 AND seq > $2";
/// Adds entries that nobody sees yet, behind `$2`.
pub(super) const ADD_ENTRIES: &str = "
    INSERT INTO myclaw.entry (session, seq, id, kind, body)
    SELECT $1, $2 + new.number, new.id, new.kind, new.body
    FROM unnest($3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS new (id, kind, body, number)
    ON CONFLICT (session, seq) DO NOTHING";
/// Copies the entries of session `$2` behind `$4` and up to `$3` to behind `$5`, but for titles, which belong to a session
/// alone.
pub(super) const COPY_ENTRIES: &str = "
    INSERT INTO myclaw.entry (session, seq, id, kind, body)
    SELECT $1, $5 + row_number() OVER (ORDER BY seq), id, kind, body
    FROM myclaw.entry WHERE session = $2 AND seq > $4 AND seq <= $3 AND kind <> 'about'
    ON CONFLICT (session, seq) DO NOTHING";
pub(super) const COUNT_ENTRIES: &str = "SELECT count(*) FROM myclaw.entry WHERE session = $1";
/// Makes a session visible, with `$3` entries.
pub(super) const FINISH: &str = "
    WITH finished AS (
        UPDATE myclaw.session SET last_seq = $3, header = $4, inherited = $5, written_at = $6
        WHERE id = $1 AND epoch = $2 RETURNING id
    ), summarised AS (
        INSERT INTO myclaw.sealable (session) SELECT id FROM finished
        WHERE EXISTS (SELECT FROM myclaw.entry WHERE session = $1 AND kind = 'compaction') ON CONFLICT DO NOTHING
    )
    SELECT id FROM finished";

pub(super) const FIND: &str = "
    SELECT id, last_seq, header, inherited, sealed FROM myclaw.session
    WHERE partition = $1 AND key = $2 AND last_seq > 0";
/// Entries of session `$1` that are not sealed: of the `$3` before `$2`, the newest first.
pub(super) const BACKWARD: &str = "
    SELECT seq, body FROM myclaw.entry WHERE session = $1 AND seq < $2 AND seq >= $2 - $3 ORDER BY seq DESC";
/// Of the `$3` behind `$2`, those up to `$4`, the oldest first.
pub(super) const FORWARD: &str = "
    SELECT seq, body FROM myclaw.entry
    WHERE session = $1 AND seq > $2 AND seq <= least($4, $2 + $3) ORDER BY seq";
pub(super) const ID: &str = "SELECT id FROM myclaw.session WHERE partition = $1 AND key = $2";
pub(super) const SET_ENTRY: &str =
    "UPDATE myclaw.entry SET body = $3 WHERE session = $1 AND seq = $2";
/// The texts in the row of a session.
pub(super) const TEXTS: &str = "SELECT header, listed FROM myclaw.session WHERE id = $1";
pub(super) const SET_TEXTS: &str =
    "UPDATE myclaw.session SET header = $2, listed = $3 WHERE id = $1";
pub(super) const WAITING_TEXTS: &str = "
    SELECT mailbox, inbox.id, body FROM myclaw.inbox JOIN myclaw.mailbox ON mailbox.id = mailbox
    WHERE partition = $1 ORDER BY mailbox, seq";
pub(super) const SET_WAITING: &str =
    "UPDATE myclaw.inbox SET body = $3 WHERE mailbox = $1 AND id = $2";
/// Records behind a place.
pub(super) const RECORDS: &str = "
    SELECT kind, key, version, value FROM myclaw.record
    WHERE partition = $1 AND (kind, key) > ($2, $3) ORDER BY kind, key LIMIT $4";
pub(super) const SET_RECORD: &str = "
    UPDATE myclaw.record SET value = $5 WHERE partition = $1 AND kind = $2 AND key = $3 AND version = $4";
/// The place of the entry with the id `$2`.
pub(super) const PLACE: &str = "
    SELECT seq, kind FROM myclaw.entry WHERE session = $1 AND id = $2 AND seq <= $3";
/// The last title behind `$2`.
pub(super) const LAST_ABOUT: &str = "
    SELECT seq, body FROM (
        (SELECT seq, body FROM myclaw.entry WHERE session = $1 AND kind = 'about' ORDER BY seq DESC LIMIT 1)
        UNION ALL
        (SELECT about_seq, about FROM myclaw.segment WHERE session = $1 AND about IS NOT NULL
            ORDER BY from_seq DESC LIMIT 1)
    ) AS said (seq, body) WHERE seq > $2 ORDER BY seq DESC LIMIT 1";
/// The last entry of kind `$2` behind `$3`.
pub(super) const LAST_OF_KIND: &str = "
    SELECT seq, body FROM myclaw.entry WHERE session = $1 AND kind = $2 AND seq > $3 AND seq <= $4
    ORDER BY seq DESC LIMIT 1";
/// The last entry that has an id.
pub(super) const LAST_WITH_ID: &str = "
    SELECT seq, id FROM myclaw.entry WHERE session = $1 AND id IS NOT NULL AND seq <= $2
    ORDER BY seq DESC LIMIT 1";

pub(super) const HAS_ANY: &str =
    "SELECT id FROM myclaw.session WHERE partition = $1 AND last_seq > 0 LIMIT 1";
pub(super) const ALL_KEYS: &str = "
    SELECT key FROM myclaw.session WHERE partition = $1 AND (last_seq > 0 OR listed IS NOT NULL) ORDER BY key";
pub(super) const LISTED: &str = "
    SELECT listed, listed_at, in_turn FROM myclaw.session WHERE partition = $1 AND key = $2 AND listed IS NOT NULL";
/// The list behind a place in it, the latest first.
pub(super) const LIST: &str = "
    SELECT key, listed, listed_at, in_turn FROM myclaw.session
    WHERE partition = $1 AND listed IS NOT NULL
        AND listed_at <= $2 AND (listed_at < $2 OR key > $3) ORDER BY listed_at DESC, key LIMIT $4";
/// The same of the sessions that have labels.
pub(super) const LABELLED: &str = "
    SELECT key, listed, listed_at, in_turn FROM myclaw.session
    WHERE partition = $1 AND listed IS NOT NULL AND listed LIKE '%\"labels\":[\"%'
        AND listed_at <= $2 AND (listed_at < $2 OR key > $3) ORDER BY listed_at DESC, key LIMIT $4";
/// How many sessions the list has: if they are more than `$2`, what the database's statistics say, as long as they know of so
/// many. Counting all of them would take longer the more there are.
pub(super) const COUNT_LISTED: &str = "
    SELECT CASE
        WHEN few <= $2 THEN few
        WHEN estimated > $2 THEN estimated
        ELSE (SELECT count(*) FROM myclaw.session WHERE partition = $1 AND listed IS NOT NULL)
    END FROM (
        SELECT count(*) AS few FROM (
            SELECT FROM myclaw.session WHERE partition = $1 AND listed IS NOT NULL LIMIT $2 + 1
        ) AS first
    ) AS counted, (
        SELECT reltuples::bigint AS estimated FROM pg_class WHERE oid = 'myclaw.session_listed'::regclass
    ) AS statistics";
pub(super) const OLD: &str = "
    SELECT key FROM myclaw.session WHERE partition = $1 AND listed IS NOT NULL AND listed_at < $2 ORDER BY key";
/// Takes a session off the list, and away if it holds nothing.
pub(super) const UNLIST: &str = "
    UPDATE myclaw.session SET listed = NULL, listed_at = NULL, in_turn = false WHERE partition = $1 AND key = $2";
/// The entry in the list, of which a change begins.
pub(super) const LOCK_LISTED: &str = "
    SELECT id, listed, header, written_at, in_turn FROM myclaw.session WHERE partition = $1 AND key = $2 FOR UPDATE";
/// Changes it. The owner with the epoch `$5` gives the session back.
pub(super) const SET_LISTED: &str = "
    UPDATE myclaw.session SET listed = $2, listed_at = $3, in_turn = $4,
        lease_until = CASE WHEN epoch = $5 THEN '-infinity' ELSE lease_until END,
        owner = CASE WHEN epoch = $5 THEN NULL ELSE owner END
    WHERE id = $1";
/// Deletes a session that its owner has, with what waits for it.
pub(super) const DELETE: &str = "
    WITH gone AS (DELETE FROM myclaw.mailbox WHERE partition = $1 AND key = $2)
    DELETE FROM myclaw.session WHERE partition = $1 AND key = $2 AND epoch = $3";

pub(super) const SEARCHED: &str = "
    SELECT id, key, inherited, last_seq FROM myclaw.session WHERE partition = $1 AND last_seq > 0";
/// Those of these sessions that were not deleted meanwhile.
pub(super) const STILL_THERE: &str = "SELECT id FROM myclaw.session WHERE id = ANY ($1)";
/// Messages of the sessions `$1`, behind a place.
pub(super) const MESSAGES: &str = "
    SELECT session, seq, id, body FROM myclaw.entry
    WHERE session = ANY ($1) AND (session, seq) > ($2, $3) AND kind = 'message'
    ORDER BY session, seq LIMIT $4";

/// The text of a message as searches compare it, and as the index `entry_text` has it. In every locale, "C" changes the case of
/// ASCII letters only. U+017F and U+212A are an s and a k.
const PLAIN: &str = "lower(translate(body, '\u{17f}\u{212a}', 'sk') COLLATE \"C\")";

/// The places of the messages in which one of `count` patterns is, from `$2` on.
pub(super) fn with_patterns(count: usize) -> String {
    let patterns: Vec<String> =
        (0..count).map(|number| format!("{PLAIN} LIKE ${}", number + 2)).collect();
    format!(
        "SELECT entry.session, seq FROM myclaw.entry JOIN myclaw.session ON session.id = entry.session
         WHERE session.partition = $1 AND kind = 'message' AND ({}) ORDER BY entry.session, seq",
        patterns.join(" OR ")
    )
}
/// Messages by their places.
pub(super) const AT_PLACES: &str = "
    SELECT session, seq, id, body FROM unnest($1::bigint[], $2::bigint[]) AS place (session, seq)
        JOIN myclaw.entry USING (session, seq)
    ORDER BY session, seq";

pub(super) const ADD_MAILBOX: &str =
    "INSERT INTO myclaw.mailbox (partition, key) VALUES ($1, $2) ON CONFLICT DO NOTHING";
pub(super) const MAILBOX: &str = "SELECT id FROM myclaw.mailbox WHERE partition = $1 AND key = $2";
pub(super) const PENDING: &str = "SELECT body FROM myclaw.inbox WHERE mailbox = $1 ORDER BY seq";
pub(super) const PENDING_OF: &str = "
    SELECT inbox.body FROM myclaw.inbox JOIN myclaw.mailbox ON mailbox.id = inbox.mailbox
    WHERE mailbox.partition = $1 AND mailbox.key = $2 ORDER BY inbox.seq";
pub(super) const INBOX_BYTES: &str = "
    SELECT coalesce(sum(octet_length(inbox.body)), 0)::bigint
    FROM myclaw.inbox JOIN myclaw.mailbox ON mailbox.id = inbox.mailbox
    WHERE mailbox.partition = $1 AND mailbox.key = $2";
/// Settles `$2` and adds messages, but for those that the log has taken. Without messages, or if the others have `$5` bytes at
/// most; no row if they have more.
pub(super) const CHANGE_INBOX: &str = "
    WITH fits AS (
        SELECT 1 WHERE cardinality($3::text[]) = 0 OR $5 >= (
            SELECT coalesce(sum(octet_length(body)), 0) FROM myclaw.inbox WHERE mailbox = $1 AND id <> ALL ($3))
    ), settled AS (
        DELETE FROM myclaw.inbox USING fits WHERE mailbox = $1 AND id = ANY ($2)
    ), added AS (
        INSERT INTO myclaw.inbox (mailbox, id, body)
        SELECT $1, new.id, new.body FROM fits, unnest($3::text[], $4::text[]) AS new (id, body)
        WHERE NOT EXISTS (
            SELECT FROM myclaw.mailbox JOIN myclaw.session USING (partition, key)
                JOIN myclaw.taken ON taken.session = session.id
            WHERE mailbox.id = $1 AND taken.id = new.id
        )
        ON CONFLICT (mailbox, id) DO NOTHING
    )
    SELECT 1 FROM fits";
/// The newest message of each of the inboxes `$2`.
pub(super) const NEWEST: &str = "
    SELECT mailbox.key, max(inbox.seq) FROM myclaw.inbox JOIN myclaw.mailbox ON mailbox.id = inbox.mailbox
    WHERE mailbox.partition = $1 AND mailbox.key = ANY ($2) GROUP BY mailbox.key";

pub(super) const BEGIN_BLOB: &str =
    "INSERT INTO myclaw.blob (partition, place) VALUES ($1, $2) RETURNING id";
pub(super) const ADD_PART: &str = "
    INSERT INTO myclaw.blob_part (blob, number, content) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
pub(super) const PART: &str =
    "SELECT content FROM myclaw.blob_part WHERE blob = $1 AND number = $2";
/// Those of the contents `$1` that nothing names.
pub(super) const UNNAMED_OF: &str = "
    SELECT id, place FROM myclaw.blob
    WHERE id = ANY ($1) AND NOT EXISTS (SELECT FROM myclaw.side_file WHERE side_file.blob = blob.id)
        AND NOT EXISTS (SELECT FROM myclaw.segment WHERE segment.blob = blob.id)";
pub(super) const DROP_BLOBS: &str = "
    DELETE FROM myclaw.blob
    WHERE id = ANY ($1) AND NOT EXISTS (SELECT FROM myclaw.side_file WHERE side_file.blob = blob.id)
        AND NOT EXISTS (SELECT FROM myclaw.segment WHERE segment.blob = blob.id)";
pub(super) const UNNAMED_BLOBS: &str = "
    SELECT id FROM myclaw.blob WHERE partition = $1 AND begun < clock_timestamp() - interval '1 day'
        AND NOT EXISTS (SELECT FROM myclaw.side_file WHERE side_file.blob = blob.id)
        AND NOT EXISTS (SELECT FROM myclaw.segment WHERE segment.blob = blob.id) LIMIT 1000";
/// The side files of session `$1`.
pub(super) const SIDE_FILES: &str = "SELECT name, blob, digest, place FROM myclaw.side_file JOIN myclaw.blob ON blob.id = blob WHERE session = $1";
/// The contents of the session with this key.
pub(super) const BLOBS_OF: &str = "
    WITH mine AS (SELECT id FROM myclaw.session WHERE partition = $1 AND key = $2)
    SELECT blob FROM myclaw.side_file JOIN mine ON mine.id = side_file.session
    UNION ALL SELECT blob FROM myclaw.segment JOIN mine ON mine.id = segment.session";
/// Under epoch `$2`, session `$1` has no side files `$3` any more, and the others with these contents.
pub(super) const SET_SIDE_FILES: &str = "
    WITH mine AS (
        UPDATE myclaw.session SET side_files = nextval('myclaw.epoch') WHERE id = $1 AND epoch = $2
        RETURNING id, side_files
    ), gone AS (
        DELETE FROM myclaw.side_file USING mine WHERE session = mine.id AND name = ANY ($3)
    ), named AS (
        INSERT INTO myclaw.side_file (session, name, blob, bytes, digest)
        SELECT mine.id, new.name, new.blob, new.bytes, new.digest
        FROM mine, unnest($4::text[], $5::bigint[], $6::bigint[], $7::text[]) AS new (name, blob, bytes, digest)
        ON CONFLICT (session, name)
            DO UPDATE SET blob = excluded.blob, bytes = excluded.bytes, digest = excluded.digest
    )
    SELECT side_files FROM mine";
/// Which of these sessions exist, or are open.
pub(super) const EXISTING: &str =
    "SELECT key FROM myclaw.session WHERE partition = $1 AND key = ANY ($2)";
