//! What the database saw: who wrote, and who was allowed to. Its triggers judge each write in the transaction that makes it,
//! by the newest owner, whatever the programs believe.

use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

/// Each gateway connects under its name, which the database has as `application_name`.
const TRIGGERS: &str = "
    CREATE SCHEMA audit;
    CREATE TABLE audit.violation (at timestamptz NOT NULL DEFAULT clock_timestamp(), what text NOT NULL);
    CREATE TABLE audit.taken (session bigint, epoch bigint, node text, at timestamptz DEFAULT clock_timestamp());
    CREATE TABLE audit.lease (desk text, node text, ends timestamptz, at timestamptz DEFAULT clock_timestamp());

    CREATE FUNCTION audit.node() RETURNS text LANGUAGE sql AS $$ SELECT current_setting('application_name') $$;

    CREATE FUNCTION audit.on_session() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO audit.taken (session, epoch, node) VALUES (NEW.id, NEW.epoch, audit.node());
        RETURN NULL;
    END $$;
    CREATE TRIGGER audit AFTER UPDATE ON myclaw.session FOR EACH ROW
        WHEN (NEW.epoch <> OLD.epoch) EXECUTE FUNCTION audit.on_session();

    CREATE FUNCTION audit.on_entry() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE owner text; BEGIN
        SELECT node INTO owner FROM audit.taken WHERE session = NEW.session ORDER BY epoch DESC LIMIT 1;
        IF owner IS DISTINCT FROM audit.node() THEN
            INSERT INTO audit.violation (what) VALUES (format('%s appends row %s of session %s, which %s has: %s',
                audit.node(), NEW.seq, NEW.session, owner, left(NEW.body, 300)));
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER audit AFTER INSERT ON myclaw.entry FOR EACH ROW EXECUTE FUNCTION audit.on_entry();

    CREATE FUNCTION audit.on_message() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE holder text; message jsonb := convert_from(NEW.value, 'UTF8'); BEGIN
        IF OLD.queue <> 'open' THEN
            INSERT INTO audit.violation (what) VALUES (format('%s changes a message that is over: %s', audit.node(), message));
            RETURN NULL;
        END IF;
        SELECT split_part(owner, '#', 1) INTO holder FROM myclaw.record
            WHERE partition = NEW.partition AND kind = 'desk' AND key = message->>'session';
        IF NEW.queue <> 'open' AND holder IS DISTINCT FROM audit.node() THEN
            INSERT INTO audit.violation (what)
                VALUES (format('%s answers for the desk of %s: %s', audit.node(), holder, message));
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER message AFTER UPDATE ON myclaw.record FOR EACH ROW
        WHEN (NEW.kind = 'incoming') EXECUTE FUNCTION audit.on_message();

    CREATE FUNCTION audit.on_desk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO audit.lease (desk, node, ends) VALUES
            (NEW.key, split_part(NEW.owner, '#', 1), to_timestamp(NEW.lease_until / 1000.0));
        RETURN NULL;
    END $$;
    CREATE TRIGGER desk AFTER UPDATE ON myclaw.record FOR EACH ROW
        WHEN (NEW.kind = 'desk' AND NEW.owner IS NOT NULL) EXECUTE FUNCTION audit.on_desk();
";

/// A connection of its own.
pub(crate) struct Audit {
    runtime: Runtime,
    url: String,
}

impl Audit {
    /// Adds the triggers to a database that has its tables.
    pub(crate) fn install(url: &str) -> Self {
        let audit = Self::without_triggers(url);
        audit.execute(TRIGGERS);
        audit
    }

    /// Only asks.
    pub(crate) fn without_triggers(url: &str) -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        Self { runtime, url: url.to_owned() }
    }

    pub(crate) fn execute(&self, sql: &str) {
        self.with(async |client| client.batch_execute(sql).await.unwrap());
    }

    /// Why the database does not carry this out.
    pub(crate) fn refusal(&self, sql: &str) -> String {
        let refused = self.with(async |client| client.batch_execute(sql).await.unwrap_err());
        refused.as_db_error().unwrap().message().to_owned()
    }

    fn with<T>(&self, work: impl AsyncFnOnce(&Client) -> T) -> T {
        self.runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await.unwrap();
            tokio::spawn(connection);
            work(&client).await
        })
    }

    /// The writes that were not allowed.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.texts("SELECT what FROM audit.violation ORDER BY at", &[])
    }

    /// The first column of the rows of a query.
    pub(crate) fn texts(
        &self,
        sql: &str,
        parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> Vec<String> {
        self.with(async |client| {
            let rows = client.query(sql, parameters).await.unwrap();
            rows.iter().map(|row| row.get(0)).collect()
        })
    }

    /// How often a session of this node was taken by another one.
    pub(crate) fn losses(&self, node: &str) -> usize {
        let sql = "
            SELECT node FROM (
                SELECT node, lag(node) OVER (PARTITION BY session ORDER BY epoch) AS before FROM audit.taken
            ) AS taken WHERE before = $1 AND node <> $1";
        self.texts(sql, &[&node]).len()
    }

    /// The end of the last lease that this node had of the desk of a session before this time, both in milliseconds since the Unix epoch.
    pub(crate) fn lease_end(&self, node: &str, session: &str, at_ms: i64) -> Option<i64> {
        let sql = "
            SELECT (extract(epoch FROM max(ends)) * 1000)::bigint::text FROM audit.lease
            WHERE node = $1 AND desk LIKE '%:' || $2 AND at <= to_timestamp($3::float8 / 1000)";
        let ends = self.with(async |client| {
            let at = at_ms as f64;
            let row = client.query_one(sql, &[&node, &session, &at]).await.unwrap();
            row.get::<_, Option<String>>(0)
        });
        ends.map(|ends| ends.parse().unwrap())
    }
}
