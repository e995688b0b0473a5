use super::*;

#[test]
fn settings_files_are_read_as_amazons_tools_do() {
    let text = "\u{FEFF}stray = ignored\r\n\
        # a comment\r\n\
        [default]\r\n\
        Region = eu-west-1 # behind a value\r\n\
        s3 =\r\n  max_queue_size = 10\r\n\
        [profile  \"my work\"] ; comment\r\n\
        aws_access_key_id=AKID\r\n\
        aws_secret_access_key = a=b#c;d\r\n\
        [sso-session corp]\n\
        sso_region = us-east-1\n\
        nonsense\n\
        [empty]\n";
    let sections = parse(text);
    let section = |name: &str| -> Vec<(&str, &str)> {
        sections[name].iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    };
    assert_eq!(section("default"), [("region", "eu-west-1"), ("s3", "")]);
    assert_eq!(
        section("profile my work"),
        [("aws_access_key_id", "AKID"), ("aws_secret_access_key", "a=b#c;d")]
    );
    assert_eq!(section("sso-session corp"), [("sso_region", "us-east-1")]);
    assert_eq!(section("empty"), []);
    assert_eq!(sections.len(), 4);
}

proptest::proptest! {
    #[test]
    fn no_file_is_too_odd(text in "(\\[|\\]|=|#|;| |\n|[a-z]){0,40}") {
        parse(&text);
    }
}
