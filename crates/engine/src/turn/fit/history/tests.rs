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
fn a_history_over_its_limit_is_cut_at_the_first_user_message_after_which_it_holds() {
    assert_eq!(first_kept(&rows(&"ua".repeat(4)), 8), Some(2), "six and the new one of eight");
    assert_eq!(first_kept(&rows(&"ua".repeat(40)), 50), Some(32), "48 and the new one of fifty");
    assert_eq!(first_kept(&rows("uattauattaua"), 8), Some(5));
    assert_eq!(
        first_kept(&rows("uatauattatta"), 10),
        Some(4),
        "a long turn stays within the limit"
    );
    assert_eq!(first_kept(&rows("uattatta"), 4), None);
    assert_eq!(first_kept(&rows("uau"), 1), None, "only the new message");
}
