//! Help of `myclaw backup` and `myclaw restore`.

pub(in crate::args) const BACKUP: &str = "\
Write everything that MyClaw keeps into one file, also while it runs: config, sessions, what waits to be answered or sent, \
schedules, approvals, memory, workspaces, skills and commands.

Keys are left out unless you give --with-keys: `.env`, the key store, logins, tokens of the gateway and of nodes, and keys \
that are written in the config. Logs of the program, and files outside of the state directory, are never in it. What a \
person should know is missing is printed. --encrypt asks for a passphrase twice; without it nobody can read the file, and \
nobody can help you if you forget it.

`myclaw restore FILE` makes a state directory of it, on this machine or another.";

pub(in crate::args) const BACKUP_EXAMPLES: &str = "\
Examples:
  myclaw backup ~/claw.backup                             without keys
  myclaw backup --with-keys --encrypt ~/claw.backup       everything, with a passphrase
  myclaw backup --check ~/claw.backup                     is it whole?
  myclaw backup --with-keys - | ssh there myclaw restore -    move to another machine";

pub(in crate::args) const RESTORE: &str = "\
Make a state directory of a file that `myclaw backup` has written.

The backup is read to its end and all digests are compared before anything changes; then one rename puts it in place. A \
state directory with files in it stays, unless you give --replace: then it is kept next to the new one under a name that is \
printed. End a gateway, host or chat that uses it first. An answer that was not yet sent when the backup was made is sent \
by the next gateway, so do not start one on two machines.";

pub(in crate::args) const RESTORE_EXAMPLES: &str = "\
Examples:
  myclaw restore ~/claw.backup
  myclaw restore --replace ~/claw.backup
  MYCLAW_STATE_DIR=/srv/claw myclaw restore --passphrase-file pass.txt ~/claw.backup";
