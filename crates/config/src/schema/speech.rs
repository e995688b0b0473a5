//! Speech: who speaks, and who listens.

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::hooks::CommandLine;
use super::values::{self, BaseUrl, NonBlankText};

/// The limit of OpenAI's endpoint is 4,096.
const DEFAULT_CHARS: usize = 4_000;
/// Longer texts are for reading.
const MAX_CHARS: u64 = 100_000;
/// Five minutes as WAV with 22 kHz, or an hour as Opus.
const DEFAULT_SPOKEN_MB: u64 = 16;
/// The limit of OpenAI's endpoint.
const DEFAULT_HEARD_MB: u64 = 25;
/// Larger files are not kept in memory.
const MAX_MB: u64 = 100;
/// Seconds of a recording.
const DEFAULT_SECONDS: u64 = 900;
/// Four hours.
const MAX_SECONDS: u64 = 14_400;
/// Seconds that speaking may take.
const DEFAULT_SPEAKING_SECONDS: u64 = 60;
/// Seconds that listening may take.
const DEFAULT_LISTENING_SECONDS: u64 = 120;
/// Ten minutes: a person waits.
const MAX_TIMEOUT_SECONDS: u64 = 600;

/// Who speaks: makes voice messages of texts, for the tool `send_voice`. Set `command`, or `baseUrl` or `apiKey` for a
/// server with the interface of OpenAI; without any of them there is no such tool.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SpeechConfig {
    /// A program with its arguments, or one string for the shell. It reads the text from standard input, finds the name of
    /// the voice in `MYCLAW_VOICE`, and prints an audio file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// The address of the server up to its version. Default: that of OpenAI.
    #[serde(deserialize_with = "values::optional_url", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BaseUrl>")]
    pub base_url: Option<String>,
    /// The key of the server. Preferably a reference such as `"${OPENAI_API_KEY}"`.
    #[serde(with = "values::optional_secret", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<values::SecretText>")]
    pub api_key: Option<SecretString>,
    /// The model of the server.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub model: String,
    /// The voice, unless the model that answers names another one.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub voice: Option<String>,
    /// Longest text that is spoken, in characters; longer ones are sent as text.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_CHARS>")]
    #[schemars(range(min = 1, max = MAX_CHARS))]
    pub max_chars: usize,
    /// Largest audio file, in megabytes.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_MB>")]
    #[schemars(range(min = 1, max = MAX_MB))]
    pub max_mb: u64,
    /// Seconds that it may take.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_TIMEOUT_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_TIMEOUT_SECONDS))]
    pub timeout_seconds: u64,
}

impl Default for SpeechConfig {
    fn default() -> Self {
        Self {
            command: None,
            base_url: None,
            api_key: None,
            model: "tts-1".to_owned(),
            voice: None,
            max_chars: DEFAULT_CHARS,
            max_mb: DEFAULT_SPOKEN_MB,
            timeout_seconds: DEFAULT_SPEAKING_SECONDS,
        }
    }
}

/// Who listens: makes texts of voice notes that arrive on channels. Set `command`, or `baseUrl` or `apiKey` for a server
/// with the interface of OpenAI; without any of them the model gets voice notes as files.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TranscriptionConfig {
    /// A program with its arguments, or one string for the shell. It reads the audio from standard input or from the file
    /// in `MYCLAW_AUDIO_FILE`, finds `language` in `MYCLAW_LANGUAGE`, and prints the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// The address of the server up to its version. Default: that of OpenAI.
    #[serde(deserialize_with = "values::optional_url", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BaseUrl>")]
    pub base_url: Option<String>,
    /// The key of the server. Preferably a reference such as `"${OPENAI_API_KEY}"`.
    #[serde(with = "values::optional_secret", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<values::SecretText>")]
    pub api_key: Option<SecretString>,
    /// The model of the server.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub model: String,
    /// The language of all voice notes, as a code such as `de`. Leave it out if there are several.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub language: Option<String>,
    /// Largest audio file that is transcribed, in megabytes.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_MB>")]
    #[schemars(range(min = 1, max = MAX_MB))]
    pub max_mb: u64,
    /// Longest recording that is transcribed, in seconds. The length of Ogg and WAV files is known.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    pub max_seconds: u64,
    /// Seconds that it may take.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_TIMEOUT_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_TIMEOUT_SECONDS))]
    pub timeout_seconds: u64,
}

impl Default for TranscriptionConfig {
    fn default() -> Self {
        Self {
            command: None,
            base_url: None,
            api_key: None,
            model: "whisper-1".to_owned(),
            language: None,
            max_mb: DEFAULT_HEARD_MB,
            max_seconds: DEFAULT_SECONDS,
            timeout_seconds: DEFAULT_LISTENING_SECONDS,
        }
    }
}
