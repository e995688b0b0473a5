//! Who speaks and who listens, as the config says.

use std::time::Duration;

use myclaw_config::{CommandLine, Config, SecretString};
use myclaw_speech::{Endpoint, Speaker, Transcriber, Way};

/// The server if none is named.
const USUAL_URL: &str = "https://api.openai.com/v1";
/// Bytes of a megabyte.
const MEGABYTE: u64 = 1024 * 1024;

/// Who makes voice messages; `None` if the config names nobody.
pub fn speaker(config: &Config) -> Option<Speaker> {
    let speech = &config.speech;
    Some(Speaker {
        way: way(config, &speech.command, &speech.base_url, &speech.api_key, &speech.model)?,
        voice: speech.voice.clone(),
        most_chars: speech.max_chars,
        most_bytes: bytes(speech.max_mb),
        limit: Duration::from_secs(speech.timeout_seconds),
    })
}

/// Who makes texts of voice notes; `None` if the config names nobody.
pub fn transcriber(config: &Config) -> Option<Transcriber> {
    let listening = &config.transcription;
    let (command, url) = (&listening.command, &listening.base_url);
    Some(Transcriber {
        way: way(config, command, url, &listening.api_key, &listening.model)?,
        language: listening.language.clone(),
        most_bytes: bytes(listening.max_mb),
        longest: Duration::from_secs(listening.max_seconds),
        limit: Duration::from_secs(listening.timeout_seconds),
    })
}

/// What keeps them from working: the section of the config, and the problem.
pub fn speech_obstacles(config: &Config) -> Vec<(&'static str, String)> {
    let speaking = speaker(config).and_then(|speaker| speaker.way.obstacle());
    let listening = transcriber(config).and_then(|transcriber| transcriber.way.obstacle());
    let found = [("speech", speaking), ("transcription", listening)];
    found.into_iter().filter_map(|(section, problem)| Some((section, problem?))).collect()
}

fn way(
    config: &Config,
    command: &Option<CommandLine>,
    base_url: &Option<String>,
    api_key: &Option<SecretString>,
    model: &str,
) -> Option<Way> {
    match command {
        Some(CommandLine::Shell(line)) => {
            return Some(Way::Command(["sh", "-c", line].map(str::to_owned).to_vec()));
        }
        Some(CommandLine::Program(words)) => return Some(Way::Command(resolved(config, words))),
        None => {}
    }
    if base_url.is_none() && api_key.is_none() {
        return None;
    }
    Some(Way::Endpoint(Endpoint {
        base_url: base_url.clone().unwrap_or_else(|| USUAL_URL.to_owned()),
        model: model.to_owned(),
        api_key: api_key.clone(),
    }))
}

/// A path of a program starts at the config file, or at the home directory. A name is looked for in the `PATH`.
fn resolved(config: &Config, words: &[String]) -> Vec<String> {
    let mut words = words.to_vec();
    if let (Some(program), Some(paths)) = (words.first_mut(), &config.paths)
        && (program.contains('/') || program.starts_with('~'))
        && let Ok(path) = paths.resolve_in_config(program.trim())
    {
        *program = path.to_string_lossy().into_owned();
    }
    words
}

fn bytes(megabytes: u64) -> usize {
    usize::try_from(megabytes * MEGABYTE).unwrap_or(usize::MAX)
}
