//! A primary with a synchronous standby, which takes over when the primary dies.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::chaos::{Clients, missing_rows, settle, talk};
use super::*;

/// Longest time in which everything is answered after the change.
const SETTLED: Duration = Duration::from_secs(60);

#[test]
fn a_standby_that_takes_over_has_everything_that_was_acknowledged() {
    let Some((primary, url)) = database() else { return };
    let standby = primary.standby();
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", primary.port(), standby.port());
    let both = url.replace(&format!("127.0.0.1:{}", primary.port()), &hosts);
    let model = model();
    let machines = [Machine::new("one", &both, &model), Machine::new("two", &both, &model)];
    let gateways: Vec<Gateway> = machines.iter().map(Machine::start).collect();
    let clients = Clients::default();
    let acknowledged = |count: usize| {
        let begun = clients.promised.lock().len();
        until("more messages are acknowledged", || clients.promised.lock().len() >= begun + count);
    };
    thread::scope(|scope| {
        for session in 0..3 {
            let (machines, clients) = (&machines, &clients);
            scope.spawn(move || talk(machines, session, clients));
        }
        acknowledged(20);
        primary.kill();
        standby.promote();
        acknowledged(20);
        clients.is_over.store(true, Ordering::SeqCst);
    });
    let promised = clients.promised.into_inner();
    let problems = settle(&promised, &machines, SETTLED);
    assert_eq!(problems, [] as [String; 0]);
    gateways.into_iter().for_each(Gateway::stop);
    assert_eq!(missing_rows(&promised, &machines[0]), [] as [String; 0]);
}

#[test]
fn a_standby_alone_is_refused_and_used_once_it_takes_writes() {
    let Some((primary, _url)) = database() else { return };
    let standby = primary.standby();
    let model = model();
    let machine = Machine::new("one", &standby.url("postgres"), &model);
    for arguments in [&["store", "check"][..], &["gateway"]] {
        let output = machine.run(arguments);
        output.assert_code(1);
        let said = output.stderr();
        assert!(said.contains("it is a standby or read-only; name the primary"), "{said}");
    }
    primary.kill();
    standby.promote();
    let gateway = machine.start();
    let id = gateway.client.send("main", "a", "say <m1>").unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "re: <m1>");
    gateway.stop();
}
