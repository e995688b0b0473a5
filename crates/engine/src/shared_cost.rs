//! What a run and its sub-agents cost together, for a limit that bounds them all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use myclaw_session::{SessionError, Spending, Spent};

/// What several runs of this process have cost together. Clones count the same.
#[derive(Debug, Clone, Default)]
pub struct SharedCost(Arc<AtomicU64>);

impl SharedCost {
    /// US dollars so far.
    pub fn dollars(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64 / 1e6
    }

    /// The same totals of the day; what is added to them counts here too.
    pub fn counting(&self, totals: Arc<dyn Spending>) -> Arc<dyn Spending> {
        Arc::new(Counting { totals, cost: self.clone() })
    }
}

#[derive(Debug)]
struct Counting {
    totals: Arc<dyn Spending>,
    cost: SharedCost,
}

impl Counting {
    fn count(&self, used: Spent) {
        self.cost.0.fetch_add(used.micro_dollars, Ordering::Relaxed);
    }
}

impl Spending for Counting {
    fn of(&self, day: &str) -> Result<Spent, SessionError> {
        self.totals.of(day)
    }

    fn add(&self, day: &str, used: Spent) -> Result<Spent, SessionError> {
        // What cannot be stored is added once more with the next usage.
        let stored = self.totals.add(day, used)?;
        self.count(used);
        Ok(stored)
    }

    fn note(&self, day: &str, used: Spent) -> Result<(), SessionError> {
        self.totals.note(day, used)?;
        self.count(used);
        Ok(())
    }

    fn add_at_once(&self, day: &str, used: Spent) -> Result<Option<Spent>, SessionError> {
        let stored = self.totals.add_at_once(day, used)?;
        if stored.is_some() {
            self.count(used);
        }
        Ok(stored)
    }

    fn damage(&self) -> Option<(String, String)> {
        self.totals.damage()
    }
}
