use proptest::prelude::*;

use super::*;

#[test]
fn only_a_marked_conversation_is_one() {
    assert_eq!(conversation_in("hello"), None);
    assert_eq!(conversation_in("a <conversation>\nx\n</conversation> b"), Some("\nx\n"));
    assert_eq!(conversation_in("<conversation>cut off"), Some("cut off"));
    assert_eq!(
        conversation_in("<conversation>he wrote </conversation> once</conversation>"),
        Some("he wrote </conversation> once")
    );
}

#[test]
fn beginning_and_end_are_quoted() {
    let conversation: String =
        (1..=20).map(|number| format!("line number {number} of the talk\n")).collect();
    let expected = "Extract by the built-in demo planner (20 lines shortened, not a summary):\n\
         - … 8 lines left out …\n- line number 13 of the talk\n\
         - line number 14 of the talk\n- line number 15 of the talk\n- line number 16 of the talk\n\
         - line number 17 of the talk\n- line number 18 of the talk\n- line number 19 of the talk\n\
         - line number 20 of the talk";
    assert_eq!(extract_of(&conversation), expected, "what fits into half, the end first");
    let longer: String =
        (1..=30).map(|number| format!("line number {number} of the talk\n")).collect();
    assert!(extract_of(&longer).contains("- line number 1 of the talk\n"));
}

#[test]
fn an_empty_conversation_gives_the_heading_alone() {
    let expected = "Extract by the built-in demo planner (0 lines shortened, not a summary):";
    assert_eq!(extract_of(" \n\n"), expected);
}

proptest! {
    #[test]
    fn it_is_bounded_and_shorter_than_a_long_conversation(lines in prop::collection::vec("\\PC{0,200}", 0..20)) {
        let conversation = lines.join("\n");
        let extract = extract_of(&conversation);
        prop_assert!(extract.len() <= 100 + conversation.len() / 2);
        prop_assert!(extract.chars().count() <= 100 + 13 * (MAX_LINE_CHARS + 4));
    }
}
