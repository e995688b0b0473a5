//! What to measure, and how often.

use std::path::PathBuf;

const USAGE: &str = "\
usage: myclaw-bench [--runs N] [--quick] [--myclaw PATH] [--bare PATH]
  --runs N       timed runs of each program a scenario (default 11)
  --quick        3 runs, and sessions of a tenth of the length: to see that it works
  --myclaw PATH  the binary to measure (default: myclaw beside this program)
  --bare PATH    the bare loop (default: bare beside this program)";

/// Default number of timed runs: odd, so that the median is a run that happened.
const DEFAULT_RUNS: usize = 11;

/// Most runs: the whole suite must end within an hour on a slow machine.
const MOST_RUNS: usize = 200;

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) runs: usize,
    pub(crate) myclaw: PathBuf,
    pub(crate) bare: PathBuf,
    /// Deltas of the long stream.
    pub(crate) deltas: usize,
    /// Messages of the long and of the medium session.
    pub(crate) long_session: usize,
    pub(crate) medium_session: usize,
}

impl Options {
    /// Reads the arguments; the error is what to print instead of measuring.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            runs: DEFAULT_RUNS,
            myclaw: beside_this_program("myclaw"),
            bare: beside_this_program("bare"),
            deltas: 20_000,
            long_session: 100_000,
            medium_session: 5_000,
        };
        while let Some(argument) = arguments.next() {
            let mut value =
                || arguments.next().ok_or_else(|| format!("{argument} needs a value\n{USAGE}"));
            match argument.as_str() {
                "--runs" => {
                    let runs: usize =
                        value()?.parse().map_err(|_| format!("--runs takes a number\n{USAGE}"))?;
                    options.runs = runs.clamp(1, MOST_RUNS);
                }
                "--quick" => {
                    options.runs = 3;
                    options.long_session = 10_000;
                    options.medium_session = 500;
                }
                "--myclaw" => options.myclaw = value()?.into(),
                "--bare" => options.bare = value()?.into(),
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(options)
    }
}

fn beside_this_program(name: &str) -> PathBuf {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::current_exe()
        .map_or_else(|_| PathBuf::from(&name), |program| program.with_file_name(&name))
}
