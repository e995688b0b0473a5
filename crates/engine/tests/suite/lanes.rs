//! Lanes: the order of runs, and that a finished run leaves no state behind.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{Bench, engine};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use myclaw_config::LaneWidths;
use myclaw_engine::{Enqueue, Lane, LanePermit, LaneRequest, Lanes, RunParams};
use myclaw_session::{LockWait, SessionKey, SessionStore};
use myclaw_testkit::{Reply, Script, WireFormat};

fn request(session: &str, lane: Lane) -> LaneRequest {
    LaneRequest {
        session_key: SessionKey::for_cli("main", session),
        lane,
        widths: LaneWidths { main: 2, cron: 1, subagent: 1, nested: 1 },
    }
}

#[tokio::test]
async fn runs_of_a_session_go_one_at_a_time_in_the_order_of_arrival() {
    let lanes = Lanes::default();
    let order: Arc<Mutex<Vec<usize>>> = Arc::default();
    let running = Arc::new(AtomicUsize::new(0));
    let runs = (0..10).map(|number| {
        let (lanes, order, running) = (lanes.clone(), Arc::clone(&order), Arc::clone(&running));
        async move {
            let _permit = lanes.enter(request("same", Lane::Main)).await;
            assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0);
            order.lock().unwrap().push(number);
            tokio::task::yield_now().await;
            running.fetch_sub(1, Ordering::SeqCst);
        }
    });
    futures_util::future::join_all(runs).await;
    assert_eq!(*order.lock().unwrap(), (0..10).collect::<Vec<_>>());
    assert_eq!(lanes.in_use(), 0);
}

#[tokio::test]
async fn a_run_that_waits_for_its_session_holds_no_global_place() {
    let lanes = Lanes::default();
    let first = lanes.enter(request("busy", Lane::Main)).await;
    let mut waiting: Vec<_> = (0..5).map(|_| lanes.enter(request("busy", Lane::Main))).collect();
    assert!(waiting.iter_mut().all(|entering| entering.now_or_never().is_none()));

    let other = lanes.enter(request("other", Lane::Main)).now_or_never();
    assert!(other.is_some(), "the second place is free for another session");
    assert!(lanes.enter(request("third", Lane::Main)).now_or_never().is_none(), "the lane is full");
    assert!(lanes.enter(request("third", Lane::Cron)).now_or_never().is_some());

    drop((first, other));
    assert!(lanes.enter(request("third", Lane::Main)).now_or_never().is_some());
    drop(waiting);
    assert_eq!(lanes.in_use(), 0, "a request that is dropped leaves no state behind");
}

#[tokio::test]
async fn a_run_that_dies_frees_its_lane() {
    let bench =
        Bench::new(WireFormat::AnthropicMessages, Script::repeat(Reply::anthropic().text("ok")))
            .await;
    let engine = engine();
    for polls in 0..20 {
        let mut run = Box::pin(engine.run(bench.params("killed")));
        for _ in 0..polls {
            let _ = (&mut run).now_or_never();
            tokio::task::yield_now().await;
        }
        drop(run);
    }
    assert_eq!(engine.run(bench.params("go")).await.unwrap().reply, "ok");
}

#[tokio::test]
async fn a_session_that_another_process_runs_is_waited_for() {
    let bench =
        Bench::new(WireFormat::AnthropicMessages, Script::repeat(Reply::anthropic().text("ok")))
            .await;
    let store = SessionStore::new(bench.home.state_directory().join("sessions"));
    let params = bench.params("go");
    let held = store.open(&params.session_key, LockWait::Fail).unwrap();

    let impatient = RunParams { session_wait: std::time::Duration::ZERO, ..params.clone() };
    assert_eq!(engine().run(impatient).await.unwrap_err().class(), "session");

    let engine = engine();
    let (result, ()) = tokio::join!(engine.run(params), async {
        while bench.events_named("notice").is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        drop(held);
    });
    assert_eq!(result.unwrap().reply, "ok");
    let notice = bench.events_named("notice")[0]["message"].as_str().unwrap().to_owned();
    assert!(notice.contains("another process works"), "{notice}");
}

#[tokio::test]
async fn a_caller_may_bring_its_own_queue() {
    struct Counting(AtomicUsize);
    impl Enqueue for Counting {
        fn enter(&self, request: LaneRequest) -> BoxFuture<'_, LanePermit> {
            assert_eq!(request.lane, Lane::Cron);
            self.0.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { LanePermit::new(()) })
        }
    }
    let bench = Bench::new(WireFormat::AnthropicMessages, Reply::anthropic().text("ok")).await;
    let counting = Arc::new(Counting(AtomicUsize::new(0)));
    let enqueue: Arc<dyn Enqueue> = counting.clone();
    let params = RunParams { lane: Lane::Cron, enqueue: Some(enqueue), ..bench.params("go") };
    engine().run(params).await.unwrap();
    assert_eq!(counting.0.load(Ordering::SeqCst), 1);
}
