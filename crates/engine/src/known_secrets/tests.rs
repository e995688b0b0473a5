use base64::Engine as _;
use serde_json::json;

use super::*;

const KEY: &str = "sk-Live/7+q\"Zt9w==";

fn known() -> KnownSecrets {
    let known = KnownSecrets::default();
    known.learn([KEY, "short", "  token-of-the-bot-123 \n"]);
    known
}

fn without(text: &str) -> String {
    known().without(text).into_owned()
}

#[test]
fn a_key_goes_in_each_of_its_forms_and_the_rest_stays() {
    let padded = |before: &str, after: &str| {
        use base64::engine::general_purpose::{STANDARD, URL_SAFE};
        let text = format!("{before}{KEY}{after}");
        [STANDARD.encode(&text), URL_SAFE.encode(&text)]
    };
    for form in [
        KEY.to_owned(),
        "sk-Live/7+q\\\"Zt9w==".to_owned(),
        "sk-Live\\/7+q\\\"Zt9w==".to_owned(),
        "sk-Live%2F7%2Bq%22Zt9w%3D%3D".to_owned(),
        "sk-Live%2f7%2bq%22Zt9w%3d%3d".to_owned(),
        KEY.bytes().map(|byte| format!("{byte:02x}")).collect(),
        KEY.bytes().map(|byte| format!("{byte:02X}")).collect(),
    ] {
        assert_eq!(without(&format!("α {form} ω\r\n\0")), "α [redacted] ω\r\n\0", "{form}");
    }
    for (before, after) in [("", ""), ("u:", ""), ("user:", "x"), ("abc", "\n"), ("abcd", "yz")] {
        for text in padded(before, after) {
            let clean = without(&text);
            assert!(clean.contains(REMOVED), "{before:?} {after:?} {text}: {clean}");
            assert!(clean.len() < REMOVED.len() + text.len() / 2 + 4, "{text}: {clean}");
        }
    }
}

#[test]
fn text_without_keys_is_not_copied() {
    let known = known();
    for text in ["", "short", "sk-Live", "the token-of-the-bot is not shown", "\u{feff}naïve\r\n"]
    {
        assert!(matches!(known.without(text), Cow::Borrowed(same) if same == text), "{text}");
    }
    assert!(matches!(KnownSecrets::default().without(KEY), Cow::Borrowed(_)));
}

#[test]
fn a_key_that_was_cut_at_an_end_goes_too() {
    assert_eq!(without("-the-bot-123 is the end"), "[redacted] is the end");
    assert_eq!(without("the beginning token-of-t"), "the beginning [redacted]");
    assert_eq!(without("bot-123 of seven bytes"), "bot-123 of seven bytes");
    assert_eq!(without("token-of-the-bot-123"), "[redacted]");
    assert_eq!(without("token-of-the-bot-12"), "[redacted]");
}

#[test]
fn of_two_keys_at_one_place_the_longer_one_goes() {
    let known = KnownSecrets::default();
    known.learn(["abcdefgh", "abcdefgh-ijkl"]);
    assert_eq!(known.without("1 abcdefgh-ijkl 2 abcdefgh 3"), "1 [redacted] 2 [redacted] 3");
}

#[test]
fn results_lose_keys_in_texts_details_and_names() {
    let mut output = ToolOutput {
        content: vec![
            ContentBlock::text(format!("one {KEY}")),
            ContentBlock::text("two token-of-the-bot-123"),
        ],
        details: Some(json!({
            "diff": [format!("+{KEY}")], "token-of-the-bot-123": {"n": 1, "same": true}
        })),
        is_error: true,
    };
    known().remove_from(&mut output);
    let expected = ToolOutput {
        content: vec![ContentBlock::text("one [redacted]"), ContentBlock::text("two [redacted]")],
        details: Some(json!({"diff": ["+[redacted]"], "[redacted]": {"n": 1, "same": true}})),
        is_error: true,
    };
    assert_eq!(output, expected);
}

#[test]
fn a_key_that_is_learned_later_goes_as_well() {
    let known = known();
    assert_eq!(known.without("renewed-access-token"), "renewed-access-token");
    known.learn(["renewed-access-token"]);
    assert_eq!(known.without("(renewed-access-token)"), "([redacted])");
    assert_eq!(known.without(KEY), "[redacted]");
    assert_eq!(format!("{known:?}"), "KnownSecrets");
}

/// The output of the usual programs for the same bytes.
fn dumps(bytes: &[u8]) -> Vec<String> {
    let lines = |each: &dyn Fn(usize, &[u8]) -> String| {
        bytes.chunks(16).enumerate().map(|(at, line)| each(at * 16, line)).collect::<String>()
    };
    let pairs = |line: &[u8], group: usize| {
        let groups = line.chunks(group);
        let groups =
            groups.map(|it| it.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        groups.collect::<Vec<_>>().join(" ")
    };
    let shown = |line: &[u8]| {
        line.iter()
            .map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' })
            .collect::<String>()
    };
    let halves =
        |line: &[u8]| line.chunks(8).map(|half| pairs(half, 1)).collect::<Vec<_>>().join("  ");
    vec![
        lines(&|at, line| format!("{at:08x}: {:<39}  {}\n", pairs(line, 2), shown(line))),
        lines(&|at, line| format!("{at:08x}: {:<47}  {}\n", pairs(line, 1), shown(line))),
        lines(&|at, line| format!("{at:08x}  {:<48}  |{}|\n", halves(line), shown(line))),
        lines(&|at, line| format!("{at:07o} {}\n", pairs(line, 1))),
        lines(&|_, line| format!(" {}\n", pairs(line, 1))),
        lines(&|_, line| format!("{}\n", pairs(line, 16))),
        lines(&|_, line| format!("{}:\n", pairs(line, 1).replace(' ', ":"))),
        lines(&|_, line| format!("  0x{},\n", pairs(line, 1).replace(' ', ", 0x"))),
        lines(&|_, line| format!("\\x{}", pairs(line, 1).to_uppercase().replace(' ', "\\x"))),
        lines(&|_, line| format!("%{}", pairs(line, 1).replace(' ', "%"))),
    ]
}

#[test]
fn a_key_goes_from_dumps_and_from_what_is_spread_over_lines() {
    use base64::engine::general_purpose::STANDARD;
    let folded = |text: &str, width: usize| {
        let letters: Vec<char> = text.chars().collect();
        let lines = letters.chunks(width).map(|line| line.iter().collect::<String>());
        lines.collect::<Vec<_>>().join("\n")
    };
    let key = "sk-ant-0123456789abcdefGHIJKLMNOPQRSTUVWXYZ_tail";
    let known = KnownSecrets::default();
    known.learn([key]);
    for before in ["", "a", "key=", "{\"apiKey\": \"", "zyxwvut-zyxwvut-zyx"] {
        let file = format!("{before}{key}\" and more of the file\n");
        let mut shown = dumps(file.as_bytes());
        for width in [20, 60, 64, 76] {
            shown.push(folded(&STANDARD.encode(&file), width));
            shown.push(folded(&shown[5].replace('\n', ""), width));
        }
        shown.push(folded(&file, 10));
        shown.push(file.chars().rev().collect());
        shown.push(file.replace('-', "%2D"));
        shown.push(file.replace('s', "%73").replace('4', "%34"));
        for (number, text) in shown.iter().enumerate() {
            let text = format!("first line\n{text}\nlast line, 12 ab cd");
            let clean = known.without(&text).into_owned();
            assert!(clean.contains(REMOVED), "{before:?} {number}: {text}");
            assert!(clean.starts_with("first line\n"), "{number}: {clean}");
            assert!(clean.ends_with("\nlast line, 12 ab cd"), "{number}: {clean}");
            // Nothing of it can be read in the text at the end of a line either.
            for part in key.as_bytes().windows(8).map(|part| std::str::from_utf8(part).unwrap()) {
                assert!(!clean.contains(part), "{before:?} {number}: {part} of {clean}");
            }
        }
    }
}

/// Each byte with an escape of its own, only those that are no letters, and each second one.
fn escaped(text: &str, escape: &dyn Fn(u8) -> String) -> [String; 3] {
    let when = |is_escaped: &dyn Fn(usize, u8) -> bool| {
        let each = text.bytes().enumerate().map(|(at, byte)| match is_escaped(at, byte) {
            true => escape(byte),
            false => char::from(byte).to_string(),
        });
        each.collect::<String>()
    };
    [when(&|_, _| true), when(&|_, byte| !byte.is_ascii_alphanumeric()), when(&|at, _| at % 2 == 0)]
}

#[test]
fn a_key_goes_whatever_escapes_it_has() {
    let key = "sk-ant-01/&\"=<'>_Zt9";
    let known = KnownSecrets::default();
    known.learn([key]);
    let escapes: [&dyn Fn(u8) -> String; 13] = [
        &|byte| format!("\\{byte:03o}"),
        &|byte| format!("\\0{byte:03o}"),
        &|byte| format!("\\x{byte:02x}"),
        &|byte| format!("\\x{{{byte:X}}}"),
        &|byte| format!("\\u{byte:04X}"),
        &|byte| format!("\\u{{{byte:x}}}"),
        &|byte| format!("%{byte:02X}"),
        &|byte| format!("%u{byte:04x}"),
        &|byte| format!("&#{byte};"),
        &|byte| format!("&#{byte:04};"),
        &|byte| format!("&#x{byte:x};"),
        &|byte| format!("&#X{byte:03X};"),
        &|byte| match byte {
            b'&' => "&amp;".to_owned(),
            b'<' => "&lt;".to_owned(),
            b'>' => "&gt;".to_owned(),
            b'"' => "&quot;".to_owned(),
            b'\'' => "&apos;".to_owned(),
            b'=' => "&equals;".to_owned(),
            other => format!("&#{other};"),
        },
    ];
    for (number, escape) in escapes.iter().enumerate() {
        for text in escaped(key, escape) {
            let clean = known.without(&format!("α%41&x\\n {text} ω%zz\\9&#;")).into_owned();
            assert_eq!(clean, "α%41&x\\n [redacted] ω%zz\\9&#;", "{number}: {text}");
        }
    }
}

/// As `uuencode` writes it, with this digit for 0.
fn uuencoded(bytes: &[u8], zero: char) -> String {
    let digit = |value: u8| if value == 0 { zero } else { char::from(b' ' + value) };
    let line = |line: &[u8]| {
        let threes = line.chunks(3).flat_map(|three| {
            let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
            let bits = at(0) << 16 | at(1) << 8 | at(2);
            [18, 12, 6, 0].map(|shift| digit((bits >> shift & 63) as u8))
        });
        format!("{}{}\n", digit(line.len() as u8), threes.collect::<String>())
    };
    format!("begin 644 x\n{}{zero}\nend", bytes.chunks(45).map(line).collect::<String>())
}

#[test]
fn a_key_goes_however_its_letters_are_set_apart_or_turned() {
    let key = "sk-ant-Zq01Xv23\"Wm45Pt67_tail";
    let known = KnownSecrets::default();
    known.learn([key]);
    let each = |between: &str| key.chars().map(String::from).collect::<Vec<_>>().join(between);
    let numbers = |write: &dyn Fn(u8) -> String, between: &str| {
        key.bytes().map(write).collect::<Vec<_>>().join(between)
    };
    let lines_of = |write: &dyn Fn(u8) -> String, between: &str| {
        let lines = key.as_bytes().chunks(16).enumerate().map(|(at, line)| {
            let line: Vec<String> = line.iter().map(|byte| write(*byte)).collect();
            format!("{:07o} {}\n", at * 16, line.join(between))
        });
        lines.collect::<String>()
    };
    let letter = |byte: u8| char::from(byte).to_string();
    let utf16 = |unit: fn(u16) -> [u8; 2]| {
        let bytes: Vec<u8> = key.encode_utf16().flat_map(unit).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (start, end) = key.split_at(9);
    let mut texts = vec![
        format!("{start}\u{1b}[1;31m{end}"),
        format!("{start}\u{1b}[0m\u{1b}[K{end}"),
        format!("{start}\u{1b}]8;;http://x.example\u{7}{end}\u{1b}]8;;\u{1b}\\"),
        format!("{start}\u{1b}(B{end}"),
        format!("{start}\u{200b}\u{2060}{end}"),
        format!("{start}\u{feff}{end}\u{1}"),
        each("\u{1b}[32m"),
        each("\u{200d}"),
        each("\0"),
        each("\u{fffd}"),
        utf16(u16::to_le_bytes),
        utf16(u16::to_be_bytes),
        utf16(u16::to_le_bytes).replace('\0', "\u{fffd}"),
        each(" "),
        each("   "),
        each("\n"),
        each("\r\n"),
        each("\n\t"),
        each(", "),
        json!(key.chars().map(String::from).collect::<Vec<_>>()).to_string().replace("\\\"", ""),
        lines_of(&letter, "   "),
        key.to_uppercase(),
        key.to_lowercase(),
        "fx-nag-Md01Ki23\"Jz45Cg67_gnvy".to_owned(),
        numbers(&|byte| byte.to_string(), ", "),
        json!({"type": "Buffer", "data": key.as_bytes()}).to_string(),
        numbers(&|byte| byte.to_string(), "\n"),
        lines_of(&|byte| format!("{byte:3}"), " "),
        numbers(&|byte| format!("{byte:03o}"), " "),
        lines_of(&|byte| format!("{byte:03o}"), " "),
        numbers(&|byte| format!("={byte:02X}"), ""),
        key.replace('-', "=2D").replace('_', "=5F"),
    ];
    for before in ["", "a", "ab", "key = ", "something that takes more than a line of uuencode"] {
        for zero in [' ', '`'] {
            texts.push(uuencoded(format!("{before}{key} and more").as_bytes(), zero));
        }
    }
    for (number, text) in texts.iter().enumerate() {
        let text = format!("first line\n{text}\nthe last line");
        let clean = known.without(&text).into_owned();
        assert!(clean.contains(REMOVED), "{number}: {text:?}");
        assert!(clean.starts_with("first line\n"), "{number}: {clean:?}");
        assert!(clean.ends_with("\nthe last line"), "{number}: {clean:?}");
        // What is left of the key are bits at its ends.
        let removed = text.len() + REMOVED.len() - clean.len();
        assert!(removed + 2 >= key.len(), "{number}: {clean:?}");
    }
}

/// In base 32 by the same rule as `base32` and `basenc` write it.
fn base32(bytes: &[u8], alphabet: &[u8]) -> String {
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let padded = format!("{bits:0<width$}", width = bits.len().next_multiple_of(5));
    let digits = padded.as_bytes().chunks(5).map(|five| {
        let value = usize::from_str_radix(std::str::from_utf8(five).unwrap(), 2).unwrap();
        char::from(alphabet[value])
    });
    let text: String = digits.collect();
    format!("{text:=<width$}", width = text.len().next_multiple_of(8))
}

#[test]
fn a_key_goes_in_base_32_wherever_it_begins() {
    let (standard, hex) =
        (b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789ABCDEFGHIJKLMNOPQRSTUV");
    assert_eq!(base32(b"foobar", standard), "MZXW6YTBOI======");
    for before in ["", "u", "us", "use", "user", "user:", "{\"apiKey\":\""] {
        for alphabet in [standard, hex] {
            let whole = base32(format!("{before}{KEY}\" and more").as_bytes(), alphabet);
            let lines = whole.as_bytes().chunks(12).map(|line| std::str::from_utf8(line).unwrap());
            let lines = lines.collect::<Vec<_>>().join("\n");
            for text in [whole.to_lowercase(), whole, lines] {
                let clean = without(&format!("first {text} last"));
                assert!(clean.contains(REMOVED), "{before:?}: {text}");
                // What is left of the key are bits at its ends.
                let left = clean.len() - "first [redacted] last".len();
                assert!(left < text.len() - KEY.len() * 8 / 5 + 8, "{before:?}: {clean}");
            }
        }
    }
}

#[test]
fn text_with_numbers_and_blanks_stays() {
    let known = KnownSecrets::default();
    known.learn(["sk-ant-0123456789abcdef", "pass word of mine", "12345678"]);
    for text in [
        "00000000: 736b 2d61 6e74  sk-ant\n",
        "12 34 56 78 and 1234 5678",
        "100% of 50%25 and %zz %",
        "ab cd ef\n\n0x12, 0x34\n",
        "über 12\n%ü %2 é%C3%BC",
        "deadbeef\n",
        "12, 34, 56, 78, 300\n1234567 12\n",
        "\u{1b}[31mpass\u{1b}[0m word\u{200b} 1234 5678\0",
        "x=12, y=ab =C3=BC &#300;",
        "#86%L;&\n$=&%I;`\n",
        "PASSWORD OF NOBODY",
    ] {
        assert!(matches!(known.without(text), Cow::Borrowed(same) if same == text), "{text}");
    }
}
