use super::*;

fn scores(query: &str, passages: &[&str]) -> Vec<f64> {
    let mut query = Query::new(query);
    passages.iter().for_each(|text| query.count("", text));
    query.scores()
}

#[test]
fn rare_words_count_more_and_words_that_occur_nowhere_do_not_count() {
    let found = scores("the boiler unheard", &["the boiler", "the car", "the cat"]);
    assert!(found[0] > 3.0 * found[1] && found[1] > 0.0, "{found:?}");
    assert_eq!(found, scores("the boiler", &["the boiler", "the car", "the cat"]));
    assert_eq!(scores("unheard", &["the boiler"]), [0.0]);
}

#[test]
fn scores_are_shares() {
    let often = "boiler ".repeat(1_000);
    let found = scores("boiler", &[&often, "boiler", "nothing"]);
    assert!(found[0] < 1.0 && found[1] < 1.0 && found[2] == 0.0, "{found:?}");
}

#[test]
fn case_endings_and_scripts_without_spaces() {
    assert!(scores("INVOICE", &["two invoices"])[0] > 0.0);
    assert!(scores("invoices", &["an invoice"])[0] > 0.0);
    assert!(scores("ÄRZTE", &["bei den ärzten"])[0] > 0.0);
    assert_eq!(scores("car", &["carpet"]), [0.0]);
    assert!(scores("東京", &["明日東京へ行く"])[0] > 0.0);
    assert!(Query::new(" ?! ").is_empty());
}
