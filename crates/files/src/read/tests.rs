//! Tests of reading in a directory.

use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::open_beneath;

#[test]
fn nothing_outside_of_the_directory_is_opened() {
    let place = tempfile::tempdir().expect("a directory");
    let inside = place.path().join("inside");
    std::fs::create_dir_all(inside.join("deep")).expect("a directory");
    std::fs::write(inside.join("deep/file"), "mine").expect("a file");
    std::fs::write(place.path().join("secret"), "theirs").expect("a file");
    symlink("../secret", inside.join("link")).expect("a link");
    symlink("..", inside.join("up")).expect("a link");
    for wrong in
        ["../secret", "link", "up/secret", "deep/../../secret", "/etc/passwd", "deep", "none", "."]
    {
        assert!(open_beneath(&inside, Path::new(wrong)).is_err(), "{wrong}");
    }
    for right in ["deep/file", "./deep/./file"] {
        let mut text = String::new();
        let mut file = open_beneath(&inside, Path::new(right)).expect("the file");
        file.read_to_string(&mut text).expect("a text");
        assert_eq!(text, "mine");
    }
}
