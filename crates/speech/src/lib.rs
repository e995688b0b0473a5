//! Text to speech, and speech to text: by a command of the owner, or by an endpoint of the kind that OpenAI has.
//!
//! | module | is |
//! |---|---|
//! | `audio` | what kind of audio some bytes are, and how long they last |
//! | `command` | a program that speaks or listens |
//! | `endpoint` | `/audio/speech` and `/audio/transcriptions` |
//!
//! Everything is bounded: the text, the audio, the time. At its limit a command is ended with everything it started. This
//! crate knows nothing of sessions, channels and the config file.
#![forbid(unsafe_code)]

mod audio;
mod command;
mod endpoint;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use audio::AudioFormat;
pub use endpoint::Endpoint;

/// Longest name of a voice, in characters.
const MOST_VOICE_CHARS: usize = 64;
/// Most bytes of a transcript: an hour of fast speech has about 60 KB.
const MOST_TRANSCRIPT_BYTES: usize = 256 * 1024;

/// Who speaks or listens.
#[derive(Debug, Clone)]
pub enum Way {
    /// A program and its arguments.
    ///
    /// To speak, it reads the text from its standard input, finds the voice in `MYCLAW_VOICE`, and prints the audio. To
    /// listen, it reads the audio from its standard input or from the file in `MYCLAW_AUDIO_FILE`, finds the language in
    /// `MYCLAW_LANGUAGE`, and prints the text.
    Command(Vec<String>),
    /// A server.
    Endpoint(Endpoint),
}

/// Makes speech of texts.
#[derive(Debug, Clone)]
pub struct Speaker {
    /// Who speaks.
    pub way: Way,
    /// The voice if a call names none.
    pub voice: Option<String>,
    /// Longest text, in characters.
    pub most_chars: usize,
    /// Most bytes of the audio.
    pub most_bytes: usize,
    /// How long it may take.
    pub limit: Duration,
}

/// Makes texts of speech.
#[derive(Debug, Clone)]
pub struct Transcriber {
    /// Who listens.
    pub way: Way,
    /// The language of the speech as a code such as `de`, if it is always the same.
    pub language: Option<String>,
    /// Most bytes of the audio.
    pub most_bytes: usize,
    /// Longest audio. It is unknown for some formats, for which [`Transcriber::most_bytes`] alone counts.
    pub longest: Duration,
    /// How long it may take.
    pub limit: Duration,
}

/// Speech.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audio {
    /// What kind of audio it is.
    pub format: AudioFormat,
    /// The file.
    pub bytes: Vec<u8>,
}

/// Why there is no speech or no transcript. The texts hold no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpeechError {
    /// It exceeds a limit.
    #[error("{0}")]
    TooMuch(String),
    /// The command or the server failed.
    #[error("{0}")]
    Failed(String),
    /// The caller cancelled.
    #[error("it was aborted")]
    Aborted,
}

impl Way {
    /// Why it cannot be used, as far as that is known without asking it; `None` if nothing is known.
    pub fn obstacle(&self) -> Option<String> {
        match self {
            Self::Command(words) => command::obstacle(words),
            Self::Endpoint(_) => None,
        }
    }
}

impl Speaker {
    /// Speaks a text, in `voice` if one is named.
    ///
    /// # Errors
    /// [`SpeechError`].
    pub async fn speak(
        &self,
        text: &str,
        voice: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<Audio, SpeechError> {
        let (count, most) = (text.chars().count(), self.most_chars);
        if count > most {
            return Err(SpeechError::TooMuch(format!(
                "the text has {count} characters, and at most {most} are spoken"
            )));
        }
        let voice = voice.map(str::trim).filter(|voice| !voice.is_empty());
        let voice = voice.or(self.voice.as_deref());
        if voice.is_some_and(|voice| !is_plain(voice)) {
            return Err(SpeechError::Failed(
                "a voice is named by letters, digits, and the signs . _ + : and -".to_owned(),
            ));
        }
        let bytes = match &self.way {
            Way::Command(words) => command::speak(self, words, text, voice, cancel).await,
            Way::Endpoint(endpoint) => {
                let asking = endpoint.speak(text, voice, self.most_bytes, self.limit);
                unless(cancel, asking).await
            }
        }?;
        let format = AudioFormat::of(&bytes).ok_or_else(|| {
            SpeechError::Failed(format!(
                "what it made is no audio that is known here ({} bytes): {}",
                bytes.len(),
                AudioFormat::names()
            ))
        })?;
        Ok(Audio { format, bytes })
    }
}

impl Transcriber {
    /// What is said in a file.
    ///
    /// # Errors
    /// [`SpeechError`].
    pub async fn transcribe(
        &self,
        audio: &[u8],
        cancel: &CancellationToken,
    ) -> Result<String, SpeechError> {
        let format = AudioFormat::of(audio)
            .ok_or_else(|| SpeechError::Failed("it is no audio that is known here".to_owned()))?;
        if audio.len() > self.most_bytes {
            return Err(SpeechError::TooMuch(format!(
                "it has {} bytes, and at most {} are transcribed",
                audio.len(),
                self.most_bytes
            )));
        }
        if let Some(duration) =
            audio::duration(format, audio).filter(|length| *length > self.longest)
        {
            return Err(SpeechError::TooMuch(format!(
                "it lasts {} s, and at most {} s are transcribed",
                duration.as_secs(),
                self.longest.as_secs()
            )));
        }
        let text = match &self.way {
            Way::Command(words) => command::transcribe(self, words, audio, format, cancel).await,
            Way::Endpoint(endpoint) => {
                let language = self.language.as_deref();
                unless(cancel, endpoint.transcribe(audio, format, language, self.limit)).await
            }
        }?;
        let text = text.trim();
        if text.is_empty() {
            return Err(SpeechError::Failed("no words were heard".to_owned()));
        }
        Ok(text.to_owned())
    }
}

/// Whether a name can stand in a header, a variable and a command line.
fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '+' | ':' | '-');
    name.chars().count() <= MOST_VOICE_CHARS && !name.starts_with('-') && name.chars().all(is_plain)
}

async fn unless<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, SpeechError>>,
) -> Result<T, SpeechError> {
    tokio::select! {
        done = work => done,
        () = cancel.cancelled() => Err(SpeechError::Aborted),
    }
}
