//! `myclaw gateway`: the process that is always on.

mod link;
mod logs;
mod service;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use myclaw_agent::{Home, SessionOptions};
use myclaw_files::portable::become_program;
use myclaw_gateway::{Control, Ended, Gateway, GatewayError, MakeHost, OnConfig};
use myclaw_gateway_client::{Say, state_of};
use serde_json::{Value, json};
use service::Service;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(super) use link::drawn;

use super::cluster::Shared;
use super::host;
use super::system::HAS_SERVICES;
use crate::args::{GatewayArgs, GatewayCommand, InstallArgs, UninstallArgs};
use myclaw_front::exit::CliError;
use myclaw_front::home::{begin_to_write, find_home, load_session};
use myclaw_front::interrupt::Interrupts;
use myclaw_front::logging;
use myclaw_front::print::{Printer, note};
use myclaw_front::runtime;
use myclaw_front::terminal::escaped;

/// Runs one of the commands; without one, the gateway.
pub(crate) fn run(args: &GatewayArgs) -> Result<(), CliError> {
    match &args.command {
        None => serve(),
        Some(GatewayCommand::Status { json }) => status(*json),
        Some(GatewayCommand::Link(args)) => link::link(args),
        Some(GatewayCommand::Install(args)) => service::install(args),
        Some(GatewayCommand::Uninstall(args)) => service::uninstall(args),
        Some(GatewayCommand::Logs(args)) => logs::logs(args),
    }
}

/// Makes the gateway a service of this system.
pub(super) fn install_service() -> Result<(), CliError> {
    service::install(&InstallArgs { dry_run: false, force: false, manager: None })
}

/// The file of the service that this program has installed.
pub(super) fn service_file(home: &Home) -> Option<PathBuf> {
    service::own_file(home)
}

/// Starts the service of this user again; false if there is none, or it cannot be started.
pub(super) fn restart_service(home: &Home) -> bool {
    service::restart(home)
}

/// Stops that service and removes its file.
pub(super) fn uninstall_service() -> Result<(), CliError> {
    service::uninstall(&UninstallArgs { dry_run: false, force: false, manager: None })
}

/// Serves until a signal. The second one ends it at once; the next start continues where it was.
fn serve() -> Result<(), CliError> {
    // Before an update puts another file into its place.
    let program = std::env::current_exe();
    // The gateway reads the config itself; this reports its mistakes, and starts the log.
    let session = load_session(find_home()?, &SessionOptions::default())?;
    begin_to_write(&session.home)?;
    let shared = Shared::find(&session.home, &session.config)?.map(Arc::new);
    let home = match &shared {
        Some(shared) => shared.home(session.home),
        None => session.home,
    };
    let interrupts = Interrupts::install()?;
    runtime::raise_file_limit();
    let stop = CancellationToken::new();
    let armed = interrupts.arm(stop.clone());
    let reload = Arc::new(Notify::new());
    let asked = Arc::clone(&reload);
    interrupts.on_hangup(move || asked.notify_one());
    let say: Say = Arc::new(|line| note(format_args!("myclaw: {line}")));
    let serving = async {
        let of_host = home.clone();
        let make: MakeHost = Box::new(move |config| host::options_of(config, &of_host));
        let (running, presence) = match &shared {
            Some(shared) => {
                let started = shared.start(home, make, stop.clone(), Arc::clone(&say)).await;
                let started = started.map_err(failure)?;
                (started.0, Some(started.1))
            }
            None => (Gateway::start(home, make).await.map_err(failure)?, None),
        };
        note(format_args!("myclaw: listening on {}", running.url));
        if running.is_everywhere {
            note(format_args!("myclaw: other machines reach it at every address of this one"));
        }
        if let Some(path) = &running.token_file {
            note(format_args!("myclaw: the token of clients is in {}", path.display()));
        }
        // A log would keep it.
        if std::io::stderr().is_terminal()
            && let Some(link) = running.sign_in_link()
        {
            note(format_args!("myclaw: sign in in a browser, once and within ten minutes: {link}"));
        }
        if running.recovered > 0 {
            let count = running.recovered;
            note(format_args!("myclaw: going on with {count} messages without an answer"));
        }
        for line in running.problems.iter().chain(&running.planned) {
            note(format_args!("myclaw: {}", escaped(line)));
        }
        let restart = running.restart();
        interrupts.on_restart(move || restart.cancel());
        let of_config = shared.clone();
        let on_config: OnConfig = Arc::new(move |home, config| {
            if let Some(shared) = &of_config {
                shared.use_config(config);
            }
            // Its secrets stay out of the log.
            if let Ok(agent) = config.resolve_agent(None) {
                logging::start_with_config(config, &agent, home);
            }
        });
        let ended = running.serve(Control { stop, reload, say, on_config }).await;
        if let Some(presence) = presence {
            presence.leave().await;
        }
        Ok(ended)
    };
    match runtime::block_on_threads(armed.unless_quit(serving))?? {
        Ended::Stopped => {
            note(format_args!("myclaw: the gateway has stopped"));
            Ok(())
        }
        Ended::Restart => Err(begin_anew(program)),
    }
}

/// Replaces this process by a new one of the program. It has the same number and the same terminal, so neither a shell nor
/// a service manager notices. Returns only if that fails.
fn begin_anew(program: std::io::Result<PathBuf>) -> CliError {
    note(format_args!("myclaw: the gateway restarts"));
    let error = match program {
        Ok(program) => become_program(Command::new(program).args(std::env::args_os().skip(1))),
        Err(error) => error,
    };
    CliError::failure(format!(
        "the gateway has stopped and cannot start again: {error}; start it with `myclaw gateway`"
    ))
}

fn status(as_json: bool) -> Result<(), CliError> {
    // Also with a config file that cannot be used: the gateway continues with the one before.
    let home = find_home()?;
    let state = runtime::block_on(state_of(&home))?.map_err(failure)?;
    let service = match HAS_SERVICES {
        true => Service::of(&home, None)?.state(),
        false => Value::Null,
    };
    let mut printer = Printer::stdout();
    let Some(state) = state else {
        if as_json {
            printer.json(&json!({"running": false, "service": service}))?;
        } else {
            printer.safe_lines([service_line(&service)])?;
        }
        printer.finish()?;
        let message = "no gateway runs; start one with `myclaw gateway`";
        return Err(CliError::failure_of_class("not_running", message));
    };
    if as_json {
        let mut state = state;
        state["running"] = json!(true);
        state["service"] = service;
        printer.json(&state)?;
    } else {
        let text = |name: &str| state[name].as_str().unwrap_or("?").to_owned();
        let number = |name: &str| state[name].as_u64().unwrap_or(0);
        printer.safe_lines([
            format!("running     process {}, version {}", number("processId"), text("version")),
            format!("address     {}", state["url"].as_str().unwrap_or(&text("address"))),
            format!("state       {}", text("stateDirectory")),
            format!(
                "token       {}",
                state["tokenFile"].as_str().unwrap_or("gateway.token of the config")
            ),
            format!("up          {} s", number("seconds")),
            format!("waiting     {} messages without an answer", number("openMessages")),
            format!("connected   {} WebSockets", number("sockets")),
        ])?;
        if let Some(until) = state["certificateUntil"].as_str() {
            printer.safe_lines([format!("certificate valid until {until}")])?;
        }
        printer.safe_lines(config_lines(&state["config"]))?;
        printer.safe_lines([service_line(&service)])?;
    }
    printer.finish()
}

fn service_line(service: &Value) -> String {
    if service.is_null() {
        return "service     none: this system has none that the gateway can be".to_owned();
    }
    let manager = service["manager"].as_str().unwrap_or("?");
    match (service["file"].as_str(), service["state"].as_str()) {
        (None, _) => format!("service     not installed ({manager})"),
        (Some(file), None) => format!("service     installed ({manager}): {file}"),
        (Some(file), Some(state)) => format!("service     installed ({manager}, {state}): {file}"),
    }
}

/// What `gateway status` says about the config file.
fn config_lines(config: &Value) -> Vec<String> {
    let file = config["file"].as_str().unwrap_or("?");
    let mut lines = vec![format!("config      {file}")];
    if let Some(problem) = config["problem"].as_str() {
        lines.push(format!("NOT IN USE  the gateway goes on with the config before: {problem}"));
    }
    let keys: Vec<&str> =
        config["needsRestart"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !keys.is_empty() {
        lines.push(format!("restart     needed for the new {}", keys.join(", ")));
    }
    lines
}

pub(crate) fn failure(error: impl Into<GatewayError>) -> CliError {
    let error = error.into();
    match error {
        GatewayError::Agent(error) => error.into(),
        GatewayError::Certificate(message) => CliError::config(message),
        GatewayError::AlreadyRuns { .. } | GatewayError::Listen { .. } => {
            CliError::failure_of_class("gateway", error.to_string())
        }
        error => CliError::failure(error.to_string()),
    }
}
