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

fn cut(rows: &[TranscriptMessage]) -> usize {
    cut_position(rows, 10, 0, Trigger::Refusal)
}

#[test]
fn the_last_ten_are_kept() {
    assert_eq!(cut(&rows(&"ua".repeat(25))), 40);
    assert_eq!(cut(&rows("uauauauaua")), 0);
}

#[test]
fn a_result_is_never_separated_from_its_call() {
    // The tenth message from the end is the second of two results; the cut moves back to their call.
    assert_eq!(cut(&rows("uauattuauauauau")), 3);
}

#[test]
fn a_chain_of_results_to_the_very_start_leaves_nothing_to_compact() {
    assert_eq!(cut(&rows(&"t".repeat(30))), 0);
}

#[test]
fn the_last_resort_keeps_one_message_with_its_results() {
    assert_eq!(cut_position(&rows("uauatt"), 10, 0, Trigger::LastResort), 3);
    assert_eq!(cut_position(&rows("uau"), 10, 0, Trigger::LastResort), 2);
}

#[test]
fn a_manual_compaction_of_a_short_session_keeps_its_last_turn() {
    let manual = Trigger::Manual { focus: None };
    assert_eq!(cut_position(&rows("uauatta"), 10, 0, manual), 2);
    assert_eq!(cut_position(&rows("ua"), 10, 0, manual), 0);
    assert_eq!(cut_position(&rows(&"ua".repeat(25)), 10, 0, manual), 40);
}

#[test]
fn the_task_stays_word_for_word() {
    let text = last_request(&rows("uauat"), 100);
    assert!(text.ends_with("which is being worked on:\ntext 2"), "{text}");
    assert_eq!(last_request(&rows("at"), 100), "");
    assert!(last_request(&rows("uauat"), 4).ends_with("being worked on:\ntext"));
}

#[test]
fn a_smaller_kept_part_counts_results_with_their_call() {
    // Each row costs ten tokens.
    let tail = Tail { messages: rows("uattuaua"), ..Tail::default() };
    assert_eq!(smaller_kept_part(&tail, 0, 79), 1);
    assert_eq!(smaller_kept_part(&tail, 0, 40), 4);
    assert_eq!(smaller_kept_part(&tail, 0, 0), 7, "the newest message stays");
}
