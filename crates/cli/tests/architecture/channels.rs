//! How many files know a channel: a further one must touch few.

use std::collections::BTreeSet;
use std::fs;

/// Most files outside of the channel's own module that know it: the list of channels and the type of its config, what
/// makes it of that, the list of those, and the list of modules in `channels`. CONTRIBUTING.md names them.
const MOST_FILES: usize = 5;

/// The channels of vendors, with the words that name each in code. A mail and a signal are other things too.
const CHANNELS: [(&str, &[&str]); 9] = [
    ("telegram", &["telegram", "TelegramConfig", "TELEGRAM"]),
    ("matrix", &["matrix", "MatrixConfig", "MATRIX"]),
    ("email", &["EmailConfig"]),
    ("whatsapp", &["whatsapp", "WhatsAppConfig", "WHATSAPP"]),
    ("signal", &["SignalConfig", "SIGNAL"]),
    ("irc", &["irc", "IrcConfig", "IRC"]),
    ("xmpp", &["xmpp", "XmppConfig", "XMPP"]),
    ("slack", &["slack", "SlackConfig", "SLACK"]),
    ("discord", &["discord", "DiscordConfig", "DISCORD"]),
];

/// The files that name a channel where a further one need not be named, and why.
const MENTIONS: [(&str, &[&str]); 4] = [
    (
        "examples",
        &[
            "cli/src/args/help.rs",
            "cli/src/args/help/channels.rs",
            "cli/src/args/help/host.rs",
            "cli/src/commands/channels.rs",
            "config/src/semantics/approvals.rs",
            "config/src/semantics/channels/people.rs",
        ],
    ),
    ("what other programs call it", &["config/src/hints.rs"]),
    ("the variables of its tests", &["files/src/variables.rs"]),
    (
        "what no other channel does",
        &[
            "channels/src/email/compose.rs",
            "delivery/src/routing/access.rs",
            "delivery/src/routing/command.rs",
        ],
    ),
];

#[test]
fn a_channel_is_known_to_few_files() {
    let mut unused: BTreeSet<&str> =
        MENTIONS.iter().flat_map(|(_, files)| *files).copied().collect();
    let listed = unused.clone();
    let mut wrong = Vec::new();
    for (channel, words) in CHANNELS {
        let own = [format!("channels/src/{channel}.rs"), format!("channels/src/{channel}/")];
        let mut found = Vec::new();
        for (krate, _) in super::CRATES {
            for file in super::sources(&super::crates().join(krate).join("src")) {
                let name = file.strip_prefix(super::crates()).unwrap().to_str().unwrap().to_owned();
                let code = super::circles::code(&fs::read_to_string(&file).unwrap());
                let is_own = own.iter().any(|own| name.starts_with(own));
                if is_own || !words.iter().any(|word| super::holds_word(&code, word)) {
                    continue;
                }
                unused.remove(name.as_str());
                if !listed.contains(name.as_str()) {
                    found.push(name);
                }
            }
        }
        assert!(found.len() > 1, "{channel} is known nowhere: {found:?}");
        if found.len() > MOST_FILES {
            wrong.push(format!("{channel}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "more than {MOST_FILES} files know a channel:\n{}", wrong.join("\n"));
    assert!(unused.is_empty(), "these name no channel any more: {unused:?}");
}
