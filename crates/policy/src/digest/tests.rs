use super::*;

fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn digest(
    command: &str,
    programs: &[(&str, &[&str])],
    directory: &str,
    pairs: &[(&str, &str)],
) -> ApprovalDigest {
    let programs: Vec<(&Path, Vec<&str>)> =
        programs.iter().map(|(path, words)| (Path::new(*path), words.to_vec())).collect();
    ApprovalDigest::of_command(&CommandSubject {
        command,
        programs: &programs,
        directory: Path::new(directory),
        environment: &environment(pairs),
    })
}

#[test]
fn everything_that_an_approval_is_about_changes_the_digest() {
    let list: Vec<ApprovalDigest> = vec![
        digest("ls a", &[("/bin/ls", &["ls", "a"])], "/w", &[("A", "1")]),
        digest("ls  a", &[("/bin/ls", &["ls", "a"])], "/w", &[("A", "1")]),
        digest("ls a", &[("/usr/bin/ls", &["ls", "a"])], "/w", &[("A", "1")]),
        digest("ls a", &[("/bin/ls", &["ls", "a", ""])], "/w", &[("A", "1")]),
        digest("ls a", &[("/bin/ls", &["lsa"])], "/w", &[("A", "1")]),
        digest("ls a", &[], "/w", &[("A", "1")]),
        digest("ls a", &[("/bin/ls", &["ls", "a"])], "/w2", &[("A", "1")]),
        digest("ls a", &[("/bin/ls", &["ls", "a"])], "/w", &[("A", "2")]),
        digest("ls a", &[("/bin/ls", &["ls", "a"])], "/w", &[("A1", "")]),
        digest("ls a", &[("/bin/ls", &["ls", "a"])], "/w", &[("A", ""), ("1", "")]),
        digest("ls a", &[("/bin/ls", &["ls", "a"])], "/w", &[]),
        ApprovalDigest::of_tool_call("write", "{}", Path::new("/w")),
        ApprovalDigest::of_tool_call("write", "{}/", Path::new("w")),
        ApprovalDigest::of_tool_call("write", "{}", Path::new("/w2")),
        ApprovalDigest::of_tool_call("write", "{ }", Path::new("/w")),
        ApprovalDigest::of_tool_call("edit", "{}", Path::new("/w")),
    ];
    for (index, one) in list.iter().enumerate() {
        assert!(!list[..index].contains(one), "number {index} has the digest of another");
    }
}

#[test]
fn the_digest_stays_the_same_from_version_to_version() {
    let one = digest("ls a", &[("/bin/ls", &["ls", "a"])], "/w", &[("A", "1")]);
    assert_eq!(one, digest("ls a", &[("/bin/ls", &["ls", "a"])], "/w", &[("A", "1")]));
    assert_eq!(
        ApprovalDigest::of_tool_call("bash", "{}", Path::new("/w")),
        ApprovalDigest::of_tool_call("exec", "{}", Path::new("/w"))
    );
    assert_eq!(ApprovalDigest::parse(&one.to_string()), Some(one));
    assert_eq!(ApprovalDigest::parse(&one.to_string().to_uppercase()), None);
    assert_eq!(ApprovalDigest::parse("00"), None);
}
