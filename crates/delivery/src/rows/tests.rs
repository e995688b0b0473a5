//! Tests of ids.

use super::*;

fn route(channel: &str, account: &str, chat: &str) -> Route {
    let [channel, account, chat] = [channel, account, chat].map(str::to_owned);
    Route { channel, account, chat }
}

#[test]
fn a_message_is_known_by_its_channel_its_account_and_the_id_there() {
    let message = MessageId::of(&route("telegram", "work", "1"), "77");
    // A source that delivers it again may name the chat differently.
    assert_eq!(MessageId::of(&route("telegram", "work", "2"), "77"), message);
    for (channel, account, id) in
        [("telegram", "home", "77"), ("webhook", "work", "77"), ("telegram", "work", "78")]
    {
        assert_ne!(MessageId::of(&route(channel, account, "1"), id), message);
    }
    // Where one text ends and the next begins counts too.
    assert_ne!(MessageId::of(&route("telegra", "mwork", "1"), "77"), message);
}
