use super::*;

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(text, |word| words.push(word.to_owned()));
    words
}

#[test]
fn forms_of_a_word_are_one_word_and_common_ones_are_none() {
    assert_eq!(
        words("The boiler's repaired; repair, repairs, repairing!"),
        ["boiler", "repair", "repair", "repair", "repair"]
    );
    assert_eq!(words("planned planning plan"), ["plan", "plan", "plan"]);
    assert_eq!(words("noticed notices notice"), ["notic", "notic", "notic"]);
    assert_eq!(words("Glass, BUS: Zürich ZEBRA-4711"), ["glass", "bus", "zürich", "zebra", "4711"]);
    assert_eq!(words("what is it that you are?"), [""; 0]);
    assert_eq!(words("水を"), ["水", "を"]);
    assert_eq!(words(&"x".repeat(1_000))[0].len(), MAX_WORD_BYTES);
}
