//! Help texts of `channels` and `pairing`.

use myclaw_config::ChannelsConfig;

pub(in crate::args) const CHANNELS: &str = "\
Show and test the channels through which messages arrive. They are set up in the config file, in `channels`, and run in \
the gateway. docs/channels/README.md describes them.";

pub(in crate::args) const CHANNELS_EXAMPLES: &str = "\
Examples:
  myclaw channels add telegram
  myclaw channels probe
  myclaw channels status";

pub(in crate::args) const CHANNELS_LIST_EXAMPLES: &str = "\
Examples:
  myclaw channels list
  myclaw channels list --json | jq -r .channel";

/// One line for each channel.
pub(in crate::args) fn channels_add_examples() -> String {
    let declared = ChannelsConfig::declared();
    let lines =
        declared.iter().map(|(name, it)| format!("\n  myclaw channels add {name} {}", it.example));
    let lines = lines.collect::<String>();
    format!("Examples:{lines}\n  myclaw channels add signal --link --allow-from +4915187654321")
}

pub(in crate::args) const CHANNELS_STATUS_EXAMPLES: &str = "\
Examples:
  myclaw channels status
  myclaw channels status --all
  myclaw channels status --json | jq .undelivered";

pub(in crate::args) const CHANNELS_PROBE_EXAMPLES: &str = "\
Examples:
  myclaw channels probe
  myclaw channels probe telegram";

pub(in crate::args) const CHANNELS_REMOVE_EXAMPLES: &str = "\
Examples:
  myclaw channels remove telegram
  myclaw channels remove webhook mine --dry-run";

pub(in crate::args) const PAIRING: &str = "\
Decide who may write to the agent. Somebody who writes to it for the first time gets a code, which works once and for an \
hour. These commands ask the running gateway; without one they use its store.";

pub(in crate::args) const PAIRING_EXAMPLES: &str = "\
Examples:
  myclaw pairing list
  myclaw pairing approve K7QM2XPA
  myclaw pairing deny telegram:42";

pub(in crate::args) const PAIRING_LIST_EXAMPLES: &str = "\
Examples:
  myclaw pairing list
  myclaw pairing list --json | jq -r '.pairings[].sender'";

pub(in crate::args) const PAIRING_APPROVE_EXAMPLES: &str = "\
Examples:
  myclaw pairing approve K7QM2XPA";

pub(in crate::args) const PAIRING_DENY_EXAMPLES: &str = "\
Examples:
  myclaw pairing deny K7QM2XPA       refuse a person who asked
  myclaw pairing deny telegram:42    take a permission away";
