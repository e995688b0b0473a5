use super::*;

fn bytes(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

/// The example of RFC 8291, section 5 and appendix A.
#[test]
fn a_text_is_encrypted_as_in_the_example_of_the_standard() {
    let keys = BrowserKeys::parse(
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "BTBZMqHH6r4Tts7J_aSIgg",
    )
    .unwrap();
    let shared = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
    let own = bytes(
        "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8",
    );
    let salt = bytes("DGv6ra1nlYgDCS1FRnbzlw").try_into().unwrap();
    let text = b"When I grow up, I want to be a watermelon";
    let body = keys.sealed(&shared, &own, &salt, text).unwrap();
    assert_eq!(
        URL_SAFE_NO_PAD.encode(body),
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS\
         6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    );
}

#[test]
fn keys_that_no_browser_gives_are_none() {
    let point =
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
    let auth = "BTBZMqHH6r4Tts7J_aSIgg";
    assert!(BrowserKeys::parse(&format!("{point}="), &format!("{auth}==")).is_some());
    for (point, auth) in [("", auth), (point, ""), (auth, auth), (point, point), ("no key!", auth)]
    {
        assert!(BrowserKeys::parse(point, auth).is_none(), "{point} {auth}");
    }
    // A point that is not on the curve is found when something is encrypted for it.
    let other = format!("BAAA{}", &point[4..]);
    assert!(BrowserKeys::parse(&other, auth).unwrap().seal(b"text").is_err());
}
