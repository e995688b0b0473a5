use super::*;

#[test]
fn an_id_in_use_gets_a_number() {
    let taken = ["call_0", "call_0_2"];
    let is_taken = |id: &str| taken.contains(&id);
    assert_eq!(numbered("call_0", SECOND, is_taken), ("call_0_3".to_owned(), 3));
    assert_eq!(numbered("call_0", 7, is_taken), ("call_0_7".to_owned(), 7));
}

#[test]
fn a_missing_id_is_made_up_and_new_each_time() {
    let (first, second) = (made_up(), made_up());
    assert_eq!(ToolIdRule::Token(40).apply(&first), first);
    assert_ne!(first, second);
}

#[test]
fn ids_that_fit_are_sent_as_they_are() {
    assert_eq!(ToolIdRule::Token(64).apply("toolu_01A-b"), "toolu_01A-b");
    assert_eq!(ToolIdRule::NineAlphanumeric.apply("a1B2c3D4e"), "a1B2c3D4e");
}

#[test]
fn ids_that_do_not_fit_keep_apart() {
    let rule = ToolIdRule::Token(40);
    let ids = [
        "functions.read:0",
        "functions_read:0",
        "",
        &"x".repeat(41),
        &format!("{}y", "x".repeat(40)),
    ];
    let sent: std::collections::HashSet<_> = ids.iter().map(|id| rule.apply(id)).collect();
    assert_eq!(sent.len(), ids.len());
    assert!(
        sent.iter().all(|id| !id.is_empty() && id.len() <= 40 && id.bytes().all(is_token_byte)),
        "{sent:?}"
    );

    let nine: std::collections::HashSet<_> =
        ids.iter().map(|id| ToolIdRule::NineAlphanumeric.apply(id)).collect();
    assert_eq!(nine.len(), ids.len());
    assert!(
        nine.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())),
        "{nine:?}"
    );
}

/// The form is part of every stored session's bytes on the wire, so it is pinned.
#[test]
fn the_form_sent_never_changes() {
    assert_eq!(ToolIdRule::Token(64).apply("functions.read:0"), "functions_read_0_a12d3apm8dzd1");
    assert_eq!(ToolIdRule::NineAlphanumeric.apply("call_0"), "i5vp5silp");
}
