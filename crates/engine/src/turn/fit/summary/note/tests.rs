use super::*;

#[test]
fn notes_become_one() {
    let noted = Standing::read("They met.").without(3).into_text(100);
    assert_eq!(noted, format!("They met.\n\n3{LEFT_OUT}{ADVICE}"));
    let again = Standing::read(&format!("{noted}{LAST_REQUEST}go")).without(4).into_text(100);
    assert_eq!(again, format!("They met.\n\n7{LEFT_OUT}{ADVICE}"));
    assert_eq!(Standing::read("").without(2).into_text(9), format!("2{LEFT_OUT}{ADVICE}"));
    assert_eq!(Standing::read("ääää").into_text(5), "ää");
    assert_eq!(Standing::read("").into_text(5), "");
}

#[test]
fn a_pile_of_notes_with_the_errors_of_a_provider_is_cleared_away() {
    let pile = format!(
        "They met.\n\n3{LEFT_OUT}: down{LAST_REQUEST}go\n\n40{LEFT_OUT}: down{LAST_REQUEST}on"
    );
    assert_eq!(Standing::read(&pile), Standing { said: "They met.".to_owned(), left_out: 43 });
    let quoted = format!("It said \"3{LEFT_OUT}\".");
    assert_eq!(Standing::read(&quoted), Standing { said: quoted.clone(), left_out: 0 });
}
