//! Tests of writes that do not wait.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::PollSender;

use super::*;
use crate::hub::Origin;
use crate::server::socket::watched::Reader;

#[test]
fn an_event_is_left_to_the_client_while_its_connection_is_full() {
    // A connection that has room for one frame.
    let (sender, mut taken) = mpsc::channel(1);
    let mut socket = PollSender::new(sender);
    let mut watched = Watched::new("s", 0, Arc::default(), Reader::Client);
    let other = Watched::new("s", 0, Arc::default(), Reader::Client);
    let event = |number: u64| Joined {
        numbers: number..=number,
        origin: Origin::Here,
        text: format!("{{\"number\":{number}}}").into(),
    };
    let frame = |number| Ok(Message::text(other.frame(&event(number)).unwrap()));
    // Each write, whether nothing is left to do, and the last event that the client has then.
    let mut write = |number| (watched.write_now(&mut socket, &event(number)), watched.sent);
    assert_eq!(write(1), (true, 1));
    assert_eq!(write(2), (false, 1));
    assert_eq!(taken.try_recv(), frame(1));
    // None comes before one that was left.
    assert_eq!(write(3), (false, 1));
    assert_eq!(write(2), (true, 2));
    assert_eq!(taken.try_recv(), frame(2));
}
