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
fn a_history_over_its_limit_is_cut_at_the_first_user_message_that_meets_it() {
    assert_eq!(first_kept(&rows(&"ua".repeat(4)), 8), Some(2));
    assert_eq!(first_kept(&rows("uattauattaua"), 8), Some(5));
    assert_eq!(first_kept(&rows("uattatta"), 4), None);
    assert_eq!(first_kept(&rows("uau"), 1), None, "only the new message");
}
