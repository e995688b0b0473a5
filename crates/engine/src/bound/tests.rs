use super::*;

#[test]
fn dollars_are_rounded_up_but_not_by_errors_of_floating_point() {
    assert_eq!(micro_dollars(0.0), 0);
    assert_eq!(micro_dollars(1e-7), 1, "a small call is not free");
    assert_eq!(micro_dollars(3e-6), 3);
    assert_eq!(micro_dollars(0.1 + 0.2), 300_000);
    assert_eq!(micro_dollars(-1.0), 0);
}
