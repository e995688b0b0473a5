//! `myclaw runner`: one job from standard input.

use std::path::Path;
use std::sync::Arc;

use myclaw_agent::Home;
use myclaw_config::{Config, Environment};
use myclaw_llm::HttpOptions;
use myclaw_runner::{
    Markers, NamedModel, Partial, RunnerError, RunnerJob, Source, Stay, Weights, serve,
};
use tokio_util::sync::CancellationToken;

use super::speech::speaker;
use crate::args::RunnerArgs;
use myclaw_front::exit::{CliError, Exit};
use myclaw_front::interrupt::Interrupts;
use myclaw_front::logging;
use myclaw_front::print::note;
use myclaw_front::runtime;

/// Runs the command. What the host must know is on standard output, the log is on standard error.
pub(crate) fn run(args: RunnerArgs) -> Result<(), CliError> {
    let environment = Environment::from_process();
    logging::start_on_stderr(&environment);
    let interrupts = Interrupts::install()?;
    let cancel = CancellationToken::new();
    let job = job(args, &environment, cancel.clone())?;
    let armed = interrupts.arm(cancel);
    let serving = async {
        let served = serve(job, std::io::stdin(), Box::new(std::io::stdout())).await;
        served.map_err(|error| match error {
            RunnerError::Reported(_) => CliError::failure(error.to_string()),
            RunnerError::HostGone => {
                CliError { exit: Exit::OutputClosed, ..CliError::failure(error.to_string()) }
            }
        })
    };
    runtime::block_on(armed.unless_quit(serving))?
}

fn job(
    args: RunnerArgs,
    environment: &Environment,
    cancel: CancellationToken,
) -> Result<RunnerJob, CliError> {
    let weights = weights(&args)?;
    let markers = match (args.start_marker, args.end_marker) {
        (Some(start), Some(end)) => {
            Markers::new(start, end).map_err(|error| CliError::usage(error.to_string()))?
        }
        _ => Markers::default(),
    };
    let hosts = args.allow_hosts.iter().map(|host| host.parse());
    let allowed_hosts =
        hosts.collect::<Result<_, _>>().map_err(|error: myclaw_runner::InvalidHost| {
            CliError::usage(format!("--allow-host: {error}"))
        })?;
    Ok(RunnerJob {
        weights,
        speaker: speaker(args.speaking, Config::default(), None)?,
        workspace: args.workspace,
        home: args.home,
        stay: if args.stay { Stay::UntilIdle(args.idle_limit.0) } else { Stay::No },
        partial: if args.partial { Partial::Blocks } else { Partial::No },
        max_turns: args.max_turns,
        command_limit: args.command_limit.0,
        workflow_limit: args.workflow_limit.0,
        ask_limit: args.ask_limit.0,
        allowed_hosts,
        markers,
        model: NamedModel { url: args.model_url, model: args.model },
        http: HttpOptions { unix_socket: args.model_socket, ..Home::http_options_of(environment) },
        say: Arc::new(|line| note(format_args!("myclaw: {line}"))),
        cancel,
    })
}

/// Where an image has the model for searches. The home directory is mounted over in containers.
const IMAGE_WEIGHTS: &str = "/usr/local/share/myclaw/transformers";

/// Where the model for searches is, and from where it may come.
fn weights(args: &RunnerArgs) -> Result<Weights, CliError> {
    let directory = args.weights.clone().unwrap_or_else(|| {
        let of_home = args.home.join(".stingyclaw/transformers");
        let of_image = Path::new(IMAGE_WEIGHTS);
        match !of_home.exists() && of_image.is_dir() && args.download_weights.is_none() {
            true => of_image.to_owned(),
            false => of_home,
        }
    });
    let Some(base) = &args.download_weights else { return Ok(Weights { directory, source: None }) };
    let checksums = match &args.weights_checksums {
        Some(path) => Some(std::fs::read_to_string(path).map_err(|error| {
            CliError::usage(format!(
                "--weights-checksums: {} cannot be read: {error}",
                path.display()
            ))
        })?),
        None => None,
    };
    let source = Source::new(base.as_deref(), checksums.as_deref())
        .map_err(|error| CliError::usage(format!("--download-weights: {error}")))?;
    Ok(Weights { directory, source: Some(source) })
}
