//! Reads the mailbox: from the number that is on disk, and then whenever the server says that there is more.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::imap::response::Fetch;
use super::imap::{Imap, ImapError, Listing, Mailbox};
use super::incoming::{self, Downloaded, Incoming};
use super::{EMAIL, Email, WRONG_PASSWORD};
use crate::pause::Pause;
use crate::{Intake, Refusal, State};

/// Most bytes of a header that are read.
const MOST_HEADER: usize = 256 * 1024;
/// How far back mails are looked at again after the server has numbered them anew: its dates are not in the order in which
/// mails appear, and a mail that was taken already is recognised.
const LOOK_BACK: i64 = 2 * 24 * 3600;

/// Attempts to read a mail before the next ones are read without it. With the pauses between them they take half a
/// minute.
const MOST_TRIES: u32 = 7;

/// How far a mailbox has been read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    /// Numbers are compared within one validity only.
    validity: u32,
    /// The first number that has not been read.
    next: u32,
    /// When this account was set up here, in seconds since 1970. Earlier mails are not answered.
    since: i64,
    /// The newest date of the server among the mails that were read.
    newest: i64,
    /// Mails below this number were numbered anew. Of them, those that are older than [`LOOK_BACK`] are not read again.
    renumbered: u32,
    /// The attempts to read the mail with the number `next` that have failed.
    #[serde(default)]
    failed: u32,
}

impl Progress {
    fn begin(mailbox: Mailbox) -> Self {
        let now = Timestamp::now().as_second();
        let Mailbox { validity, next } = mailbox;
        Self { validity, next, since: now, newest: now, renumbered: 0, failed: 0 }
    }

    /// Compares with the mailbox as it is.
    fn follow(&mut self, mailbox: Mailbox) {
        if self.validity != mailbox.validity {
            tracing::warn!("the mailbox was numbered anew; its newest mails are looked at again");
            self.validity = mailbox.validity;
            self.next = 1;
            self.failed = 0;
            self.renumbered = mailbox.next;
        }
    }

    /// Whether a mail was there before, as far as that can be known by its date.
    fn is_old(&self, uid: u32, date: Option<i64>) -> bool {
        let oldest = self.since.max(self.newest - LOOK_BACK);
        uid < self.renumbered && date.is_some_and(|date| date < oldest)
    }

    /// Notes that the mail `uid`, the first that was not read, cannot be read. Whether that was tried often enough.
    fn fail(&mut self, uid: u32) -> bool {
        self.next = uid;
        self.failed = self.failed.saturating_add(1);
        self.failed >= MOST_TRIES
    }

    fn pass(&mut self, uid: u32, date: Option<i64>) {
        self.next = uid.saturating_add(1);
        self.failed = 0;
        if uid >= self.renumbered {
            self.newest = self.newest.max(date.unwrap_or_default());
        }
    }
}

impl Email {
    /// Receives mails forever, or returns if the account cannot be used.
    pub(super) async fn receive_mails(&self, intake: &dyn Intake) {
        // A refused login shows at once, and not with the first answer.
        let log_in = async { drop(self.smtp().await) };
        tokio::join!(self.receive_all(intake), log_in);
    }

    fn set_receiving(&self, state: State) {
        self.set_service(|(receiving, _)| *receiving = state);
    }

    async fn receive_all(&self, intake: &dyn Intake) {
        let (mut pause, mut listing) = (Pause::new(), Listing::Full);
        loop {
            let before = listing;
            if let Err(error) = self.read_mailbox(intake, &mut pause, &mut listing).await {
                if let ImapError::Login(_) = error {
                    let reason = format!("{error}; {WRONG_PASSWORD}, and restart the gateway");
                    return self.set_receiving(State::Stopped(reason));
                }
                self.set_receiving(State::Waiting(error.to_string()));
            }
            // The shorter list is tried at once.
            if (before, listing) != (Listing::Full, Listing::Numbers) {
                pause.wait().await;
            }
        }
    }

    /// Takes mails until something fails.
    async fn read_mailbox(
        &self,
        intake: &dyn Intake,
        pause: &mut Pause,
        listing: &mut Listing,
    ) -> Result<(), ImapError> {
        let mut imap = self.imap().await?;
        let mailbox = imap.select(&self.options.mailbox).await?;
        let key = self.progress_key();
        let stored = |refusal: Refusal| ImapError::Intake(refusal.to_string());
        let known = intake.recall(&key).await.map_err(stored)?;
        let known = known.and_then(|text| serde_json::from_str::<Progress>(&text).ok());
        let mut progress = match known {
            Some(mut progress) => {
                progress.follow(mailbox);
                progress
            }
            // What was there before this account was set up here is not answered.
            None => {
                let progress = Progress::begin(mailbox);
                keep(intake, &key, &progress).await?;
                progress
            }
        };
        self.set_receiving(State::Working);
        loop {
            let listed = imap.list(progress.next, *listing).await;
            if listed.is_err() && *listing == Listing::Full {
                (*listing, *pause) = (Listing::Numbers, Pause::new());
            }
            for fetch in listed? {
                let Some(uid) = fetch.uid else { continue };
                let date = fetch.date.as_deref().and_then(seconds);
                let is_old = progress.is_old(uid, date);
                let taken = match is_old {
                    true => Ok(()),
                    false => self.take(&mut imap, intake, &fetch, uid).await,
                };
                if let Err(error) = taken {
                    return self.heed_failure(intake, progress, uid, error, pause).await;
                }
                // From here on the mail is not read again, so it must be on disk before.
                progress.pass(uid, date);
                keep(intake, &key, &progress).await?;
                if !is_old {
                    imap.mark_seen(uid).await?;
                }
            }
            // Only now, because servers lock accounts that log in often, and a mail may fail each time.
            (*listing, *pause) = (Listing::Full, Pause::new());
            imap.wait().await?;
        }
    }

    /// Counts a failure to read the mail `uid`. After too many failures it is skipped, and the owner gets a notice.
    async fn heed_failure(
        &self,
        intake: &dyn Intake,
        mut progress: Progress,
        uid: u32,
        error: ImapError,
        pause: &mut Pause,
    ) -> Result<(), ImapError> {
        if let ImapError::Intake(_) = error {
            return Err(error);
        }
        if progress.fail(uid) {
            let name = format!("{} {} {uid}", self.options.mailbox, progress.validity);
            let reason = format!("it was tried {MOST_TRIES} times: {error}");
            let Incoming { arrival, refused } =
                incoming::unreadable(&self.options, name.as_bytes(), &reason);
            let told = intake.refuse(arrival, refused.unwrap_or(reason)).await;
            told.map_err(|refusal| ImapError::Intake(refusal.to_string()))?;
            tracing::error!(uid, %error, "a mail is left out, because it cannot be read");
            progress.pass(uid, None);
            *pause = Pause::new();
        }
        keep(intake, &self.progress_key(), &progress).await?;
        Err(error)
    }

    fn progress_key(&self) -> String {
        let options = &self.options;
        let (account, user) = (&options.account, &options.credentials.user);
        format!("{EMAIL} {account} {} {user} {}", options.imap.host, options.mailbox)
    }

    /// Hands a mail over.
    async fn take(
        &self,
        imap: &mut Imap,
        intake: &dyn Intake,
        fetch: &Fetch,
        uid: u32,
    ) -> Result<(), ImapError> {
        let Some(downloaded) = self.download(imap, fetch, uid).await? else {
            tracing::info!(uid, "a mail was removed before it could be read");
            return Ok(());
        };
        let options = self.options.clone();
        let reading = tokio::task::spawn_blocking(move || match catch(&options, &downloaded) {
            Some(incoming) => incoming,
            None => incoming::unparsable(&options, &downloaded),
        });
        let incoming = reading.await.map_err(|error| ImapError::Intake(error.to_string()))?;
        let Incoming { arrival, refused } = incoming;
        let taken = match refused {
            None => intake.take(arrival).await,
            Some(reason) => intake.refuse(arrival, reason).await,
        };
        match taken {
            Ok(_) => Ok(()),
            Err(Refusal::Unusable(reason)) => {
                tracing::warn!(%reason, uid, "a mail cannot be used");
                Ok(())
            }
            Err(Refusal::Later(reason)) => Err(ImapError::Intake(reason)),
        }
    }

    /// A mail, or its header if it is too large; `None` if it is not there any more.
    async fn download(
        &self,
        imap: &mut Imap,
        fetch: &Fetch,
        uid: u32,
    ) -> Result<Option<Downloaded>, ImapError> {
        let most = self.most_bytes();
        let size = fetch.size.unwrap_or_default();
        if size <= self.options.most_bytes {
            // The size that a server names may be wrong.
            match imap.fetch(uid, "", most.saturating_add(1)).await? {
                None => return Ok(None),
                Some(bytes) if bytes.len() <= most => return Ok(Some(Downloaded::Mail(bytes))),
                Some(_) => {}
            }
        }
        let header = imap.fetch(uid, "HEADER", MOST_HEADER).await?;
        Ok(header.map(|header| Downloaded::Header(header, size.max(self.options.most_bytes + 1))))
    }
}

/// Reads a mail; `None` if the parser fails at it. Anybody can send a mail, and none may stop the others.
fn catch(options: &super::EmailOptions, downloaded: &Downloaded) -> Option<Incoming> {
    let reading = std::panic::AssertUnwindSafe(|| incoming::read(options, downloaded));
    std::panic::catch_unwind(reading).ok()
}

async fn keep(intake: &dyn Intake, key: &str, progress: &Progress) -> Result<(), ImapError> {
    let text =
        serde_json::to_string(progress).map_err(|error| ImapError::Intake(error.to_string()))?;
    intake.remember(key, &text).await.map_err(|refusal| ImapError::Intake(refusal.to_string()))
}

/// A date such as `17-Jul-1996 02:44:25 -0700` in seconds since 1970.
fn seconds(date: &str) -> Option<i64> {
    let parsed = jiff::fmt::strtime::parse("%d-%b-%Y %H:%M:%S %z", date.trim()).ok()?;
    Some(parsed.to_timestamp().ok()?.as_second())
}

#[cfg(test)]
mod tests;
