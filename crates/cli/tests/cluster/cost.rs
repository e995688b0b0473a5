//! What a message costs the database.

use super::audit::Audit;
use super::*;

/// Messages one after the other.
const MESSAGES: u64 = 10;
/// To accept a message, to take its session, its row, that of the answer, the end of the turn in the list, and the reply.
const TRANSACTIONS: usize = 6;

/// Notes the transactions that write something about messages and sessions. Renewed leases depend on the time that is needed,
/// and do not count.
const TRIGGERS: &str = "
    CREATE SCHEMA cost;
    CREATE TABLE cost.written (transaction text, what text);
    CREATE FUNCTION cost.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO cost.written VALUES (pg_current_xact_id()::text, TG_TABLE_NAME || ' ' || TG_OP);
        RETURN NULL;
    END $$;
    CREATE TRIGGER cost AFTER INSERT OR UPDATE OR DELETE ON myclaw.entry FOR EACH STATEMENT EXECUTE FUNCTION cost.note();
    CREATE TRIGGER cost AFTER INSERT OR UPDATE ON myclaw.inbox FOR EACH STATEMENT EXECUTE FUNCTION cost.note();
    CREATE TRIGGER cost AFTER UPDATE ON myclaw.session FOR EACH ROW
        WHEN (OLD.lease_until = '-infinity' OR NEW.lease_until = '-infinity' OR NEW.listed_at <> OLD.listed_at
            OR NEW.last_seq <> OLD.last_seq) EXECUTE FUNCTION cost.note();
    CREATE TRIGGER cost AFTER INSERT OR UPDATE ON myclaw.record FOR EACH ROW
        WHEN (NEW.kind IN ('incoming', 'outgoing')) EXECUTE FUNCTION cost.note();
";

#[test]
fn a_message_and_its_answer_are_six_transactions() {
    let Some((_server, url)) = database() else { return };
    let model = model();
    let machine = Machine::new("one", &url, &model);
    let gateway = machine.start();
    let answered = |number: u64| {
        let id = gateway.client.send("main", &format!("id-{number}"), &format!("<m{number}>"));
        assert_eq!(gateway.client.outcome(&id.unwrap()).unwrap()["state"], "answered");
    };
    // The first turns make the rows.
    (0..2).for_each(answered);
    let audit = Audit::without_triggers(&url);
    audit.execute(TRIGGERS);
    (2..2 + MESSAGES).for_each(answered);
    let sql = "SELECT string_agg(DISTINCT what, ', ') FROM cost.written GROUP BY transaction";
    let written = audit.texts(sql, &[]);
    // Something of the first turns may come late. One more for each message would be more than that.
    let most =
        TRANSACTIONS * usize::try_from(MESSAGES).unwrap() + usize::try_from(MESSAGES / 2).unwrap();
    assert!(written.len() <= most, "{} transactions: {written:#?}", written.len());
    // No limit needs the totals of the day, so they are stored a moment later, all of them.
    let sql = "
        SELECT (convert_from(value, 'UTF8')::json->>'tokens') || ' ' || (listed::json->>'totalTokens')
        FROM myclaw.record, myclaw.session WHERE kind = 'spending'";
    until("the day's usage is stored", || {
        let totals = audit.texts(sql, &[]);
        let totals = totals.first().and_then(|totals| totals.split_once(' '));
        totals.is_some_and(|(day, session)| day == session && day != "0")
    });
    gateway.stop();
}
