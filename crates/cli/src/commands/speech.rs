//! Who speaks and who listens, by options of the command line.

use myclaw_config::{CommandLine, Config};
use myclaw_speech::{Speaker, Transcriber};

use crate::args::{ListenArgs, SpeakArgs};
use myclaw_front::exit::CliError;

/// What speaks: what the options name, else what the config names. Limits are those of the config. `key` is that of a
/// server in the options.
///
/// # Errors
/// The options make no sense.
pub(super) fn speaker(
    args: SpeakArgs,
    mut config: Config,
    key: Option<&str>,
) -> Result<Option<Speaker>, CliError> {
    let speech = &mut config.speech;
    if is_named("--speech-url", &args.speech_command, &args.speech_url)? {
        speech.command = args.speech_command.map(CommandLine::Shell);
        speech.base_url = args.speech_url;
        speech.api_key = speech.base_url.as_ref().and(key).map(Into::into);
    }
    speech.model = args.speech_model.unwrap_or_else(|| speech.model.clone());
    let wants_voice = args.speech_voice.is_some();
    speech.voice = args.speech_voice.or_else(|| speech.voice.take());
    let speaker = myclaw_agent::speech::speaker(&config);
    if speaker.is_none() && wants_voice {
        return Err(CliError::usage(
            "--speech-voice: nobody speaks; give --speech-command or --speech-url too",
        ));
    }
    Ok(speaker)
}

/// What listens: what the options name, else what the config names. Limits are those of the config. `key` is that of a
/// server in the options.
///
/// # Errors
/// The options make no sense.
pub(super) fn transcriber(
    args: ListenArgs,
    mut config: Config,
    key: Option<&str>,
) -> Result<Option<Transcriber>, CliError> {
    let listening = &mut config.transcription;
    if is_named("--transcription-url", &args.transcription_command, &args.transcription_url)? {
        listening.command = args.transcription_command.map(CommandLine::Shell);
        listening.base_url = args.transcription_url;
        listening.api_key = listening.base_url.as_ref().and(key).map(Into::into);
    }
    listening.model = args.transcription_model.unwrap_or_else(|| listening.model.clone());
    let wants_language = args.transcription_language.is_some();
    listening.language = args.transcription_language.or_else(|| listening.language.take());
    let transcriber = myclaw_agent::speech::transcriber(&config);
    if transcriber.is_none() && wants_language {
        return Err(CliError::usage(
            "--transcription-language: nobody listens; give --transcription-command or --transcription-url too",
        ));
    }
    Ok(transcriber)
}

/// Whether the options name somebody.
fn is_named(
    option: &str,
    command: &Option<String>,
    url: &Option<String>,
) -> Result<bool, CliError> {
    if let Some(url) = url
        && !url.starts_with("http://")
        && !url.starts_with("https://")
    {
        return Err(CliError::usage(format!(
            "{option}: the address begins with http:// or https://, such as https://api.openai.com/v1"
        )));
    }
    Ok(command.is_some() || url.is_some())
}
