//! A turn as it is drawn on a terminal: streamed Markdown, one line for each tool, and a live line at the bottom while
//! the user waits.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io::Write;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use myclaw_engine::EventCallback;
use myclaw_exec::give_back_memory;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::outputs::Common;
use myclaw_front::shown::Shown;
use myclaw_front::terminal::{LiveLine, Size, Style, escaped, highlight};
pub(super) use scene::Queued;
use scene::Scene;

mod scene;

/// Shortest time between two updates, unless the user types: thirty a second look smooth, and more cost more.
const FRAME: Duration = Duration::from_millis(33);

/// Draws one turn on standard output.
pub(super) struct Display {
    shared: Arc<Shared>,
}

struct Shared {
    scene: Mutex<Scene>,
    changed: Notify,
    /// The user typed: the key is shown at once.
    typed: Notify,
    /// Fired when the terminal is gone.
    on_closed: CancellationToken,
}

impl Display {
    /// Draws nothing yet. `on_closed` fires when the terminal is gone.
    pub(super) fn new(on_closed: CancellationToken, common: Arc<Common>) -> Self {
        let scene = Scene::new(common, Size::current());
        Self {
            shared: Arc::new(Shared {
                scene: Mutex::new(scene),
                changed: Notify::new(),
                typed: Notify::new(),
                on_closed,
            }),
        }
    }

    /// Takes the events of the turn.
    pub(super) fn callback(&self) -> EventCallback {
        let shared = Arc::clone(&self.shared);
        Arc::new(move |event| {
            let mut scene = shared.scene.lock();
            scene.common.heed(&event.kind);
            scene.take(event.kind);
            drop(scene);
            shared.changed.notify_one();
        })
    }

    /// Shows a change.
    pub(super) fn show(&self, shown: Shown) {
        self.shared.scene.lock().take(shown);
        self.shared.changed.notify_one();
    }

    /// Shows the current activity in the live line.
    pub(super) fn wait_for(&self, what: &str) {
        self.shared.scene.lock().wait_for(what);
        self.shared.changed.notify_one();
    }

    /// Draws the line that the user types.
    pub(super) fn show_typed(&self, text: &str) {
        /// Far more than a line of any terminal holds.
        const MOST_CHARS: usize = 4_000;
        let from = text.char_indices().rev().nth(MOST_CHARS).map_or(0, |(at, _)| at);
        self.change(|scene| scene.typed = escaped(&text[from..]).replace(['\n', '\t'], " "));
        self.shared.typed.notify_one();
    }

    /// Shows the messages that wait.
    pub(super) fn show_queue(&self, queue: Vec<Queued>) {
        self.change(|scene| scene.queue = queue);
    }

    /// Stops drawing while something else has the terminal, or continues.
    pub(super) fn pause(&self, drawing: Drawing) {
        self.change(|scene| scene.drawing = drawing);
    }

    /// Lends the screen to `work`.
    pub(super) fn lend(&self, work: impl FnOnce()) {
        let mut scene = self.shared.scene.lock();
        scene.step_aside();
        self.shared.put(&mut scene);
        work();
        drop(scene);
        self.shared.changed.notify_one();
    }

    /// Adds a line of the program itself. While text arrives, it is shown below the text until that is complete.
    pub(super) fn say(&self, style: Style, line: &str) {
        self.change(|scene| scene.say(style, line));
    }

    fn change(&self, change: impl FnOnce(&mut Scene)) {
        change(&mut self.shared.scene.lock());
        self.shared.changed.notify_one();
    }

    /// Runs `work`, and draws whenever it waits.
    pub(super) async fn drawing<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut drawer = pin!(self.keep_drawn());
        poll_fn(|context| {
            let polled = work.as_mut().poll(context);
            if polled.is_pending() {
                let Poll::Pending = drawer.as_mut().poll(context);
            }
            polled
        })
        .await
    }

    /// Draws what is left, and leaves the cursor on an empty line. What only drawing needs is given back, because the user
    /// may be away for hours.
    pub(super) fn finish(&self) {
        let mut scene = self.shared.scene.lock();
        scene.finish();
        self.shared.put(&mut scene);
        scene.pending = String::new();
        drop(scene);
        highlight::forget();
        give_back_memory();
    }

    async fn keep_drawn(&self) -> Infallible {
        loop {
            let is_live = self.shared.scene.lock().is_waiting();
            if is_live {
                tokio::select! {
                    () = self.shared.changed.notified() => {}
                    () = tokio::time::sleep(LiveLine::TICK) => {}
                }
            } else {
                self.shared.changed.notified().await;
            }
            self.shared.write(&mut self.shared.scene.lock());
            tokio::select! {
                () = tokio::time::sleep(FRAME) => {}
                () = self.shared.typed.notified() => {}
            }
        }
    }
}

impl Shared {
    /// Brings the screen up to date, in one write.
    fn write(&self, scene: &mut Scene) {
        if scene.drawing == Drawing::On {
            scene.compose(Size::current());
            self.put(scene);
        }
    }

    fn put(&self, scene: &mut Scene) {
        if scene.pending.is_empty() {
            return;
        }
        let mut stdout = std::io::stdout();
        if stdout.write_all(scene.pending.as_bytes()).and_then(|()| stdout.flush()).is_err() {
            self.on_closed.cancel();
        }
        scene.pending.clear();
    }
}

/// Whether the screen is kept up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drawing {
    On,
    Off,
}

#[cfg(test)]
mod tests;
