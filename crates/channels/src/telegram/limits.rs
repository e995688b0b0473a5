//! The rates that Telegram documents for bots: one message per second in a chat, 20 per minute in a group, 30 per second
//! over all chats.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const CHAT_PAUSE: Duration = Duration::from_secs(1);
const GROUP_WINDOW: Duration = Duration::from_secs(60);
const GROUP_MESSAGES: usize = 20;
const ALL_WINDOW: Duration = Duration::from_secs(1);
const ALL_MESSAGES: usize = 30;
/// Messages of a group's window that previews leave to replies.
const KEPT_FOR_REPLIES: usize = 5;
/// Most chats that are remembered.
const MOST_CHATS: usize = 1_000;

/// When messages may be sent.
#[derive(Default)]
pub(super) struct Limits(Mutex<State>);

#[derive(Default)]
struct State {
    chats: HashMap<String, Chat>,
    all: VecDeque<Instant>,
}

#[derive(Default)]
struct Chat {
    /// The moments that were given away, the oldest first. Some may lie ahead.
    given: VecDeque<Instant>,
    /// The server asked for quiet until then.
    quiet_until: Option<Instant>,
}

impl Limits {
    /// Waits until a message may be sent to a chat.
    pub(super) async fn wait(&self, chat: &str) {
        let at = self.0.lock().reserve(chat, Instant::now());
        tokio::time::sleep_until(at).await;
        loop {
            let now = Instant::now();
            let next = self.0.lock().reserve_overall(now);
            if next <= now {
                return;
            }
            tokio::time::sleep_until(next).await;
        }
    }

    /// Takes a place for something that may be left out; false if none is free.
    pub(super) fn try_now(&self, chat: &str) -> bool {
        let now = Instant::now();
        let mut state = self.0.lock();
        let kept = if is_group(chat) { KEPT_FOR_REPLIES } else { 0 };
        if state.next(chat, now, kept) > now || state.overall(now) > now {
            return false;
        }
        state.reserve(chat, now);
        state.reserve_overall(now);
        true
    }

    /// Sends nothing to a chat for some time, because the server said so.
    pub(super) fn pause(&self, chat: &str, time: Duration) {
        let until = Instant::now() + time;
        self.0.lock().chats.entry(chat.to_owned()).or_default().quiet_until = Some(until);
    }
}

impl State {
    /// When the next message may be sent to a chat, if `kept` places of its window stay free.
    fn next(&mut self, chat: &str, now: Instant, kept: usize) -> Instant {
        let Some(of_chat) = self.chats.get(chat) else { return now };
        let mut at = of_chat.quiet_until.map_or(now, |until| until.max(now));
        if let Some(last) = of_chat.given.back() {
            at = at.max(*last + CHAT_PAUSE);
        }
        let most = GROUP_MESSAGES - kept;
        if is_group(chat)
            && let Some(first) = of_chat.given.len().checked_sub(most)
        {
            at = at.max(of_chat.given[first] + GROUP_WINDOW);
        }
        at
    }

    fn reserve(&mut self, chat: &str, now: Instant) -> Instant {
        let at = self.next(chat, now, 0);
        if self.chats.len() >= MOST_CHATS {
            self.chats.retain(|_, chat| {
                let last = chat.given.back().copied().max(chat.quiet_until);
                last.is_some_and(|last| last + GROUP_WINDOW > now)
            });
        }
        let given = &mut self.chats.entry(chat.to_owned()).or_default().given;
        given.push_back(at);
        while given.len() > GROUP_MESSAGES {
            given.pop_front();
        }
        at
    }

    fn overall(&self, now: Instant) -> Instant {
        let first = self.all.len().checked_sub(ALL_MESSAGES);
        first.map_or(now, |first| now.max(self.all[first] + ALL_WINDOW))
    }

    /// Takes a place at `now` if one is free; gives the time at which one is.
    fn reserve_overall(&mut self, now: Instant) -> Instant {
        let at = self.overall(now);
        if at <= now {
            self.all.push_back(now);
            while self.all.len() > ALL_MESSAGES {
                self.all.pop_front();
            }
        }
        at
    }
}

/// Groups have negative ids; a channel's name begins with `@`.
fn is_group(chat: &str) -> bool {
    chat.starts_with(['-', '@'])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds after the start at which `count` messages may be sent to `chat`.
    async fn times(limits: &Limits, chat: &str, count: usize) -> Vec<u64> {
        let begun = Instant::now();
        let mut times = Vec::new();
        for _ in 0..count {
            limits.wait(chat).await;
            times.push(begun.elapsed().as_secs());
        }
        times
    }

    #[tokio::test(start_paused = true)]
    async fn messages_keep_the_documented_rates() {
        let limits = Limits::default();
        assert_eq!(times(&limits, "1", 3).await, [0, 1, 2]);
        let group = times(&limits, "-1", 22).await;
        assert_eq!(group[..20], (0..20).collect::<Vec<u64>>());
        assert_eq!(group[20..], [60, 61]);
        let limits = Limits::default();
        let begun = Instant::now();
        for chat in 0..90 {
            limits.wait(&chat.to_string()).await;
        }
        assert_eq!(begun.elapsed().as_secs(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_chat_is_left_alone_as_long_as_the_server_asked_for() {
        let limits = Limits::default();
        limits.pause("1", Duration::from_secs(7));
        assert!(!limits.try_now("1"));
        assert_eq!(times(&limits, "1", 1).await, [7]);
        assert!(!limits.try_now("1"), "a preview took the place of a reply");
        assert!(limits.try_now("2"));
    }
}
