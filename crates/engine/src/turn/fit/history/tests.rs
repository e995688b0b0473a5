use super::*;

fn rows(roles: &str) -> Vec<TranscriptMessage> {
    let role = |name| match name {
        'u' => Role::User,
        'a' => Role::Assistant,
        _ => Role::Tool,
    };
    roles.chars().map(|name| TranscriptMessage::new(role(name), "text", 0)).collect()
}

#[test]
fn a_history_over_its_limit_is_cut_to_three_quarters_at_a_user_message() {
    assert_eq!(first_kept(&rows(&"ua".repeat(4)), 8), Some(2));
    assert_eq!(first_kept(&rows("uattauattaua"), 8), Some(10));
    assert_eq!(first_kept(&rows("uattatta"), 4), None);
    assert_eq!(first_kept(&rows("uau"), 1), None, "only the new message");
}
