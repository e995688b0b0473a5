//! Help texts of `myclaw packages`.

pub(in crate::args) const PACKAGES: &str = "\
Add packages of others: directories with skills, commands, hooks, MCP servers and agents, as agents share them (Agent Skills, plugins \
of Claude Code, skills of ClawHub). Nothing of a package runs or reaches a model before you have seen what it asks for and approved \
exactly that; no install script is ever run. A package with a changed byte is off until you look at it again. docs/use/packages.md";

pub(in crate::args) const PACKAGES_EXAMPLES: &str = "\
Examples:
  myclaw packages add ./release-notes
  myclaw packages add https://github.com/example/plugins --subdirectory plugins/notes
  myclaw packages add npm:@example/skills
  myclaw packages list
  myclaw packages update release-notes
  myclaw packages verify
  myclaw packages remove release-notes";

pub(in crate::args) const PACKAGES_ADD: &str = "\
Fetches a package, shows what it holds, what it asks for and what a reader should look at, and asks whether you approve it. Without a \
terminal nothing is approved and the exit code is 1, unless --yes names the digest of what you have seen.";

pub(in crate::args) const PACKAGES_ADD_EXAMPLES: &str = "\
Examples:
  myclaw packages add ./release-notes
  myclaw packages add npm:@example/skills@1.2.0
  myclaw packages add https://example.com/notes-1.2.tar.gz
  myclaw packages add 'https://github.com/example/plugins#v2' --subdirectory plugins/notes --name notes
  myclaw packages add ./release-notes --yes --digest 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

pub(in crate::args) const PACKAGES_LIST_EXAMPLES: &str = "\
Examples:
  myclaw packages list
  myclaw packages list --json | jq -r 'select(.off) | .name'";

pub(in crate::args) const PACKAGES_SHOW_EXAMPLES: &str = "\
Examples:
  myclaw packages show release-notes";

pub(in crate::args) const PACKAGES_UPDATE: &str = "\
Fetches a package again from where it came, shows how its wishes and files differ from those that you approved, and asks. Until you \
approve the difference, the old package stays. If the bytes on disk were changed and the source has the approved ones, they are \
restored without a question.";

pub(in crate::args) const PACKAGES_UPDATE_EXAMPLES: &str = "\
Examples:
  myclaw packages update release-notes";

pub(in crate::args) const PACKAGES_REMOVE_EXAMPLES: &str = "\
Examples:
  myclaw packages remove release-notes";

pub(in crate::args) const PACKAGES_VERIFY_EXAMPLES: &str = "\
Examples:
  myclaw packages verify
  myclaw packages verify release-notes";
