//! Help texts of `channels` and `pairing`.

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

pub(in crate::args) const CHANNELS_ADD_EXAMPLES: &str = "\
Examples:
  myclaw channels add telegram --allow-from 42
  myclaw channels add matrix --url https://matrix.example.org --allow-from @you:example.org
  myclaw channels add email --address claw@example.org --imap imap.example.org --smtp smtp.example.org \\
    --authserv-id mx.example.org --allow-from you@example.org
  myclaw channels add whatsapp --id 106540352242922 --allow-from 16505551234
  myclaw channels add signal --id +4915112345678 --allow-from +4915187654321
  myclaw channels add irc --host irc.example.org --nick claw
  myclaw channels add xmpp --address claw@example.org --allow-from you@example.org
  myclaw channels add slack --allow-from U0123ABCD
  myclaw channels add discord --allow-from 80351110224678912
  myclaw channels add webhook --account mine --url http://127.0.0.1:8080/answers
  myclaw channels add socket --dry-run";

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
