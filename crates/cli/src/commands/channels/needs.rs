//! The options of `channels add` that give values.

use myclaw_config::ChannelOption;

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
        ChannelOption::None => "the config",
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
        ChannelOption::None => return None,
    };
    given.as_ref()
}
