//! The `myclaw` binary: arguments, terminal, exit codes. It knows nothing of wire formats: a turn is one call into the
//! engine, whose events it prints.
#![forbid(unsafe_code)]

mod args;
mod commands;

use std::process::{ExitCode, Termination};

use crate::args::{Cli, Command};
use myclaw_front::exit::{CliError, Exit};
use myclaw_front::print::note;

fn main() -> ExitCode {
    // This comes first, while there is no other thread. As a helper process the program does something else.
    if let Some(end) = myclaw_agent::helper_main() {
        return end.report();
    }
    myclaw_exec::hide_environment();
    myclaw_front::panic::install_hook();
    myclaw_front::interrupt::survive_file_size_limit();
    let outcome = match std::panic::catch_unwind(|| parse().and_then(run)) {
        Ok(outcome) => outcome,
        // The panic hook has printed the message.
        Err(_) => return Exit::Failure.into(),
    };
    match outcome {
        Ok(()) => Exit::Success.into(),
        Err(error) => {
            tracing::error!(class = error.class, "{}", error.message);
            if !error.is_silent() {
                note(format_args!("myclaw: {error}"));
            }
            error.exit.into()
        }
    }
}

/// The command line. Help and version are printed here, and end the program.
fn parse() -> Result<Cli, CliError> {
    Cli::read().map_err(|error| {
        if !error.use_stderr() {
            error.exit();
        }
        CliError::command_line(&error)
    })
}

fn run(cli: Cli) -> Result<(), CliError> {
    commands::system::refuse(cli.command.as_ref())?;
    match cli.command {
        None => myclaw_tui::run(&cli.chat),
        Some(Command::Chat(args)) => myclaw_tui::run(&args),
        Some(Command::Attach(args)) => myclaw_tui::attach::run(&args),
        Some(Command::Run(args)) => commands::run::run(&args),
        Some(Command::Review(args)) => commands::review::run(&args),
        Some(Command::Rpc(args)) => myclaw_protocols::run_rpc(&args),
        Some(Command::Acp(args)) => myclaw_protocols::run_acp(args.0),
        Some(Command::Cron(args)) => commands::cron::run(&args),
        Some(Command::Gateway(args)) => commands::gateway::run(&args),
        Some(Command::Cluster(args)) => commands::cluster::run(&args),
        Some(Command::Store(args)) => commands::cluster::store(&args),
        Some(Command::Channels(args)) => commands::channels::run(&args),
        Some(Command::Pairing(args)) => commands::pairing::run(&args),
        Some(Command::Devices(args)) => commands::devices::run(&args),
        Some(Command::Node(args)) => commands::nodes::serve(&args),
        Some(Command::Nodes(args)) => commands::nodes::run(&args),
        Some(Command::Runner(args)) => commands::runner::run(args.0),
        Some(Command::Host(args)) => commands::host::run(args.0),
        Some(Command::Groups(args)) => commands::groups::run(args.0),
        Some(Command::Workflows(args)) => commands::workflows::run(args.0),
        Some(Command::Usage(args)) => commands::usage::run(&args),
        Some(Command::Onboard(args)) => commands::onboard::run(&args),
        Some(Command::Init) => commands::init::run(),
        Some(Command::Config(args)) => commands::config::run(&args),
        Some(Command::Sessions(args)) => {
            commands::sessions::run(args.0, commands::cluster::home_of_sessions()?)
        }
        Some(Command::Worktrees(args)) => commands::worktrees::run(&args),
        Some(Command::Memory(args)) => commands::memory::run(&args),
        Some(Command::Models(args)) => commands::models::run(&args),
        Some(Command::Skills(args)) => commands::skills::run(&args),
        Some(Command::Agents(args)) => commands::agents::run(&args),
        Some(Command::Packages(args)) => commands::packages::run(&args),
        Some(Command::Mcp(args)) => commands::mcp::run(&args),
        Some(Command::Sandbox(args)) => commands::sandbox::run(&args),
        Some(Command::Auth(args)) => commands::auth::run(&args),
        Some(Command::Policy(args)) => commands::policy::run(&args),
        Some(Command::Approvals(args)) => commands::approvals::run(&args),
        Some(Command::Doctor(args)) => commands::doctor::run(&args),
        Some(Command::Completions(args)) => commands::completions::run(&args),
        Some(Command::Backup(args)) => commands::backup::run(&args),
        Some(Command::Restore(args)) => commands::backup::restore(&args),
        Some(Command::Update(args)) => commands::update::run(&args),
        Some(Command::Uninstall(args)) => commands::uninstall::run(&args),
    }
}
