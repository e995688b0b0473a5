use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::sync::Notify;

use super::Apart;

/// Counts how often it is polled, and keeps the waker.
#[derive(Default)]
struct Counted {
    polls: usize,
    waker: Option<Waker>,
    is_ready: bool,
}

impl Future for Counted {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
        self.polls += 1;
        self.waker = Some(context.waker().clone());
        if self.is_ready { Poll::Ready(self.polls) } else { Poll::Pending }
    }
}

#[derive(Default)]
struct Task(AtomicUsize);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll(apart: &mut Apart<Counted>, task: &Arc<Task>) -> Poll<usize> {
    let waker = Waker::from(Arc::clone(task));
    Pin::new(apart).poll(&mut Context::from_waker(&waker))
}

#[test]
fn is_polled_only_when_it_was_woken_itself() {
    let (mut apart, task) = (Apart::new(Counted::default()), Arc::new(Task::default()));
    for _ in 0..1_000 {
        assert!(poll(&mut apart, &task).is_pending());
    }
    assert_eq!(apart.work.polls, 1, "the task was polled for other reasons");
    for round in 1..=3 {
        apart.work.waker.as_ref().expect("it was polled").wake_by_ref();
        assert_eq!(task.0.load(Ordering::SeqCst), round, "each ring wakes the task");
        assert!(poll(&mut apart, &task).is_pending());
        assert!(poll(&mut apart, &task).is_pending());
        assert_eq!(apart.work.polls, 1 + round, "one poll for each ring");
    }
}

#[test]
fn a_ring_during_a_poll_is_not_lost() {
    struct RingsItself(usize);
    impl Future for RingsItself {
        type Output = ();
        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            self.0 += 1;
            context.waker().wake_by_ref();
            if self.0 == 5 { Poll::Ready(()) } else { Poll::Pending }
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(Apart::new(RingsItself(0)));
}

#[test]
fn another_task_is_woken_after_it_has_polled() {
    let mut apart = Apart::new(Counted::default());
    let (first, second) = (Arc::new(Task::default()), Arc::new(Task::default()));
    assert!(poll(&mut apart, &first).is_pending());
    assert!(poll(&mut apart, &second).is_pending());
    assert_eq!(apart.work.polls, 2, "it learns whom to wake");
    apart.work.is_ready = true;
    apart.work.waker.as_ref().expect("it was polled").wake_by_ref();
    assert_eq!((first.0.load(Ordering::SeqCst), second.0.load(Ordering::SeqCst)), (0, 1));
    assert_eq!(poll(&mut apart, &second), Poll::Ready(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_and_signals_of_other_threads_come_through() {
    let signal = Arc::new(Notify::new());
    for _ in 0..200 {
        let sender = Arc::clone(&signal);
        tokio::spawn(async move { sender.notify_one() });
        let busy = async {
            loop {
                tokio::task::yield_now().await;
            }
        };
        let (notified, limit) =
            (pin!(signal.notified()), pin!(tokio::time::sleep(Duration::from_secs(20))));
        tokio::select! {
            biased;
            () = Apart::new(limit) => panic!("the signal was lost"),
            () = busy => unreachable!("it never ends"),
            () = Apart::new(notified) => {}
        }
    }
    let short = pin!(tokio::time::sleep(Duration::from_millis(5)));
    tokio::time::timeout(Duration::from_secs(20), Apart::new(short)).await.expect("it fires");
}
