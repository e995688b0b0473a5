use super::*;

#[test]
fn the_prefix_goes_where_the_path_means_the_same_without_it() {
    for (path, usual) in [
        (r"\\?\C:\Users\me\a b.txt", Some(r"C:\Users\me\a b.txt")),
        (r"\\?\d:\", Some(r"d:\")),
        (r"\\?\C:\console\com\null.txt", Some(r"C:\console\com\null.txt")),
        (r"C:\Users", None),
        (r"\\?\UNC\server\share\a", None),
        (r"\\?\Volume{1}\a", None),
        (r"\\?\C:\ends.\a", None),
        (r"\\?\C:\ends \a", None),
        (r"\\?\C:\a\nul", None),
        (r"\\?\C:\a\Com1.txt", None),
        (r"\\?\C:\a\LPT¹", None),
        (r"\\?\C:\a\con .txt", None),
        (r"\\?\C:\a\..\b", None),
        (r"\\?\C:\a/b", None),
    ] {
        assert_eq!(without_prefix(path), usual, "{path}");
    }
    let long = |letters: usize| format!(r"\\?\C:\{}", "ä".repeat(letters));
    assert!(without_prefix(&long(256)).is_some());
    assert!(without_prefix(&long(257)).is_none());
}
