//! Where the tools of sessions run, and what they find there.

use std::sync::Arc;

use myclaw_agent::{
    Home, SessionConfig, SessionOptions,
    confinement::{SandboxProblem, StoppedRuns, sandbox_problems},
    hiding::{IfHidingFails, StateDirectoryReport},
};
use myclaw_config::Config;

use super::Check;
use myclaw_front::exit::Exit;

/// Checks what keeps sandboxed sessions from running.
pub(super) async fn check(config: &Arc<Config>, home: &Home) -> Vec<Check> {
    const NAME: &str = "sandbox";
    const NEXT: &str = "`myclaw sandbox explain --session x` shows what the config demands";
    let problems = sandbox_problems(config, home).await;
    if problems.is_empty() {
        return vec![Check::ok(
            NAME,
            "nothing is missing for the sandboxed sessions of the config",
        )];
    }
    let check = |SandboxProblem { place, message, stops }: &SandboxProblem| match stops {
        StoppedRuns::Sandboxed => Check::warn(
            NAME,
            format!("sessions other than the main one cannot run: {place}: {message}"),
            NEXT,
        ),
        StoppedRuns::All => Check::fail(NAME, format!("{place}: {message}"), NEXT),
        StoppedRuns::ByMistake => {
            Check::fail(NAME, format!("{place}: {message}"), NEXT).with_exit(Exit::Config)
        }
    };
    problems.iter().map(check).collect()
}

/// Checks whether commands of the main session find the state directory. A mistake of the config is reported elsewhere.
pub(super) async fn check_state_directory(config: &Arc<Config>, home: &Home) -> Option<Check> {
    const NAME: &str = "state directory";
    let (home, config) = (home.clone(), Arc::clone(config));
    let report = tokio::task::spawn_blocking(move || {
        let session = SessionConfig::new(home, config, &SessionOptions::default()).ok()?;
        session.state_directory_report().ok()
    });
    let report = report.await.ok()??;
    Some(match &report {
        StateDirectoryReport::Impossible { commands, .. } => {
            let next = "set `tools.bash.stateDirectory` to \"open\" if that is meant";
            match commands {
                IfHidingFails::Run => Check::warn(NAME, report.to_string(), next),
                IfHidingFails::AreRefused => Check::fail(NAME, report.to_string(), next),
            }
        }
        _ => Check::ok(NAME, report.to_string()),
    })
}
