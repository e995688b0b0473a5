use super::*;

#[test]
fn subjects_are_those_of_replies_or_the_first_line() {
    for (subject, reply) in
        [("Hi", "Re: Hi"), ("RE: Hi", "RE: Hi"), ("", "Re:"), ("Ünder", "Re: Ünder")]
    {
        assert_eq!(reply_subject(subject), reply);
    }
    assert_eq!(own_subject("\n## The **news**\n\nmore"), "The news");
    assert_eq!(own_subject(" \n"), "Message");
    let long = own_subject(&"word ".repeat(30));
    assert!(long.ends_with("word…") && long.chars().count() <= MOST_OWN_SUBJECT + 1, "{long}");
}

#[test]
fn an_address_is_no_command() {
    for address in ["ann@example.org", "a.b+c@x"] {
        assert!(is_plain_address(address), "{address}");
    }
    for address in
        ["", "ann", "@x", "a@", "a@b@c", "a b@c", "a>@b\r\nRCPT TO:<x@y", "a@b>", "ä@b", "\"a\"@b"]
    {
        assert!(!is_plain_address(address), "{address}");
    }
}

#[test]
fn a_thread_is_read_as_it_was_written_and_nonsense_is_none() {
    let thread =
        Thread { id: "a@b".into(), subject: "x\"y".into(), references: vec!["c@d".into()] };
    assert_eq!(Thread::from_text(&thread.to_text()), thread);
    assert_eq!(Thread::from_text("<a@b>"), Thread::default());
}
