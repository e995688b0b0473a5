//! The branches of a session: the sessions that have their beginning in common, because one was forked from another.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use myclaw_delivery::ledger::now_ms;
use myclaw_session::rows::fork_patch;
use myclaw_session::{
    Catalog, EntryId, FORKED_FROM, ForkOrigin, SessionError, SessionKey, indexed_title,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Server;
use super::sessions::name_of;
use crate::GatewayError;

/// Most branches that are named, the nearest to the first session first. The log of each is opened.
const MOST_BRANCHES: usize = 200;
/// Most forks between a session and the first one of its branches.
const MOST_FORKS: usize = 64;

/// Where a fork leaves its session: after all of it, unless one of these is named.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ForkPlace {
    /// After this message.
    pub(super) at: Option<String>,
    /// Before this message.
    pub(super) before: Option<String>,
}

impl Server {
    /// Begins a session that continues another one.
    pub(super) async fn fork(
        &self,
        from: &str,
        to: &str,
        place: ForkPlace,
    ) -> Result<Value, GatewayError> {
        let (from, _) = self.delivery.session(from)?;
        let (to, _) = self.delivery.session(to)?;
        let ForkPlace { at, before } = place;
        if at.is_some() && before.is_some() {
            let why = "a fork has `at` or `before`, not both; leave one out";
            return Err(GatewayError::Unusable(why.to_owned()));
        }
        let at = at.as_deref().map(EntryId::from_text);
        let before = before.as_deref().map(EntryId::from_text);
        let agent = self.delivery.config().default_agent_id().to_string();
        self.with_sessions(move |catalog| {
            match before {
                None => drop(catalog.fork(&from, at, &to)?),
                Some(before) => match message_before(catalog, &from, before)? {
                    Some(last) => drop(catalog.fork(&from, Some(last), &to)?),
                    None => begin_again(catalog, &from, &to)?,
                },
            }
            Ok(json!({"key": to.as_str(), "name": name_of(&agent, &to)}))
        })
        .await
    }

    /// The sessions that have a beginning in common with `session`, itself included, the oldest first.
    pub(super) async fn branches(&self, session: &str) -> Result<Value, GatewayError> {
        let (key, _) = self.delivery.session(session)?;
        let agent = self.delivery.config().default_agent_id().to_string();
        self.with_sessions(move |catalog| {
            let mut branches = Vec::new();
            for (key, title) in family(catalog, &key)? {
                let Some(reader) = catalog.read(&key)? else { continue };
                let header = reader.header()?;
                let (created_at, origin) =
                    header.map_or((0, None), |header| (header.created_at, header.forked_from));
                let row = json!({
                    "key": key.as_str(),
                    "name": name_of(&agent, &key),
                    "title": title.title,
                    "from": title.parent,
                    "at": origin.and_then(|origin| origin.entry_id),
                    "createdAt": created_at,
                });
                branches.push((created_at, row));
            }
            branches.sort_by_key(|(created_at, _)| *created_at);
            let rows: Vec<Value> = branches.into_iter().map(|(_, row)| row).collect();
            Ok(json!({"branches": rows}))
        })
        .await
    }
}

/// The message before the one with the id `before`; `None` if that is the first.
fn message_before(
    catalog: &dyn Catalog,
    from: &SessionKey,
    before: EntryId,
) -> Result<Option<EntryId>, SessionError> {
    let reader = catalog.read(from)?.filter(|_| catalog.exists(from));
    let reader = reader.ok_or_else(|| SessionError::NoSuchSession { key: from.clone() })?;
    let earlier = reader.messages_before(Some(before), 1)?;
    let earlier =
        earlier.ok_or_else(|| SessionError::NoSuchEntry { key: from.clone(), id: before })?;
    Ok(earlier.last().map(|message| message.id))
}

/// Begins a session that has nothing of `from` but its directory, its mode, and its place among the branches.
fn begin_again(
    catalog: &dyn Catalog,
    from: &SessionKey,
    to: &SessionKey,
) -> Result<(), SessionError> {
    let header = catalog.read(from)?.map(|reader| reader.header()).transpose()?.flatten();
    let directory = header.and_then(|header| header.directory);
    catalog.create(to, now_ms(), directory.as_deref().map(AsRef::as_ref))?.finish()?;
    let origin = ForkOrigin { session_key: from.to_string(), entry_id: None };
    catalog.update(to, fork_patch(to, &origin)).map(drop)
}

/// What the list says of a branch.
#[derive(Default)]
struct Listed {
    parent: Option<String>,
    title: Option<String>,
}

/// All sessions that come from the same one as `key`.
fn family(
    catalog: &dyn Catalog,
    key: &SessionKey,
) -> Result<Vec<(SessionKey, Listed)>, SessionError> {
    let mut listed: HashMap<String, (SessionKey, Listed)> = HashMap::new();
    let mut children: HashMap<String, Vec<String>> = HashMap::new();
    catalog.visit(&mut |session| {
        let extra = session.entry.extra.as_ref();
        let parent = extra.and_then(|extra| extra.get(FORKED_FROM)?.as_str().map(str::to_owned));
        if let Some(parent) = &parent {
            children.entry(parent.clone()).or_default().push(session.key.to_string());
        }
        let title = myclaw_session::About::from_extra(extra).title;
        let title = title.or_else(|| indexed_title(extra));
        listed.insert(session.key.to_string(), (session.key, Listed { parent, title }));
        ControlFlow::Continue(())
    })?;
    let mut first = key.to_string();
    for _ in 0..MOST_FORKS {
        match listed.get(&first).and_then(|(_, listed)| listed.parent.clone()) {
            Some(parent) => first = parent,
            None => break,
        }
    }
    // The first session may be deleted; its forks are branches all the same.
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let mut next = std::collections::VecDeque::from([first]);
    while let Some(name) = next.pop_front() {
        if found.len() >= MOST_BRANCHES || !seen.insert(name.clone()) {
            continue;
        }
        next.extend(children.remove(&name).unwrap_or_default());
        found.extend(listed.remove(&name));
    }
    Ok(found)
}
