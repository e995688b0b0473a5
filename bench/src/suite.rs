//! The measurements, one after the other.

use std::io;
use std::time::Duration;

use crate::contestant::{Contestant, Program};
use crate::options::Options;
use crate::report::{Aim, Row, Samples, Unit};
use crate::run::{Observation, Purpose, run};
use crate::scenario::{Arrival, History, Scenario};
use crate::transcript;

/// Runs for peak memory: it varies little.
const MEMORY_RUNS: usize = 3;

const MEGABYTE: f64 = 1e6;

/// What is said of a program that was not built.
const MISSING: &str = "the binary is missing";

/// Both programs; each is absent if its binary is.
struct Contestants {
    myclaw: Option<Contestant>,
    bare: Option<Contestant>,
}

/// What the runs of one scenario showed, of each program.
struct Compared {
    myclaw: Result<Vec<Observation>, String>,
    bare: Result<Vec<Observation>, String>,
}

/// Runs every scenario and gives the table's rows.
///
/// # Errors
/// When transcripts cannot be written. A program that fails is reported in its rows instead.
pub(crate) fn measure(options: &Options) -> io::Result<Vec<Row>> {
    let contestants = Contestants {
        myclaw: options.myclaw.exists().then(|| Contestant::new(Program::Myclaw, &options.myclaw)),
        bare: options.bare.exists().then(|| Contestant::new(Program::Bare, &options.bare)),
    };
    let mut rows = Vec::new();
    let plain = plain_turn(&contestants, options, &mut rows)?;
    turn_with_tools(&contestants, options, &mut rows)?;
    turn_with_reads(&contestants, options, &mut rows)?;
    stream(&contestants, options, Arrival::OneByOne, &plain, &mut rows)?;
    stream(&contestants, options, Arrival::InBursts, &plain, &mut rows)?;
    session(&contestants, options, options.medium_session, History::Whole, &mut rows)?;
    session(&contestants, options, options.long_session, History::Whole, &mut rows)?;
    session(&contestants, options, options.long_session, History::Compacted, &mut rows)?;
    let size = std::fs::metadata(&options.myclaw).map(|file| file.len() as f64 / MEGABYTE);
    let size = size.map(|size| Samples::from_iter([size])).map_err(|_| MISSING.to_owned());
    rows.push(Row::new(
        "release binary",
        Unit::Megabytes,
        size,
        Err(String::new()),
        Aim::Below(25.0),
    ));
    Ok(rows)
}

fn plain_turn(
    contestants: &Contestants,
    options: &Options,
    rows: &mut Vec<Row>,
) -> io::Result<Compared> {
    let scenario = Scenario::Plain;
    let timed = contestants.compare(scenario, Purpose::Time, options.runs)?;
    rows.push(timed.row(
        "process start to first request",
        Unit::Milliseconds,
        Aim::Ratio(3.0),
        first_request,
    ));
    rows.push(timed.row("plain turn, wall", Unit::Milliseconds, Aim::None, wall));
    rows.push(timed.row("first request's body", Unit::Kilobytes, Aim::Below(8.0), body_kilobytes));
    let memory = contestants.compare(scenario, Purpose::Memory, MEMORY_RUNS)?;
    rows.push(memory.row("plain turn, peak memory", Unit::Megabytes, Aim::Below(15.0), peak));
    Ok(timed)
}

fn turn_with_tools(
    contestants: &Contestants,
    options: &Options,
    rows: &mut Vec<Row>,
) -> io::Result<()> {
    let timed = contestants.compare(Scenario::Tools, Purpose::Time, options.runs)?;
    let (name, unit) = ("gap around a trivial tool", Unit::Milliseconds);
    rows.push(timed.row(name, unit, Aim::Ratio(1.2), median_gap));
    rows.push(timed.row(
        "connections of a turn with tools",
        Unit::Count,
        Aim::Exactly(1.0),
        |run| Some(run.connections as f64),
    ));
    let memory = contestants.compare(Scenario::Tools, Purpose::Memory, MEMORY_RUNS)?;
    rows.push(memory.row("turn with tools, peak memory", Unit::Megabytes, Aim::Below(15.0), peak));
    Ok(())
}

fn turn_with_reads(
    contestants: &Contestants,
    options: &Options,
    rows: &mut Vec<Row>,
) -> io::Result<()> {
    let timed = contestants.compare(Scenario::Reads, Purpose::Time, options.runs)?;
    let (name, unit) = ("gap around a read of a file of 2 MB", Unit::Milliseconds);
    rows.push(timed.row(name, unit, Aim::Ratio(1.2), median_gap));
    Ok(())
}

fn stream(
    contestants: &Contestants,
    options: &Options,
    arrival: Arrival,
    plain: &Compared,
    rows: &mut Vec<Row>,
) -> io::Result<()> {
    let scenario = Scenario::Stream { deltas: options.deltas, arrival };
    let how = match arrival {
        Arrival::OneByOne => "one by one",
        Arrival::InBursts => "in bursts",
    };
    let timed = contestants.compare(scenario, Purpose::Time, options.runs)?;
    // What a turn costs without the stream is no cost of the deltas.
    let per_delta = |runs: &Result<Vec<Observation>, String>,
                     plain: &Result<Vec<Observation>, String>| {
        let plain: Samples =
            plain.as_ref().map_err(Clone::clone)?.iter().map(|run| run.cpu.as_secs_f64()).collect();
        let base = plain.median().unwrap_or_default();
        let runs = runs.as_ref().map_err(Clone::clone)?.iter();
        Ok(runs
            .map(|run| (run.cpu.as_secs_f64() - base).max(0.0) * 1e6 / options.deltas as f64)
            .collect())
    };
    rows.push(Row::new(
        &format!("CPU of a streamed delta, {how}"),
        Unit::Microseconds,
        per_delta(&timed.myclaw, &plain.myclaw),
        per_delta(&timed.bare, &plain.bare),
        Aim::Ratio(match arrival {
            Arrival::OneByOne => 1.3,
            Arrival::InBursts => 2.0,
        }),
    ));
    let name = format!("{} deltas {how}", grouped(options.deltas));
    rows.push(timed.row(&format!("{name}, wall"), Unit::Milliseconds, Aim::None, wall));
    let memory = contestants.compare(scenario, Purpose::Memory, MEMORY_RUNS)?;
    rows.push(memory.row(&format!("{name}, peak memory"), Unit::Megabytes, Aim::Below(15.0), peak));
    Ok(())
}

fn session(
    contestants: &Contestants,
    options: &Options,
    messages: usize,
    history: History,
    rows: &mut Vec<Row>,
) -> io::Result<()> {
    let mut length = 0;
    for contestant in [&contestants.myclaw, &contestants.bare].into_iter().flatten() {
        contestant.forget()?;
        length = transcript::write(&contestant.transcript(), messages, history)?;
    }
    let scenario = Scenario::Session { messages, history, transcript: length };
    let name = match history {
        History::Whole => format!("session of {} messages", grouped(messages)),
        History::Compacted => format!("the same of {}, compacted", grouped(messages)),
    };
    let timed = contestants.compare(scenario, Purpose::Time, options.runs)?;
    rows.push(timed.row(
        &format!("{name}, start to first request"),
        Unit::Milliseconds,
        Aim::None,
        first_request,
    ));
    rows.push(timed.row(&format!("{name}, wall"), Unit::Milliseconds, Aim::None, wall));
    rows.push(timed.row(&format!("{name}, body sent"), Unit::Kilobytes, Aim::None, body_kilobytes));
    let calls = |run: &Observation| Some(run.calls as f64);
    rows.push(timed.row(&format!("{name}, model calls"), Unit::Count, Aim::None, calls));
    let memory = contestants.compare(scenario, Purpose::Memory, MEMORY_RUNS)?;
    rows.push(memory.row(&format!("{name}, peak memory"), Unit::Megabytes, Aim::Below(40.0), peak));
    Ok(())
}

impl Contestants {
    /// Runs a scenario `runs` times with each program in turn, after one run of each that does not count.
    fn compare(&self, scenario: Scenario, purpose: Purpose, runs: usize) -> io::Result<Compared> {
        eprintln!("{} ({runs} runs, {purpose:?})", scenario.name());
        let missing = || Err(MISSING.to_owned());
        let mut compared = Compared {
            myclaw: if self.myclaw.is_some() { Ok(Vec::new()) } else { missing() },
            bare: if self.bare.is_some() { Ok(Vec::new()) } else { missing() },
        };
        for number in 0..=runs {
            let mut turn = [(&self.myclaw, &mut compared.myclaw), (&self.bare, &mut compared.bare)];
            // The order alternates, so that a machine that slows down slows both.
            if number % 2 == 1 {
                turn.reverse();
            }
            for (contestant, observed) in turn {
                let (Some(contestant), Ok(observations)) = (contestant, &mut *observed) else {
                    continue;
                };
                match run(contestant, scenario, purpose) {
                    Ok(_warm_up) if number == 0 => {}
                    Ok(observation) => observations.push(observation),
                    Err(error) => *observed = Err(error.to_string()),
                }
            }
        }
        Ok(compared)
    }
}

impl Compared {
    fn row(
        &self,
        name: &str,
        unit: Unit,
        aim: Aim,
        figure: impl Fn(&Observation) -> Option<f64>,
    ) -> Row {
        let samples = |runs: &Result<Vec<Observation>, String>| {
            Ok(runs.as_ref().map_err(Clone::clone)?.iter().filter_map(&figure).collect())
        };
        Row::new(name, unit, samples(&self.myclaw), samples(&self.bare), aim)
    }
}

fn first_request(run: &Observation) -> Option<f64> {
    Some(milliseconds(run.first_request))
}

fn median_gap(run: &Observation) -> Option<f64> {
    let gaps: Samples = run.gaps.iter().map(|gap| milliseconds(*gap)).collect();
    gaps.median()
}

fn wall(run: &Observation) -> Option<f64> {
    Some(milliseconds(run.wall))
}

fn body_kilobytes(run: &Observation) -> Option<f64> {
    Some(run.first_body as f64 / 1e3)
}

fn peak(run: &Observation) -> Option<f64> {
    Some(run.peak? as f64 / MEGABYTE)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// `100000` as `100,000`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
