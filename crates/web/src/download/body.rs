//! Reading the body of an answer, bounded before and after decompression.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use reqwest::Response;
use reqwest::header::CONTENT_ENCODING;
use url::Url;

use super::{Download, DownloadError, content_type};

/// Reads at most `max_bytes` of the body. The connection is closed when there is more.
///
/// # Errors
/// The connection breaks, or the compression is unknown or damaged.
pub(super) async fn read(
    mut response: Response,
    url: Url,
    max_bytes: usize,
) -> Result<Download, DownloadError> {
    let (status, content_type) = (response.status(), content_type(&response));
    let mut sink = Sink::for_encoding(encoding(&response).as_deref(), Bounded::new(max_bytes))
        .map_err(|encoding| DownloadError::Encoding { url: url.to_string(), encoding })?;
    let mut has_room = true;
    while has_room {
        let chunk = response.chunk().await;
        let Some(chunk) = chunk.map_err(|error| DownloadError::from_client(&error, &url))? else {
            break;
        };
        has_room = sink.take(&chunk).map_err(|error| DownloadError::damaged(&url, &error))?;
    }
    let kept = match has_room {
        true => sink.finish().map_err(|error| DownloadError::damaged(&url, &error))?,
        false => sink.into_bounded(),
    };
    Ok(Download { url, status, content_type, body: kept.bytes, is_cut: kept.is_full })
}

/// The compression, in lower case; `None` if there is none.
fn encoding(response: &Response) -> Option<String> {
    let header = response.headers().get(CONTENT_ENCODING)?;
    let name = String::from_utf8_lossy(header.as_bytes()).trim().to_ascii_lowercase();
    (!name.is_empty() && name != "identity").then_some(name)
}

/// Keeps bytes up to a limit. A write beyond it fails, so that a small body cannot unpack into a huge one.
struct Bounded {
    bytes: Vec<u8>,
    max: usize,
    is_full: bool,
}

impl Bounded {
    fn new(max: usize) -> Self {
        Self { bytes: Vec::new(), max, is_full: false }
    }
}

impl Write for Bounded {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let room = self.max - self.bytes.len();
        let taken = data.len().min(room);
        self.bytes.extend_from_slice(&data[..taken]);
        if taken < data.len() {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where the bytes of a body go.
enum Sink {
    Plain(Bounded),
    Gzip(Box<MultiGzDecoder<Bounded>>),
}

impl Sink {
    /// Returns the name of an encoding that is unknown as the error.
    fn for_encoding(encoding: Option<&str>, bounded: Bounded) -> Result<Self, String> {
        match encoding {
            None => Ok(Self::Plain(bounded)),
            Some("gzip" | "x-gzip") => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(bounded)))),
            Some(other) => Err(other.chars().take(40).collect()),
        }
    }

    /// Takes a piece. Returns whether there is room for more.
    fn take(&mut self, piece: &[u8]) -> io::Result<bool> {
        let result = match self {
            Self::Plain(bounded) => bounded.write_all(piece),
            Self::Gzip(decoder) => decoder.write_all(piece),
        };
        match result {
            Err(_) if self.bounded().is_full => Ok(false),
            Err(error) => Err(error),
            Ok(()) => Ok(true),
        }
    }

    fn bounded(&self) -> &Bounded {
        match self {
            Self::Plain(bounded) => bounded,
            Self::Gzip(decoder) => decoder.get_ref(),
        }
    }

    /// A body that was read to its end.
    fn finish(self) -> io::Result<Bounded> {
        match self {
            Self::Plain(bounded) => Ok(bounded),
            Self::Gzip(mut decoder) => match decoder.try_finish() {
                Err(_) if decoder.get_ref().is_full => Ok(take(decoder.get_mut())),
                Err(error) => Err(error),
                Ok(()) => Ok(take(decoder.get_mut())),
            },
        }
    }

    /// The kept part of a body that was too long.
    fn into_bounded(self) -> Bounded {
        match self {
            Self::Plain(bounded) => bounded,
            Self::Gzip(mut decoder) => take(decoder.get_mut()),
        }
    }
}

/// A decoder writes to its target when it is dropped, so the target is replaced by one without room.
fn take(bounded: &mut Bounded) -> Bounded {
    std::mem::replace(bounded, Bounded::new(0))
}
