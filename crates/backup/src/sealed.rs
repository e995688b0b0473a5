//! An encrypted stream: its bytes cannot be read, changed, cut off or reordered without the passphrase.
//!
//! A head of 41 bytes: [`MAGIC`], a random salt, and how often the passphrase is hashed. Then chunks of [`CHUNK`] bytes, each
//! sealed with ChaCha20-Poly1305. The nonce of a chunk is its number, and says whether it is the last one (the
//! construction STREAM of Hoang, Reyhanitabar, Rogaway and Vizár), and the head is authenticated with each. The key is
//! PBKDF2-HMAC-SHA256 of the passphrase and the salt, and no other stream has it.

use std::fmt;
use std::io::{self, Read, Write};
use std::num::NonZeroU32;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::pbkdf2;
use ring::rand::{SecureRandom as _, SystemRandom};
use zeroize::Zeroizing;

use crate::BackupError;

/// Begins every encrypted backup.
pub(crate) const MAGIC: [u8; 21] = *b"myclaw-encrypted-v01\n";
/// Bytes of a chunk before it is sealed.
const CHUNK: usize = 64 * 1024;
/// Bytes that sealing adds.
const TAG: usize = 16;
const SALT: usize = 16;
const HEAD: usize = MAGIC.len() + SALT + 4;
/// What OWASP advises for PBKDF2-HMAC-SHA256 (2023). Takes a quarter of a second, which tests do not need for each stream.
const ITERATIONS: u32 = if cfg!(test) { 100 } else { 600_000 };
/// A head that asks for more is refused: a forged one would keep the program busy for hours.
const MOST_ITERATIONS: u32 = 20_000_000;

/// What a person remembers of an encrypted backup. Not shown, and overwritten when it is dropped.
pub struct Passphrase(Zeroizing<String>);

impl Passphrase {
    /// A passphrase; `None` if it is empty.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(Zeroizing::new(text.to_owned())))
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase")
    }
}

/// The key of one stream, and the number of its next chunk.
struct Chunks {
    key: LessSafeKey,
    head: [u8; HEAD],
    next: u32,
}

impl Chunks {
    fn new(passphrase: &Passphrase, head: [u8; HEAD]) -> io::Result<Self> {
        let (salt, iterations) = head[MAGIC.len()..].split_at(SALT);
        let iterations = iterations.try_into().map(u32::from_be_bytes).unwrap_or_default();
        let iterations = NonZeroU32::new(iterations)
            .filter(|number| number.get() <= MOST_ITERATIONS)
            .ok_or_else(|| unusable("its head is damaged"))?;
        let mut key = Zeroizing::new([0; 32]);
        let secret = passphrase.0.as_bytes();
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, secret, key.as_mut());
        let key = UnboundKey::new(&CHACHA20_POLY1305, key.as_ref())
            .map_err(|_| io::Error::other("the key cannot be used"))?;
        Ok(Self { key: LessSafeKey::new(key), head, next: 0 })
    }

    fn nonce(&mut self, is_last: bool) -> io::Result<Nonce> {
        let mut nonce = [0; NONCE_LEN];
        nonce[7..11].copy_from_slice(&self.next.to_be_bytes());
        nonce[11] = u8::from(is_last);
        self.next = self.next.checked_add(1).ok_or_else(|| io::Error::other("it is too long"))?;
        Ok(Nonce::assume_unique_for_key(nonce))
    }

    fn seal(&mut self, chunk: &mut Vec<u8>, is_last: bool) -> io::Result<()> {
        let nonce = self.nonce(is_last)?;
        self.key
            .seal_in_place_append_tag(nonce, Aad::from(&self.head), chunk)
            .map_err(|_| io::Error::other("a part cannot be encrypted"))
    }

    fn open(&mut self, chunk: &mut Vec<u8>, is_last: bool) -> io::Result<()> {
        let nonce = self.nonce(is_last)?;
        let opened = self.key.open_in_place(nonce, Aad::from(&self.head), chunk);
        let length = opened.map_err(|_| io::Error::other(BackupError::WrongPassphrase))?.len();
        chunk.truncate(length);
        Ok(())
    }
}

fn unusable(why: &str) -> io::Error {
    io::Error::other(BackupError::Unusable(why.to_owned()))
}

/// Encrypts what is written. [`Sealing::finish`] writes the last chunk.
pub(crate) struct Sealing<W> {
    to: W,
    chunks: Chunks,
    waiting: Vec<u8>,
}

impl<W: Write> Sealing<W> {
    /// Writes the head.
    pub(crate) fn new(mut to: W, passphrase: &Passphrase) -> io::Result<Self> {
        let mut head = [0; HEAD];
        head[..MAGIC.len()].copy_from_slice(&MAGIC);
        SystemRandom::new()
            .fill(&mut head[MAGIC.len()..MAGIC.len() + SALT])
            .map_err(|_| io::Error::other("the system gives no random numbers"))?;
        head[MAGIC.len() + SALT..].copy_from_slice(&ITERATIONS.to_be_bytes());
        to.write_all(&head)?;
        let chunks = Chunks::new(passphrase, head)?;
        Ok(Self { to, chunks, waiting: Vec::with_capacity(CHUNK + TAG) })
    }

    /// Without this, the stream counts as cut off.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.chunks.seal(&mut self.waiting, true)?;
        self.to.write_all(&self.waiting)?;
        Ok(self.to)
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full chunk waits until more comes, because the last one is sealed differently.
        if self.waiting.len() == CHUNK {
            self.chunks.seal(&mut self.waiting, false)?;
            self.to.write_all(&self.waiting)?;
            self.waiting.clear();
        }
        let taken = bytes.len().min(CHUNK - self.waiting.len());
        self.waiting.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Decrypts what [`Sealing`] has written. Gives nothing of a chunk that was changed.
pub(crate) struct Opening<R> {
    from: R,
    chunks: Chunks,
    /// The first byte of the next chunk, or none after the last one.
    ahead: Option<u8>,
    opened: Vec<u8>,
    given: usize,
}

impl<R: Read> Opening<R> {
    /// Reads the head behind [`MAGIC`], which the caller has read.
    pub(crate) fn new(mut from: R, passphrase: &Passphrase) -> io::Result<Self> {
        let mut head = [0; HEAD];
        head[..MAGIC.len()].copy_from_slice(&MAGIC);
        from.read_exact(&mut head[MAGIC.len()..])?;
        let chunks = Chunks::new(passphrase, head)?;
        let ahead = read_byte(&mut from)?;
        if ahead.is_none() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self { from, chunks, ahead, opened: Vec::new(), given: 0 })
    }

    fn open_next(&mut self, first: u8) -> io::Result<()> {
        self.given = 0;
        self.opened.clear();
        self.opened.push(first);
        let rest = (CHUNK + TAG - 1) as u64;
        self.from.by_ref().take(rest).read_to_end(&mut self.opened)?;
        self.ahead = read_byte(&mut self.from)?;
        self.chunks.open(&mut self.opened, self.ahead.is_none())
    }
}

impl<R: Read> Read for Opening<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.opened.len() {
            let Some(first) = self.ahead else { return Ok(0) };
            self.open_next(first)?;
        }
        let left = &self.opened[self.given..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.given += count;
        Ok(count)
    }
}

fn read_byte(from: &mut impl Read) -> io::Result<Option<u8>> {
    let mut byte = [0];
    loop {
        match from.read(&mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some(byte[0])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
