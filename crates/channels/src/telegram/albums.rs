//! Albums: several messages that people see, and answer, as one. Telegram delivers them one by one and does not say how
//! many there are.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::MutexGuard;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Telegram;
use super::update::Said;
use crate::Passage;
use crate::recent::{MOST, Recent};

/// An album is whole when nothing more of it has come for this time.
const QUIET: Duration = Duration::from_millis(800);
/// Between two looks whether more of an album has come.
pub(super) const LOOK: Duration = Duration::from_millis(200);
/// Most messages of an album (Bot API, sendMediaGroup).
const MOST_PARTS: usize = 10;

/// Adds a message to those of its chat: to its album, if it has one that is there.
pub(super) fn add(all: &mut Vec<Vec<Said>>, said: Said) {
    let album = name(&said);
    let same =
        all.iter_mut().find(|together| album.is_some() && together.first().and_then(name) == album);
    match same {
        Some(together) => together.push(said),
        None => all.push(vec![said]),
    }
}

/// The album of a message. A later version of one is a message of its own.
fn name(said: &Said) -> Option<&str> {
    said.message.media_group_id.as_deref().filter(|_| said.edit.is_none())
}

/// What the parts of an album say, as one message.
pub(super) fn joined(
    parts: impl Iterator<Item = (String, Vec<Passage>)>,
) -> (String, Vec<Passage>) {
    let (texts, passages): (Vec<String>, Vec<Vec<Passage>>) = parts.unzip();
    let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    let passages: Vec<Passage> = passages.into_iter().flatten().collect();
    let (mut said, silent): (Vec<Passage>, Vec<Passage>) =
        passages.into_iter().partition(|passage| !passage.text.is_empty());
    if said.is_empty() {
        said.extend(silent.into_iter().next());
    }
    (texts.join("\n"), said)
}

/// Albums that are not whole, while the server still keeps them: how many parts were seen, and when the last one came.
#[derive(Default)]
pub(super) struct Waiting {
    before: HashMap<String, (usize, Instant)>,
    now: HashMap<String, (usize, Instant)>,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    pub(super) fn begin(&mut self) {
        self.now.clear();
    }

    /// Whether these are all messages that belong together.
    pub(super) fn is_whole(&mut self, together: &[Said]) -> bool {
        let Some(album) = together.first().and_then(name) else { return true };
        let seen = self.before.get(album).filter(|(count, _)| *count == together.len());
        let since = seen.map_or_else(Instant::now, |(_, since)| *since);
        let is_whole = together.len() >= MOST_PARTS || since.elapsed() >= QUIET;
        if !is_whole {
            self.now.insert(album.to_owned(), (together.len(), since));
        }
        is_whole
    }

    pub(super) fn end(&mut self) {
        std::mem::swap(&mut self.before, &mut self.now);
    }
}

/// Albums that come in requests of their own, and the parts of those that are stored.
#[derive(Default)]
pub(super) struct Albums {
    open: HashMap<String, Open>,
    stored: Recent<String>,
}

/// What came of an album. Its requests wait for the one that stores it.
struct Open {
    parts: Vec<Said>,
    last: Instant,
    done: watch::Sender<Option<Result<(), String>>>,
}

/// Messages that are taken as one.
pub(super) struct Together {
    pub(super) parts: Vec<Said>,
    done: Option<watch::Sender<Option<Result<(), String>>>>,
}

impl Together {
    /// Tells those who wait whether they are stored.
    pub(super) fn done(self, taken: Result<(), String>) {
        if let Some(done) = self.done {
            // Nobody may wait.
            let _ = done.send(Some(taken));
        }
    }
}

impl Albums {
    /// The album that a message is a part of, if it is stored.
    pub(super) fn known(&self, part: &str) -> Option<String> {
        self.stored.get(part).cloned()
    }

    pub(super) fn note(&mut self, parts: impl Iterator<Item = String>, album: &str) {
        for part in parts {
            self.stored.put(&part, album.to_owned());
        }
    }

    fn join(&mut self, album: &str, said: Said) -> watch::Receiver<Option<Result<(), String>>> {
        if self.open.len() >= MOST {
            // Requests that nobody sends again.
            self.open.clear();
        }
        let now = Instant::now();
        let new = || Open { parts: Vec::new(), last: now, done: watch::Sender::new(None) };
        let open = self.open.entry(album.to_owned()).or_insert_with(new);
        let is_new = |part: &Said| part.message.message_id != said.message.message_id;
        if open.parts.iter().all(is_new) {
            open.parts.push(said);
            open.last = now;
        }
        open.done.subscribe()
    }

    /// The album, if it is whole; else the time to look again. `None` if another request has it.
    fn whole(&mut self, album: &str) -> Option<Result<Together, Instant>> {
        let open = self.open.get(album)?;
        let at = open.last + QUIET;
        if open.parts.len() < MOST_PARTS && Instant::now() < at {
            return Some(Err(at));
        }
        let Open { mut parts, done, .. } = self.open.remove(album)?;
        parts.sort_by_key(|part| part.message.message_id);
        Some(Ok(Together { parts, done: Some(done) }))
    }
}

impl Telegram {
    pub(super) fn albums(&self) -> MutexGuard<'_, Albums> {
        self.albums.lock()
    }

    /// What has to be stored for a message that came in a request of its own; `None` if another request has stored it.
    ///
    /// # Errors
    /// It is not stored, and has to come again.
    pub(super) async fn album_of(&self, said: Said) -> Result<Option<Together>, String> {
        let Some(album) = name(&said).map(str::to_owned) else {
            return Ok(Some(Together { parts: vec![said], done: None }));
        };
        let mut done = self.albums().join(&album, said);
        loop {
            let found = self.albums().whole(&album);
            match found {
                Some(Ok(together)) => return Ok(Some(together)),
                Some(Err(at)) => {
                    // Another request may find that it is whole.
                    let _ = tokio::time::timeout_at(at, done.changed()).await;
                }
                None => break,
            }
        }
        // The request that stores it may end before.
        let stored = done.wait_for(Option::is_some).await.ok().and_then(|stored| stored.clone());
        stored
            .unwrap_or_else(|| Err("the album is not stored; send it again".to_owned()))
            .map(|()| None)
    }
}
