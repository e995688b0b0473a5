//! What to measure.

use std::path::PathBuf;

const USAGE: &str = "\
usage: load [PART…] [--quick] [--minutes N] [--rate N] [--myclaw PATH] [--relay PATH]
  PART           stream, sessions, accept, messages, cluster or steady (default: the first four)
  --quick        a tenth of the load and of the time: to see that it works
  --minutes N    how long steady goes on (default 30)
  --rate N       messages a second of the part messages (default 500)
  --myclaw PATH  the binary to measure (default: myclaw beside this program)
  --relay PATH   the bare relay (default: relay beside this program)";

/// Longest steady load, in minutes.
const MOST_MINUTES: u64 = 24 * 60;
/// Most messages a second.
const MOST_RATE: u64 = 10_000;

/// A part of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Stream,
    Sessions,
    Accept,
    Messages,
    Cluster,
    Steady,
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) parts: Vec<Part>,
    pub(crate) myclaw: PathBuf,
    pub(crate) relay: PathBuf,
    pub(crate) minutes: u64,
    pub(crate) rate: u64,
    /// By what everything is divided.
    divisor: u64,
}

impl Options {
    /// Reads the arguments; the error is what to print instead of measuring.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let beside = |name: &str| {
            std::env::current_exe().map_or_else(|_| name.into(), |own| own.with_file_name(name))
        };
        let (myclaw, relay) = (beside("myclaw"), beside("relay"));
        let mut options =
            Self { parts: Vec::new(), myclaw, relay, minutes: 30, rate: 500, divisor: 1 };
        while let Some(argument) = arguments.next() {
            let mut value =
                || arguments.next().ok_or_else(|| format!("{argument} needs a value\n{USAGE}"));
            let number = |text: String, most: u64| {
                let number: Result<u64, _> = text.parse();
                number.map_err(|_| USAGE.to_owned()).map(|number| number.clamp(1, most))
            };
            match argument.as_str() {
                "stream" => options.parts.push(Part::Stream),
                "sessions" => options.parts.push(Part::Sessions),
                "accept" => options.parts.push(Part::Accept),
                "messages" => options.parts.push(Part::Messages),
                "cluster" => options.parts.push(Part::Cluster),
                "steady" => options.parts.push(Part::Steady),
                "--quick" => options.divisor = 10,
                "--minutes" => options.minutes = number(value()?, MOST_MINUTES)?,
                "--rate" => options.rate = number(value()?, MOST_RATE)?,
                "--myclaw" => options.myclaw = value()?.into(),
                "--relay" => options.relay = value()?.into(),
                _ => return Err(USAGE.to_owned()),
            }
        }
        if options.parts.is_empty() {
            options.parts = vec![Part::Stream, Part::Sessions, Part::Accept, Part::Messages];
        }
        Ok(options)
    }

    /// A figure of the whole load, made smaller for a quick one.
    pub(crate) fn scaled(&self, figure: u64) -> u64 {
        (figure / self.divisor).max(2)
    }
}
