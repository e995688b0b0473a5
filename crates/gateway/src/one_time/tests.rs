use std::time::Duration;

use super::OneTime;

#[test]
fn a_secret_gives_its_value_once() {
    let values = OneTime::new(Duration::from_secs(600), 2);
    let (first, second) = (values.make(1), values.make(2));
    assert_eq!(values.take("another"), None);
    assert_eq!(values.take(&second), Some(2));
    assert_eq!(values.take(&second), None);
    assert_eq!(values.take(&first), Some(1));
}

#[test]
fn a_secret_ends_when_too_many_came_after_it_or_its_time_is_over() {
    let values = OneTime::new(Duration::from_secs(600), 2);
    let first = values.make(1);
    let later = [values.make(2), values.make(3)];
    assert_eq!(values.take(&first), None);
    assert_eq!(later.map(|secret| values.take(&secret)), [Some(2), Some(3)]);
    let values = OneTime::new(Duration::ZERO, 2);
    let secret = values.make(1);
    assert_eq!(values.take(&secret), None);
}
