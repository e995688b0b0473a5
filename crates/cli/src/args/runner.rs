//! The command line of `myclaw runner`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;

use super::SpeakArgs;
use myclaw_front::args::Age;

/// Arguments of `runner`.
#[derive(Debug, Args)]
pub(crate) struct RunnerArgs {
    /// Directory with `group`, `global` and `ipc`
    #[arg(long, value_name = "DIR", default_value = "/workspace")]
    pub(crate) workspace: PathBuf,
    /// Home directory of commands; sessions are in its `.stingyclaw/sessions`
    #[arg(long, value_name = "DIR", default_value = "/home/node")]
    pub(crate) home: PathBuf,
    /// After the answer wait for further messages in `ipc/input`, until `_close` or the idle limit
    #[arg(long)]
    pub(crate) stay: bool,
    /// With --stay: how long to wait for a message
    #[arg(long, value_name = "TIME", default_value = "30m")]
    pub(crate) idle_limit: Age,
    /// Also write texts while they come: blocks with the status `partial` and the text so far
    #[arg(long)]
    pub(crate) partial: bool,
    /// Most model calls for one message; the last one is asked for a summary
    #[arg(long, value_name = "N", default_value = "60", value_parser = super::bounds::at_least_one)]
    pub(crate) max_turns: NonZeroU32,
    /// How long the tool ask_boss waits for a reply
    #[arg(long, value_name = "TIME", default_value = "30m")]
    pub(crate) ask_limit: Age,
    /// Time limit of a command of the tool Bash
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) command_limit: Age,
    /// Time limit of a workflow
    #[arg(long, value_name = "TIME", default_value = "120s")]
    pub(crate) workflow_limit: Age,
    /// Host on a private network that the web tools may connect to, such as wiki.local:8080; can be repeated
    #[arg(long = "allow-host", value_name = "HOST")]
    pub(crate) allow_hosts: Vec<String>,
    /// Directory with all-MiniLM-L6-v2, by which workflows are searched: `onnx/model_quantized.onnx` or `onnx/model.onnx`,
    /// and `vocab.txt` [default: `.stingyclaw/transformers` in the home directory, else the image's]
    #[arg(long, value_name = "DIR")]
    pub(crate) weights: Option<PathBuf>,
    /// Download the model at the first search if it is missing (23 MB), from Hugging Face or the given address
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true)]
    pub(crate) download_weights: Option<Option<String>>,
    /// With --download-weights: the files and their SHA-256, in the format of sha256sum, if they are others
    #[arg(long, value_name = "FILE", requires = "download_weights")]
    pub(crate) weights_checksums: Option<PathBuf>,
    /// Unix socket of the host through which the model is reached; the host adds the key
    #[arg(long, value_name = "SOCKET")]
    pub(crate) model_socket: Option<PathBuf>,
    /// Address of the model's server, before OPENROUTER_BASE_URL of the job
    #[arg(long, value_name = "URL")]
    pub(crate) model_url: Option<String>,
    /// Name of the model, before MODEL_NAME of the job
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Who speaks for the tool send_voice.
    #[command(flatten)]
    pub(crate) speaking: SpeakArgs,
    /// Line before each block of the output
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, requires = "end_marker")]
    pub(crate) start_marker: Option<String>,
    /// Line after each block of the output
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, requires = "start_marker")]
    pub(crate) end_marker: Option<String>,
}
