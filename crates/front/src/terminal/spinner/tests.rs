use std::time::Duration;

use super::{LiveLine, format_elapsed, truncated};

#[test]
fn a_long_text_is_cut_to_its_columns() {
    assert_eq!(truncated("hello", 5), "hello");
    assert_eq!(truncated("hello!", 5), "hell…");
    assert_eq!(truncated("世界世界", 5), "世界…");
    assert_eq!(truncated("世界世界", 4), "世…");
    assert_eq!(truncated("", 0), "");
}

#[test]
fn it_is_one_line_without_controls() {
    let mut line = LiveLine::default();
    line.set("bash\x1b[2J\nrm -rf");
    assert_eq!(line.next(Duration::from_millis(1_240), 40), "⠙ bash\\x1b[2J rm -rf  1.2 s");
    assert_eq!(line.next(Duration::from_millis(1_240), 16), "⠹ bash\\x…  1.2 s");
}

#[test]
fn times_stay_short() {
    assert_eq!(format_elapsed(Duration::from_millis(50)), "0.1 s");
    assert_eq!(format_elapsed(Duration::from_secs(75)), "75 s");
    assert_eq!(format_elapsed(Duration::from_secs(754)), "12 min");
}
