use super::*;

#[test]
fn lines_and_notes() {
    let mut listing = Listing::new(1000);
    assert!(listing.is_empty());
    assert_eq!(listing.push_line("one"), Ok(()));
    assert_eq!(listing.push_line("two"), Ok(()));
    assert_eq!(
        listing.finish("nothing", &["a note".into(), "another".into()]),
        "one\ntwo\n[a note]\n[another]"
    );
}

#[test]
fn an_empty_listing_says_so() {
    assert_eq!(Listing::new(1000).finish("nothing", &[]), "nothing");
    assert_eq!(Listing::new(1000).finish("nothing", &["a note".into()]), "nothing\n[a note]");
}

#[test]
fn a_full_listing_takes_nothing_more() {
    let mut listing = Listing::new(20);
    assert_eq!(listing.push_line("äöüäöü"), Ok(()));
    assert_eq!(listing.push_line("too long"), Err(Full));
    assert_eq!(listing.push_line("x"), Err(Full), "a shorter line later would leave a gap");
    assert_eq!(listing.finish("", &[]), "äöüäöü");
}
