use super::*;

#[test]
fn finds_what_is_off_on_every_line() {
    let between = |written: &[&'static str], file: &[&'static str]| Shift::between(written, file);
    assert_eq!(between(&["a", "  b"], &["a", "  b"]), Some(Shift::None));
    assert_eq!(
        between(&["a", "", "  b"], &["    a", "  ", "      b"]),
        Some(Shift::Deeper("    ".to_owned()))
    );
    assert_eq!(between(&["\ta", "\t\tb"], &["a", "\tb"]), Some(Shift::Shallower("\t".to_owned())));
    assert_eq!(
        between(&["    a", "        b"], &["\ta", "\t\tb"]),
        Some(Shift::Steps { from: "    ", to: "\t" })
    );
    assert_eq!(between(&["a", "\tb"], &["a", "  b"]), Some(Shift::Steps { from: "\t", to: "  " }));
    assert_eq!(between(&["a", "  b"], &["a", "b"]), None);
    assert_eq!(between(&["", " "], &["", ""]), Some(Shift::None));
}

#[test]
fn new_lines_are_shifted_alike() {
    assert_eq!(Shift::Deeper("\t".to_owned()).apply("  x = 1"), "\t  x = 1");
    assert_eq!(Shift::Shallower("  ".to_owned()).apply("    x"), "  x");
    assert_eq!(Shift::Shallower("    ".to_owned()).apply("  x"), "x");
    assert_eq!(Shift::Steps { from: "  ", to: "\t" }.apply("     x"), "\t\t x");
    assert_eq!(Shift::Deeper("\t".to_owned()).apply(""), "");
}
