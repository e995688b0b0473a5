use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Response {
    parse(text.as_bytes()).unwrap_or_else(|| panic!("{text:?} is not read"))
}

#[test]
fn what_servers_say_is_read() {
    let status = |tag: Option<&str>, status, code, text: &str| {
        Response::Status(StatusLine {
            tag: tag.map(str::to_owned),
            status,
            code,
            text: text.to_owned(),
        })
    };
    for (text, response) in [
        ("+ \r\n", Response::Continue),
        ("+\r\n", Response::Continue),
        (
            "* OK [UIDVALIDITY 7] fine\r\n",
            status(None, Status::Ok, Some(Code::UidValidity(7)), "fine"),
        ),
        (
            "* OK [UIDNEXT 4294967295]\r\n",
            status(None, Status::Ok, Some(Code::UidNext(u32::MAX)), ""),
        ),
        (
            "m1 NO [AUTHENTICATIONFAILED] no\r\n",
            status(
                Some("m1"),
                Status::No,
                Some(Code::Other("AUTHENTICATIONFAILED".to_owned())),
                "no",
            ),
        ),
        ("* BYE\r\n", status(None, Status::Bye, None, "")),
        (
            "* CAPABILITY imap4rev1 IDLE\r\n",
            Response::Capability(vec!["IMAP4REV1".to_owned(), "IDLE".to_owned()]),
        ),
        ("* 3 EXISTS\r\n", Response::Exists(3)),
        ("* 3 EXPUNGE\r\n", Response::Other),
        ("* FLAGS (\\Seen)\r\n", Response::Other),
        (
            "* 1 FETCH (UID 5 FLAGS (\\Seen (a)) RFC822.SIZE 10 INTERNALDATE \"17-Jul-1996 02:44:25 -0700\")\r\n",
            Response::Fetch(Fetch {
                uid: Some(5),
                size: Some(10),
                date: Some("17-Jul-1996 02:44:25 -0700".to_owned()),
                body: None,
            }),
        ),
        (
            "* 1 FETCH (BODY[]<0> {4}\r\na)\r\n UID 5)\r\n",
            Response::Fetch(Fetch {
                uid: Some(5),
                body: Some(b"a)\r\n".to_vec()),
                ..Fetch::default()
            }),
        ),
        (
            "* 1 FETCH (BODY[HEADER.FIELDS (DATE)] \"a\\\"b\" UID 5)\r\n",
            Response::Fetch(Fetch {
                uid: Some(5),
                body: Some(b"a\"b".to_vec()),
                ..Fetch::default()
            }),
        ),
        (
            "* 1 FETCH (UID 5 BODY[] NIL)\r\n",
            Response::Fetch(Fetch { uid: Some(5), ..Fetch::default() }),
        ),
    ] {
        assert_eq!(read(text), response, "{text:?}");
    }
}

#[test]
fn what_is_no_response_is_none() {
    let deep = format!("* 1 FETCH (A {}{})\r\n", "(".repeat(10_000), ")".repeat(10_000));
    for text in [
        "",
        "\r\n",
        "*\r\n",
        "m1\r\n",
        "m1 MAYBE\r\n",
        "* 1 FETCH\r\n",
        "* 1 FETCH (UID 5\r\n",
        "* 1 FETCH (BODY[] {9}\r\nabc)\r\n",
        "* 1 FETCH (BODY[] \"a\r\n\")\r\n",
        "* 1 FETCH (BODY[] {99999999999}\r\n)\r\n",
        &deep,
    ] {
        assert_eq!(parse(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn a_literal_is_announced_at_the_end_of_a_line() {
    for (line, count) in [
        ("* 1 FETCH (BODY[] {12}\r\n", Some(12)),
        ("{12+}\n", Some(12)),
        ("{0}\r\n", Some(0)),
        ("{}\r\n", None),
        ("{12} \r\n", None),
        ("12}\r\n", None),
        ("{4294967296000}\r\n", None),
        ("{12}", None),
    ] {
        assert_eq!(literal_after(line.as_bytes()), count, "{line:?}");
    }
}

proptest! {
    /// Whatever a message holds, it is read as it is.
    #[test]
    fn a_literal_can_hold_anything(body in prop::collection::vec(any::<u8>(), 0..200), uid in any::<u32>()) {
        let mut bytes = format!("* 1 FETCH (UID {uid} BODY[] {{{}}}\r\n", body.len()).into_bytes();
        bytes.extend_from_slice(&body);
        bytes.extend_from_slice(b")\r\n");
        let fetch = Fetch { uid: Some(uid), body: Some(body), ..Fetch::default() };
        prop_assert_eq!(parse(&bytes), Some(Response::Fetch(fetch)));
    }

    #[test]
    fn nothing_makes_it_fail(bytes in prop::collection::vec(prop_oneof![
        any::<u8>(), prop::sample::select(b"* ()[]{}\"\\\r\n15+FETCHUIDBODY".to_vec()),
    ], 0..100)) {
        let _ = parse(&bytes);
        let _ = literal_after(&bytes);
    }
}
