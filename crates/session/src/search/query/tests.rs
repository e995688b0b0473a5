use grep_matcher::Matcher;
use proptest::prelude::*;

use super::*;

/// Whether the line of a message of this JSON text passes both steps.
fn finds(query: &SearchQuery, json: &str) -> bool {
    let line = format!("{{\"role\":\"user\",\"content\":{json}}}");
    let text: String = serde_json::from_str(json).unwrap_or_default();
    let passes = query.prefilter().is_match(line.as_bytes()).unwrap_or_default();
    assert_eq!(passes && query.find(&text).is_some(), query.find(&text).is_some(), "{json}");
    query.find(&text).is_some()
}

#[test]
fn a_text_is_found_however_json_writes_it() -> Result<(), SearchError> {
    let text = "say \"é\"/😀\\\n\u{1}";
    let query = SearchQuery::text(text, Case::Sensitive)?;
    for json in [
        r#""say \"é\"/😀\\\n\u0001""#,
        r#""say \"\u00e9\"\/\ud83d\ude00\\\n\u0001""#,
        r#""say \u0022\u00E9\u0022\u002f\uD83D\uDE00\u005c\u000a\u0001""#,
    ] {
        assert!(finds(&query, json), "{json}");
    }
    assert!(!finds(&query, r#""say \"e\"/😀\\\n\u0001""#));
    Ok(())
}

#[test]
fn case_counts_unless_it_is_ignored() -> Result<(), SearchError> {
    assert!(!finds(&SearchQuery::text("ÄRGER", Case::Sensitive)?, "\"ärger\""));
    assert!(finds(&SearchQuery::text("ÄRGER", Case::Ignored)?, "\"ärger\""));
    assert!(finds(&SearchQuery::text("ÄRGER", Case::Ignored)?, "\"\\u00c4rger\""));
    Ok(())
}

#[test]
fn an_expression_matches_the_text_and_not_its_json() -> Result<(), SearchError> {
    let query = SearchQuery::regex("^two$", Case::Sensitive)?;
    assert!(finds(&query, r#""one\ntwo""#));
    assert!(!finds(&query, r#""one\\ntwo""#));
    Ok(())
}

/// Expressions of letters that JSON writes in several ways, in all the forms that expressions have.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "ab", "Ä\\\\", "b\\\"", "\\n", "[ab]", "[^a]", ".", "^", "$", "\\b", "(?i:aB)", "/a", "😀",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|parts| format!("({})", parts.join("|"))),
            (inner, prop::sample::select(vec!["?", "*", "+", "{2}"]))
                .prop_map(|(part, times)| format!("(?:{part}){times}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// The search of a line's bytes finds every line whose message matches.
    #[test]
    fn no_match_is_passed_over(
        expression in expressions(),
        text in "[aAbBäÄ\\\\\"\n/😀]{0,12}",
        case in prop::sample::select(vec![Case::Sensitive, Case::Ignored]),
    ) {
        let query = SearchQuery::regex(&expression, case);
        let Ok(query) = query else { return Ok(()) };
        finds(&query, &serde_json::to_string(&text).unwrap_or_default());
    }
}

#[test]
fn invalid_patterns_are_refused() {
    assert!(matches!(SearchQuery::text("", Case::Sensitive), Err(SearchError::Empty)));
    assert!(matches!(SearchQuery::regex("(", Case::Sensitive), Err(SearchError::Pattern(_))));
}
