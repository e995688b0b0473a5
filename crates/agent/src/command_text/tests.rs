use super::filled;

#[test]
fn arguments_take_their_places_or_come_last() {
    assert_eq!(filled("Review $1 for $2 ($3).\n", "a.rs bugs"), "Review a.rs for bugs ().");
    assert_eq!(
        filled("Fix: $ARGUMENTS. It costs $5 or $", "it all now"),
        "Fix: it all now. It costs  or $"
    );
    assert_eq!(filled("Explain.", "this"), "Explain.\n\nthis");
    assert_eq!(filled("Explain.", ""), "Explain.");
}
