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
        &["-ne", "p"],
        &["--quiet", "p"],
        &["-e", "s/^[^:]*: //", "-e", "/^$/d"],
        &["s/[[:space:]]*$//; s/a/b/g"],
        &["-n", "/start/,/end/{p;n}"],
        &["--expression=1d", "file"],
        &["$!N"],
        &["y/abc/xyz/"],
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
        &["-ne", "e id"],
        &["-n", "-e", "p", "-e", "w out"],
        &["/x/{e id\n}"],
        &["p}"],
        &["{p"],
        &["s/[[:x]/]/e id/"],
        &["s/a/b/m;e"],
        &["r x"],
        &["1R x"],
        &["W x"],
        &["y/a/b/e"],
        &["p", "-i"],
        &["-n", "p", "-f", "x"],
        &["--in-place", "p"],
        &["-ni", "p"],
        &["-f", "script"],
        &["--expression=1e id"],
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
