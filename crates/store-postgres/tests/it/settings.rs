//! Settings that an administrator can give a database or a user, and that this program did not choose.

use myclaw_session::{
    Case, Catalog as _, Keeper, LockWait, SearchQuery, SearchScope, Sessions as _,
};
use myclaw_store_postgres::PostgresSessions;

use crate::conformance::CHECKS;
use crate::server::{block_on, connect, database, databases, open, server};
use crate::subjects;
use crate::values::{Push as _, user, waiting, work};

/// Each with another value than usual.
const SETTINGS: [(&str, &str); 23] = [
    ("array_nulls", "off"),
    ("backslash_quote", "off"),
    ("bytea_output", "escape"),
    ("client_encoding", "LATIN1"),
    ("client_min_messages", "debug1"),
    ("DateStyle", "SQL, DMY"),
    ("default_transaction_deferrable", "on"),
    ("default_transaction_isolation", "serializable"),
    ("extra_float_digits", "-15"),
    ("gin_fuzzy_search_limit", "1"),
    ("idle_in_transaction_session_timeout", "1s"),
    ("IntervalStyle", "sql_standard"),
    ("lc_messages", "C"),
    ("lc_monetary", "POSIX"),
    ("lc_numeric", "C"),
    ("lc_time", "POSIX"),
    ("max_parallel_workers_per_gather", "0"),
    ("quote_all_identifiers", "on"),
    ("row_security", "off"),
    ("search_path", "nowhere"),
    ("standard_conforming_strings", "off"),
    ("synchronous_commit", "off"),
    ("TimeZone", "Pacific/Kiritimati"),
];

/// Gives a database all of them.
async fn change(url: &str) {
    // Past a pooler, which would keep the connection with the earlier settings.
    let name = url.rsplit_once('/').unwrap().1;
    let admin = connect(&server().unwrap().url("postgres")).await;
    for (setting, value) in SETTINGS.into_iter().chain([("transform_null_equals", "on")]) {
        let value = if setting == "search_path" { value.to_owned() } else { format!("'{value}'") };
        let set = format!("ALTER DATABASE {name} SET {setting} = {value}");
        admin.batch_execute(&set).await.unwrap();
    }
}

/// The suite of records. That of sessions would take too long.
#[test]
fn no_setting_of_an_administrator_matters() {
    let Some(server) = server() else { return };
    block_on(async {
        for check in CHECKS {
            let url = database(server).await;
            change(&url).await;
            let admin = connect(&url).await;
            let row = admin.query_one("SHOW TimeZone", &[]).await.unwrap();
            assert_eq!(row.get::<_, String>(0), "Pacific/Kiritimati");
            check(open(&url).await).await;
        }
    });
}

/// Says what a message and its row were committed with.
const NOTED: &str = "
    CREATE TABLE public.noted (setting text);
    GRANT ALL ON public.noted TO PUBLIC;
    CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.noted VALUES (current_setting('synchronous_commit'));
        RETURN NULL;
    END $$;
    CREATE TRIGGER note AFTER INSERT ON myclaw.entry FOR EACH ROW EXECUTE FUNCTION public.note();
    CREATE TRIGGER note AFTER INSERT ON myclaw.inbox FOR EACH ROW EXECUTE FUNCTION public.note()";

/// Directly, and through a pooler whose connections end, so that others are used than those that were set up.
#[test]
fn no_acknowledged_message_is_lost_where_commits_do_not_wait() {
    for url in databases() {
        block_on(change(&url));
        let home = tempfile::tempdir().unwrap();
        let sessions = subjects::open(&url, home.path());
        let end_all = || {
            block_on(async {
                let all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND pid <> pg_backend_pid()";
                connect(&url).await.query(all, &[]).await.unwrap();
            });
        };
        block_on(async { connect(&url).await.batch_execute(NOTED).await.unwrap() });
        write(&sessions, &end_all);
        let noted = block_on(async {
            let all = "SELECT setting FROM public.noted";
            connect(&url).await.query(all, &[]).await.unwrap()
        });
        let noted: Vec<String> = noted.iter().map(|row| row.get(0)).collect();
        assert_eq!(noted, ["on"; 4], "{url}");
        found(&sessions);
    }
}

fn write(sessions: &PostgresSessions, between: &dyn Fn()) {
    for _ in 0..2 {
        between();
        sessions.inbox(&work()).push(&waiting("q", Keeper::Inbox)).unwrap();
        let mut log = sessions.open(&work(), LockWait::Fail).unwrap();
        between();
        log.push(&[user(r"The Kelvin (\u{212a}) is c:\new 50% ſ").into()]).unwrap();
    }
}

fn found(sessions: &PostgresSessions) {
    for text in ["kelvin", r"c:\new", "50% s"] {
        let query = SearchQuery::text(text, Case::Ignored).unwrap();
        let report = sessions.search(&query, &SearchScope::default(), 5).unwrap();
        assert_eq!(report.matches.get(&work()), Some(&2), "{text}");
    }
}
