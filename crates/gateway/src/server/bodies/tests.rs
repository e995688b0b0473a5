use super::*;

#[test]
fn one_client_leaves_room_for_others_and_gives_its_own_back() {
    let bodies = Arc::new(Bodies::default());
    let [one, two, near] =
        ["192.0.2.1", "192.0.2.2", "127.0.0.1"].map(|text| text.parse().unwrap());
    let mut greedy = bodies.begin(one);
    assert!(greedy.grow(MOST_OF_ONE_CLIENT));
    assert!(!bodies.begin(one).grow(1), "another body of the same client");
    let mut other = bodies.begin(two);
    assert!(other.grow(MOST_OF_ONE_CLIENT));
    assert!(!other.grow(1));
    // This machine may use what is left, and no more.
    let mut rest = bodies.begin(near);
    assert!(rest.grow(MOST - 2 * MOST_OF_ONE_CLIENT));
    assert!(!rest.grow(1));
    drop((greedy, other));
    assert!(rest.grow(2 * MOST_OF_ONE_CLIENT));
    drop(rest);
    let state = bodies.lock();
    assert_eq!((state.total, state.of_clients.len()), (0, 0));
}
