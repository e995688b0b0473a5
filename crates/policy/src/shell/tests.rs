use super::*;

fn words(line: &str) -> Vec<Vec<String>> {
    let script = parse(line).unwrap();
    script
        .commands
        .iter()
        .map(|command| command.words.iter().map(|word| word.text.clone()).collect())
        .collect()
}

#[test]
fn words_are_read_as_the_shell_reads_them() {
    for (line, expected) in [
        ("a b", vec![vec!["a", "b"]]),
        (" a\t'b c' \"d $\" ", vec![vec!["a", "b c", "d $"]]),
        ("a 'it'\\''s' \"x\\\"y\\z\"", vec![vec!["a", "it's", "x\"y\\z"]]),
        ("a '' \"\"", vec![vec!["a", "", ""]]),
        (
            "a|b&&c||d;e&f\ng",
            vec![vec!["a"], vec!["b"], vec!["c"], vec!["d"], vec!["e"], vec!["f"], vec!["g"]],
        ),
        ("a b#c #d\ne", vec![vec!["a", "b#c"], vec!["e"]]),
        ("a \\\n \\\n b", vec![vec!["a", "b"]]),
        ("a 2 2>&1 3 >/dev/null", vec![vec!["a", "2", "3"]]),
        ("a2>&1", vec![vec!["a2"]]),
        (">/dev/null a", vec![vec!["a"]]),
    ] {
        assert_eq!(words(line), expected, "{line:?}");
    }
}

#[test]
fn expansions_are_marked() {
    let script = parse("a $X \"$X\" '$X' \\$X *.rs '*' a?b [ab] ~ x=~/y a~b ${X}y").unwrap();
    let marked: Vec<bool> = script.commands[0].words.iter().map(|word| word.is_expanded).collect();
    assert_eq!(
        marked,
        [false, true, true, false, false, true, false, true, true, true, true, false, true]
    );
}

#[test]
fn a_line_has_a_greatest_length() {
    let longest = format!("a {}", "b".repeat(MAX_COMMAND_BYTES - 2));
    assert_eq!(parse(&longest).unwrap().commands.len(), 1);
    assert_eq!(parse(&format!("{longest}b")), Err(ShellError::TooLong));
}
