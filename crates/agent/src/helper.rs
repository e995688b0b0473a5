//! What this program does when it is started as its own helper process.

use std::io;
use std::process::Termination;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use myclaw_tools::{CommandPlace, ToolOptions, builtin_tools};
use serde::{Deserialize, Serialize};

/// First argument of a process that confines itself.
pub(crate) const CONFINE: &str = "__sandbox-exec";
/// First argument of a process that runs tools.
pub(crate) const SERVE: &str = "__tool-executor";
/// First argument of a process that becomes a command from which paths are hidden.
pub(crate) const HIDE: &str = "__hide-exec";
/// First argument of a process that tries to leave a sandbox.
#[cfg(target_os = "linux")]
pub(crate) const ATTEMPT: &str = "__sandbox-attempt";

/// Whether this program can be started as its own helper. It is a property of the program, decided by its `main`.
static IS_HELPER: AtomicBool = AtomicBool::new(false);

/// How the helper makes its tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolSetup {
    /// Limit of commands whose call sets none.
    pub command_timeout_seconds: u64,
}

/// Does what the first argument demands if this process was started as a helper of another one; the caller's `main`
/// then returns the value. `None` in a process of the user's own.
///
/// A program that runs sandboxed sessions calls this first thing in `main`, while there is one thread: the sandbox
/// starts the program again to confine itself and to run the tools. Without the call, sandboxed sessions fail.
pub fn helper_main() -> Option<impl Termination> {
    IS_HELPER.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next()?.to_str()? {
        #[cfg(target_os = "linux")]
        CONFINE => Some(myclaw_sandbox::enter_and_exec(arguments)),
        #[cfg(target_os = "linux")]
        ATTEMPT => Some(myclaw_sandbox::escapes::attempt(arguments)),
        #[cfg(target_os = "linux")]
        HIDE => Some(myclaw_exec::enter_hiding(arguments)),
        SERVE => {
            // What calls start must not reach the memory and the pipes of this process either. Where `/proc` is closed
            // nothing can, and the process that supervises this one reads from its memory which files it changes.
            if std::fs::File::open("/proc/self/mem").is_ok() {
                myclaw_exec::hide_environment();
            }
            Some(myclaw_executor::serve(tools))
        }
        _ => None,
    }
}

/// Whether `main` calls [`helper_main`].
pub(crate) fn is_available() -> bool {
    IS_HELPER.load(Ordering::Relaxed)
}

fn tools(setup: serde_json::Value) -> io::Result<Vec<std::sync::Arc<dyn myclaw_engine::Tool>>> {
    let setup: ToolSetup = serde_json::from_value(setup)?;
    let command_timeout = Duration::from_secs(setup.command_timeout_seconds);
    let commands = CommandPlace::Here;
    Ok(builtin_tools(ToolOptions { command_timeout, jobs: None, commands, memory: None }))
}
