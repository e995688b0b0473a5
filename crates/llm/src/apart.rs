//! Waiting for something rare during work that is polled often.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// A future that is polled only after it was woken itself. A stream of thousands of events wakes the task around it for
/// each of them; time limits and aborts that are waited for meanwhile are not asked each time.
#[derive(Debug)]
pub struct Apart<F> {
    work: F,
    /// Rings the bell, which wakes the task that polled last.
    waker: Option<(Arc<Bell>, Waker)>,
}

/// Notes that the future was woken.
#[derive(Debug)]
struct Bell {
    has_rung: AtomicBool,
    task: Waker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_rung.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

impl<F> Apart<F> {
    /// `work`, which is polled once at the beginning.
    pub fn new(work: F) -> Self {
        Self { work, waker: None }
    }

    /// The future, which is polled once more after this.
    pub(crate) fn work(&mut self) -> &mut F {
        self.waker = None;
        &mut self.work
    }
}

impl<F: Future + Unpin> Future for Apart<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let known = this.waker.take().filter(|(bell, _)| bell.task.will_wake(context.waker()));
        let (bell, waker) = this.waker.insert(known.unwrap_or_else(|| {
            let task = context.waker().clone();
            let bell = Arc::new(Bell { has_rung: AtomicBool::new(true), task });
            (Arc::clone(&bell), Waker::from(bell))
        }));
        // Another ring after this leads to another poll, so none is lost.
        if !bell.has_rung.load(Ordering::Acquire) || !bell.has_rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        Pin::new(&mut this.work).poll(&mut Context::from_waker(waker))
    }
}

#[cfg(test)]
mod tests;
