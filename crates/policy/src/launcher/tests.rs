use super::*;

#[test]
fn versions_and_case_do_not_hide_an_interpreter() {
    for name in [
        "python",
        "python3",
        "python3.12",
        "Python3",
        "perl5.36.0",
        "bash",
        "ld-linux-x86-64.so.2",
        "lua5.4",
    ] {
        assert_eq!(Launcher::of(name), Launcher::Anything, "{name}");
    }
    for name in ["ls", "cat", "sha256sum", "gitk", "pythonista", ""] {
        assert_eq!(Launcher::of(name), Launcher::Nothing, "{name}");
    }
    assert!(matches!(Launcher::of("find"), Launcher::WithOption(_)));
    assert_eq!(Launcher::of("sed"), Launcher::Sed);
}

#[test]
fn options_match_as_programs_read_them() {
    for (option, index, argument, expected) in [
        ("--compress-program", 3, "--compress-program=sh", true),
        ("--compress-program", 3, "--compress-prog", true),
        ("--compress-program", 3, "--comp=sh", true),
        ("--compress-program", 3, "--compressed", false),
        ("--compress-program", 3, "--", false),
        ("-I", 0, "-I", true),
        ("-I", 0, "-xIf", true),
        ("-I", 0, "--Include", false),
        ("-I", 0, "I", false),
        ("-exec", 1, "-exec", true),
        ("-exec", 1, "-executable", false),
        ("-specs", 1, "-specs=x", true),
        ("0I", 0, "xIf", true),
        ("0I", 1, "xIf", false),
        ("^-p", 0, "-p", true),
        ("^-p", 1, "-p", false),
        ("*=", 0, "CC=sh", true),
        ("exec", 2, "exec", true),
        ("exec", 2, "execute", false),
    ] {
        assert_eq!(is_launch_option(&[option], index, argument), expected, "{option} {argument}");
    }
}
