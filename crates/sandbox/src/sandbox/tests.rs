use super::*;

/// The config will hold these words.
#[test]
fn a_confinement_is_plain_data() {
    let json = r#"{"level":"landlock","workspace":"/w","access":"ro","network":{"proxy":{"socket":"/s"}},
        "limits":{"processes":7}}"#;
    let confinement: Confinement = serde_json::from_str(json).unwrap();
    let mut expected = Confinement::new(Level::Landlock, "/w");
    expected.access = crate::WorkspaceAccess::Ro;
    expected.network = crate::Network::Proxy { socket: "/s".into() };
    expected.limits = crate::Limits { processes: Some(7), ..crate::Limits::default() };
    assert_eq!(confinement, expected);
    assert!(serde_json::from_str::<Confinement>(&json.replace("access", "acess")).is_err());
}

#[test]
fn tokens_differ() {
    assert_ne!(token(), token());
}
