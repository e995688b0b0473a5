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
fn numbers_are_what_json5_says() {
    for (text, expected) in [
        ("+1", json!(1)),
        ("-0", json!(0)),
        ("+0x10", json!(16)),
        ("0XfF", json!(255)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("18446744073709551615", json!(u64::MAX)),
        ("-.5", json!(-0.5)),
        ("-1.5e1", json!(-15)),
        ("1e-3", json!(0.001)),
    ] {
        assert_eq!(parse(text), Ok(expected), "{text}");
    }
}

#[test]
fn an_escaped_line_end_goes_on_with_the_string() {
    for text in ["'a\\\nb'", "'a\\\r\nb'", "'a\\\rb'"] {
        assert_eq!(parse(text), Ok(json!("ab")), "{text:?}");
    }
    for text in ["'a\nb'", "'a\\\\\nb'", "{'a\nb': 1}", "'a\\\n\nb'"] {
        assert_eq!(fault(text), Fault::Syntax(SyntaxError::LineEndInString), "{text:?}");
    }
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
    for open in ["[", "{a:", "[{a:", "[ /* ] */", "['[', ", "// ]\n["] {
        assert_eq!(fault(&open.repeat(100_000)), Fault::TooDeep, "{open}");
    }
}

#[test]
fn refuses_text_behind_the_value() {
    for text in ["{} {}", "{} x", "{}}", "{} ,", "[] tru", "{} 'a"] {
        assert_eq!(fault(text), Fault::Syntax(SyntaxError::TextAfterValue), "{text}");
    }
    assert_eq!(fault("{} /* open"), Fault::Syntax(SyntaxError::OpenComment));
    assert_eq!(parse("{} // end"), Ok(json!({})));
    assert_eq!(parse("{} /* end */ \n\u{a0}"), Ok(json!({})));
}

#[test]
fn a_text_that_is_refused_has_a_fault_within_it() {
    for text in [
        "{a: 1 b: 2}",
        "[1 2]",
        "{a}",
        "{,}",
        "[,]",
        "{a: 1,,}",
        "[1}",
        "{a: ]",
        "01",
        "+",
        "{a-b: 1}",
        "tru",
    ] {
        let failure = parse(text).unwrap_err();
        assert!(
            matches!(failure.fault, Fault::Syntax(_)) && failure.offset <= text.len(),
            "{text}"
        );
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in "([\\[\\]{}:,'\"/*\\\\\n a0-9.+-]|true|null|\\PC){0,80}") {
        if let Err(failure) = parse(&text) {
            prop_assert!(text.is_char_boundary(failure.offset));
        }
    }
}
