//! Work by chat: that of one chat in order, that of several at the same time.

use std::collections::{HashMap, VecDeque};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

/// Pieces of work that each give a `T`.
pub(crate) struct Lanes<'a, T> {
    /// What waits, by chat. A chat has an entry while something of it runs.
    waiting: HashMap<String, VecDeque<BoxFuture<'a, T>>>,
    running: FuturesUnordered<BoxFuture<'a, (String, T)>>,
    count: usize,
}

impl<'a, T: Send + 'a> Lanes<'a, T> {
    pub(crate) fn new() -> Self {
        Self { waiting: HashMap::new(), running: FuturesUnordered::new(), count: 0 }
    }

    /// How many pieces are not over.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Adds a piece, after those of its chat.
    pub(crate) fn push(&mut self, chat: String, work: BoxFuture<'a, T>) {
        self.count += 1;
        match self.waiting.get_mut(&chat) {
            Some(waiting) => waiting.push_back(work),
            None => {
                self.waiting.insert(chat.clone(), VecDeque::new());
                self.run(chat, work);
            }
        }
    }

    /// The result of the next piece that ends; `None` if no piece runs. Nothing is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> Option<T> {
        let (chat, done) = self.running.next().await?;
        self.count = self.count.saturating_sub(1);
        match self.waiting.get_mut(&chat).and_then(VecDeque::pop_front) {
            Some(work) => self.run(chat, work),
            None => drop(self.waiting.remove(&chat)),
        }
        Some(done)
    }

    fn run(&self, chat: String, work: BoxFuture<'a, T>) {
        self.running.push(Box::pin(async move { (chat, work.await) }));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_chat_keeps_its_order_and_delays_no_other() {
        let mut lanes = Lanes::new();
        for (chat, name, seconds) in [("a", "a1", 9), ("a", "a2", 0), ("b", "b1", 1)] {
            let work = async move {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                name
            };
            lanes.push(chat.to_owned(), Box::pin(work));
        }
        let mut done = Vec::new();
        while let Some(name) = lanes.next().await {
            done.push(name);
        }
        assert_eq!((done, lanes.len()), (vec!["b1", "a1", "a2"], 0));
    }
}
