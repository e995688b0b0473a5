//! Help of `myclaw uninstall`.

pub(in crate::args) const UNINSTALL: &str = "\
Remove what MyClaw has written for this user: config, keys, sessions, logs, the service, completion scripts.

It lists everything first and asks. Workspaces, your skills and commands, and the folders of groups stay, unless you give \
--workspace. Files of other programs stay. The program itself stays too: remove it the way you installed it, which \
docs/use/install.md describes. There is no undo.";

pub(in crate::args) const UNINSTALL_EXAMPLES: &str = "\
Examples:
  myclaw uninstall --dry-run            what would be removed
  myclaw uninstall                      asks first
  myclaw uninstall --yes --workspace    everything, without a question";
