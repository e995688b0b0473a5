use super::*;

fn read(line: &str) -> Option<Vec<Vec<String>>> {
    let words = |it: LooseCommand| it.command.words.into_iter().map(|word| word.text).collect();
    loose_commands(line).map(|commands| commands.into_iter().map(words).collect())
}

#[test]
fn the_words_of_every_command_are_there() {
    let cases: [(&str, &[&[&str]]); 9] = [
        ("ls -l 'a b'", &[&["ls", "-l", "a b"]]),
        ("a; b && c | d & e", &[&["a"], &["b"], &["c"], &["d"], &["e"]]),
        ("(cd x && ./t.sh) # note", &[&["cd", "x"], &["./t.sh"]]),
        ("{ ./t.sh; }", &[&["./t.sh"]]),
        ("if true; then ./t.sh; fi", &[&["true"], &["./t.sh"]]),
        ("make 2>&1 >> log 2> /dev/null", &[&["make"]]),
        ("sh < t.sh > out", &[&["sh", "t.sh"]]),
        ("make &> out", &[&["make"]]),
        ("A=1 ./t.sh", &[&["A=1", "./t.sh"]]),
    ];
    for (line, expected) in cases {
        assert_eq!(read(line).unwrap(), expected, "{line}");
    }
}

#[test]
fn what_is_known_only_when_it_runs_is_not_read() {
    let lines =
        ["a $(b)", "a `b`", "cat <<E\nx\nE", "a <(b)", "a >(b)", "echo {a,b}", "a ${b:-c}", "'a"];
    for line in lines {
        assert_eq!(read(line), None, "{line}");
    }
}

#[test]
fn what_another_command_writes_is_an_input_of_those_behind_it() {
    for (line, piped) in [
        ("a | b", "b"),
        ("a |& b", "b"),
        ("a | b | c", "b c"),
        ("a |\n b; c", "b"),
        ("a | b && c", "b"),
        ("a || b", ""),
        ("a && b; c & d", ""),
        ("a; b | c", "c"),
        ("a | (b; c)", "b c"),
        ("a | { b; c; }", "b c"),
        ("a | while b; do c; done", "b c"),
        ("a '|' b; c", ""),
    ] {
        let commands = loose_commands(line).unwrap();
        let found: Vec<String> = commands
            .into_iter()
            .filter(|it| it.is_piped)
            .map(|it| it.command.program().to_owned())
            .collect();
        assert_eq!(found.join(" "), piped, "{line}");
    }
}
