use super::*;

fn parse(text: &str) -> KeySource {
    KeySource::from_config(&SecretString::from(text), Some(&Paths::in_state_dir("/state"))).unwrap()
}

#[test]
fn every_way_of_writing_is_distinguished() {
    for (written, described) in [
        ("!pass show anthropic", "!pass show anthropic"),
        ("! pass ", "!pass"),
        ("file:keys/anthropic", "file:/state/keys/anthropic"),
        ("file:/run/secrets/key", "file:/run/secrets/key"),
        ("env:MY_KEY", "env:MY_KEY"),
        ("keyring:anthropic", "keyring:myclaw/anthropic"),
        ("keyring:team/anthropic", "keyring:team/anthropic"),
    ] {
        assert_eq!(parse(written).describe().as_deref(), Some(described), "{written}");
    }
    for (written, key) in [("sk-ant-1", "sk-ant-1"), ("literal:!odd", "!odd"), (" k ", "k")] {
        let KeySource::Literal(found) = parse(written) else { panic!("{written}") };
        assert_eq!(found.expose_secret(), key);
        assert_eq!(parse(written).describe(), None);
    }
}

#[test]
fn the_key_is_not_in_the_debug_form() {
    assert!(!format!("{:?}", parse("sk-ant-secret")).contains("secret-"));
    assert!(!format!("{:?}", parse("sk-ant-secret")).contains("sk-ant"));
}
