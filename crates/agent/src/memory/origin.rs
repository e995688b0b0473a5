//! Where a fact comes from: the newest message of the session, who wrote it, and what was read since.

use std::ops::ControlFlow;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use myclaw_engine::ToolGroup;
use myclaw_memory::FactOrigin;
use myclaw_session::{Catalog, PeerKind, Role, SessionKey, TranscriptMessage};

use crate::SessionConfig;
use crate::declarations::declaration_of;
use crate::export::tool_calls;
use crate::session::is_remark;
use crate::workspace::Party;

/// The owner, in the origin of a fact.
pub(crate) const OWNER: &str = "owner";
/// Stands for text of others in the message itself, such as a forwarded one.
const QUOTED: &str = "quoted text";
/// Most rows that are looked at. A turn with more has read something of others in any case.
const MOST_ROWS: usize = 500;
/// Most tools that an origin names.
const MOST_TOOLS: usize = 6;

/// Finds the origin of what is said in a session.
#[derive(Debug, Clone)]
pub(crate) struct Origins {
    catalog: Arc<dyn Catalog>,
    session: SessionKey,
    person: String,
    time_zone: Option<String>,
}

impl SessionConfig {
    pub(crate) fn origins(&self) -> Origins {
        Origins {
            catalog: Arc::clone(self.home.catalog()),
            session: self.session_key.clone(),
            person: self.person(),
            time_zone: self.agent.user_timezone.clone(),
        }
    }

    /// Who writes in the session, as the origin of a fact names them.
    fn person(&self) -> String {
        if self.party() == Party::Owner {
            return OWNER.to_owned();
        }
        let parts = self.session_key.parts();
        self.sender.clone().unwrap_or_else(|| match parts.peer_kind {
            PeerKind::Direct => format!("{}:{}", parts.channel, parts.peer_id),
            _ => format!("somebody in {}:{}", parts.channel, parts.peer_id),
        })
    }
}

impl Origins {
    /// The origin of a fact that is written now. Blocks.
    pub(crate) fn now(&self) -> FactOrigin {
        let mut origin = self.of_day();
        let mut after: Vec<String> = Vec::new();
        let mut count = 0;
        let visited = self.catalog.read(&self.session).and_then(|log| match log {
            None => Ok(()),
            Some(log) => log.visit_newest(&mut |row| {
                count += 1;
                match row.role {
                    Role::Tool => after.extend(outside_tool(&row)),
                    Role::User if !is_remark(&row.content) => {
                        if origin.row.is_empty() {
                            origin.row = row.id.to_string();
                        }
                        if has_quotes(&row) {
                            after.push(QUOTED.to_owned());
                        }
                    }
                    // The end of the turn before. A message may also come in the middle of a turn.
                    Role::Assistant if !origin.row.is_empty() && tool_calls(&row).is_empty() => {
                        return ControlFlow::Break(());
                    }
                    _ => {}
                }
                if count < MOST_ROWS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            }),
        });
        if let Err(error) = visited {
            tracing::warn!(session = %self.session, %error, "the origin of a fact is not known");
        }
        after.sort();
        after.dedup();
        after.truncate(MOST_TOOLS);
        FactOrigin { after, ..origin }
    }

    /// The same without a message.
    pub(crate) fn of_day(&self) -> FactOrigin {
        FactOrigin {
            date: today(self.time_zone.as_deref()),
            person: self.person.clone(),
            session: self.session.to_string(),
            ..FactOrigin::default()
        }
    }
}

/// The day in the user's time zone.
pub(crate) fn today(time_zone: Option<&str>) -> String {
    let zone = time_zone.and_then(|name| TimeZone::get(name).ok()).unwrap_or_else(TimeZone::system);
    Timestamp::now().to_zoned(zone).date().to_string()
}

/// The tool of a result, if its text is of others: of files, programs, pages, other people.
pub(crate) fn outside_tool(row: &TranscriptMessage) -> Option<String> {
    let name: String = row.meta.as_ref()?.field("toolName")?;
    let is_own = declaration_of(&name).group == Some(ToolGroup::Memory);
    (!is_own).then_some(name)
}

/// Whether a part of the message is marked as written by others.
pub(crate) fn has_quotes(row: &TranscriptMessage) -> bool {
    row.meta.as_ref().is_some_and(|meta| meta.as_str().contains("\"outside\":[{"))
}
