use proptest::prelude::*;
use serde_json::json;

use super::*;

fn fault(text: &str) -> Fault {
    parse(text).unwrap_err().fault
}

#[test]
fn reads_json5() {
    let text = r#"
        // a comment
        { plain: 'single', "quoted": "double", /* another */ 'ключ': +1, hex: 0xFF, minus: -0x1F,
          half: .5, whole: 5., exponent: 1e3, t: true, f: false, n: null, list: [1, 2,], nested: { $a_1: {} },
          long: 'two \
lines', escapes: '\x41\u0042\n\'', }
    "#;
    let expected = json!({
        "plain": "single", "quoted": "double", "ключ": 1, "hex": 255, "minus": -31,
        "half": 0.5, "whole": 5, "exponent": 1000, "t": true, "f": false, "n": null, "list": [1, 2],
        "nested": { "$a_1": {} }, "long": "two lines", "escapes": "AB\n'",
    });
    assert_eq!(parse(text), Ok(expected));
}

#[test]
fn refuses_a_key_that_stands_twice() {
    assert_eq!(fault("{a: 1, b: {}, 'a': 2}"), Fault::DuplicateKey);
    assert_eq!(fault("[{a: {b: 1, b: 1}}]"), Fault::DuplicateKey);
    assert_eq!(parse("[{a: 1}, {a: 1}]"), Ok(json!([{ "a": 1 }, { "a": 1 }])));
}

#[test]
fn refuses_numbers_that_are_not_finite() {
    for text in ["Infinity", "-Infinity", "NaN", "[1e999]", "{a: +Infinity}"] {
        assert_eq!(fault(text), Fault::NotFinite, "{text}");
    }
}

#[test]
fn refuses_nesting_without_end() {
    let nested = |depth: usize, open: &str, close: &str| {
        format!("{}0{}", open.repeat(depth), close.repeat(depth))
    };
    assert!(parse(&nested(MAX_DEPTH, "[", "]")).is_ok());
    assert!(parse(&nested(MAX_DEPTH, "{a:", "}")).is_ok());
    assert_eq!(fault(&nested(MAX_DEPTH + 1, "[", "]")), Fault::TooDeep);
    assert_eq!(fault(&nested(MAX_DEPTH + 1, "{a:", "}")), Fault::TooDeep);
    for open in ["[", "{a:", "[{a:", "[ /* ] */", "['[', ", "// ]\u{2028}["] {
        assert_eq!(fault(&open.repeat(100_000)), Fault::TooDeep, "{open}");
    }
}

#[test]
fn refuses_text_behind_the_value() {
    for text in ["{} {}", "{} x", "{}}", "{} ,", "[] tru", "{} 'a"] {
        assert_eq!(fault(text), Fault::Syntax(Some(ErrorCode::TrailingCharacters)), "{text}");
    }
    assert_eq!(fault("{} /* open"), Fault::Syntax(Some(ErrorCode::EofParsingComment)));
    assert_eq!(parse("{} // end"), Ok(json!({})));
    assert_eq!(parse("{} /* end */ \n\u{a0}"), Ok(json!({})));
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in "([\\[\\]{}:,'\"/*\\\\\n a0-9.+-]|true|null|\\PC){0,80}") {
        let _ = parse(&text);
    }
}
