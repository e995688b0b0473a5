use tokio_util::sync::CancellationToken;

use super::*;

fn found(text: &str, wanted: &[&str], tolerance: Tolerance) -> Vec<usize> {
    let (lines, budget) = (Lines::of(text), Budget::new(CancellationToken::new()));
    let finder = BlockFinder::new(&lines, &budget);
    let places = finder.find(wanted, tolerance).into_iter().map(|block| block.first).collect();
    budget.check("it").unwrap();
    places
}

/// The strictest level at which `wanted` is found in `text`.
fn level(text: &str, wanted: &[&str]) -> Option<Tolerance> {
    Tolerance::ALL.into_iter().find(|tolerance| !found(text, wanted, *tolerance).is_empty())
}

#[test]
fn every_place_is_found_overlapping_ones_too() {
    assert_eq!(found("x\nx\nx\ny\r\nx\n", &["x", "x"], Tolerance::Exact), [0, 1]);
    assert_eq!(found("a\n", &["a", "b"], Tolerance::Exact), [0_usize; 0]);
    assert_eq!(found("a\n", &[], Tolerance::Exact), [0_usize; 0]);
}

#[test]
fn each_level_overlooks_more() {
    assert_eq!(level("a b\n", &["a b"]), Some(Tolerance::Exact));
    assert_eq!(level("a b\t\n", &["a b  "]), Some(Tolerance::TrailingWhitespace));
    assert_eq!(level("“a”…\u{A0}b\n", &["\"a\"... b"]), Some(Tolerance::Typography));
    assert_eq!(level("\t‘a’\n\t b\n", &["'a'", " b"]), Some(Tolerance::Indentation));
    assert_eq!(level("a  b\n", &["a\tb"]), Some(Tolerance::Whitespace));
    assert_eq!(level("a\n  b\n", &["a", "b"]), Some(Tolerance::Whitespace));
    assert_eq!(level("ab\n", &["a b"]), None);
}
