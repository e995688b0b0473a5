//! A database that earlier versions have made ends with the tables of a new one.

use std::collections::BTreeMap;

use crate::server::{block_on, connect, database, open, server};

/// The steps of the tables, as a new database gets them.
pub(crate) const STEPS: [&str; 10] = [
    include_str!("../../src/schema/1.sql"),
    include_str!("../../src/schema/2.sql"),
    include_str!("../../src/schema/3.sql"),
    include_str!("../../src/schema/4.sql"),
    include_str!("../../src/schema/5.sql"),
    include_str!("../../src/schema/6.sql"),
    include_str!("../../src/schema/7.sql"),
    include_str!("../../src/schema/8.sql"),
    include_str!("../../src/schema/9.sql"),
    include_str!("../../src/schema/10.sql"),
];
/// The first format with parts of logs in the object storage.
const PARTS: usize = 8;
/// What the fourth step was before there were tenants: the extension was in the schema of the first one.
const FOURTH: [&str; 2] = [
    "IF (SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = 'public') THEN",
    "IF false THEN",
];

/// All columns, constraints and indexes of the tables, by their names. Where the extension for searches is does not count.
async fn catalogue(url: &str) -> BTreeMap<String, String> {
    let sql = "
        SELECT format('column %s.%s', table_name, column_name),
            concat_ws(' ', data_type, collation_name, is_nullable, column_default, is_identity, identity_generation)
        FROM information_schema.columns WHERE table_schema = 'myclaw'
        UNION ALL SELECT format('constraint %s.%s', conrelid::regclass, conname), pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'myclaw'::regnamespace
        UNION ALL SELECT 'index ' || indexname,
            replace(replace(indexdef, 'public.gin_trgm_ops', 'gin_trgm_ops'), 'myclaw.gin_trgm_ops', 'gin_trgm_ops')
        FROM pg_indexes WHERE schemaname = 'myclaw'
        UNION ALL SELECT 'options ' || relname, reloptions::text FROM pg_class
        WHERE relnamespace = 'myclaw'::regnamespace AND reloptions IS NOT NULL
        UNION ALL SELECT 'sequence ' || sequencename, data_type::text FROM pg_sequences WHERE schemaname = 'myclaw'
        UNION ALL SELECT 'trigger ' || tgname, pg_get_triggerdef(pg_trigger.oid) FROM pg_trigger
            JOIN pg_class ON pg_class.oid = tgrelid WHERE relnamespace = 'myclaw'::regnamespace AND NOT tgisinternal
        UNION ALL SELECT 'format', number::text FROM myclaw.format";
    let rows = connect(url).await.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[test]
fn migrated_and_new_databases_have_the_same_tables() {
    let Some(server) = server() else { return };
    block_on(async {
        let new = database(server).await;
        open(&new).await;
        let expected = catalogue(&new).await;
        assert!(expected.contains_key("index entry_text") && expected.len() > 60, "{expected:?}");
        assert_eq!(expected["format"], STEPS.len().to_string());
        assert!(STEPS[3].contains(FOURTH[0]));
        for format in 1..STEPS.len() {
            for is_before_tenants in [false, true] {
                let url = database(server).await;
                let client = connect(&url).await;
                for step in &STEPS[..format] {
                    let step = match is_before_tenants {
                        true => step.replace(FOURTH[0], FOURTH[1]),
                        false => (*step).to_owned(),
                    };
                    client.batch_execute(&step).await.unwrap();
                }
                let set = format!("UPDATE myclaw.format SET number = {format}");
                client.batch_execute(&set).await.unwrap();
                open(&url).await;
                assert_eq!(catalogue(&url).await, expected, "from {format}, {is_before_tenants}");
                if format >= PARTS {
                    continue;
                }
                // Programs of that version may still run, and do not know of parts elsewhere.
                let sql = "SELECT seals_from > clock_timestamp() + interval '23 hours' FROM myclaw.format";
                assert!(client.query_one(sql, &[]).await.unwrap().get::<_, bool>(0));
            }
        }
        let sql = "SELECT seals_from <= clock_timestamp() FROM myclaw.format";
        assert!(connect(&new).await.query_one(sql, &[]).await.unwrap().get::<_, bool>(0));
    });
}

#[test]
fn limits_that_an_administrator_has_set_stop_no_migration() {
    let Some(server) = server() else { return };
    block_on(async {
        let url = database(server).await;
        let client = connect(&url).await;
        for step in &STEPS[..3] {
            client.batch_execute(step).await.unwrap();
        }
        // The next step makes an index of all messages.
        let fill = "
            UPDATE myclaw.format SET number = 3;
            INSERT INTO myclaw.partition (name) VALUES ('main');
            INSERT INTO myclaw.session (partition, key) SELECT id, 'k' FROM myclaw.partition;
            INSERT INTO myclaw.entry (session, seq, kind, body)
                SELECT session.id, number, 'message', repeat(md5(number::text), 20)
                FROM myclaw.session, generate_series(1, 10000) AS number;
            DO $$ BEGIN
                EXECUTE format('ALTER DATABASE %I SET statement_timeout = 200', current_database());
                EXECUTE format('ALTER DATABASE %I SET lock_timeout = 100', current_database());
                EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database());
            END $$";
        client.batch_execute(fill).await.unwrap();
        open(&url).await;
        let number: i32 =
            client.query_one("SELECT number FROM myclaw.format", &[]).await.unwrap().get(0);
        assert_eq!(usize::try_from(number).unwrap(), STEPS.len());
    });
}
