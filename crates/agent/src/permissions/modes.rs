//! What the permission mode of a session decides about a call.

use myclaw_config::{SandboxMode, SandboxRules};
use myclaw_engine::{Mode, PreparedCall, ToolKind};
use myclaw_policy::SandboxScope;

use super::{Permissions, Verdict};

/// Why the proposal of a plan is asked about.
const PLAN: &str = "the plan needs your approval: once approves it, and the agent carries it out; after a no, the \
                               agent plans again";

impl Permissions {
    /// What the mode of the session says about a call, and those of the sessions on whose behalf it works.
    pub(super) fn of_mode(&self, call: &PreparedCall) -> Verdict {
        let now = self.rules.mode.get();
        if now == Mode::Sandbox
            && self.scope == SandboxScope::Unsandboxed
            && !Mode::is_harmless(&call.declaration)
        {
            return Verdict::Denied(
                "the user has changed the mode of the session to sandbox, which begins with the next message; end your turn"
                    .to_owned(),
            );
        }
        let others = self.rules.mode_of_principals.map(|mode| match mode {
            // Its plan is no concern of this session.
            Mode::Plan => Mode::ReadOnly,
            mode => mode,
        });
        match others.map(|mode| judge(mode, call)) {
            None | Some(Verdict::Allowed) => judge(now, call),
            Some(verdict) => verdict,
        }
    }
}

/// The rules of the sandbox in a mode.
pub(super) fn in_mode(rules: SandboxRules, mode: Mode) -> SandboxRules {
    match mode {
        Mode::Sandbox => SandboxRules { mode: SandboxMode::All, ..rules },
        _ => rules,
    }
}

/// What a mode says about a call, before the rules of the config: they decide too unless it is denied.
fn judge(mode: Mode, call: &PreparedCall) -> Verdict {
    let is_plan = call.declaration.kind == ToolKind::Plan;
    if Mode::is_harmless(&call.declaration) {
        return match mode {
            Mode::Plan if is_plan => Verdict::NeedsApproval(PLAN.to_owned()),
            _ => Verdict::Allowed,
        };
    }
    match mode {
        // The user reads this too.
        Mode::ReadOnly => Verdict::Denied(
            "the session is in the mode read-only: nothing is changed, run or sent; only the user can change the mode".to_owned(),
        ),
        Mode::Plan => Verdict::Denied(
            "the session is in the mode plan: nothing is changed, run or sent before the user approves a plan; update_plan proposes \
             its steps"
                .to_owned(),
        ),
        Mode::Ask => Verdict::NeedsApproval(
            "the mode ask asks before each change, command and message".to_owned(),
        ),
        Mode::Auto | Mode::Sandbox => Verdict::Allowed,
    }
}
