use super::*;

fn row(kind: &str, id: Option<&str>, body: &str) -> Sealed {
    Sealed { id: id.map(str::to_owned), kind: kind.to_owned(), body: body.to_owned() }
}

#[test]
fn rows_come_back_as_they_were() {
    let rows = [
        row("message", Some("a\tb\n\"c\""), "{\"content\":\"tab\\t\u{2028} \u{17f}\"}"),
        row("other", None, ""),
        row("about", Some("x"), "\t\r"),
    ];
    let back = decode(&encode(&rows).unwrap()).unwrap();
    assert_eq!(format!("{back:?}"), format!("{rows:?}"));
    assert!(decode(b"no content").is_none());
    let facts = Facts::of(5, &rows);
    assert_eq!((facts.ids[1], facts.about.unwrap().0), (0, 7));
    assert_eq!(facts.ids[2], number_of("x"));
}

#[test]
fn a_text_is_found_by_its_groups_of_characters_in_any_case() {
    let facts = Facts::of(1, &[row("message", None, "{\"content\":\"De\u{212a}lin\u{17f}\"}")]);
    let has = |text: &str| grams(text).all(|gram| facts.grams.contains(&gram));
    assert!(has("deklins") && has("content") && !has("deklinz"));
}
