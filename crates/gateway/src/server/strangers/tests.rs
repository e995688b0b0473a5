use std::net::Ipv4Addr;

use tokio::io::AsyncReadExt as _;

use super::*;

fn client(number: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, number).into()
}

fn open(places: &[Arc<Place>]) -> usize {
    places.iter().filter(|place| !place.ended.is_cancelled()).count()
}

#[test]
fn a_newcomer_ends_the_oldest_stranger_and_never_somebody_who_has_logged_in() {
    let strangers = Arc::new(Strangers::default());
    let far = |number| strangers.enter(client(number), Distance::Far);
    let known = far(1);
    known.is_known();
    let many: Vec<_> = (0..MOST_OF_ONE_CLIENT + 10).map(|_| far(1)).collect();
    assert_eq!(open(&many), MOST_OF_ONE_CLIENT);
    assert!(many[..10].iter().all(|place| place.ended.is_cancelled()));
    // Others have places of their own, until all are taken: then the client with the most gives one up.
    let other = far(2);
    let crowd: Vec<_> = (3..250).map(|number| (far(number), far(number))).collect();
    assert_eq!(open(&many), 1.max(MOST - 1 - 2 * crowd.len()).min(MOST_OF_ONE_CLIENT));
    assert!(!other.ended.is_cancelled() && !known.ended.is_cancelled());
    drop((many, other, crowd, known));
    assert!(strangers.lock().places.is_empty() && strangers.lock().counts.is_empty());
}

#[test]
fn the_programs_of_this_machine_do_not_end_those_of_others() {
    let strangers = Arc::new(Strangers::default());
    let far: Vec<_> =
        (1..50).map(|number| strangers.enter(client(number), Distance::Far)).collect();
    let near = || strangers.enter(Ipv4Addr::LOCALHOST.into(), Distance::Near);
    let many: Vec<_> = (0..2_000).map(|_| near()).collect();
    assert_eq!((open(&many), open(&far)), (MOST_OF_NEAR, far.len()));
    // The newest one is always let in.
    assert!(!near().ended.is_cancelled());
}

#[tokio::test]
async fn a_stranger_sends_no_more_than_its_room() {
    let strangers = Arc::new(Strangers::default());
    let place = strangers.enter(client(1), Distance::Far);
    let bytes = vec![7_u8; 100_000];
    let mut read = Vec::new();
    place.limit(10_000);
    let mut bounded = Bounded { stream: &bytes[..], place: Arc::clone(&place) };
    let error = bounded.read_to_end(&mut read).await.expect_err("a limit");
    assert_eq!((error.kind(), read.len()), (io::ErrorKind::QuotaExceeded, 10_000));
    assert!(place.is_used_up());
    place.is_known();
    bounded.read_to_end(&mut read).await.expect("read");
    assert_eq!(read.len(), bytes.len());
}
