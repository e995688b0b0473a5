use super::*;

#[test]
fn plain_scripts_only_change_text() {
    for arguments in [
        ["-n", "1,20p", "file"].as_slice(),
        &["-n", "$p", "file"],
        &["5q", "file"],
        &["s/a/b/"],
        &["-E", "s|a\\|b|c|gI2", "x", "y"],
        &["1d"],
        &["-n", "="],
    ] {
        assert!(is_plain(arguments), "{arguments:?}");
    }
}

#[test]
fn scripts_that_may_run_something_are_not_plain() {
    for arguments in [
        ["1e id", "file"].as_slice(),
        &["s/x/id/e", "file"],
        &["s/x/id/ge", "file"],
        &["-n", "1p;1e id", "file"],
        &["-e", "1e id", "file"],
        &["-ne", "p"],
        &["-f", "script"],
        &["--expression=1e id"],
        &["--quiet", "p"],
        &["p", "--expression=1e id", "file"],
        &["s/a/b/w /etc/passwd"],
        &["w out"],
        &["s/[/]/x/e", "file"],
        &["s/a/b\n1e id/"],
        &["/x/e id"],
        &["-i", "s/a/b/", "file"],
        &["-s"],
        &[],
    ] {
        assert!(!is_plain(arguments), "{arguments:?}");
    }
}
