//! A store of this program's own: the totals of the day, which limits are compared with, by the customer who pays.
//! `cargo run --example store`.

use std::collections::HashMap;
use std::process::{ExitCode, Termination};
use std::sync::{Arc, Mutex, PoisonError};

use myclaw_agent::config::{Environment, load_or_default};
use myclaw_agent::sessions::{SessionError, SessionKey, Spending, Spent};
use myclaw_agent::{RunAgentParams, Stores, helper_main, run_agent};

fn main() -> ExitCode {
    // In sandboxed sessions this program is its own helper process.
    if let Some(end) = helper_main() {
        return end.report();
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let config = load_or_default(&Environment::from_process())?.config;
    let book = Book::default();
    let memory = Stores::in_memory(std::env::temp_dir().join("myclaw-example-store"));
    for customer in ["ann", "bob", "ann"] {
        let spending = Arc::new(OfCustomer { customer, book: book.clone() });
        let stores = Stores { spending, ..memory.clone() };
        let key = SessionKey::for_cli("main", customer);
        let mut params = RunAgentParams::new(key, "Say hello", config.clone());
        params.model = Some("builtin/demo".to_owned());
        params.stores = Some(stores);
        params.system_prompt = Some("You are brief.".to_owned());
        params.working_directory = Some(std::env::current_dir()?);
        run_agent(params).await?;
    }
    let book = book.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut totals: Vec<_> = book.iter().collect();
    totals.sort_by_key(|((customer, _), _)| customer.clone());
    for ((customer, _), spent) in totals {
        println!("{customer}: {} tokens", spent.tokens);
    }
    Ok(())
}

/// The totals by customer and day. A real one is a table of a database.
#[derive(Debug, Clone, Default)]
struct Book(Arc<Mutex<HashMap<(String, String), Spent>>>);

/// The totals of one customer.
#[derive(Debug)]
struct OfCustomer {
    customer: &'static str,
    book: Book,
}

impl Spending for OfCustomer {
    fn of(&self, day: &str) -> Result<Spent, SessionError> {
        self.add(day, Spent::default())
    }

    fn add(&self, day: &str, used: Spent) -> Result<Spent, SessionError> {
        let mut book = self.book.0.lock().unwrap_or_else(PoisonError::into_inner);
        let total = book.entry((self.customer.to_owned(), day.to_owned())).or_default();
        total.tokens += used.tokens;
        total.micro_dollars += used.micro_dollars;
        Ok(*total)
    }

    fn damage(&self) -> Option<(String, String)> {
        None
    }
}
