//! Messages as bytes: four bytes with the length, the highest first, then that many bytes of JSON.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// Most bytes of one message. A picture has some megabytes; so may a file that a model writes.
pub(crate) const MAX_BYTES: usize = 64 << 20;
/// Memory is taken in steps of this size, as bytes arrive: a length alone costs nothing.
const STEP: usize = 64 << 10;
/// Messages that wait to be written. Each call has few.
pub(crate) const QUEUE: usize = 64;

/// The bytes of a message.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if it is too long.
pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; size_of::<u32>()];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - size_of::<u32>();
    if length > MAX_BYTES {
        return Err(invalid(format!("a message of {length} bytes is too long")));
    }
    bytes[..size_of::<u32>()].copy_from_slice(&u32::try_from(length).unwrap_or(0).to_be_bytes());
    Ok(bytes)
}

/// The JSON of a reply of a [`CallServer`](crate::CallServer), for a way that keeps messages apart by itself.
pub fn text_of(mut message: Vec<u8>) -> String {
    message.drain(..size_of::<u32>().min(message.len()));
    String::from_utf8(message).unwrap_or_default()
}

/// The next message; `None` at an end between two messages.
///
/// # Errors
/// An I/O error, an end within a message, or bytes that are no message.
pub(crate) async fn read<T: DeserializeOwned>(
    input: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<T>> {
    let mut length = [0; size_of::<u32>()];
    if input.read(&mut length[..1]).await? == 0 {
        return Ok(None);
    }
    input.read_exact(&mut length[1..]).await?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_BYTES {
        return Err(invalid(format!("a message of {length} bytes is too long")));
    }
    let mut bytes = Vec::with_capacity(length.min(STEP));
    while bytes.len() < length {
        let missing = (length - bytes.len()).min(STEP) as u64;
        if (&mut *input).take(missing).read_to_end(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| invalid(error.to_string()))
}

/// Writes messages in their order until the senders are gone.
///
/// # Errors
/// An I/O error; further messages are lost.
pub(crate) async fn write_all(
    mut messages: mpsc::Receiver<Vec<u8>>,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    while let Some(bytes) = messages.recv().await {
        output.write_all(&bytes).await?;
        output.flush().await?;
    }
    Ok(())
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests;
