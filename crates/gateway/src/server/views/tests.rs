use super::unconnected;

#[test]
fn elements_that_connect_are_renamed_and_nothing_else() {
    let text = "<p>a < b <iFrame src=x></iframe><FRAMESET><link rel=preconnect><a href=x>link</a><li>frame<";
    let renamed = "<p>a < b <xFrame src=x></iframe><xRAMESET><xink rel=preconnect><a href=x>link</a><li>frame<";
    assert_eq!(String::from_utf8(unconnected(text.into())).unwrap(), renamed);
}
