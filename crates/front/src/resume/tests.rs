use super::*;

#[test]
fn an_age_is_in_its_largest_unit() {
    const MINUTE: u64 = 60_000;
    for (minutes, shown) in
        [(0, "now"), (59, "59m"), (60, "1h"), (1_500, "1d"), (20_160, "2w"), (1_100_000, "2y")]
    {
        assert_eq!(age(minutes * MINUTE), shown);
    }
}

#[test]
fn a_directory_is_shown_from_the_home_directory() {
    let home = Some(Path::new("/home/me"));
    assert_eq!(shown_directory(Path::new("/home/me/src"), home), "~/src");
    assert_eq!(shown_directory(Path::new("/home/me"), home), "~");
    assert_eq!(shown_directory(Path::new("/srv"), home), "/srv");
}
