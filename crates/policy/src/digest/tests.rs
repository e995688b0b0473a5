use super::*;

fn digest(tool: &str, fields: &[(&str, &str)]) -> ApprovalDigest {
    let fields: Vec<(&str, &[u8])> =
        fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    ApprovalDigest::of(tool, &fields)
}

#[test]
fn everything_that_an_approval_is_about_changes_the_digest() {
    let list = [
        digest("bash", &[("command", "ls a"), ("directory", "/w")]),
        digest("bash", &[("command", "ls  a"), ("directory", "/w")]),
        digest("bash", &[("command", "ls a"), ("directory", "/w2")]),
        digest("bash", &[("command", "ls a"), ("directory", "/w"), ("", "")]),
        digest("bash", &[("command", "ls adirectory"), ("", "/w")]),
        digest("bash", &[("commandls a", ""), ("directory", "/w")]),
        digest("bash", &[("directory", "/w"), ("command", "ls a")]),
        digest("bash", &[("command", "ls a")]),
        digest("write", &[("command", "ls a"), ("directory", "/w")]),
    ];
    for (index, one) in list.iter().enumerate() {
        assert!(!list[..index].contains(one), "number {index} has the digest of another");
    }
}

#[test]
fn a_tool_has_one_digest_under_all_its_names() {
    let one = digest("bash", &[("command", "ls")]);
    assert_eq!(one, digest("exec", &[("command", "ls")]));
    assert_eq!(ApprovalDigest::parse(&one.to_string()), Some(one));
    assert_eq!(ApprovalDigest::parse(&one.to_string().to_uppercase()), None);
    assert_eq!(ApprovalDigest::parse("00"), None);
}
