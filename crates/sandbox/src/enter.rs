//! The helper process: it confines itself and then becomes the command.
//!
//! It is a process of its own because setting up Landlock allocates memory, which is not allowed between fork and exec.
//! It has one thread and reads only its arguments.

mod broker;
mod cgroup;
mod connection;
mod files;
mod filter;
mod limits;
mod network;
mod relay;
mod supervise;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use self::connection::Connection;
use crate::PROXY_ADDRESS;
use crate::plan::Plan;
use crate::system::{self, Fork};

pub(crate) use broker::Broker;
pub(crate) use files::open_only;
pub(crate) use filter::listen;

/// The helper's exit code when it could not start the command.
pub(crate) const SETUP_FAILED: u8 = 125;

/// Names under which programs look for an HTTP proxy.
const PROXY_VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// A failure, as a sentence.
pub(crate) type Failure = String;

/// Confines this process according to its arguments, and becomes the command that follows them.
///
/// A program calls this first thing in `main`, while it has one thread, if its first argument is the hidden one that was
/// given to [`Sandbox::new`](crate::Sandbox::new), with the arguments after it. It returns only to report a failure, or
/// the end of the command; the caller exits with the code.
pub fn enter_and_exec(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments = arguments.into_iter();
    let plan = arguments.next().ok_or_else(|| "no plan was given".to_owned()).and_then(|plan| {
        serde_json::from_slice::<Plan>(plan.as_bytes()).map_err(|error| error.to_string())
    });
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!(
                "myclaw: this command starts confined processes and is not for people: {error}"
            );
            return ExitCode::from(SETUP_FAILED);
        }
    };
    let (Some(program), Some(name)) = (arguments.next(), arguments.next()) else {
        eprintln!("{}no command was given", plan.token);
        return ExitCode::from(SETUP_FAILED);
    };
    let mut command = Command::new(program);
    command.arg0(name).args(arguments);
    match enter(&plan, command) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("{}{failure}", plan.token);
            ExitCode::from(SETUP_FAILED)
        }
    }
}

fn enter(plan: &Plan, command: Command) -> Result<ExitCode, Failure> {
    system::close_descriptors_from(3).map_err(|error| format!("cannot close files: {error}"))?;
    let Some(parent) = plan.supervised_by else {
        return restrict_and_exec(plan, command, None);
    };
    let cgroup = plan.cgroup_processes.map(cgroup::Cgroup::create).transpose()?;
    if plan.own_network {
        network::enter_own()?;
    }
    let relay = plan.relay.as_ref().map(|socket| relay::Relay::listen(socket)).transpose()?;
    let broker = plan.broker.as_ref().map(Connection::new).transpose()?;
    let supervisor = supervise::Supervisor::new(parent)?;
    if plan.scoped {
        files::scope_signals()?;
    }
    match system::fork().map_err(|error| format!("cannot start a process: {error}"))? {
        Fork::Child => {
            system::unblock_signals().map_err(|error| format!("cannot take signals: {error}"))?;
            if let Some(cgroup) = &cgroup {
                cgroup.join()?;
            }
            restrict_and_exec(plan, command, broker)
        }
        Fork::Parent(child) => {
            if let Some(broker) = broker {
                broker.serve()?;
            }
            if let Some(relay) = relay {
                relay.serve()?;
            }
            let end = supervisor.attend(child);
            if let Some(cgroup) = &cgroup {
                cgroup.remove();
            }
            clean_up(&plan.cleanup);
            Ok(supervise::pass_on(end))
        }
    }
}

/// Never returns unless something fails.
fn restrict_and_exec(
    plan: &Plan,
    mut command: Command,
    broker: Option<Connection>,
) -> Result<ExitCode, Failure> {
    if let Some(directory) = &plan.temporary {
        command.env("TMPDIR", directory);
    }
    if plan.relay.is_some() {
        let address = format!("http://{PROXY_ADDRESS}");
        command.envs(PROXY_VARIABLES.map(|name| (name, &address)));
        // Hosts that the machine reaches without a proxy cannot be reached from here in any other way.
        command.env_remove("NO_PROXY").env_remove("no_proxy");
    }
    // When memory runs out on the machine, the kernel ends this process first. The file may be missing.
    drop(fs::write("/proc/self/oom_score_adj", "1000"));
    if let Some(wanted) = &plan.limits {
        limits::apply(wanted)?;
    }
    if plan.files.is_some() || plan.filter.is_some() {
        limits::drop_capabilities()?;
    }
    // What the command line is confined to is compiled before the files become unreadable.
    let filter = plan.filter.as_ref().map(filter::compile).transpose()?;
    if let Some(rules) = &plan.files {
        files::restrict(rules)?;
    }
    if let Some(filter) = filter {
        filter.apply()?;
    }
    if let (Some(rules), Some(broker)) = (&plan.broker, broker) {
        broker.hand_over(&filter::listen(rules)?)?;
    }
    let program = command.get_program().to_owned();
    let error = command.exec();
    Err(start_failure(&program, &error))
}

fn start_failure(program: &OsStr, error: &std::io::Error) -> Failure {
    let hint = match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "; the sandbox may not execute it: add its directory to the readable paths"
        }
        _ => "",
    };
    format!("cannot start {}: {error}{hint}", program.display())
}

fn clean_up(command: &[String]) {
    if let [program, arguments @ ..] = command {
        // Usually the container is gone already, and the program complains.
        drop(Command::new(program).args(arguments).output());
    }
}
