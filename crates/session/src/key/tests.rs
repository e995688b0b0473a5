//! Tests of session keys and their slugs.

use proptest::prelude::*;

use super::*;

fn parts(agent: &str, channel: &str, account: &str, kind: PeerKind, peer: &str) -> SessionKeyParts {
    SessionKeyParts {
        agent_id: agent.into(),
        channel: channel.into(),
        account_id: account.into(),
        peer_kind: kind,
        peer_id: peer.into(),
    }
}

fn parse(text: &str) -> String {
    SessionKey::parse(text).unwrap().to_string()
}

#[test]
fn build_gives_the_canonical_form() {
    let key = SessionKey::build(&parts("main", "telegram", "default", PeerKind::Direct, "123456"));
    assert_eq!(key.as_str(), "agent:main:channel:telegram:account:default:peer:direct:123456");
    assert_eq!(
        key.slug(),
        "agent__main__channel__telegram__account__default__peer__direct__123456"
    );
}

#[test]
fn build_normalises_each_part() {
    let key = SessionKey::build(&parts(
        " Main ",
        "Tele/Gram!",
        "My  \t Account",
        PeerKind::Group,
        "Öl Fan @X+1.a-b",
    ));
    assert_eq!(
        key.as_str(),
        "agent:main:channel:telegram:account:my_account:peer:group:öl_fan_@x+1.a-b"
    );
}

#[test]
fn parts_without_usable_characters_get_their_fallback() {
    let key = SessionKey::build(&parts("", " / ", "\u{0}", PeerKind::Channel, "//"));
    assert_eq!(key.as_str(), "agent:main:channel:unknown:account:default:peer:channel:unknown");
}

#[test]
fn colons_stay_in_the_peer_only() {
    let key = SessionKey::build(&parts("a:b", "c:d", ":", PeerKind::Direct, "e:f::g"));
    assert_eq!(key.as_str(), "agent:ab:channel:cd:account:default:peer:direct:e:f::g");
    assert_eq!(SessionKey::parse(key.as_str()), Ok(key));
}

#[test]
fn parts_of_more_than_128_characters_are_cut_and_stay_distinct() {
    let build = |peer: &str| {
        SessionKey::build(&parts("main", "cli", "default", PeerKind::Direct, peer)).parts().peer_id
    };
    assert_eq!(build(&"é".repeat(128)), "é".repeat(128));
    let (one, other) = (build(&"é".repeat(200)), build(&"é".repeat(201)));
    assert_ne!(one, other);
    for cut in [&one, &other] {
        assert!(cut.starts_with(&"é".repeat(102)), "{cut}");
        assert_eq!(cut.chars().count(), 128);
        assert_eq!(build(cut), *cut, "a name that was cut stays as it is");
    }
}

#[test]
fn every_form_is_read() {
    let cases = [
        ("work", "agent:main:channel:cli:account:default:peer:direct:work"),
        ("  My Work ", "agent:main:channel:cli:account:default:peer:direct:my_work"),
        // canonical; upper case and the older word for a direct peer are read
        (
            "agent:a:channel:b:account:c:peer:group:D:e",
            "agent:a:channel:b:account:c:peer:group:d:e",
        ),
        ("agent:a:channel:b:account:c:peer:dm:d", "agent:a:channel:b:account:c:peer:direct:d"),
        // positional
        ("ops:telegram:42:7", "agent:ops:channel:telegram:account:default:peer:direct:42:thread:7"),
        ("ops:telegram:42", "agent:ops:channel:telegram:account:default:peer:direct:42"),
        ("ops:telegram", "agent:ops:channel:telegram:account:default:peer:direct:unknown"),
        (":telegram:42:", "agent:main:channel:telegram:account:default:peer:direct:42"),
        // short forms of related programs
        ("agent:ops:main", "agent:ops:channel:cli:account:default:peer:direct:main"),
        (
            "agent:ops:discord:channel:99",
            "agent:ops:channel:discord:account:default:peer:channel:99",
        ),
        (
            "agent:ops:discord:dm:99:thread:3",
            "agent:ops:channel:discord:account:default:peer:direct:99:thread:3",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text), expected, "{text}");
    }
}

#[test]
fn a_text_that_fits_no_form_is_refused() {
    assert_eq!(SessionKey::parse(" "), Err(SessionKeyError::Empty));
    for text in [
        "a:b:c:d:e",
        "::",
        "main:",
        "main::",
        "main:::",
        "agent:a:channel:b:account:c:peer:robot:d",
        "agent::channel:b:account:c:peer:direct:d",
    ] {
        assert_eq!(
            SessionKey::parse(text),
            Err(SessionKeyError::UnknownForm(text.into())),
            "{text}"
        );
    }
}

#[test]
fn a_name_that_would_share_a_session_is_refused() {
    assert_eq!(SessionKey::parse("🦞 / 🦞"), Err(SessionKeyError::NothingUsable("🦞 / 🦞".into())));
    for name in [".", "..", "-", "_", "@+"] {
        assert_eq!(SessionKey::parse(name), Err(SessionKeyError::NothingUsable(name.into())));
    }
    assert_eq!(SessionKey::parse(&"é".repeat(129)), Err(SessionKeyError::TooLong(129)));
    let longest = "é".repeat(128);
    assert_eq!(SessionKey::parse(&longest), Ok(SessionKey::for_cli("main", &longest)));
    assert_eq!(SessionKey::parse("die 🦞").unwrap().parts().peer_id, "die_");
}

#[test]
fn a_bare_word_belongs_to_the_agent_in_question() {
    let parse = |text: &str| SessionKey::parse_for_agent("Ops", text).unwrap().to_string();
    assert_eq!(parse("work"), "agent:ops:channel:cli:account:default:peer:direct:work");
    assert_eq!(parse(":slack:1"), "agent:ops:channel:slack:account:default:peer:direct:1");
    assert_eq!(parse("dev:slack:1"), "agent:dev:channel:slack:account:default:peer:direct:1");
}

#[test]
fn positional_keys_keep_every_part() {
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        PositionalKey::parse("word"),
        PositionalKey { raw: "word".into(), ..Default::default() }
    );
    assert_eq!(
        PositionalKey::parse("a::C:d:e"),
        PositionalKey {
            agent_id: some("a"),
            channel_id: None,
            peer_id: some("C"),
            thread_id: some("d"),
            raw: "a::C:d:e".into()
        }
    );
}

#[test]
fn literal_double_underscores_do_not_collide_with_colons() {
    let slug = |peer: &str| SessionKey::for_cli("main", peer).slug();
    let slugs = ["a:b", "a__b", "a_:b", "a:_b", "a___b", "a_b", "a::b", "a:_:b"].map(slug);
    let distinct: std::collections::HashSet<_> = slugs.iter().collect();
    assert_eq!(distinct.len(), slugs.len(), "{slugs:?}");
    assert!(slugs[5].ends_with("__a_b"), "single underscores stay readable: {}", slugs[5]);
}

#[test]
fn overlong_slugs_are_shortened_and_stay_distinct() {
    let one = SessionKey::for_cli("main", &"é".repeat(120));
    let other = SessionKey::for_cli("main", &format!("{}x", "é".repeat(119)));
    for key in [&one, &other] {
        assert!(key.slug().len() <= 200 && key.slug().len() > 150, "{}", key.slug());
        assert!(key.has_shortened_slug());
        assert_eq!(SessionKey::from_slug(&key.slug()), None);
    }
    assert_ne!(one.slug(), other.slug());
}

#[test]
fn a_session_begun_anew_has_the_same_peer() {
    let first =
        SessionKey::build(&parts("main", "irc", "default", PeerKind::Group, "#team:thread:7"));
    assert_eq!(first.begun_anew(1), first);
    let third = first.begun_anew(3);
    assert_eq!(third.as_str(), format!("{first}:new:3"));
    assert_eq!((third.parts().peer(), first.parts().peer()), ("team:thread:7", "team:thread:7"));
    for name in ["a:new:", "a:new:x", "a:new:1:b"] {
        let key = SessionKey::build(&parts("main", "irc", "default", PeerKind::Direct, name));
        assert_eq!(key.parts().peer(), name);
    }
}

#[test]
fn serde_uses_the_canonical_text() {
    let key = SessionKey::for_cli("main", "work");
    let text = serde_json::to_string(&key).unwrap();
    assert_eq!(text, "\"agent:main:channel:cli:account:default:peer:direct:work\"");
    assert_eq!(serde_json::from_str::<SessionKey>(&text).unwrap(), key);
    assert_eq!(serde_json::from_str::<SessionKey>("\"work\"").unwrap(), key);
    assert!(serde_json::from_str::<SessionKey>("\"\"").is_err());
}

fn any_kind() -> impl Strategy<Value = PeerKind> {
    prop_oneof![Just(PeerKind::Direct), Just(PeerKind::Group), Just(PeerKind::Channel)]
}

/// Short texts of the characters that matter to the grammar, and any others.
fn any_part() -> impl Strategy<Value = String> {
    prop_oneof!["[a_:]{0,8}", "[A-Za-z0-9_.@+: /~=-]{0,24}", any::<String>(), "\\PC{100,150}"]
}

proptest! {
    #[test]
    fn parse_gives_back_what_build_made(
        agent in any_part(), channel in any_part(), account in any_part(), kind in any_kind(), peer in any_part()
    ) {
        let key = SessionKey::build(&parts(&agent, &channel, &account, kind, &peer));
        prop_assert_eq!(SessionKey::parse(key.as_str()), Ok(key.clone()));
        prop_assert_eq!(SessionKey::build(&key.parts()), key);
    }

    #[test]
    fn slugs_are_file_names_that_lead_back_to_their_key(peer in any_part(), agent in any_part()) {
        let key = SessionKey::for_cli(&agent, &peer);
        let slug = key.slug();
        prop_assert!(slug.len() <= 200);
        prop_assert!(!slug.contains(['/', '\0', ':', '\\', ' ']));
        if !key.has_shortened_slug() {
            prop_assert_eq!(SessionKey::from_slug(&slug), Some(key));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        if let Ok(key) = SessionKey::parse(&text) {
            prop_assert_eq!(SessionKey::parse(key.as_str()), Ok(key));
        }
    }
}
