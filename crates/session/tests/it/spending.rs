//! The conformance suite of the totals of the day: in a file and in memory alike.

use std::sync::Arc;

use myclaw_session::{DaySpending, MemorySpending, Spending, Spent};

fn of_each(check: impl Fn(&Arc<dyn Spending>)) {
    let home = tempfile::tempdir().unwrap();
    check(&(Arc::new(DaySpending::new(home.path().join("state/usage.json"))) as Arc<dyn Spending>));
    check(&(Arc::new(MemorySpending::default()) as Arc<dyn Spending>));
}

fn spent(tokens: u64, micro_dollars: u64) -> Spent {
    Spent { tokens, micro_dollars }
}

#[test]
fn usage_adds_up_within_a_day_and_begins_anew_on_the_next() {
    of_each(|spending| {
        assert_eq!(spending.of("2026-01-31").unwrap(), Spent::default());
        assert_eq!(spending.add("2026-01-31", spent(7, 3)).unwrap(), spent(7, 3));
        assert_eq!(spending.add("2026-01-31", spent(1, 0)).unwrap(), spent(8, 3));
        assert_eq!(spending.of("2026-01-31").unwrap(), spent(8, 3));
        assert_eq!(spending.of("2026-02-01").unwrap(), Spent::default());
        assert_eq!(spending.add("2026-02-01", spent(2, 2)).unwrap(), spent(2, 2));
        assert_eq!(spending.damage(), None);
    });
}

#[test]
fn a_clock_that_jumps_resets_no_budget_and_blocks_no_day() {
    of_each(|spending| {
        spending.add("2026-02-01", spent(5, 5)).unwrap();
        assert_eq!(spending.of("2026-01-31").unwrap(), spent(5, 5), "back by a day");
        assert_eq!(spending.add("2026-01-31", spent(1, 1)).unwrap(), spent(6, 6));
        spending.add("2099-01-01", spent(1, 1)).unwrap();
        assert_eq!(spending.of("2026-02-01").unwrap(), spent(1, 1), "ahead for a moment");
        assert_eq!(spending.of("2026-02-02").unwrap(), Spent::default());
    });
}

#[test]
fn totals_end_at_the_largest_number() {
    of_each(|spending| {
        spending.add("2026-01-31", spent(u64::MAX, 1)).unwrap();
        assert_eq!(spending.add("2026-01-31", spent(9, 1)).unwrap(), spent(u64::MAX, 2));
    });
}

#[test]
fn runs_that_add_at_the_same_time_are_all_counted() {
    of_each(|spending| {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        spending.add("2026-01-31", spent(1, 2)).unwrap();
                    }
                });
            }
        });
        assert_eq!(spending.of("2026-01-31").unwrap(), spent(400, 800));
    });
}
