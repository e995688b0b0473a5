//! Help texts of `devices`.

pub(in crate::args) const DEVICES: &str = "\
Decide which other browsers, scripts, phones and machines may use the gateway, and for what. A code says what the new \
device may do; the device pairs with it, and you approve it. docs/operate/devices.md describes the scopes.";

pub(in crate::args) const DEVICES_EXAMPLES: &str = "\
Examples:
  myclaw devices code --scope read-only
  myclaw devices list
  myclaw devices approve k7qm2xpa
  myclaw devices revoke k7qm2xpa";

pub(in crate::args) const DEVICES_LIST_EXAMPLES: &str = "\
Examples:
  myclaw devices list
  myclaw devices list --json | jq -r '.devices[].name'";

pub(in crate::args) const DEVICES_CODE_EXAMPLES: &str = "\
Examples:
  myclaw devices code
  myclaw devices code --scope node";

pub(in crate::args) const DEVICES_APPROVE_EXAMPLES: &str = "\
Examples:
  myclaw devices approve k7qm2xpa";

pub(in crate::args) const DEVICES_DENY_EXAMPLES: &str = "\
Examples:
  myclaw devices deny k7qm2xpa";

pub(in crate::args) const DEVICES_REVOKE_EXAMPLES: &str = "\
Examples:
  myclaw devices revoke k7qm2xpa
  myclaw devices revoke \"old phone\"";

pub(in crate::args) const DEVICES_ROTATE_EXAMPLES: &str = "\
Examples:
  myclaw devices rotate k7qm2xpa";
