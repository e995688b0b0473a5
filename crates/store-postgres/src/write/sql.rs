//! The statements that write.

/// Begins a transaction of several round trips. The server keeps the limits, for a client that stands still or is gone: what it
/// has locked is free again after two seconds, which is longer than the client needs between two statements.
pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
    SET LOCAL statement_timeout = '10s';
    SET LOCAL lock_timeout = '5s';
    SET LOCAL idle_in_transaction_session_timeout = '2s';
    SET LOCAL synchronous_commit = on";
/// A commit that is cancelled while it waits for a standby is one without it, so there is no limit on its time.
pub(crate) const UNLIMITED: &str = "SET LOCAL statement_timeout = 0";
pub(super) const COMMIT: &str = "COMMIT";
pub(super) const ROLLBACK: &str = "ROLLBACK";

/// Adds a partition.
pub(crate) const ADD_PARTITION: &str =
    "INSERT INTO myclaw.partition (name) VALUES ($1) ON CONFLICT DO NOTHING";
/// The number of a partition.
pub(crate) const PARTITION_ID: &str = "SELECT id FROM myclaw.partition WHERE name = $1";
/// Takes the lock of a partition, waiting for those who have it. New rows that refer to the partition do not wait.
pub(super) const LOCK: &str =
    "SELECT counter FROM myclaw.partition WHERE name = $1 FOR NO KEY UPDATE";
/// The time of the database, or another one.
pub(super) const NOW: &str =
    "SELECT coalesce($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";
pub(super) const RECEIPT: &str = "SELECT EXISTS (SELECT FROM myclaw.receipt WHERE token = $1)";
/// Receipts that nobody looks for any more.
pub(super) const SWEEP_RECEIPTS: &str =
    "DELETE FROM myclaw.receipt WHERE at < clock_timestamp() - interval '10 minutes'";

/// The records with these ids, without their values.
pub(super) const STATES: &str = "
    SELECT record.kind, record.key, version, ''::bytea, queue, place, entered, epoch, owner, lease_until
    FROM myclaw.record JOIN unnest($2::text[], $3::text[]) AS wanted (kind, key)
        ON record.kind = wanted.kind AND record.key = wanted.key
    WHERE partition = (SELECT id FROM myclaw.partition WHERE name = $1)";
/// The first records of a queue that can be claimed.
pub(super) const CLAIMABLE: &str = "
    SELECT kind, key, version, value, queue, place, entered FROM myclaw.record
    WHERE partition = (SELECT id FROM myclaw.partition WHERE name = $1) AND queue = $2 AND place <= $3
        AND lease_until <= coalesce($4, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
    ORDER BY place, entered LIMIT $5";

pub(super) const PUT: &str = "
    INSERT INTO myclaw.record
        (partition, kind, key, version, value, queue, place, entered, epoch, owner, lease_until)
    SELECT (SELECT id FROM myclaw.partition WHERE name = $1), new.*
    FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[],
        $10::text[], $11::bigint[]) AS new
    ON CONFLICT (partition, kind, key) DO UPDATE SET version = excluded.version, value = excluded.value,
        queue = excluded.queue, place = excluded.place, entered = excluded.entered, epoch = excluded.epoch,
        owner = excluded.owner, lease_until = excluded.lease_until";
pub(super) const REMOVE: &str = "
    DELETE FROM myclaw.record USING unnest($2::text[], $3::text[]) AS old (kind, key)
    WHERE partition = (SELECT id FROM myclaw.partition WHERE name = $1)
        AND record.kind = old.kind AND record.key = old.key";
pub(super) const LEASE: &str = "
    UPDATE myclaw.record SET epoch = new.epoch, owner = new.owner, lease_until = new.until
    FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[], $6::bigint[]) AS new (kind, key, epoch, owner, until)
    WHERE partition = (SELECT id FROM myclaw.partition WHERE name = $1)
        AND record.kind = new.kind AND record.key = new.key";
/// The end of what a transaction writes.
pub(super) const FINISH: &str = "
    WITH stored AS (INSERT INTO myclaw.receipt (token) VALUES ($2))
    UPDATE myclaw.partition SET counter = $3 WHERE name = $1";
