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
fn a_history_over_its_limit_is_cut_at_a_user_message_that_leaves_four_fifths() {
    for (roles, limit, expected, why) in [
        ("ua".repeat(4), 8, Some(2), "six and the new one of eight"),
        ("ua".repeat(40), 50, Some(40), "forty and the new one of fifty"),
        ("ua".repeat(25), 50, Some(10), "forty and the new one of fifty"),
        ("ua".repeat(50), 100, Some(20), "eighty and the new one of a hundred"),
        ("uattauattaua".to_owned(), 8, Some(5), "seven and the new one of eight"),
        ("uatauattatta".to_owned(), 10, Some(4), "a long turn stays within the limit"),
        (format!("ua{}ua", "uatta".repeat(9)), 50, Some(7), "43 and the new one"),
        (
            format!("ua{}", "u".to_owned() + &"at".repeat(20) + "aua"),
            40,
            Some(44),
            "no turn begins before",
        ),
        ("uattatta".to_owned(), 4, None, "the last turn alone is longer"),
        ("uau".to_owned(), 1, None, "only the new message"),
    ] {
        assert_eq!(first_kept(&rows(&roles), limit, false), expected, "{roles} {limit}: {why}");
    }
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
        // Several, in a turn and one after the other.
        ("uauuu", 2, 2),
        ("uauatuat", 3, 2),
        ("uauatuata", 4, 2),
    ] {
        assert_eq!(first_kept(&rows(roles), limit, true), Some(expected), "{roles} {limit}");
    }
}
