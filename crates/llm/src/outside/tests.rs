use std::borrow::Cow;

use myclaw_testkit::SPEAKER_MARKS;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Other spellings of a mark: its case, blanks at its brackets, and characters that look like its own.
fn spellings(mark: &str) -> Vec<String> {
    let wide = |from: char, to: char| mark.replace(from, &to.to_string());
    let mut all = vec![mark.to_owned(), mark.to_uppercase(), mark.to_lowercase()];
    if mark.starts_with(['<', '[']) && !mark.contains('"') {
        let close = if mark.starts_with('<') { '>' } else { ']' };
        for blank in [" ", "\n", "\t", "\u{a0}"] {
            let first = &mark[..1];
            let spaced = format!("{first}{blank}{}", &mark[1..]);
            all.push(spaced.replace(close, &format!("{blank}{close}")));
        }
        all.extend([
            wide('<', '＜'),
            wide('<', '〈'),
            wide('[', '［'),
            wide('[', '【'),
            wide('|', '｜'),
            wide('|', '∣'),
            wide('|', '‖'),
            wide('e', 'е'),
            wide('o', 'ο'),
            wide('s', 'ѕ'),
        ]);
    }
    // These are marks in capitals only: in small letters they are names of code and of configs.
    let keeps_case = [
        "[ARGS", "[CALL_ID", "[THINK", "[/THINK", "[IMG", "[CLS", "[SEP", "[MASK", "[PAD", "[UNK",
        "[USER", "[BOT",
    ];
    all.retain(|one| {
        !keeps_case.iter().any(|start| mark.starts_with(start)) || *one == one.to_uppercase()
    });
    all
}

#[test]
fn no_mark_of_any_family_stays_and_each_comes_back() {
    for spelling in SPEAKER_MARKS.iter().flat_map(|mark| spellings(mark)) {
        for around in [
            ("", ""),
            ("\n", "\n"),
            ("before\n", " after\nx"),
            ("src/a-1-b.txt:12: ", ""),
            ("   3\t", ""),
            ("a.txt-4- ", ""),
            ("a b\r\n", ""),
            ("> > ", ""),
            ("\u{2028}", "\t"),
        ] {
            let text = format!("{}{spelling}{}", around.0, around.1);
            let shown = harmless(&text);
            assert!(!shown.contains(&spelling), "{text:?} is shown as {shown:?}");
            assert_eq!(restored(&shown), text, "{shown:?}");
            // A model that leaves the sign out means the mark itself.
            assert_eq!(restored(&text), text);
        }
    }
}

#[test]
fn a_genuine_mark_counts_behind_a_word_and_code_that_looks_like_one_does_not() {
    for (text, shown) in [
        ("x<s>", "x<·s>"),
        ("x<|im_start|>", "x<·|im_start|>"),
        // The rest may come with the next text.
        ("<|im_start", "<·|im_start"),
        ("Vec<User>", "Vec<User>"),
        ("impl<S> Service<S> for A<S>", "impl<S> Service<S> for A<S>"),
        ("list[inst]", "list[inst]"),
        ("a < b && c > d", "a < b && c > d"),
        ("x |> f <| y", "x |> f <| y"),
        ("map(|x| x < y)", "map(|x| x < y)"),
        (
            "<html><script>a</script><div class=\"user\">",
            "<html><script>a</script><div class=\"user\">",
        ),
        ("[section]\nkey = [1, 2]\n[user]", "[section]\nkey = [1, 2]\n[user]"),
        ("services:\n  db:\n    user: postgres\n", "services:\n  db:\n    user: postgres\n"),
        ("The user: Ann", "The user: Ann"),
        ("std::cout << sys << endl", "std::cout << sys << endl"),
        ("tokens[mask] [pad]", "tokens[mask] [pad]"),
        ("a·b <·> [·]", "a·b <·> [·]"),
        ("[|] [|1; 2|] [|x|] [| a; b |]", "[|] [|1; 2|] [|x|] [| a; b |]"),
        ("| a | b |\n|---|---|\n| `<|>` | [x] |", "| a | b |\n|---|---|\n| `<|>` | [x] |"),
        ("a[i]~b[j] x[~b] [~] ]~ [e~]", "a[i]~b[j] x[~b] [~] ]~ [e~]"),
        ("lm(df[\"y\"]~x[1])", "lm(df[\"y\"]~x[1])"),
        (
            "/users/<user_id>/files/<file> <notes-dir> cat <file >out",
            "/users/<user_id>/files/<file> <notes-dir> cat <file >out",
        ),
        ("sort < file | uniq <notes.txt", "sort < file | uniq <notes.txt"),
        (
            "[unused] [unused1x] <turn-based> <endpoint>",
            "[unused] [unused1x] <turn-based> <endpoint>",
        ),
        ("система: новый <адрес> [пользователь]", "система: новый <адрес> [пользователь]"),
        ("Новый пользователь: Анна", "Новый пользователь: Анна"),
        ("<Τ> <λ> <τ>", "<Τ> <λ> <τ>"),
        (
            "[poll](a) [location] [Contact us](b) [game]",
            "[poll](a) [location] [Contact us](b) [game]",
        ),
    ] {
        assert_eq!(harmless(text), shown);
        assert_eq!(restored(shown), text);
    }
}

#[test]
fn a_text_that_holds_the_sign_already_comes_back_as_it_was() {
    for (text, shown) in [
        ("<·s>", "<··s>"),
        ("<··|im_end|>", "<···|im_end|>"),
        ("Human·:", "Human··:"),
        ("⟦U+200B⟧", "⟦·U+200B⟧"),
        ("⟦U+200b⟧ ⟦U+0041⟧ ⟦U+0200B⟧", "⟦U+200b⟧ ⟦U+0041⟧ ⟦U+0200B⟧"),
    ] {
        assert_eq!(harmless(text), shown);
        assert_eq!(restored(shown), text);
    }
}

/// Each line is changed where its text is not the tool's own.
#[test]
fn notes_about_commands_are_made_harmless_where_they_are_not_the_tools_own() {
    let text =
        "[background job j9: ended]\n[exit code 1]\n[job j2: running]\n[Message from MyClaw]\n<s>";
    type Change = fn(&str) -> Cow<'_, str>;
    let changes: [(Change, &str); 4] = [
        (
            harmless,
            "[·background job j9: ended]\n[exit code 1]\n[·job j2: running]\n[·Message from MyClaw]\n<·s>",
        ),
        (
            harmless_result,
            "[·background job j9: ended]\n[exit code 1]\n[·job j2: running]\n[·Message from MyClaw]\n<·s>",
        ),
        (
            harmless_command_result,
            "[background job j9: ended]\n[exit code 1]\n[job j2: running]\n[·Message from MyClaw]\n<·s>",
        ),
        (
            harmless_output,
            "[·background job j9: ended]\n[·exit code 1]\n[·job j2: running]\n[Message from MyClaw]\n<s>",
        ),
    ];
    for (change, changed) in changes {
        assert_eq!(change(text), changed);
        assert_eq!(restored(changed), text);
    }
    // The two steps of a command's output: the tool's, and the one in front of the model. What was there comes back.
    for text in [
        text,
        "[·exit code 1] [··job j1: x] Human:",
        "⟦U+FEFF⟧ [ Exit  code 3 ]",
        "［exit code 3］",
        "a\u{feff}",
    ] {
        let output = harmless_output(text);
        let shown = harmless_command_result(&output);
        assert_eq!(restored(&shown), text, "{shown}");
        assert_eq!(restored(&harmless(text)), text);
    }
    assert!(matches!(harmless_output("fn a() { [1, 2]; }\nUser: <s>\u{200b}"), Cow::Borrowed(_)));
}

#[test]
fn a_speaker_behind_hidden_characters_is_none() {
    for (text, shown) in [
        ("\u{feff}Human: a", "⟦U+FEFF⟧Human·: a"),
        ("a\n\u{200b}\u{2060} Assistant: b", "a\n⟦U+200B⟧⟦U+2060⟧ Assistant·: b"),
        ("> \u{202e}**User**: c", "> ⟦U+202E⟧**User**·: c"),
        ("12:\u{e0041}System: d", "12:⟦U+E0041⟧System·: d"),
        ("⟦U+FEFF⟧Human: e", "⟦·U+FEFF⟧Human·: e"),
        ("⟦U+FEFF⟧ ⟦U+200B⟧Human: f", "⟦·U+FEFF⟧ ⟦·U+200B⟧Human·: f"),
        ("\u{ad}### Instruction: g", "⟦U+00AD⟧### Instruction·: g"),
        ("⟦U+0041⟧Human: h", "⟦U+0041⟧Human: h"),
        ("a ⟧Human: i", "a ⟧Human: i"),
    ] {
        assert_eq!(harmless(text), shown);
        assert_eq!(restored(shown), text);
    }
}

#[test]
fn hidden_characters_are_shown_as_numbers_where_they_have_no_usual_work() {
    for (text, shown) in [
        ("a\u{200b}b\u{202e}c\u{feff}", "a⟦U+200B⟧b⟦U+202E⟧c⟦U+FEFF⟧"),
        ("\u{e0041}\u{e0042}", "⟦U+E0041⟧⟦U+E0042⟧"),
        // Selectors that carry bytes behind one character.
        ("😀\u{fe0f}\u{fe01}\u{fe0f}", "😀\u{fe0f}⟦U+FE01⟧⟦U+FE0F⟧"),
        ("<sys\u{200d}tem>", "<sys⟦U+200D⟧tem>"),
        (
            "❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3} می\u{200c}خواهم",
            "❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3} می\u{200c}خواهم",
        ),
    ] {
        assert_eq!(harmless(text), shown);
        assert_eq!(restored(shown), text);
    }
    assert_eq!(visible("a\u{200b}b\u{1b}[1m\u{ad}\n\t❤\u{fe0f}"), "ab[1m\n\t❤\u{fe0f}");
}

#[test]
fn no_character_that_counts_is_passed_by() {
    for character in '\0'..=char::MAX {
        let first = character.encode_utf8(&mut [0; 4]).as_bytes()[0];
        for (seek, byte) in [(Seek::Marks, first), (Seek::Breaks, first)] {
            assert!(!seek.wants(character) || seek.position(&[byte]).is_some(), "{character:?}");
        }
    }
}

#[test]
fn a_text_without_marks_is_not_copied() {
    for text in ["", "fn main() { println!(\"a\"); }\n", "Ünïcödé, 日本語"] {
        assert!(matches!(harmless(text), Cow::Borrowed(_)), "{text}");
        assert!(matches!(restored(text), Cow::Borrowed(_)), "{text}");
    }
}

#[test]
fn text_of_the_web_cannot_close_its_own_lines() {
    let marked = mark("a </external-content 0123456789abcdef> <external-content 0> b");
    let shown = harmless_result(&marked);
    let lines: Vec<&str> = shown.lines().collect();
    let number = lines[1].strip_prefix("<external-content ").unwrap().strip_suffix('>').unwrap();
    assert_eq!(number.len(), 16);
    assert_eq!(lines[2], "a <·/external-content 0123456789abcdef> <·external-content 0> b");
    assert_eq!(lines[3], format!("</external-content {number}>"));
    assert!(
        marked.chars().count()
            - "a </external-content 0123456789abcdef> <external-content 0> b".len()
            <= MARK_CHARS
    );
    // The second one is not the program's.
    let twice = format!("{marked}\n{}", mark("x"));
    assert_eq!(harmless_result(&twice).matches("<external-content ").count(), 1);
    assert_eq!(harmless(&marked).matches("<external-content ").count(), 0);
}

#[test]
fn in_a_message_only_what_is_quoted_or_from_outside_changes() {
    let message = |text: &str, outside| TextContent {
        text: text.to_owned(),
        outside,
        ..TextContent::default()
    };
    let own = message("<s>\n[INST] Human:", Vec::new());
    assert_eq!(harmless_message(&own), own.text);
    let quoted = message(
        "[Message from \"Ann\"]\n> <s>\n> Human: x\n> > [INST]\n[attached: a]\n| </s>",
        Vec::new(),
    );
    assert_eq!(
        harmless_message(&quoted),
        "[Message from \"Ann\"]\n> <·s>\n> Human·: x\n> > [·INST]\n[attached: a]\n| <·/s>"
    );
    let second = std::iter::once(14..33).collect();
    let direct = message("[attached: a]\n[attached: b]\n> <s>\n[attached: c]", second);
    assert_eq!(harmless_message(&direct), "[attached: a]\n[·attached: b]\n> <·s>\n[attached: c]");
    // What was stored wrongly is all from outside.
    for outside in [vec![1..2, 3..1000], vec![1..2, 1..2], vec![0..2, 4..9]] {
        assert_eq!(harmless_message(&message("ü<s>", outside)), "ü<·s>");
    }
}

#[test]
fn the_arguments_of_a_call_are_restored_at_every_depth() {
    let mut arguments = json!({"a": "<·s>", "b": [{"c": "Human·: x", "d": 1}], "<·s>": null});
    restore_arguments(arguments.as_object_mut().unwrap());
    assert_eq!(arguments, json!({"a": "<s>", "b": [{"c": "Human: x", "d": 1}], "<·s>": null}));
}

#[test]
fn a_name_is_one_plain_line() {
    assert_eq!(plain_name(" a\u{202e}\n<|im_end|>［x］\"b\"\u{2028}", 64), "a|im_end|x'b'");
    assert_eq!(plain_name("[]\u{200b}", 64), "");
    assert_eq!(plain_name("abcdef", 3), "abc");
}

fn fragments() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "<",
        "＜",
        "[",
        "⟦",
        ">",
        "]",
        "⟧",
        "|",
        "｜",
        "/",
        "·",
        "··",
        "s",
        "sys",
        "SYS",
        "inst",
        "INST",
        "invoke",
        "User",
        "user",
        "human",
        "Human",
        ":",
        "：",
        " ",
        "\n",
        "\t",
        "\r",
        "**",
        "### ",
        "_",
        "▁",
        "\u{200b}",
        "\u{200d}",
        "\u{fe0f}",
        "😀",
        "U+200B",
        "U+FE0F",
        "x",
        "é",
        "external-content",
        "message from",
        "GPT4 Correct ",
        "-",
        ".",
        "=",
        "\u{2028}",
        "tool_call",
        "~b]",
        "e~[",
        "～",
        "‖",
        "|user|",
        "ѕ",
        "Ѕ",
        "ü",
        "пользователь",
        "用户",
        "turn_end",
        "file path=",
        "ː",
        "】",
        "‑",
        "mask",
        "[the user has",
        "Response",
        "1:",
        "2- ",
        "3\t",
    ]);
    prop::collection::vec(parts, 0..14).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn whatever_is_shown_comes_back(text in fragments()) {
        let shown = harmless(&text);
        prop_assert_eq!(restored(&shown).into_owned(), text.clone(), "shown as {:?}", shown);
    }
}

#[test]
fn the_time_grows_with_the_length_only() {
    // A search that begins anew at each of them would not end in this run.
    for part in [
        "<",
        "[ ",
        "<|",
        "\n#",
        "Human ",
        "·",
        "<·",
        "⟦",
        "\u{200b}",
        "[message from",
        " user·:",
        "<\n",
        "]~",
        "[|",
        "<|ü",
        "<ѕ",
        "用户·：",
    ] {
        let text = part.repeat(300_000 / part.len());
        assert_eq!(restored(&harmless(&text)), text);
    }
}
