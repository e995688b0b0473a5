//! `myclaw gateway link`: a link that signs the owner in once.

use myclaw_agent::SessionOptions;
use myclaw_front::exit::CliError;
use myclaw_front::home::{find_home, load_session};
use myclaw_front::print::{Printer, note};
use myclaw_front::runtime;
use myclaw_gateway::new_link;
use serde_json::Value;

use super::failure;
use crate::args::LinkArgs;

/// Modules of the light edge that a camera needs.
const EDGE: usize = 4;

pub(super) fn link(args: &LinkArgs) -> Result<(), CliError> {
    let session = load_session(find_home()?, &SessionOptions::default())?;
    let made = runtime::block_on(new_link(&session.home, &session.config))?.map_err(failure)?;
    let mut printer = Printer::stdout();
    if args.json {
        printer.json(&made)?;
        return printer.finish();
    }
    let links: Vec<&str> = texts(&made["links"]).collect();
    printer.safe_lines(&links)?;
    if args.qr {
        printer.safe_lines(drawn(&texts(&made["code"]).collect::<Vec<_>>()))?;
        if links.len() < 2 {
            note(
                "the code leads to this machine; for a phone, name an address that it reaches in gateway.allowedHosts",
            );
        }
    }
    note("the link works once and for ten minutes; who opens it may do everything here");
    printer.finish()
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// A QR code for terminals with light text on a dark ground, two rows of it in each line.
pub(in crate::commands) fn drawn(rows: &[&str]) -> Vec<String> {
    let is_dark = |x: usize, y: usize| {
        let row = y.checked_sub(EDGE).and_then(|y| rows.get(y));
        x.checked_sub(EDGE).and_then(|x| row?.as_bytes().get(x)) == Some(&b'1')
    };
    let line = |y: usize| {
        let column = |x: usize| match (is_dark(x, y), is_dark(x, y + 1)) {
            (false, false) => '█',
            (false, true) => '▀',
            (true, false) => '▄',
            (true, true) => ' ',
        };
        (0..rows.len() + 2 * EDGE).map(column).collect()
    };
    (0..rows.len() + 2 * EDGE).step_by(2).map(line).collect()
}
