use proptest::prelude::*;

use super::*;

fn variables(text: &str) -> Vec<(String, String)> {
    let parsed = parse(text);
    assert_eq!(parsed.bad_lines, [], "{text}");
    parsed.variables.into_iter().collect()
}

#[test]
fn reads_every_way_to_write_a_value() {
    for (line, value) in [
        ("A=plain", "plain"),
        ("A=", ""),
        ("A =  blanks around  ", "blanks around"),
        ("export A=exported", "exported"),
        ("  export\tA=exported", "exported"),
        ("A=with # a comment", "with"),
        ("A=no#comment", "no#comment"),
        ("A=#comment", ""),
        ("A=a=b==", "a=b=="),
        ("A='single $X \\n # kept'", "single $X \\n # kept"),
        ("A=\"double \\\"quoted\\\" \\n \\\\ \\t\"", "double \"quoted\" \n \\ \t"),
        ("A=\"a\" # comment", "a"),
        ("A=`back'\"`", "back'\""),
        ("A=\"two\nlines\"", "two\nlines"),
        ("A=it's", "it's"),
        ("A=ключ", "ключ"),
        ("\u{feff}A=bom", "bom"),
        ("A=carriage\r\n", "carriage"),
        ("A=\"two\r\nlines\"\r\n", "two\nlines"),
        ("A=first\nA=second", "second"),
        ("# comment\n\n   \nA=after", "after"),
    ] {
        assert_eq!(variables(line), [("A".to_owned(), value.to_owned())], "{line:?}");
    }
}

#[test]
fn goes_on_after_a_bad_line_and_says_which_it_was() {
    let parsed = parse("A=1\nsecret without equals\nB-C=2\n=3\nD=\"open\nE=\"x\" y\nF=6\n");
    let lines: Vec<_> = parsed.bad_lines.iter().map(|bad| bad.line).collect();
    assert_eq!(lines, [2, 3, 4, 5]);
    assert_eq!(parsed.variables.get("A").map(String::as_str), Some("1"));
    assert_eq!(parsed.variables.get("F").map(String::as_str), Some("6"));
}

#[test]
fn a_value_over_several_lines_counts_as_so_many() {
    let parsed = parse("A=\"1\n2\n3\"\nbad\n");
    assert_eq!(parsed.bad_lines.iter().map(|bad| bad.line).collect::<Vec<_>>(), [4]);
}

proptest! {
    #[test]
    fn any_text_is_read_to_its_end(text in "([A-C=\"'` #\\\\\r\n]|export |\\PC){0,60}") {
        let parsed = parse(&text);
        let lines = text.matches('\n').count() + 1;
        prop_assert!(parsed.bad_lines.iter().all(|bad| bad.line <= lines));
    }

    #[test]
    fn a_quoted_value_comes_back(value in "[^'\r]{0,30}") {
        prop_assert_eq!(variables(&format!("A='{value}'\n")), [("A".to_owned(), value)]);
    }
}

#[test]
fn a_variable_is_replaced_and_everything_else_stays() {
    let text = "# mine\nexport A='one\ntwo'\nB=b # kept\nA=again\nC=c";
    assert_eq!(with_variable(text, "A", "new"), "# mine\nB=b # kept\nC=c\nA=new\n");
    assert_eq!(with_variable("", "A", "1:x"), "A=1:x\n");
    assert_eq!(with_variable("\u{feff}A=bom\n", "A", "b"), "\u{feff}A=b\n");
}

proptest! {
    #[test]
    fn a_variable_that_was_written_is_read_again(value in "[!-~]{1,40}", other in "[!-~]{0,20}") {
        let text = with_variable(&with_variable("", "OTHER", &other), "TOKEN", &value);
        let expected = [("OTHER".to_owned(), other), ("TOKEN".to_owned(), value)];
        prop_assert_eq!(variables(&text), expected);
    }
}
