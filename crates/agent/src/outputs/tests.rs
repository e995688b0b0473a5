use std::fs;
use std::os::unix::fs::symlink;

use super::*;

const KEY: &str = "sk-ant-api03-0123456789abcdefghijklmnop";

fn known() -> KnownSecrets {
    let known = KnownSecrets::default();
    known.learn([KEY]);
    known
}

#[test]
fn a_key_goes_wherever_it_stands_and_the_rest_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bash-1.log");
    // At the end of a piece, at the beginning of one, in the middle, and characters of two bytes over the end of a piece.
    for before in
        [0, 1, PIECE - KEY.len() / 2, PIECE - 1, PIECE, 2 * PIECE - 7, PIECE - OVERLAP - 3]
    {
        for filling in ["a", "é"] {
            let begin = filling.repeat(before / filling.len());
            let rest = format!(" \u{1f600} {}", "b\n".repeat(PIECE));
            fs::write(&path, format!("{begin}{KEY}{rest}")).unwrap();
            remove_keys(&path, &known());
            let text = fs::read_to_string(&path).unwrap();
            assert!(!text.contains(KEY), "{before}");
            assert!(text.starts_with(&begin) && text.ends_with(&rest), "{before} {filling}");
            assert!(text.len() < begin.len() + rest.len() + 100, "{before}");
        }
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_file_without_keys_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bash-1.log");
    let bytes = [&[0xff, 0, 0xc3][..], &[b'x'; 3 * PIECE], &[0xe2, 0x82]].concat();
    fs::write(&path, &bytes).unwrap();
    let before = path.metadata().unwrap().modified().unwrap();
    remove_keys(&path, &known());
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(path.metadata().unwrap().modified().unwrap(), before);
}

#[test]
fn what_a_session_puts_in_the_place_of_its_output_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let (scratch, private) = (directory.path().join("scratch"), directory.path().join("private"));
    fs::create_dir(&scratch).unwrap();
    let text = format!("key = {KEY}");
    fs::write(&private, &text).unwrap();
    symlink(&private, scratch.join("link")).unwrap();
    fs::write(scratch.join("output"), &text).unwrap();
    symlink(&private, scratch.join("output.new")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(scratch.join("fifo")).status();
    assert!(made.unwrap().success());
    for name in ["link", "fifo", "output", "missing"] {
        remove_keys(&scratch.join(name), &known());
    }
    assert_eq!(fs::read_to_string(&private).unwrap(), text);
    assert!(!fs::read_to_string(scratch.join("output")).unwrap().contains(KEY));
}
