//! Measures the `myclaw` binary and the bare loop, both against a scripted model server in this process, and prints
//! a table. It reports and never judges: the exit code is 0 whatever the figures are. See `docs/develop/benchmarks.md`.
#![forbid(unsafe_code)]

mod contestant;
mod options;
mod report;
mod run;
mod scenario;
mod suite;
mod transcript;

use std::process::ExitCode;

use options::Options;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::SUCCESS;
        }
    };
    match suite::measure(&options) {
        Ok(rows) => print!("{}", report::table(&rows, &options)),
        Err(error) => eprintln!("the benchmark could not run: {error}"),
    }
    ExitCode::SUCCESS
}
