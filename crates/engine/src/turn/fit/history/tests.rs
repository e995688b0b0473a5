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
    assert_eq!(
        first_kept(&rows(&"ua".repeat(4)), 8, false),
        Some(2),
        "six and the new one of eight"
    );
    assert_eq!(
        first_kept(&rows(&"ua".repeat(40)), 50, false),
        Some(32),
        "48 and the new one of fifty"
    );
    assert_eq!(first_kept(&rows("uattauattaua"), 8, false), Some(5));
    assert_eq!(
        first_kept(&rows("uatauattatta"), 10, false),
        Some(4),
        "a long turn stays within the limit"
    );
    assert_eq!(first_kept(&rows("uattatta"), 4, false), None);
    assert_eq!(first_kept(&rows("uau"), 1, false), None, "only the new message");
}

#[test]
fn a_message_that_waits_for_its_answer_stays() {
    for (roles, limit, expected) in [
        ("uau", 1, 2),
        ("u", 1, 0),
        ("uauatat", 1, 2),
        ("uauatatat", 4, 2),
        ("uauatat", 50, 0),
        ("uauau", 3, 4),
    ] {
        assert_eq!(first_kept(&rows(roles), limit, true), Some(expected), "{roles} {limit}");
    }
}
