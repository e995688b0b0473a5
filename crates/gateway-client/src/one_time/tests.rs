use super::{OneTimeTokens, SeenTokens};
use crate::GatewayToken;

#[test]
fn a_token_is_used_up_once_and_in_its_order() {
    let key = || GatewayToken::of("key".to_owned());
    let text = |token: GatewayToken| token.header()["Bearer ".len()..].to_owned();
    let (sender, other) = (OneTimeTokens::new(key()), OneTimeTokens::new(key()));
    let seen = SeenTokens::new(key());
    let [first, second, third] = [(); 3].map(|()| text(sender.next()));
    assert!(seen.is_known(&first) && seen.is_known(&first));
    assert!(seen.use_up(&first));
    assert!(!seen.use_up(&first));
    // One that did not arrive in time is late.
    assert!(seen.use_up(&third));
    assert!(!seen.use_up(&second));
    assert!(seen.use_up(&text(other.next())));
    assert!(seen.use_up(&text(sender.next())));
    let forged = first.replace(".1.", ".9.");
    assert_ne!(forged, first);
    let elsewhere = text(OneTimeTokens::new(GatewayToken::of("no".to_owned())).next());
    for wrong in [forged.as_str(), &elsewhere, "", "..", "a.1.", "key"] {
        assert!(!seen.is_known(wrong) && !seen.use_up(wrong), "{wrong}");
    }
}
