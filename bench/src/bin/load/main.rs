//! Puts a gateway under load, and the bare relay where there is something to compare, and prints a table. It reports
//! and never judges: the exit code is 0 whatever the figures are. Everything is bounded in count and time, and nothing
//! leaves the machine. See `docs/develop/benchmarks.md`.
#![forbid(unsafe_code)]

mod cluster;
mod figures;
mod messages;
mod model;
mod options;
mod server;
mod sessions;
mod steady;
mod stream;
mod wire;

use std::error::Error;
use std::time::Duration;

use figures::Table;
use options::{Options, Part};
use stream::Streams;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return;
        }
    };
    let mut table = Table::default();
    for part in &options.parts {
        if let Err(error) = measure(*part, &options, &mut table).await {
            eprintln!("{part:?} could not be measured: {error}");
        }
    }
    print!("{}", table.text());
}

async fn measure(part: Part, options: &Options, table: &mut Table) -> Fallible<()> {
    let Options { myclaw, relay, .. } = options;
    match part {
        Part::Stream => {
            let window = Duration::from_secs(options.scaled(10));
            let many = Streams { turns: options.scaled(1_000), rate: 10, window };
            stream::compare(table, many, myclaw, relay).await?;
            let fast = Streams { turns: 50, rate: 50, window };
            stream::compare(table, fast, myclaw, relay).await
        }
        Part::Sessions => {
            sessions::measure(table, myclaw, options.scaled(10_000), options.scaled(1_000)).await
        }
        Part::Accept => messages::acceptance(table, myclaw).await,
        Part::Messages => {
            let rate = options.rate;
            let seconds = options.scaled(60);
            messages::compare(table, myclaw, rate, seconds).await
        }
        Part::Cluster => cluster::measure(table, options).await,
        Part::Steady => steady::measure(table, myclaw, options.minutes).await,
    }
}
