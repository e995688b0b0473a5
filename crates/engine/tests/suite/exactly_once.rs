//! The invariant of the inbox: an acknowledged message is in the session exactly once, whichever run or sender is
//! dropped at whatever point. `MYCLAW_CASES` sets the number of random schedules.

use crate::common::{Bench, run_agent};
use myclaw_engine::{RunError, RunParams, SessionInbox, WhenIdle};
use myclaw_llm::ContentBlock;
use myclaw_session::{EntryId, QueuedKind};
use myclaw_testkit::{
    Random, RecordedRequest, Reply, Script, Step, WireFormat, number_from, validate_pairing,
};
use serde_json::json;

/// Polls `work` at most `polls` times, then drops it wherever it is.
async fn killed_after<T>(polls: u64, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            return std::task::Poll::Ready(None);
        }
        left -= 1;
        work.as_mut().poll(context).map(Some)
    })
    .await
}

/// Works with two tools, then answers.
fn some_work(request: &RecordedRequest, number: usize) -> Step {
    let is_answer = request.messages().last().is_some_and(|message| {
        message["content"].as_array().is_some_and(|blocks| blocks[0]["type"] == "tool_result")
    });
    match is_answer {
        true => Reply::anthropic().text(format!("answer {number}")).step(),
        false => Reply::anthropic()
            .tool_call(format!("a_{number}"), "echo", json!({"text": "one"}))
            .tool_call(format!("b_{number}"), "echo", json!({"text": "two"}))
            .step(),
    }
}

#[tokio::test]
async fn an_acknowledged_message_is_taken_once_whatever_is_killed() {
    const KINDS: [QueuedKind; 3] = [QueuedKind::Steer, QueuedKind::FollowUp, QueuedKind::Collect];
    let cases = number_from("MYCLAW_CASES").unwrap_or(12);
    for seed in 0..cases {
        let mut random = Random::new(seed);
        let bench = Bench::new(WireFormat::AnthropicMessages, Script::answer_with(some_work)).await;
        let inbox = SessionInbox::of_run(&bench.params(""));
        let mut acknowledged: Vec<(EntryId, String)> = Vec::new();
        for round in 0..8 {
            let is_new = random.below(2) == 0;
            let mut params = bench.params(&format!("run {round}"));
            if !is_new {
                params.user_message.clear();
            }
            let run = killed_after(random.below(60), run_agent(params));
            let (words, pause) = (random.below(4), random.below(5));
            let say = async {
                let mut said = Vec::new();
                for number in 0..words {
                    let words = format!("seed {seed} round {round} number {number}.");
                    let kind = KINDS[(random.below(3)) as usize];
                    let id = inbox
                        .send(kind, vec![ContentBlock::text(&words)], WhenIdle::Keep)
                        .await
                        .unwrap();
                    said.push((id, words));
                    for _ in 0..pause {
                        tokio::task::yield_now().await;
                    }
                }
                said
            };
            let (_, said) = tokio::join!(run, say);
            acknowledged.extend(said);
        }
        let go_on = RunParams { user_message: Vec::new(), ..bench.params("") };
        match run_agent(go_on).await {
            Ok(_) | Err(RunError::NothingToDo) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }

        assert!(inbox.pending().await.unwrap().is_empty(), "seed {seed}");
        if acknowledged.is_empty() {
            continue;
        }
        let rows = bench.rows();
        for (id, words) in &acknowledged {
            let taken = rows.iter().filter(|row| {
                row["meta"]["queuedIds"].as_array().is_some_and(|ids| ids.contains(&json!(id)))
            });
            let saying = rows.iter().filter(|row| row["content"].as_str().unwrap().contains(words));
            assert_eq!((taken.count(), saying.count()), (1, 1), "seed {seed}: {words}");
        }
        for request in bench.server.requests() {
            validate_pairing(&request).unwrap();
        }
        assert_eq!(rows.last().unwrap()["role"], "assistant", "seed {seed}: all was answered");
    }
}
