//! `myclaw sessions undo`.

use myclaw_agent::{Home, SessionConfig, UndoMode, undone_in_words};
use myclaw_tools::{Direction, WhichTurn};

use super::Sessions;
use super::compact::known_agent;
use crate::args::{SessionArgs, UndoArgs};
use crate::exit::CliError;
use crate::home::load_session;
use crate::print::{Printer, columns, note};
use crate::runtime;
use crate::time::local_minute;

/// Undoes a turn's changes, or lists the turns.
pub fn run(args: &UndoArgs, sessions: &Sessions, home: Home) -> Result<(), CliError> {
    let key = sessions.find(&args.name)?;
    let session = SessionArgs {
        session: Some(key.to_string()),
        agent: known_agent(&home, &key)?,
        directory: args.directory.clone(),
        ..SessionArgs::default()
    };
    let config = load_session(home, &session.options())?;
    runtime::block_on(config.take_up_commands())?;
    if args.list {
        return list(&config, args);
    }
    let direction = if args.redo { Direction::Redo } else { Direction::Undo };
    let which = args.turn.map_or(WhichTurn::Next, WhichTurn::Number);
    let mode = if args.dry_run { UndoMode::DryRun } else { UndoMode::Apply };
    let undone = config.undo(direction, which, mode)?;
    let mut printer = Printer::stdout();
    if args.json {
        printer.json(&undone)?;
    } else {
        printer.safe_lines(undone_in_words(&undone, direction, mode).lines())?;
    }
    printer.finish()
}

fn list(config: &SessionConfig, args: &UndoArgs) -> Result<(), CliError> {
    let turns = config.changed_turns()?;
    let mut printer = Printer::stdout();
    if args.json {
        for turn in &turns {
            printer.json(turn)?;
        }
        return printer.finish();
    }
    if turns.is_empty() {
        note("no turn of the session changed files");
    }
    let rows: Vec<Vec<String>> = turns
        .iter()
        .map(|turn| {
            let state = if turn.undone { "undone" } else { "" };
            vec![turn.turn.to_string(), local_minute(turn.ts), state.to_owned()]
        })
        .collect();
    for line in columns(&rows) {
        printer.line(line.trim_end())?;
    }
    printer.finish()
}
