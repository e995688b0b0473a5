//! `myclaw host`: answers chats with one container per group.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::{Home, confinement::own_sandbox, workspace::protected_names};
use myclaw_config::Config;
use myclaw_host::{
    Backend, ContainerBackend, ContainerEngine, FileChannel, Host, HostError, HostHome,
    HostOptions, Level, Limits, ModelLimits, ModelUpstream, ProcessBackend, RunnerProgram,
    SandboxBackend, Secrets,
};
use tokio_util::sync::CancellationToken;

use super::speech::{speaker, transcriber};
use crate::args::{HostArgs, HostBackend, HostDirectory};
use myclaw_front::exit::CliError;
use myclaw_front::home::{begin_to_write, find_home};
use myclaw_front::interrupt::Interrupts;
use myclaw_front::print::note;
use myclaw_front::runtime;
use myclaw_front::terminal::escaped;

/// The longest time that limits anything; clocks cannot add much longer ones.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The key of the servers that speak and listen.
const SPEECH_KEY: &str = "SPEECH_API_KEY";

/// Runs the command.
pub(crate) fn run(args: HostArgs) -> Result<(), CliError> {
    let home = find_home()?;
    begin_to_write(&home)?;
    let interrupts = Interrupts::install()?;
    runtime::raise_file_limit();
    let stop = CancellationToken::new();
    let armed = interrupts.arm(stop.clone());
    let options = options(args, &home, &Config::default())?;
    let root = options.home.root().to_owned();
    let host_home = options.home.clone();
    let serving = async {
        let host = Host::open(options).map_err(|error| failure(&error))?;
        host.check().await.map_err(|error| CliError::failure(error.to_string()))?;
        let channel = FileChannel::open(&host_home).map_err(|error| failure(&error))?;
        note(format_args!("myclaw: the host works in {}", root.display()));
        let messenger = Arc::new(channel.clone());
        host.serve(channel, messenger, stop).await.map_err(|error| failure(&error))
    };
    runtime::block_on_threads(armed.unless_quit(serving))??;
    note(format_args!("myclaw: the host has stopped"));
    Ok(())
}

/// The host of the gateway, by the options in its config.
///
/// # Errors
/// What is wrong with them, or missing on this machine.
pub(super) fn options_of(config: &Config, home: &Home) -> Result<HostOptions, String> {
    let list = config.host.as_ref().map(|host| host.options.as_slice()).unwrap_or_default();
    let args = HostArgs::from_options(list)
        .map_err(|problem| format!("host.options of the config: {problem}"))?;
    options(args, home, config).map_err(|error| error.message)
}

/// The directory of a host.
///
/// # Errors
/// The working directory is gone.
pub(super) fn host_home(directory: HostDirectory, home: &Home) -> Result<HostHome, CliError> {
    let root = directory.directory.unwrap_or_else(|| home.paths.state_dir().join("host"));
    Ok(HostHome::new(absolute(&root)?))
}

fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path)
        .map_err(|error| CliError::failure(format!("{} cannot be used: {error}", path.display())))
}

/// The options of a host. Of the config, the gateway's, only who speaks and who listens counts.
fn options(args: HostArgs, home: &Home, config: &Config) -> Result<HostOptions, CliError> {
    let name = args.name.trim();
    if name.is_empty() {
        return Err(CliError::usage("--name is empty; give the assistant a name"));
    }
    let allowlist = match &args.allowlist {
        Some(path) => absolute(path)?,
        None => user_config(home)?.join("myclaw/mount-allowlist.json"),
    };
    let secrets = Secrets::NAMES.iter().fold(Secrets::default(), |secrets, name| {
        match home.environment.get(name) {
            Some(value) if !value.trim().is_empty() => secrets.with(name, value.to_owned().into()),
            _ => secrets,
        }
    });
    let (secrets, model) = match args.model_socket {
        true => (Secrets::default(), Some(Arc::new(upstream(&args, &secrets, home)?))),
        false => (secrets, None),
    };
    let key = home.environment.get(SPEECH_KEY).filter(|key| !key.trim().is_empty());
    Ok(HostOptions {
        assistant: name.to_owned(),
        secrets,
        model,
        backend: backend(&args)?,
        limits: Limits {
            containers: args.containers.into(),
            idle: args.idle_limit.0.min(LONGEST),
            hard: args.hard_limit.0.min(LONGEST),
            grace: args.grace.0.min(LONGEST),
            retry_base: Duration::from_millis(args.retry_base),
            ..Limits::default()
        },
        allowlist,
        runner_options: args.runner_options,
        speaker: speaker(args.speaking, config.clone(), key)?,
        transcriber: transcriber(args.listening, config.clone(), key)?,
        // Lines may hold what a runner has written.
        say: Arc::new(|line| note(format_args!("myclaw: {}", escaped(line)))),
        home: host_home(args.directory, home)?,
    })
}

/// The model behind the sockets of runners.
fn upstream(args: &HostArgs, secrets: &Secrets, home: &Home) -> Result<ModelUpstream, CliError> {
    let limits = ModelLimits {
        per_minute: args.model_calls.into(),
        tokens_per_day: args.model_tokens,
        ..ModelLimits::default()
    };
    ModelUpstream::new(secrets, limits, home.http_options()).map_err(CliError::usage)
}

/// The directory of the user's config files.
fn user_config(home: &Home) -> Result<PathBuf, CliError> {
    home.environment.os_home().map(|home| home.join(".config")).ok_or_else(|| {
        CliError::usage("there is no home directory; name the allowlist with --allowlist")
    })
}

fn backend(args: &HostArgs) -> Result<Arc<dyn Backend>, CliError> {
    let program = match &args.runner {
        Some(program) => absolute(program)?,
        None => std::env::current_exe().map_err(|error| {
            CliError::failure(format!("this program cannot be started again: {error}"))
        })?,
    };
    let runner = RunnerProgram { program, arguments: vec!["runner".to_owned()] };
    let container = |engine| {
        let image = (engine, args.image.clone());
        let backend = ContainerBackend::new(
            runner.clone(),
            own_sandbox()?,
            image,
            args.network.clone(),
            protected_names(),
        );
        Ok::<Arc<dyn Backend>, CliError>(Arc::new(backend))
    };
    match args.backend {
        HostBackend::Podman => container(ContainerEngine::Podman),
        HostBackend::Docker => container(ContainerEngine::Docker),
        HostBackend::Process => Ok(Arc::new(ProcessBackend::new(runner))),
        HostBackend::Sandbox => {
            let sandbox = own_sandbox()?;
            let has_bubblewrap = sandbox.probe().bubblewrap.is_some();
            if args.model_socket && !has_bubblewrap {
                return Err(CliError::failure(
                    "--model-socket with --backend sandbox needs bubblewrap; install it, or use podman",
                ));
            }
            let level = if has_bubblewrap { Level::Bubblewrap } else { Level::Landlock };
            Ok(Arc::new(SandboxBackend::new(runner, sandbox, level, protected_names())))
        }
    }
}

fn failure(error: &HostError) -> CliError {
    CliError::failure(error.to_string())
}
