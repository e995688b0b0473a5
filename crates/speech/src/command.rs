//! A program of the owner that speaks or listens.

use std::io::Write as _;
use std::time::Duration;

use myclaw_exec::{ChildSpec, EnvironmentPolicy, ErrorOutput, Exit, OutputLimits};
use myclaw_files::variables;
use tokio_util::sync::CancellationToken;

use crate::{AudioFormat, MOST_TRANSCRIPT_BYTES, Speaker, SpeechError, Transcriber};

/// Most characters of a command that are shown.
const MOST_NAME_CHARS: usize = 60;
/// Most characters of a program's errors that are shown.
const MOST_ERROR_CHARS: usize = 400;

pub(crate) async fn speak(
    speaker: &Speaker,
    words: &[String],
    text: &str,
    voice: Option<&str>,
    cancel: &CancellationToken,
) -> Result<Vec<u8>, SpeechError> {
    let mut variables = vec![(variables::VOICE, voice.unwrap_or_default().to_owned())];
    variables.retain(|(_, value)| !value.is_empty());
    let input = text.as_bytes().to_vec();
    run(words, &variables, input, speaker.limit, speaker.most_bytes, cancel).await
}

pub(crate) async fn transcribe(
    transcriber: &Transcriber,
    words: &[String],
    audio: &[u8],
    format: AudioFormat,
    cancel: &CancellationToken,
) -> Result<String, SpeechError> {
    let cannot = |error: std::io::Error| {
        SpeechError::Failed(format!("the audio cannot be written to a temporary file: {error}"))
    };
    let ending = format!(".{}", format.ending());
    let mut file =
        tempfile::Builder::new().prefix("voice").suffix(&ending).tempfile().map_err(cannot)?;
    file.write_all(audio).map_err(cannot)?;
    let mut variables = vec![(variables::AUDIO_FILE, file.path().to_string_lossy().into_owned())];
    variables.extend(transcriber.language.clone().map(|language| (variables::LANGUAGE, language)));
    let most = MOST_TRANSCRIPT_BYTES;
    let printed = run(words, &variables, audio.to_vec(), transcriber.limit, most, cancel).await?;
    String::from_utf8(printed).map_err(|_| {
        SpeechError::Failed("the command printed something that is no text".to_owned())
    })
}

/// Why the program of a command cannot be started; `None` if it can.
pub(crate) fn obstacle(words: &[String]) -> Option<String> {
    match spec(words)?.resolve_program() {
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

fn spec(words: &[String]) -> Option<ChildSpec> {
    let (program, arguments) = words.split_first()?;
    let mut spec = ChildSpec::new(program, std::env::temp_dir());
    spec.args = arguments.iter().map(Into::into).collect();
    Some(spec)
}

/// The command for people: its words without those that start a shell.
fn name(words: &[String]) -> String {
    let written = match words {
        [shell, option, script] if shell == "sh" && option == "-c" => script.clone(),
        words => words.join(" "),
    };
    written.chars().take(MOST_NAME_CHARS).collect()
}

/// Runs a program and returns what it printed.
async fn run(
    words: &[String],
    variables: &[(&str, String)],
    input: Vec<u8>,
    limit: Duration,
    most: usize,
    cancel: &CancellationToken,
) -> Result<Vec<u8>, SpeechError> {
    let failed = SpeechError::Failed;
    let program = name(words);
    let mut spec = spec(words).ok_or_else(|| failed("the command is empty".to_owned()))?;
    spec.environment = variables
        .iter()
        .fold(EnvironmentPolicy::inherited(), |policy, (name, value)| policy.with(name, value));
    spec.input = input;
    spec.timeout = Some(limit);
    spec.errors = ErrorOutput::Apart;
    // The bytes are taken as they come; of the errors the end is shown.
    spec.output = OutputLimits {
        keep_tail_bytes: 4 * MOST_ERROR_CHARS,
        keep_tail_chars: MOST_ERROR_CHARS,
        keep_tail_lines: usize::MAX,
        side_file: None,
    };
    let enough = cancel.child_token();
    let mut printed = Vec::new();
    let mut is_too_much = false;
    let finished = {
        let mut take = |piece: &[u8]| {
            if printed.len() + piece.len() > most {
                is_too_much = true;
                enough.cancel();
            } else {
                printed.extend_from_slice(piece);
            }
        };
        myclaw_exec::run(spec, &enough, &mut take).await
    };
    let finished = finished
        .map_err(|error| failed(format!("the command `{program}` cannot be run: {error}")))?;
    if is_too_much {
        let what = format!("the command `{program}` printed more than {most} bytes");
        return Err(SpeechError::TooMuch(what));
    }
    let said = finished.errors.tail.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    match finished.exit {
        Exit::Code(0) if printed.is_empty() => {
            Err(failed(format!("the command `{program}` printed nothing{said}")))
        }
        Exit::Code(0) => Ok(printed),
        Exit::Code(code) => {
            Err(failed(format!("the command `{program}` ended with code {code}{said}")))
        }
        Exit::Signal(signal) => {
            Err(failed(format!("the command `{program}` was ended by signal {signal}{said}")))
        }
        Exit::TimedOut => Err(failed(format!(
            "the command `{program}` was not done after {} s and was ended",
            limit.as_secs_f64()
        ))),
        Exit::Aborted => Err(SpeechError::Aborted),
    }
}
