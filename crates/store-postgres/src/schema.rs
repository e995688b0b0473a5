//! The tables, and how an older database becomes one of this version.

use std::sync::Arc;

use myclaw_files::tenants::MAIN;
use tokio_postgres::types::Type;

use myclaw_store::StoreError;

use crate::failure::{Failure, Kind};
use crate::pool::{Lent, Pool, answer};
use crate::tenant::MAIN_SCHEMA;

/// The steps from each format to the next. One that was released never changes; a new one goes at the end.
const STEPS: [&str; 10] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
    include_str!("schema/7.sql"),
    include_str!("schema/8.sql"),
    include_str!("schema/9.sql"),
    include_str!("schema/10.sql"),
];
/// The newest format. An older program refuses a newer one.
const FORMAT: i32 = STEPS.len() as i32;
/// The lock under which tables are changed: `MyCl` in ASCII. All tenants have the same, because the extension for searches is
/// there once in a database.
const LOCK: i64 = 0x4d79_436c;

/// Begins a change of the tables. They may be large, so it has no time limit, whatever an administrator has set.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
    SET LOCAL synchronous_commit = on; SET LOCAL standard_conforming_strings = on";

/// Creates the tables, or brings them to the newest format.
pub(crate) async fn prepare(pool: &Arc<Pool>) -> Result<(), StoreError> {
    let attempts = pool.attempts();
    loop {
        let found = match attempt(pool).await {
            Ok(found) => found,
            Err(failure) => {
                attempts.after(failure, pool.server()).await?;
                continue;
            }
        };
        if found <= FORMAT {
            return Ok(());
        }
        return Err(StoreError::Database {
            server: pool.server().to_owned(),
            problem: format!(
                "was written by a newer version of this program (format {found}; this version knows {FORMAT}); update \
                 myclaw, or use another database"
            ),
        });
    }
}

/// One attempt. Returns the format that was found, and leaves a newer one alone.
async fn attempt(pool: &Arc<Pool>) -> Result<i32, Failure> {
    let client = pool.get().await?;
    let encoding = answer(client.query_typed_one("SHOW server_encoding", &[])).await?;
    let encoding: String = encoding.try_get(0)?;
    if encoding != "UTF8" {
        return Err(Failure::lasting(format!(
            "has the encoding {encoding}, which cannot hold all text; create it with createdb --encoding UTF8 --template \
             template0"
        )));
    }
    // Without the lock first: each start looks, and almost none finds something to do.
    let mut found = format_of(&client).await?;
    if found == 0 && !pool.tenant().is_main() && !pool.creates_tenant {
        return Err(no_tenant(pool, &client).await?);
    }
    if found < FORMAT {
        answer(client.batch_execute(BEGIN)).await?;
        let lock = format!("SELECT pg_advisory_xact_lock({LOCK})");
        answer(client.batch_execute(&lock)).await?;
        found = format_of(&client).await?;
        for step in STEPS.iter().skip(usize::try_from(found).unwrap_or_default()) {
            client.batch_execute(step).await.map_err(of_step)?;
        }
        if found < FORMAT {
            let set = format!("UPDATE myclaw.format SET number = {FORMAT}");
            answer(client.batch_execute(&set)).await?;
        }
        // Not known to have happened, it is looked for by the next attempt.
        client.batch_execute("COMMIT").await?;
    }
    client.give_back();
    Ok(found)
}

/// Why the tables cannot be brought to another format. What was changed before is undone.
fn of_step(error: tokio_postgres::Error) -> Failure {
    let refusal = error.as_db_error().map(|it| format!("{}, {}", it.message(), it.code().code()));
    match (refusal, Failure::from(error)) {
        (Some(said), Failure { kind: Kind::Refused, .. }) => Failure::lasting(format!(
            "cannot be brought to the form of this version ({said}), and is as it was; remove what was added to its tables by \
             hand, then update again"
        )),
        (_, failure) => failure,
    }
}

/// The format of the tables; 0 if there are none.
async fn format_of(client: &Lent) -> Result<i32, Failure> {
    // Of the tables as they are now: `to_regclass` may answer from a cache of this connection.
    let sql = "
        SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'myclaw'), EXISTS (
            SELECT FROM pg_tables JOIN pg_namespace ON nspname = schemaname
                JOIN pg_class ON relname = tablename AND relnamespace = pg_namespace.oid
                JOIN pg_attribute ON attrelid = pg_class.oid AND attname = 'number' AND atttypid = 'integer'::regtype
            WHERE schemaname = 'myclaw' AND tablename = 'format')";
    let row = answer(client.query_typed_one(sql, &[])).await?;
    let (has_tables, has_format): (bool, bool) = (row.try_get(0)?, row.try_get(1)?);
    if !has_tables {
        return Ok(0);
    }
    let rows = match has_format {
        true => answer(client.query_typed("SELECT number FROM myclaw.format", &[])).await?,
        false => Vec::new(),
    };
    match rows.as_slice() {
        [row] => Ok(row.try_get(0)?),
        _ => Err(Failure::lasting(
            "has a schema with tables that are not of this program; use another database, or set gateway.tenant to another \
             name, which gives the schema another one"
                .to_owned(),
        )),
    }
}

async fn no_tenant(pool: &Pool, client: &Lent) -> Result<Failure, Failure> {
    let known = names(client).await?.join(", ");
    let known = if known.is_empty() { "none" } else { &known };
    Ok(Failure::lasting(format!(
        "has no tenant {} (there is {known}); correct gateway.tenant, or create it with `myclaw store migrate`",
        pool.tenant().name(),
    )))
}

/// The names of the tenants whose tables can be used.
pub(crate) async fn tenants(pool: &Arc<Pool>) -> Result<Vec<String>, Failure> {
    let client = pool.get().await?;
    let names = names(&client).await?;
    client.give_back();
    Ok(names)
}

async fn names(client: &Lent) -> Result<Vec<String>, Failure> {
    let sql = "
        SELECT coalesce(nullif(substr(schemaname, length($1) + 2), ''), $2) AS tenant FROM pg_tables
        WHERE tablename = 'format' AND (schemaname = $1 OR starts_with(schemaname, $1 || '_'))
            AND has_schema_privilege(schemaname, 'USAGE') ORDER BY tenant";
    let rows = client.query_typed(sql, &[(&MAIN_SCHEMA, Type::TEXT), (&MAIN, Type::TEXT)]);
    let rows = answer(rows).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}
