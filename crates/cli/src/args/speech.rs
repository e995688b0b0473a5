//! Who speaks and who listens, for the runner and the host.

use clap::Args;

/// Who speaks.
#[derive(Debug, Args)]
pub(crate) struct SpeakArgs {
    /// Who speaks: a shell command that reads text and prints audio
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["speech_url", "speech_model"])]
    pub(crate) speech_command: Option<String>,
    /// The same as a server with the interface of OpenAI; its key is SPEECH_API_KEY, for a runner a secret of the job
    #[arg(long, value_name = "URL")]
    pub(crate) speech_url: Option<String>,
    /// With --speech-url: the model [default: tts-1]
    #[arg(long, value_name = "NAME", requires = "speech_url")]
    pub(crate) speech_model: Option<String>,
    /// With --speech-command or --speech-url: the voice if the agent names none
    #[arg(long, value_name = "NAME")]
    pub(crate) speech_voice: Option<String>,
}

/// Who listens.
#[derive(Debug, Args)]
pub(crate) struct ListenArgs {
    /// Who makes texts of voice notes: a shell command that reads audio, also in the file MYCLAW_AUDIO_FILE, and prints text
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["transcription_url", "transcription_model"])]
    pub(crate) transcription_command: Option<String>,
    /// The same as a server with the interface of OpenAI; its key is SPEECH_API_KEY
    #[arg(long, value_name = "URL")]
    pub(crate) transcription_url: Option<String>,
    /// With --transcription-url: the model [default: whisper-1]
    #[arg(long, value_name = "NAME", requires = "transcription_url")]
    pub(crate) transcription_model: Option<String>,
    /// With --transcription-command or --transcription-url: the language of all voice notes, such as de
    #[arg(long, value_name = "CODE")]
    pub(crate) transcription_language: Option<String>,
}
