//! What kind of audio some bytes are, and how long they last. Only the heads of the files are read.

use std::time::Duration;

/// A kind of audio file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AudioFormat {
    /// Ogg, with Opus or Vorbis: what most chats use for voice notes.
    Ogg,
    /// MPEG layer 3.
    Mp3,
    /// MPEG-4 with AAC.
    M4a,
    /// WAVE.
    Wav,
    /// FLAC.
    Flac,
    /// AAC alone.
    Aac,
    /// AMR.
    Amr,
}

/// Samples a second of Opus, whatever the input had (RFC 7845, section 4).
const OPUS_RATE: u64 = 48_000;
/// Bytes from the end in which the last page of an Ogg file begins: a page has at most 65,307.
const LAST_PAGE: usize = 65_307;

impl AudioFormat {
    const ALL: [Self; 7] =
        [Self::Ogg, Self::Mp3, Self::M4a, Self::Wav, Self::Flac, Self::Aac, Self::Amr];

    /// What kind of audio a file is, by its first bytes; `None` if it is none of these.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let at = |start: usize, mark: &[u8]| {
            bytes.get(start..).is_some_and(|rest| rest.starts_with(mark))
        };
        let second = bytes.get(1).copied().unwrap_or_default();
        Some(match bytes.first() {
            // An Ogg file may also hold video (Theora).
            _ if at(0, b"OggS") => {
                let is_audio = at(28, b"OpusHead") || at(29, b"vorbis") || at(28, b"Speex");
                return is_audio.then_some(Self::Ogg);
            }
            _ if at(0, b"RIFF") && at(8, b"WAVE") => Self::Wav,
            _ if at(0, b"fLaC") => Self::Flac,
            _ if at(0, b"#!AMR") => Self::Amr,
            _ if at(0, b"ID3") => Self::Mp3,
            _ if at(4, b"ftypM4A") || at(4, b"ftypM4B") => Self::M4a,
            // Frames begin with twelve set bits; then come the version and the layer, of which AAC has 0.
            Some(0xff) if second & 0xf6 == 0xf0 => Self::Aac,
            Some(0xff) if second & 0xe6 == 0xe2 => Self::Mp3,
            _ => return None,
        })
    }

    /// The usual end of a name.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Ogg => "ogg",
            Self::Mp3 => "mp3",
            Self::M4a => "m4a",
            Self::Wav => "wav",
            Self::Flac => "flac",
            Self::Aac => "aac",
            Self::Amr => "amr",
        }
    }

    /// The media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Ogg => "audio/ogg",
            Self::Mp3 => "audio/mpeg",
            Self::M4a => "audio/mp4",
            Self::Wav => "audio/wav",
            Self::Flac => "audio/flac",
            Self::Aac => "audio/aac",
            Self::Amr => "audio/amr",
        }
    }

    pub(crate) fn names() -> String {
        Self::ALL.map(Self::ending).join(", ")
    }
}

/// How long a file lasts, where its head or its end says so.
pub(crate) fn duration(format: AudioFormat, bytes: &[u8]) -> Option<Duration> {
    match format {
        AudioFormat::Wav => wave_duration(bytes),
        AudioFormat::Ogg => ogg_duration(bytes),
        _ => None,
    }
}

/// By the bytes a second. The length in the head is not trusted: a program that prints a file cannot know it.
fn wave_duration(bytes: &[u8]) -> Option<Duration> {
    let at = bytes.windows(4).take(4096).position(|mark| mark == b"fmt ")?;
    let rate = u64::from(u32::from_le_bytes(array(bytes, at + 16)?));
    let length = bytes.len() as u64;
    (rate > 0).then(|| Duration::from_secs(length / rate))
}

/// By the number of samples that the last page names.
fn ogg_duration(bytes: &[u8]) -> Option<Duration> {
    let rate = match bytes.get(28..)?.starts_with(b"OpusHead") {
        true => OPUS_RATE,
        false => u64::from(u32::from_le_bytes(array(bytes, 40)?)),
    };
    let tail = bytes.get(bytes.len().saturating_sub(LAST_PAGE)..)?;
    let page = tail.windows(4).rposition(|mark| mark == b"OggS")?;
    let samples = u64::from_le_bytes(array(tail, page + 6)?);
    (rate > 0 && samples < u64::MAX).then(|| Duration::from_secs(samples / rate))
}

fn array<const LENGTH: usize>(bytes: &[u8], at: usize) -> Option<[u8; LENGTH]> {
    bytes.get(at..at + LENGTH)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_first_bytes() {
        let opus = [b"OggS".as_slice(), &[0; 24], b"OpusHead"].concat();
        let theora = [b"OggS".as_slice(), &[0; 24], b"\x80theora"].concat();
        let cases: [(&[u8], Option<AudioFormat>); 9] = [
            (&opus, Some(AudioFormat::Ogg)),
            (&theora, None),
            (b"RIFF....WAVEfmt ", Some(AudioFormat::Wav)),
            (b"ID3\x04", Some(AudioFormat::Mp3)),
            (b"\xff\xfb\x90", Some(AudioFormat::Mp3)),
            (b"\xff\xf1\x50", Some(AudioFormat::Aac)),
            (b"....ftypM4A ", Some(AudioFormat::M4a)),
            (b"....ftypisom", None),
            (b"", None),
        ];
        for (bytes, format) in cases {
            assert_eq!(AudioFormat::of(bytes), format, "{bytes:?}");
        }
    }

    #[test]
    fn a_file_says_how_long_it_lasts() {
        let mut wave = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        wave.extend(8_000_u32.to_le_bytes());
        wave.extend(16_000_u32.to_le_bytes());
        wave.extend([0; 16_000 * 3]);
        assert_eq!(duration(AudioFormat::Wav, &wave), Some(Duration::from_secs(3)));

        let page =
            |samples: u64| [b"OggS\0\0".as_slice(), &samples.to_le_bytes(), &[0; 14]].concat();
        let opus = [page(0), b"OpusHead".to_vec(), page(48_000 * 90), vec![0; 500]].concat();
        assert_eq!(duration(AudioFormat::Ogg, &opus), Some(Duration::from_secs(90)));
        // Cut off anywhere, it has no length or another one, and nothing breaks.
        for end in 0..opus.len() {
            let _ = duration(AudioFormat::Ogg, &opus[..end]);
            let _ = duration(AudioFormat::Wav, &wave[..end]);
        }
    }
}
