use super::*;

#[test]
fn a_pause_does_not_count_as_time() {
    let pauses = Pauses::default();
    let limit = TimeLimit::new(Duration::from_secs(600), &pauses);
    let at = |seconds| limit.began + Duration::from_secs(seconds);
    let left = |seconds| limit.left_at(at(seconds)).as_secs();
    assert_eq!(left(100), 500);
    pauses.0.waits.lock().begin(at(100));
    pauses.0.waits.lock().begin(at(200));
    assert_eq!(left(300), 500);
    assert!(!pauses.0.waits.lock().end(at(400)), "one call still waits");
    assert_eq!(left(10_000), 500);
    assert!(pauses.0.waits.lock().end(at(10_000)));
    assert_eq!((left(10_100), left(10_500), left(20_000)), (400, 0, 0));
}
