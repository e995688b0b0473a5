//! The options of `channels add`, and how their values get into the config.

use myclaw_config::ChannelOption;
use serde_json::{Value, json};

use crate::args::AddChannelArgs;

/// The options of `channels add` that give values.
pub(super) const OPTIONS: [ChannelOption; 8] = [
    ChannelOption::Url,
    ChannelOption::Address,
    ChannelOption::Imap,
    ChannelOption::Smtp,
    ChannelOption::AuthservId,
    ChannelOption::Id,
    ChannelOption::Host,
    ChannelOption::Nick,
];

/// An option as it is written.
pub(super) fn option(option: ChannelOption) -> &'static str {
    match option {
        ChannelOption::Url => "--url",
        ChannelOption::Address => "--address",
        ChannelOption::Imap => "--imap",
        ChannelOption::Smtp => "--smtp",
        ChannelOption::AuthservId => "--authserv-id",
        ChannelOption::Id => "--id",
        ChannelOption::Host => "--host",
        ChannelOption::Nick => "--nick",
    }
}

/// What an option says.
pub(super) fn given(option: ChannelOption, args: &AddChannelArgs) -> Option<&String> {
    let given = match option {
        ChannelOption::Url => &args.url,
        ChannelOption::Address => &args.address,
        ChannelOption::Imap => &args.imap,
        ChannelOption::Smtp => &args.smtp,
        ChannelOption::AuthservId => &args.authserv_id,
        ChannelOption::Id => &args.id,
        ChannelOption::Host => &args.host,
        ChannelOption::Nick => &args.nick,
    };
    given.as_ref()
}

/// A reference to a variable, as the config writes it.
pub(in crate::commands) fn reference(variable: &str) -> String {
    format!("${{{variable}}}")
}

/// Puts `new` into the config of a channel under a key such as `imap.host`.
pub(in crate::commands) fn put(value: &mut Value, key: &str, new: Value) {
    match key.split_once('.') {
        Some((outer, inner)) if value[outer].is_object() => value[outer][inner] = new,
        Some((outer, inner)) => value[outer] = json!({inner: new}),
        None => value[key] = new,
    }
}
