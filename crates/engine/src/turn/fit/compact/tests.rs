use super::*;

fn rows(roles: &str) -> Vec<TranscriptMessage> {
    roles
        .chars()
        .enumerate()
        .map(|(at, role)| {
            let role = match role {
                'u' => Role::User,
                'a' => Role::Assistant,
                _ => Role::Tool,
            };
            TranscriptMessage::new(role, format!("text {at}"), at as u64)
        })
        .collect()
}

#[test]
fn the_last_ten_are_kept() {
    assert_eq!(cut_position(&rows(&"ua".repeat(25))), 40);
    assert_eq!(cut_position(&rows("uauauauaua")), 0);
}

#[test]
fn a_result_is_never_parted_from_its_call() {
    // The tenth message from the end is the second of two results; the cut moves back to their call.
    assert_eq!(cut_position(&rows("uauattuauauauau")), 3);
}

#[test]
fn a_chain_of_results_to_the_very_start_leaves_nothing_to_compact() {
    assert_eq!(cut_position(&rows(&"t".repeat(30))), 0);
}

#[test]
fn long_input_loses_its_middle() {
    let text = leave_out_middle(format!("{}{}", "a".repeat(1_000), "ü".repeat(1_000)), 400);
    assert!(text.starts_with(&"a".repeat(100)) && text.ends_with(&"ü".repeat(150)), "{text}");
    assert!(text.contains("[… 2600 bytes left out …]"), "{text}");
    assert_eq!(leave_out_middle("short".to_owned(), 5), "short");
}

#[test]
fn tool_texts_are_shortened() {
    let row = TranscriptMessage::new(Role::Tool, "x".repeat(2_000), 0);
    assert_eq!(render(None, &[row], 10_000), format!("tool result: {}\n", "x".repeat(500)));
}
