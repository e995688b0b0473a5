//! How a channel hands a message over, with its files.

use tokio::sync::Semaphore;

use crate::http::{CallError, Refusal as Refused};
use crate::pause::Pause;
use crate::{Arrival, AttachmentContent, Intake, Receipt, Refusal};

/// Attempts to download a file before its message is delivered without it.
const DOWNLOADS: u32 = 3;
/// Most messages of an account whose files are in memory at the same time.
pub(crate) const MOST_WITH_FILES: usize = 4;

/// Hands a message over. Its files are loaded only if they are wanted: `files` gives their contents, in the order of the
/// attachments. Gives `None` for a message that cannot be used.
///
/// # Errors
/// The message is not on disk, for this reason, and has to be handed over again.
pub(crate) async fn hand_over(
    intake: &dyn Intake,
    mut arrival: Arrival,
    places: &Semaphore,
    files: impl Future<Output = Vec<AttachmentContent>> + Send,
) -> Result<Option<Receipt>, String> {
    let (channel, message) = (arrival.channel.clone(), arrival.source_id.clone());
    let taking = async {
        let has_files = !arrival.attachments.is_empty();
        let mut _place = None;
        if has_files && intake.wants_files(&arrival).await? {
            // It fails only if the semaphore is closed, which nobody does.
            _place = places.acquire().await.ok();
            for (attachment, content) in arrival.attachments.iter_mut().zip(files.await) {
                attachment.content = content;
            }
        }
        intake.take(arrival).await
    };
    match taking.await {
        Ok(receipt) => Ok(Some(receipt)),
        Err(Refusal::Unusable(reason)) => {
            tracing::warn!(channel, %reason, message, "a message cannot be used");
            Ok(None)
        }
        Err(Refusal::Later(reason)) => Err(reason),
    }
}

/// The bytes of a file of at most `most` bytes, after a few attempts to get them. `size` is what the vendor says.
pub(crate) async fn load<R: Refused, D: Future<Output = Result<Vec<u8>, CallError<R>>>>(
    size: Option<u64>,
    most: u64,
    mut download: impl FnMut() -> D,
) -> AttachmentContent {
    if let Some(size) = size.filter(|size| *size > most) {
        let reason = format!("it has {size} bytes, and at most {most} are downloaded");
        return AttachmentContent::Missing(reason);
    }
    let mut pause = Pause::new();
    let mut attempt = 1;
    loop {
        match download().await {
            Ok(bytes) => return AttachmentContent::Bytes(bytes),
            Err(error) if attempt >= DOWNLOADS || matches!(error, CallError::Refused(_)) => {
                return AttachmentContent::Missing(error.to_string());
            }
            Err(_) => pause.wait().await,
        }
        attempt += 1;
    }
}
