//! Recordings that become texts, and texts that are spoken.

use std::collections::HashSet;
use std::future::pending;
use std::io::{self, Write as _};
use std::path::Path;

use myclaw_files::{Durability, NewFile, read_regular};
use myclaw_speech::{AudioFormat, Transcriber};
use tokio_util::sync::CancellationToken;

use crate::desk::AUDIO_ENDINGS;
use crate::home::make;
use crate::host::Shared;
use crate::ledger::Stored;
use crate::rows::AcceptedMessage;
use crate::{Folder, HostError, Inbound, Outbound, OutboundKind};

/// Whether a message has no recording that must be transcribed first.
pub(crate) fn is_heard(shared: &Shared, message: &AcceptedMessage) -> bool {
    message.unheard.is_empty() || shared.options.transcriber.is_none()
}

impl Shared {
    /// Keeps the recordings of a message until they are transcribed, where no container can change them, and gives their
    /// names.
    pub(crate) fn keep_recordings(
        &self,
        folder: &Folder,
        inbound: &Inbound,
    ) -> Result<Vec<String>, HostError> {
        if self.options.transcriber.is_none() {
            return Ok(Vec::new());
        }
        let directory = self.options.home.unheard(folder);
        make(&directory)?;
        let recordings =
            inbound.files.iter().map(|(_, bytes)| bytes).filter(|bytes| is_speech(bytes));
        let keep = |bytes: &Vec<u8>| {
            let name = uuid::Uuid::now_v7().to_string();
            keep(&directory, &name, bytes).map(|()| name)
        };
        let kept: io::Result<Vec<String>> = recordings.map(keep).collect();
        kept.map_err(|error| HostError::io("write files in", &directory, error))
    }
}

/// Whether a file may be a recording of speech.
pub(crate) fn is_speech(bytes: &[u8]) -> bool {
    AudioFormat::of(bytes).is_some()
}

fn keep(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = NewFile::in_directory(directory, "audio")?;
    file.write_all(bytes)?;
    file.put_at(&directory.join(name), Durability::Synced).map(drop)
}

/// Transcribes the recordings of a group's messages in their order, for as long as it is polled.
pub(crate) async fn listen(shared: &Shared, folder: &Folder) -> Result<(), HostError> {
    let Some(transcriber) = &shared.options.transcriber else { return pending().await };
    let has_more = shared.listener_of(folder);
    let unheard = async || {
        let open = shared.ledger.open_messages(folder, usize::MAX).await?;
        Ok::<_, HostError>(open.into_iter().filter(|message| !message.row.unheard.is_empty()))
    };
    let guard = shared.recordings.lock().await;
    sweep(&shared.options.home.unheard(folder), unheard().await?.flat_map(|it| it.row.unheard));
    drop(guard);
    loop {
        match unheard().await?.next() {
            Some(message) => hear(shared, transcriber, &message).await?,
            None => has_more.notified().await,
        }
    }
}

/// Removes recordings of a host that was killed before or after it stored what belongs to them.
fn sweep(directory: &Path, known: impl Iterator<Item = String>) {
    let known: HashSet<String> = known.collect();
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for file in files.filter(|file| !file.file_name().to_str().is_some_and(|it| known.contains(it)))
    {
        // What stays is looked at again at the next start.
        drop(std::fs::remove_file(file.path()));
    }
}

/// Adds the texts of a message's recordings to it, or why there are none.
async fn hear(
    shared: &Shared,
    transcriber: &Transcriber,
    message: &Stored<AcceptedMessage>,
) -> Result<(), HostError> {
    let directory = shared.options.home.unheard(&message.row.folder);
    let mut row = message.row.clone();
    for name in std::mem::take(&mut row.unheard) {
        let most = u64::try_from(transcriber.most_bytes).unwrap_or(u64::MAX).saturating_add(1);
        let heard = match read_regular(&directory.join(name), most) {
            Ok(audio) => {
                let heard = transcriber.transcribe(&audio, &CancellationToken::new()).await;
                heard.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        let shown = match heard {
            Ok(text) => format!("[Voice: {text}]"),
            Err(why) => {
                shared.say(&format!("a voice note to {} is not transcribed: {why}", row.chat));
                format!("[Voice: there is no transcript, because {why}]")
            }
        };
        row.text = format!("{}\n{shown}", row.text).trim_start().to_owned();
    }
    shared.ledger.commit(shared.ledger.changed_message(message, &row)?).await?;
    for name in &message.row.unheard {
        drop(std::fs::remove_file(directory.join(name)));
    }
    shared.wake(&row.folder);
    Ok(())
}

/// A part whose text is to be spoken, with the speech; as a text if that is not possible. Others stay as they are.
pub(crate) async fn spoken(shared: &Shared, part: &Outbound) -> Outbound {
    let mut part = part.clone();
    let OutboundKind::Voice { voice, audio: audio @ None } = &mut part.kind else { return part };
    let Some(speaker) = &shared.options.speaker else { return part };
    let out = shared.options.home.channel().join("out");
    let name_of = |ending: &str| format!("{}.{ending}", part.id);
    // Its delivery is tried again.
    let names = AUDIO_ENDINGS.iter().map(|ending| name_of(ending));
    if let Some(name) = names.into_iter().find(|name| out.join(name).exists()) {
        *audio = Some(name);
        return part;
    }
    let never = CancellationToken::new();
    let speaking = speaker.speak(&part.text, voice.as_deref(), &never);
    let made = speaking.await.map_err(|error| error.to_string()).and_then(|made| {
        let name = name_of(made.format.ending());
        keep(&out, &name, &made.bytes).map(|()| name).map_err(|error| error.to_string())
    });
    match made {
        Ok(name) => *audio = Some(name),
        Err(why) => {
            shared.say(&format!("a message for {} is not spoken, because {why}", part.chat));
            part.kind = OutboundKind::Message;
        }
    }
    part
}
