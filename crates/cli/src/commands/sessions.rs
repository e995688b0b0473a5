//! `myclaw sessions`: the stored sessions.

use myclaw_agent::{Home, MAIN_SESSION};
use myclaw_front::exit::CliError;
use myclaw_front::sessions::{
    Keys, LabelChange, ListFormat, SearchOptions, Sessions, ShowFormat, ShowPart, Syntax, compact,
    undo,
};
use myclaw_import::Importer;
use myclaw_session::{Case, PruneScope};
use myclaw_tui::watch::{self, WatchEnd, WatchFormat};

use crate::args::{SessionsArgs, SessionsCommand};

/// Runs one of the commands.
pub(crate) fn run(args: SessionsArgs, home: Home) -> Result<(), CliError> {
    let sessions = Sessions::of(home.clone());
    match args.command {
        SessionsCommand::List { which, search, limit, json } => {
            let format = if json { ListFormat::Json } else { ListFormat::Table };
            sessions.list(&which, search.as_deref(), limit, format)
        }
        SessionsCommand::Watch { json, once } => {
            let format = if json { WatchFormat::Json } else { WatchFormat::Text };
            let end = if once { WatchEnd::AfterFirst } else { WatchEnd::Never };
            watch::run(home, format, end)
        }
        SessionsCommand::Stop { name } => watch::stop(home, &name),
        SessionsCommand::Answer { name, answer } => watch::answer(home, &name, &answer.join(" ")),
        SessionsCommand::Search { text, regex, ignore_case, which, limit, json } => {
            let format = if json { ListFormat::Json } else { ListFormat::Table };
            let options = SearchOptions {
                syntax: if regex { Syntax::Regex } else { Syntax::Text },
                case: if ignore_case { Case::Ignored } else { Case::Sensitive },
            };
            sessions.search(&text, options, &which, limit, format)
        }
        SessionsCommand::Show { name, all, json, last } => {
            let format = if json { ShowFormat::Json } else { ShowFormat::Text };
            let part = match last {
                Some(count) => ShowPart::Last(count),
                None if all => ShowPart::All,
                None => ShowPart::SinceSummary,
            };
            sessions.show(&name, part, format)
        }
        SessionsCommand::Fork { name, new_name, at } => {
            home.check_agent(&sessions.key(&new_name)?)?;
            sessions.fork(&name, &new_name, at.as_deref())
        }
        SessionsCommand::Title { name, title } => sessions.title(&name, title.as_deref()),
        SessionsCommand::Label { name, labels, remove } => {
            let change = if remove { LabelChange::Remove } else { LabelChange::Add };
            sessions.label(&name, &labels, change)
        }
        SessionsCommand::Compact(args) => compact::run(&args, &sessions, home),
        SessionsCommand::Undo(args) => undo::run(&args, &sessions, home),
        SessionsCommand::Export { name, format, output, no_redact } => {
            sessions.export(&name, format, output.as_deref(), Keys::wanted(no_redact))
        }
        SessionsCommand::Import { files, format, session, agent, no_redact } => {
            let (session, agent) = (session.as_deref(), agent.as_deref());
            let keys = Keys::wanted(no_redact);
            let importer = Importer { sessions: &sessions, format, agent, keys };
            for name in session.into_iter().chain(agent.map(|_| MAIN_SESSION)) {
                home.check_agent(&importer.key(name)?)?;
            }
            importer.import(&files, session)
        }
        SessionsCommand::Delete { name, yes: true } => sessions.delete(&name, &home.paths),
        SessionsCommand::Delete { name, yes: false } => sessions.ask_before_delete(&name),
        SessionsCommand::Prune { older_than, with_transcripts, dry_run } => {
            let scope =
                if with_transcripts { PruneScope::WithTranscripts } else { PruneScope::IndexOnly };
            if dry_run {
                sessions.preview_prune(older_than, scope)
            } else {
                sessions.prune(older_than, scope)
            }
        }
    }
}
