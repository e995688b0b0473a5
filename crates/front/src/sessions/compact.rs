//! `myclaw sessions compact`, and the messages about compactions for all commands.

use std::sync::Arc;

use myclaw_agent::{
    Driver, Foreground, Home, Session, SessionConfig, SessionOptions, compacted, engine,
};
use myclaw_config::load_or_default;
use myclaw_engine::{AgentRunEvent, CompactionOutcome, CompactionReport, EventCallback};
use myclaw_session::SessionKey;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::Sessions;
use crate::args::{CompactArgs, SessionArgs};
use crate::exit::CliError;
use crate::home::load_session;
use crate::interrupt::Interrupts;
use crate::model::announce;
use crate::print::{Printer, note};
use crate::report::Verbosity;
use crate::runtime;

/// The output of `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    session_key: &'a str,
    outcome: CompactionOutcome,
    #[serde(flatten)]
    report: CompactionReport,
    /// The new summary, if there is one.
    summary: Option<String>,
}

/// Replaces the older messages of a session with a summary, and prints the result.
pub fn run(args: &CompactArgs, sessions: &Sessions, home: Home) -> Result<(), CliError> {
    let key = sessions.find(&args.name)?;
    // Reports a missing transcript with the usual message.
    sessions.reader(&key)?;
    let session = SessionArgs {
        session: Some(key.to_string()),
        model: args.model.clone(),
        auth_profile: args.auth_profile.clone(),
        agent: known_agent(&home, &key)?,
        ..SessionArgs::default()
    };
    let options = session.options();
    let config = load_session(home, &options)?;
    let report = compact(config, &options, args)?;
    let name = sessions.name_of(&key);
    if report.outcome == CompactionOutcome::Forbidden {
        return Err(CliError::failure_of_class("hook", compacted(&report, &name)));
    }
    if !args.json {
        note(compacted(&report, &name));
        return Ok(());
    }
    let compaction = match report.outcome {
        CompactionOutcome::Done => sessions.reader(&key)?.last_compaction()?,
        _ => None,
    };
    let mut printer = Printer::stdout();
    printer.json(&Line {
        session_key: key.as_str(),
        outcome: report.outcome,
        report,
        summary: compaction.map(|compaction| compaction.summary),
    })?;
    printer.finish()
}

/// The agent whose session it is, if the config file has it; else the default one.
pub fn known_agent(home: &Home, key: &SessionKey) -> Result<Option<String>, CliError> {
    let config = load_or_default(&home.environment)?.config;
    let agent = key.parts().agent_id;
    Ok(config.resolve_agent(Some(&agent)).is_ok().then_some(agent))
}

fn compact(
    config: SessionConfig,
    options: &SessionOptions,
    args: &CompactArgs,
) -> Result<CompactionReport, CliError> {
    let interrupts = Interrupts::install()?;
    let cancel = CancellationToken::new();
    let armed = interrupts.arm(cancel.clone());
    runtime::block_on(armed.unless_quit(async {
        let driver = Driver::foreground(engine(config.home.http_options()), None);
        let session = Session::open(driver, config, options);
        let verbosity = if args.json { Verbosity::Quiet } else { Verbosity::Normal };
        announce(&*session.selection().await?, verbosity);
        let focus = args.focus.as_deref().filter(|focus| !focus.trim().is_empty());
        let on_event = notices(|line| note(format_args!("myclaw: {line}")));
        Ok(session.compact_here(focus, Foreground { cancel, on_event }).await?)
    }))?
}

/// A callback for notices; the result is in the report.
pub fn notices(say: impl Fn(&str) + Send + Sync + 'static) -> EventCallback {
    Arc::new(move |event| {
        if let AgentRunEvent::Notice(notice) = event.kind {
            say(&notice.to_string());
        }
    })
}
