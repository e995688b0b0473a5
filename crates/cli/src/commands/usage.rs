//! `myclaw usage`: what models have used in sessions of the gateway.

use myclaw_agent::SessionOptions;
use myclaw_gateway::GatewayError;
use myclaw_gateway::usage::{Bucket, UsageAnswer, UsageRequest, Used, usage};

use crate::args::UsageArgs;
use crate::commands::gateway::failure;
use myclaw_front::exit::CliError;
use myclaw_front::home::{find_home, load_session};
use myclaw_front::print::{Printer, columns};
use myclaw_front::runtime;
use myclaw_front::time::now_ms;

/// Runs the command.
pub(crate) fn run(args: &UsageArgs) -> Result<(), CliError> {
    let session = load_session(find_home()?, &SessionOptions::default())?;
    let age = u64::try_from(args.since.0.as_millis()).unwrap_or(u64::MAX);
    let request = UsageRequest {
        from: Some(now_ms().saturating_sub(age)),
        to: None,
        group: args.by.group(),
        bucket: Bucket::Day,
    };
    let asking = usage(&session.home, &session.config, request);
    let answer = runtime::block_on(asking)?.map_err(|error| match error {
        GatewayError::Unusable(_) => CliError::usage(error.to_string()),
        error => failure(error),
    })?;
    let mut printer = Printer::stdout();
    if args.json {
        printer.json(&answer)?;
    } else {
        printer.safe_lines(lines(&answer))?;
    }
    printer.finish()
}

fn lines(answer: &UsageAnswer) -> Vec<String> {
    if answer.rows.is_empty() {
        return vec!["no model was called by the gateway in this time".to_owned()];
    }
    let head = [answer.group.as_str(), "calls", "input", "cached", "output", "cost"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(answer.rows.iter().map(|row| line(&row.name, &row.used)));
    if answer.rows.len() > 1 {
        rows.push(line("total", &answer.total));
    }
    let mut lines = columns(&rows);
    if answer.total.unpriced_calls > 0 {
        let calls = answer.total.unpriced_calls;
        lines.push(format!("the cost of {calls} calls is not known, and not in the sums"));
    }
    lines
}

fn line(name: &str, used: &Used) -> Vec<String> {
    vec![
        name.to_owned(),
        used.calls.to_string(),
        (used.input + used.cache_read + used.cache_write).to_string(),
        used.cache_read.to_string(),
        used.output.to_string(),
        cost(used),
    ]
}

/// What is known of the cost.
fn cost(used: &Used) -> String {
    match used.unpriced_calls {
        0 => format!("${:.4}", used.cost),
        unpriced if unpriced == used.calls => "unknown".to_owned(),
        _ => format!("${:.4} and unknown", used.cost),
    }
}
