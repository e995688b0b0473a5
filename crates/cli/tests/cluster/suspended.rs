//! A machine that was suspended with its clock: its node still counts on claims that other nodes have taken meanwhile.

use super::chaos::{LEASE, TAKEN};
use super::proxy::{Fate, Mark, Proxy, Rewrite};
use super::*;

/// So long a gateway believes that it has its sessions. The database gives it as long as all others.
const BELIEVED_MS: u64 = 60_000;
const ENDS_EARLIER: Rewrite =
    Rewrite::new(LEASE, "SET epoch=new.epoch, owner=new.owner, lease_until=new.until-58000");

/// How often the log has a message after another gateway has answered it and summarised the session, while the first one was
/// about to take it in. Without the summary it would find the message in the part of the log that it reads.
fn rows_of_an_answered_message(broken: Option<Rewrite>) -> Option<usize> {
    let (server, url) = database()?;
    let (model, proxy) = (model(), Proxy::start(server.port()));
    proxy.rewrite(ENDS_EARLIER);
    broken.into_iter().for_each(|broken| proxy.rewrite(broken));
    let through = url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port));
    let suspended = Machine::with_lease("suspended", &through, &model, BELIEVED_MS);
    let other = Machine::new("other", &url, &model);
    let first = suspended.start();
    proxy.await_requests(&[Mark::Open], &[Fate::Hold]);
    let id = first.client.send("main", "a", "say <m1>").unwrap();
    until("the first one opens the session", || proxy.waiting() == 0);
    // Before that it would be the faster one on a busy machine.
    let gateways = [first, other.start()];
    let is_answered = || gateways[1].client.state_within(&id, 0).unwrap()["state"] == "answered";
    until("the other one has answered", is_answered);
    let audit = super::audit::Audit::without_triggers(&url);
    let free = "SELECT 'free' FROM myclaw.session WHERE owner IS NULL AND last_seq = 2";
    until("the session is free", || audit.texts(free, &[]).concat() == "free");
    let summary = json!({"type": "compaction", "id": "summary", "ts": 2, "summary": "what was said", "firstKeptId": "summary",
        "tokensBefore": 9, "oldCount": 2, "newCount": 1});
    audit.execute(&format!(
        "INSERT INTO myclaw.entry (session, seq, id, kind, body)
         SELECT id, 3, 'summary', 'compaction', '{summary}' FROM myclaw.session;
         UPDATE myclaw.session SET last_seq = 3"
    ));
    proxy.await_requests(&[Mark::Append], &[Fate::Pass]);
    proxy.go_on();
    until("it takes the message in", || proxy.waiting() == 0);
    gateways.into_iter().for_each(Gateway::stop);
    Some(count(&exported(&other), "user", "<m1>"))
}

#[test]
fn a_message_that_another_gateway_has_answered_is_not_taken_in_again() {
    let Some(rows) = rows_of_an_answered_message(None) else { return };
    assert_eq!(rows, 1);
    // Without the check in the statement that appends.
    assert_eq!(rows_of_an_answered_message(Some(TAKEN)), Some(2));
}
