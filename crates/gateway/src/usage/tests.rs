//! Usage in a real store.

use std::sync::Arc;

use myclaw_delivery::counters::Caller;
use myclaw_delivery::ledger::Ledger;
use myclaw_store::SqliteStore;

use super::*;

const HOUR: u64 = 60 * 60 * 1_000;
const DAY: u64 = 24 * HOUR;
/// A moment in the middle of an hour.
const NOW: u64 = 20_000 * DAY + 15 * HOUR + 1_234_567;

fn book(directory: &tempfile::TempDir) -> UsageBook {
    let store = SqliteStore::open(&directory.path().join("store.sqlite")).unwrap();
    UsageBook::new(Ledger::new(Arc::new(store)))
}

fn caller(model: &str, channel: &str, session: &str) -> Caller {
    let [model, channel, session] = [model, channel, session].map(str::to_owned);
    Caller { model, agent: "main".to_owned(), channel, session }
}

fn used(input: u64, cost: f64) -> Used {
    Used { calls: 1, input, output: 1, cost, ..Used::default() }
}

fn names(rows: &[UsageRow]) -> Vec<(&str, u64, u64)> {
    rows.iter().map(|row| (row.name.as_str(), row.used.calls, row.used.input)).collect()
}

#[tokio::test]
async fn usage_is_divided_by_hour_and_day_and_survives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let first = book(&directory);
    first.count(NOW - DAY, caller("a/one", "web", "s1"), &used(5, 0.5));
    first.count(NOW - HOUR, caller("a/one", "web", "s1"), &used(10, 0.25));
    first.count(NOW, caller("a/one", "telegram", "s2"), &used(20, 0.125));
    first.flush().await.unwrap();
    drop(first);
    let second = book(&directory);
    second.count(NOW, caller("b/two", "telegram", "s2"), &used(40, 0.0));
    let request = UsageRequest { from: Some(NOW - 3 * HOUR), ..UsageRequest::default() };

    let by_hour = UsageRequest { bucket: Bucket::Hour, ..request };
    let answer = second.answer(by_hour, NOW).await.unwrap();
    assert_eq!(answer.from, Bucket::Hour.start_of(NOW - 3 * HOUR));
    let hours: Vec<_> = answer.buckets.iter().map(|one| (one.start, names(&one.rows))).collect();
    let hour = Bucket::Hour.start_of(NOW);
    let expected =
        [(hour - HOUR, vec![("a/one", 1, 10)]), (hour, vec![("a/one", 1, 20), ("b/two", 1, 40)])];
    assert_eq!(hours, expected);
    assert_eq!(names(&answer.rows), [("b/two", 1, 40), ("a/one", 2, 30)]);
    assert_eq!((answer.total.calls, answer.total.cost), (3, 0.375));

    // The day before is a day of its own, also when only a part of it was asked for.
    let by_day = UsageRequest { from: Some(NOW - DAY), group: Group::Channel, ..request };
    let answer = second.answer(by_day, NOW).await.unwrap();
    let days: Vec<_> = answer.buckets.iter().map(|one| (one.start, names(&one.rows))).collect();
    let day = Bucket::Day.start_of(NOW);
    let expected =
        [(day - DAY, vec![("web", 1, 5)]), (day, vec![("telegram", 2, 60), ("web", 1, 10)])];
    assert_eq!(days, expected);
}

#[tokio::test]
async fn a_record_has_a_limit_and_loses_no_call() {
    let directory = tempfile::tempdir().unwrap();
    let book = book(&directory);
    for number in 0..1_000 {
        let session = format!("session-{number:04}");
        let model = format!("a/{}", number % 7);
        book.count(NOW, caller(&model, "web", &session), &used(1, 0.0));
        if number % 100 == 0 {
            book.flush().await.unwrap();
        }
    }
    // More models than there is room for.
    for number in 0..1_000 {
        book.count(NOW, caller(&format!("b/{number:04}"), "web", "s"), &used(1, 0.0));
        if number % 100 == 0 {
            book.flush().await.unwrap();
        }
    }
    for bucket in [Bucket::Hour, Bucket::Day] {
        let request = UsageRequest { bucket, ..UsageRequest::default() };
        let answer = book.answer(request, NOW).await.unwrap();
        assert_eq!(answer.total.calls, 2_000);
        assert!(answer.rows.len() <= 51, "{}", answer.rows.len());
        let page = book.page(bucket, bucket.start_of(NOW)).await.unwrap();
        let most = bucket.most_rows() + bucket.most_rows() / 4 + 1;
        assert!(page.rows.len() <= most, "{}", page.rows.len());
        let of_buckets: u64 =
            answer.buckets.iter().flat_map(|one| &one.rows).map(|row| row.used.calls).sum();
        assert_eq!(of_buckets, 2_000);
    }
}

#[tokio::test]
async fn times_that_cannot_be_used_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let book = book(&directory);
    let ask = |from, to, bucket| {
        let request =
            UsageRequest { from: Some(from), to: Some(to), bucket, ..UsageRequest::default() };
        book.answer(request, NOW)
    };
    let backwards = ask(NOW, NOW - DAY, Bucket::Day).await.unwrap_err().to_string();
    assert!(backwards.contains("`from` is after `to`"), "{backwards}");
    let long = ask(NOW - 40 * DAY, NOW, Bucket::Hour).await.unwrap_err().to_string();
    assert!(long.contains("kept for 35 days"), "{long}");
    ask(NOW - 35 * DAY, NOW, Bucket::Hour).await.unwrap();
    ask(NOW - 400 * DAY, NOW, Bucket::Day).await.unwrap();
}
