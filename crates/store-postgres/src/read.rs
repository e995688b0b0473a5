//! Reading records.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use myclaw_store::{
    Cursor, MAX_SCAN_BYTES, Partition, Place, QueueId, Record, RecordId, StoreError, Version,
};

use crate::failure::Failure;
use crate::pool::{Pool, answer};
use crate::{Lease, Standby};

/// The columns that [`record`] reads.
pub(crate) const COLUMNS: &str = "kind, key, version, value, queue, place, entered";
/// The id of the partition with the name `$1`.
pub(crate) const PARTITION: &str = "(SELECT id FROM myclaw.partition WHERE name = $1)";

pub(crate) async fn get(pool: &Arc<Pool>, id: &RecordId) -> Result<Option<Record>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM myclaw.record WHERE partition = {PARTITION} AND kind = $2 AND key = $3"
    );
    let partition = id.partition.as_str();
    let rows = pool
        .query(&sql, &[(&partition, Type::TEXT), (&id.kind, Type::TEXT), (&id.key, Type::TEXT)])
        .await?;
    Ok(records(pool, &id.partition, &rows)?.pop())
}

pub(crate) async fn scan(
    pool: &Arc<Pool>,
    queue: &QueueId,
    after: Option<Cursor>,
    most: usize,
) -> Result<Vec<Record>, StoreError> {
    // The length of a value is known without reading it.
    let sql = format!(
        "SELECT {COLUMNS} FROM (
             SELECT *, sum(octet_length(value)) OVER (ORDER BY place, entered) - octet_length(value) AS bytes FROM (
                 SELECT {COLUMNS} FROM myclaw.record
                 WHERE partition = {PARTITION} AND queue = $2 AND (place, entered) > ($3, $4)
                 ORDER BY place, entered LIMIT $5
             ) AS first
         ) AS counted WHERE bytes <= $6 ORDER BY place, entered"
    );
    let partition = queue.partition.as_str();
    let (place, entered) =
        after.map_or((-1, 0), |after| (stored(after.order), stored(after.entered)));
    let rows = pool
        .query(
            &sql,
            &[
                (&partition, Type::TEXT),
                (&queue.name, Type::TEXT),
                (&place, Type::INT8),
                (&entered, Type::INT8),
                (&stored(most as u64), Type::INT8),
                (&stored(MAX_SCAN_BYTES as u64), Type::INT8),
            ],
        )
        .await?;
    records(pool, &queue.partition, &rows)
}

fn records(
    pool: &Arc<Pool>,
    partition: &Partition,
    rows: &[Row],
) -> Result<Vec<Record>, StoreError> {
    let read: Result<Vec<Record>, Failure> =
        rows.iter().map(|row| Ok(record(partition, row)?)).collect();
    read.map_err(|failure| failure.into_error(pool.server()))
}

pub(crate) async fn standbys(pool: &Arc<Pool>) -> Result<Vec<Standby>, Failure> {
    let sql = "
        SELECT coalesce(application_name, ''), coalesce(sync_state, ''),
            pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint, (extract(epoch FROM replay_lag) * 1000)::bigint
        FROM pg_stat_replication ORDER BY 1";
    let client = pool.get().await?;
    let rows = answer(client.query_typed(sql, &[])).await?;
    client.give_back();
    let standby = |row: &Row| -> Result<Standby, Failure> {
        let (name, sync) = (row.try_get(0)?, row.try_get(1)?);
        Ok(Standby { name, sync, lag_bytes: row.try_get(2)?, lag_ms: row.try_get(3)? })
    };
    rows.iter().map(standby).collect()
}

/// Reads [`COLUMNS`].
pub(crate) fn record(partition: &Partition, row: &Row) -> Result<Record, tokio_postgres::Error> {
    let queue: Option<String> = row.try_get(4)?;
    let order: Option<i64> = row.try_get(5)?;
    let place = queue.zip(order).map(|(queue, order)| Place { queue, order: number(order) });
    Ok(Record {
        id: RecordId { partition: partition.clone(), kind: row.try_get(0)?, key: row.try_get(1)? },
        version: Version(number(row.try_get(2)?)),
        value: row.try_get(3)?,
        place,
        entered: number(row.try_get(6)?),
    })
}

/// A number as the database stores it. All are below 2^63: they are counted from 0, or checked.
pub(crate) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The same back.
pub(crate) fn number(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or_default()
}

/// The time of the database, in milliseconds since the Unix epoch.
pub(crate) async fn now_ms(pool: &Arc<Pool>) -> Result<u64, StoreError> {
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let rows = pool.query(sql, &[]).await?;
    let now = rows.first().map(|row| row.try_get(0)).transpose();
    let now = now.map_err(|error| Failure::from(error).into_error(pool.server()))?;
    Ok(number(now.unwrap_or_default()))
}

/// What is claimed now.
pub(crate) async fn leases(pool: &Arc<Pool>) -> Result<Vec<Lease>, StoreError> {
    let sql = "
        SELECT partition.name, kind, key, owner,
            lease_until - (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS remaining
        FROM myclaw.record JOIN myclaw.partition ON partition.id = record.partition
        WHERE owner IS NOT NULL AND lease_until > (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let read = |row: &Row| -> Result<Lease, Failure> {
        let name: String = row.try_get(0)?;
        let (kind, key) = (row.try_get(1)?, row.try_get(2)?);
        Ok(Lease {
            id: RecordId { partition: Partition::new(name), kind, key },
            owner: row.try_get(3)?,
            left: Duration::from_millis(number(row.try_get(4)?)),
        })
    };
    let leases: Result<Vec<Lease>, Failure> =
        pool.query(sql, &[]).await?.iter().map(read).collect();
    leases.map_err(|failure| failure.into_error(pool.server()))
}

/// The names of the records of a partition, in the order in which they entered.
pub(crate) async fn ids(
    pool: &Arc<Pool>,
    partition: &Partition,
) -> Result<Vec<RecordId>, StoreError> {
    let sql = format!(
        "SELECT kind, key FROM myclaw.record WHERE partition = {PARTITION} ORDER BY entered, kind, key"
    );
    let name = partition.as_str();
    let rows = pool.query(&sql, &[(&name, Type::TEXT)]).await?;
    let read = |row: &Row| -> Result<RecordId, Failure> {
        Ok(RecordId { partition: partition.clone(), kind: row.try_get(0)?, key: row.try_get(1)? })
    };
    let ids: Result<Vec<RecordId>, Failure> = rows.iter().map(read).collect();
    ids.map_err(|failure| failure.into_error(pool.server()))
}
