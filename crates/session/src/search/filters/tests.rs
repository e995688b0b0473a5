use grep_matcher::Matcher;
use proptest::prelude::*;

use super::*;

fn may_match(content: &str, query: &SearchQuery) -> bool {
    Bits::of(content.as_bytes()).may_match(query)
}

fn text(text: &str, case: Case) -> SearchQuery {
    SearchQuery::text(text, case).unwrap()
}

#[test]
fn what_occurs_is_never_ruled_out() {
    let cases = [
        ("{\"content\":\"A Heron by the lake\"}", "a heron BY"),
        ("{\"content\":\"say \\\"heron\\\" twice\"}", "say \"heron\" twice"),
        ("{\"content\":\"src\\/main.rs\"}", "src/main.rs"),
        ("{\"content\":\"one\\ntwo\"}", "one\ntwo"),
        ("{\"content\":\"ein sch\u{f6}ner Reiher\"}", "SCH\u{d6}NER REIHER"),
        ("{\"content\":\"ein sch\\u00f6ner Reiher\"}", "sch\u{f6}ner reiher"),
        ("{\"content\":\"\u{6e56}\u{8fb9}\u{7684}\u{82cd}\u{9e6d}\"}", "\u{8fb9}\u{7684}\u{82cd}"),
        ("{\"content\":\"\\u6e56\\u8fb9\\u7684\"}", "\u{6e56}\u{8fb9}\u{7684}"),
        ("{\"content\":\"\u{1f426} heron\"}", "\u{1f426} h"),
        ("{\"content\":\"\\ud83d\\udc26 heron\"}", "\u{1f426} h"),
        ("{\"content\":\"\u{3a3}\u{3c2}\u{3c3}\u{3a3}\"}", "\u{3c3}\u{3c3}\u{3c3}\u{3c3}"),
    ];
    for (content, sought) in cases {
        assert!(text(sought, Case::Ignored).prefilter().is_match(content.as_bytes()).unwrap());
        assert!(may_match(content, &text(sought, Case::Ignored)), "{content} {sought}");
    }
}

#[test]
fn most_of_what_does_not_occur_is_ruled_out() {
    let content =
        "{\"content\":\"There was nothing to be seen on the roofs of the town\"}".repeat(20);
    for sought in
        ["a heron by the lake", "heron", "HERON", "\u{6e56}\u{8fb9}", "t\u{fc}r schliessen"]
    {
        for case in [Case::Sensitive, Case::Ignored] {
            assert!(!may_match(&content, &text(sought, case)), "{sought}");
        }
    }
    // Escaped, any other text may be there.
    let escaped = format!("{content}{{\"content\":\"\\u00e9\"}}");
    assert!(may_match(&escaped, &text("\u{6e56}\u{8fb9}", Case::Ignored)));
    // Colours of a terminal are no such text.
    let coloured = format!("{content}{{\"content\":\"\\u001b[0m\"}}");
    assert!(!may_match(&coloured, &text("\u{6e56}\u{8fb9}", Case::Ignored)));
    for expression in ["her[o]n by", "herons|lakes", "x?heron+"] {
        assert!(!may_match(&content, &SearchQuery::regex(expression, Case::Ignored).unwrap()));
    }
    for expression in ["heron|nothing", "heron|.", "h?", "no|heron"] {
        assert!(may_match(&content, &SearchQuery::regex(expression, Case::Ignored).unwrap()));
    }
}

#[test]
fn a_log_with_letters_that_equal_ascii_ones_is_not_learned() {
    for letter in LIKE_ASCII {
        let filters = SearchFilters::default();
        let content = format!("{{\"content\":\"{letter}now\"}}{}", " ".repeat(MOST_KEPT_LOG));
        let stamp = LogStamp { inode: 7, length: content.len() as u64, changed: (0, 0) };
        let mut learned = Vec::new();
        let sought = text("heron", Case::Ignored);
        assert!(filters.learn((7, stamp, content.as_bytes()), Some(&sought), &mut learned));
        assert!(learned.is_empty());
    }
}

#[test]
fn filters_take_no_more_than_their_limit() {
    let filters = SearchFilters::default();
    let content = "0123456789abcdef".repeat(MOST_KEPT_LOG / 16 + 1);
    let sought = text("heron", Case::Ignored);
    // The second time nothing is new, so nothing more is counted.
    for round in 0..2 {
        let mut waiting = Vec::new();
        for inode in 0..18_000 {
            let stamp = LogStamp { inode, length: content.len() as u64, changed: (0, 0) };
            let log = (inode, stamp, content.as_bytes());
            let may_match = filters.learn(log, Some(&sought), &mut waiting);
            assert!(!may_match || round == 1, "no match is possible");
            if inode % 5_000 == 0 {
                filters.add(std::mem::take(&mut waiting));
            }
        }
        // While a search has not ended, what it has learned counts too.
        let size: usize = waiting.iter().map(|(_, filter)| filter.bytes()).sum();
        assert!(size <= MOST_FILTER_BYTES);
        filters.add(waiting);
        let learned = filters.learned.read();
        let bytes: usize = learned.values().map(Filter::bytes).sum();
        assert_eq!(filters.bytes.load(Ordering::Relaxed), bytes);
        assert!(bytes <= MOST_FILTER_BYTES && bytes > MOST_FILTER_BYTES - (1 << 12), "{bytes}");
    }
}

proptest! {
    // Each case compiles four expressions, which is slow without optimisation.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_match_of_any_text_in_any_case_passes(
        before in "\\PC{0,40}", sought in "\\PC{1,12}", after in "\\PC{0,40}",
        is_escaped: bool, is_upper: bool,
    ) {
        let said = format!("{before}{sought}{after}");
        let mut content = serde_json::json!({"content": said}).to_string();
        if is_escaped {
            let units = |character: char| -> String {
                let mut units = [0; 2];
                character.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
            };
            content = content
                .chars()
                .map(|at| if at.is_ascii() { at.to_string() } else { units(at) })
                .collect();
        }
        let sought = if is_upper { sought.to_uppercase() } else { sought };
        let like_ascii = LIKE_ASCII.iter().any(|letter| content.contains(letter));
        for case in [Case::Sensitive, Case::Ignored] {
            let query = text(&sought, case);
            if !like_ascii && query.prefilter().is_match(content.as_bytes()).unwrap() {
                prop_assert!(may_match(&content, &query), "{content} {sought}");
            }
        }
    }
}

#[test]
fn preparing_learns_every_log_once() {
    let directory = tempfile::tempdir().unwrap();
    let store = SessionStore::new(directory.path());
    let log = |name: &str, content: &str| {
        std::fs::write(directory.path().join(format!("agent__main__{name}.jsonl")), content)
            .unwrap();
    };
    // A short log, and one that is not kept as a whole.
    let long = "-".repeat(MOST_KEPT_LOG);
    log("a", "{\"role\":\"user\",\"content\":\"a heron\"}\n");
    log("b", &format!("{{\"role\":\"user\",\"content\":\"a lake {long}\"}}\n"));
    let filters = SearchFilters::default();
    // How many logs need not be read, and how many messages that are kept match.
    let answered = |sought: &str| {
        let files = filters.files(&store).unwrap();
        let (query, mut matches) = (text(sought, Case::Ignored), 0);
        let is_answered = |file: &&SearchedFile| {
            filters
                .answers_for(file, &query, |said| matches += usize::from(query.matches(said.text)))
        };
        (files.iter().filter(is_answered).count(), matches)
    };
    assert_eq!(answered("heron"), (0, 0));
    store.prepare_search(&filters).unwrap();
    let bytes = filters.bytes.load(Ordering::Relaxed);
    assert_eq!((answered("heron"), answered("a lake"), answered("xyz")), ((2, 1), (1, 0), (2, 0)));
    // Too short for what is known of a long log.
    assert_eq!(answered("ro"), (1, 1));
    store.prepare_search(&filters).unwrap();
    assert_eq!(filters.bytes.load(Ordering::Relaxed), bytes);
    log("a", "{\"role\":\"user\",\"content\":\"a lake with a heron\"}\n");
    assert_eq!(answered("lake"), (0, 0));
    store.prepare_search(&filters).unwrap();
    assert_eq!((answered("lake"), answered("heron")), ((1, 1), (2, 1)));
}

/// What is kept of short logs gives the same hits as their files, whoever wrote their rows.
#[test]
fn kept_messages_are_found_as_in_their_files() {
    let directory = tempfile::tempdir().unwrap();
    let store = SessionStore::new(directory.path());
    let write = |name: &str, content: String| {
        std::fs::write(directory.path().join(format!("agent__main__{name}.jsonl")), content)
            .unwrap();
    };
    let rows = [
        "{\"role\":\"user\",\"content\":\"a heron\",\"ts\":5}",
        "{\"role\":\"assistant\",\"content\":\"a \\u0048eron, and \\\"another\\\" heron\",\"id\":\"x\",\"ts\":7}",
        "not json, heron",
        "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"heron of the tool\"}",
        "{\"type\":\"about\",\"title\":\"heron\"}",
        "\u{feff}{\"role\":\"user\",\"content\":\"no bird\"}",
    ];
    for number in 0..40 {
        let some = rows.iter().cycle().skip(number % 6).take(number % 7);
        write(&format!("s{number}"), some.map(|row| format!("{row}\n")).collect());
    }
    write("long", format!("{}\n{}", rows[0], " ".repeat(MOST_KEPT_LOG)));
    let filters = SearchFilters::default();
    for sought in ["heron", "HERON", "no bird", "e", "\"another\"", "title", "nowhere"] {
        for limit in [0, 3, 1_000] {
            let query = text(sought, Case::Ignored);
            let read = store.search(&query, &SearchScope::default(), limit).unwrap();
            for _ in 0..2 {
                let known = store.search_again(&filters, &query, limit).unwrap();
                assert_eq!((&known.hits, &known.matches), (&read.hits, &read.matches), "{sought}");
                assert_eq!(
                    known.hits.len(),
                    limit.min(read.matches.values().sum::<u64>() as usize)
                );
            }
        }
    }
}
