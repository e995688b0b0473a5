//! Searches the messages of sessions.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use myclaw_session::{SearchQuery, SearchReport, SearchScope, SessionError, SessionKey, rows};
use tokio_postgres::types::Type;

use super::core::{Core, column};
use super::segments::Segment;
use super::sql;
use crate::pool::Parameter;
use crate::read::number;

/// Rows that are read at once.
const AT_ONCE: i64 = 1_000;
/// Most patterns of which a row has one. Expressions with more alternatives are looked for in every row.
const MOST_PATTERNS: usize = 16;

/// How often a search is made while sessions in which it finds something are deleted.
const ATTEMPTS: usize = 3;

/// The session and the place in it of a message.
type Place = (i64, i64);

struct Searched {
    id: i64,
    key: SessionKey,
    inherited: i64,
}

/// Searches these sessions. What a fork shares with its parent is found once.
pub(super) fn search(
    core: &Core,
    query: &SearchQuery,
    scope: &SearchScope,
    limit: usize,
) -> Result<SearchReport, SessionError> {
    let mut attempt = 1;
    loop {
        // Of a session that was deleted in between it may have found a part, and a fork may have the same messages.
        let (report, ids) = search_once(core, query, scope, limit)?;
        let found = core.rows("search", sql::STILL_THERE, &[(&ids, Type::INT8_ARRAY)])?;
        if found.len() == ids.len() || attempt == ATTEMPTS {
            return Ok(report);
        }
        attempt += 1;
    }
}

/// The result, and the numbers of the sessions in which something was found.
fn search_once(
    core: &Core,
    query: &SearchQuery,
    scope: &SearchScope,
    limit: usize,
) -> Result<(SearchReport, Vec<i64>), SessionError> {
    let found = core.rows("search", sql::SEARCHED, &[(&core.partition, Type::INT8)])?;
    let mut sessions = Vec::with_capacity(found.len());
    for row in &found {
        let key: &str = column(row, 1)?;
        let key: SessionKey = key.parse()?;
        if rows::is_in_scope(scope, &key) {
            sessions.push(Searched { id: column(row, 0)?, key, inherited: column(row, 2)? });
        }
    }
    // Of the forks that share messages of a session which is not searched, the one with most of them has them.
    sessions.sort_by(|one, other| {
        (Reverse(one.inherited), &one.key).cmp(&(Reverse(other.inherited), &other.key))
    });
    let mut hits = rows::Hits::new(query, limit);
    // The messages that were looked into, if there are forks that could have them again.
    let has_forks = sessions.iter().any(|session| session.inherited > 0);
    let mut own: HashSet<String> = HashSet::new();
    let by_id: HashMap<i64, &Searched> =
        sessions.iter().map(|session| (session.id, session)).collect();
    let ids: Vec<i64> = by_id.keys().copied().collect();
    let candidates = candidates(core, query)?;
    let mut seen: HashSet<Place> = HashSet::new();
    let mut look_at_own = |session: i64, place: i64, id: Option<&str>, body: &str| {
        let Some(searched) = by_id.get(&session).filter(|session| place > session.inherited) else {
            return;
        };
        // One that moves to a segment meanwhile is read twice.
        if !seen.insert((session, place)) {
            return;
        }
        if has_forks {
            own.extend(id.map(str::to_owned));
        }
        hits.look_into(&searched.key, body.as_bytes(), number(place));
    };
    read(core, &ids, candidates.as_deref(), &mut look_at_own)?;
    let pieces = query.pieces();
    let segments = core.segments_with(if pieces.len() > MOST_PATTERNS { &[] } else { pieces })?;
    let mut unreadable = BTreeMap::new();
    let known = segments.iter().filter(|segment| by_id.contains_key(&segment.session));
    read_segments(core, known, &by_id, &mut unreadable, &mut look_at_own);
    for session in sessions.iter().filter(|session| session.inherited > 0) {
        let count = Cell::new(0);
        let mut look = |_: i64, place: i64, id: Option<&str>, body: &str| {
            count.set(count.get() + 1);
            if place <= session.inherited && id.is_some_and(|id| own.insert(id.to_owned())) {
                hits.look_into(&session.key, body.as_bytes(), number(place));
            }
        };
        let of_it = candidates.as_deref().map(|all| {
            let begin = all.partition_point(|(other, _)| *other < session.id);
            let end = all.partition_point(|(other, _)| *other <= session.id);
            &all[begin..end]
        });
        read(core, &[session.id], of_it, &mut look)?;
        if of_it.is_some_and(|places| places.len() == count.get()) {
            let of_it = segments.iter().filter(|segment| segment.session == session.id);
            read_segments(core, of_it, &by_id, &mut unreadable, &mut look);
        } else {
            // Some may have moved to segments meanwhile.
            let of_it = core.segments_of(session.id)?;
            read_segments(core, &of_it, &by_id, &mut unreadable, &mut look);
        }
    }
    let mut report = hits.into_report();
    for (id, error) in unreadable {
        let place = by_id.get(&id).map(|session| core.place(&session.key).display().to_string());
        report.unreadable.extend(place.map(|place| (place, io::Error::other(error))));
    }
    let found = sessions.iter().filter(|session| report.matches.contains_key(&session.key));
    let ids = found.map(|session| session.id).collect();
    Ok((report, ids))
}

/// Passes on the messages of old parts of sessions. Those that cannot be read now are noted, once for each session.
fn read_segments<'s>(
    core: &Core,
    segments: impl IntoIterator<Item = &'s Segment>,
    by_id: &HashMap<i64, &Searched>,
    unreadable: &mut BTreeMap<i64, SessionError>,
    look: &mut Look<'_>,
) {
    for segment in segments {
        let Some(session) = by_id.get(&segment.session) else { continue };
        match segment.rows(core, &session.key) {
            // Deleted meanwhile.
            Err(SessionError::NoSuchSession { .. }) => {}
            Err(error) => {
                unreadable.entry(segment.session).or_insert(error);
            }
            Ok(rows) => {
                let messages = (segment.from..).zip(&rows).filter(|(_, row)| row.kind == "message");
                messages.for_each(|(place, row)| {
                    look(segment.session, place, row.id.as_deref(), &row.body);
                });
            }
        }
    }
}

/// The messages that may match, in order. `None` if the database cannot say which.
fn candidates(core: &Core, query: &SearchQuery) -> Result<Option<Vec<Place>>, SessionError> {
    let alternatives = query.pieces();
    if alternatives.is_empty() || alternatives.len() > MOST_PATTERNS {
        return Ok(None);
    }
    let patterns: Vec<String> = alternatives.iter().map(|pieces| pattern(pieces)).collect();
    let mut parameters: Vec<Parameter<'_>> = vec![(&core.partition, Type::INT8)];
    for pattern in &patterns {
        parameters.push((pattern, Type::TEXT));
    }
    let found = core.rows("search", &sql::with_patterns(patterns.len()), &parameters)?;
    found
        .iter()
        .map(|row| Ok((column(row, 0)?, column(row, 1)?)))
        .collect::<Result<_, _>>()
        .map(Some)
}

/// A pattern of `LIKE` for rows that hold these texts in this order.
fn pattern(pieces: &[String]) -> String {
    let mut pattern = "%".to_owned();
    for piece in pieces {
        for character in piece.chars() {
            if matches!(character, '%' | '_') {
                pattern.push('\\');
            }
            pattern.push(character);
        }
        pattern.push('%');
    }
    pattern
}

/// Passes on the messages at these places, or all messages of these sessions.
fn read(
    core: &Core,
    sessions: &[i64],
    places: Option<&[Place]>,
    look: &mut Look<'_>,
) -> Result<(), SessionError> {
    let Some(places) = places else { return each_message(core, sessions, look) };
    for places in places.chunks(usize::try_from(AT_ONCE).unwrap_or(usize::MAX)) {
        let (sessions, places): (Vec<i64>, Vec<i64>) = places.iter().copied().unzip();
        let parameters: [Parameter<'_>; 2] =
            [(&sessions, Type::INT8_ARRAY), (&places, Type::INT8_ARRAY)];
        for row in &core.rows("search", sql::AT_PLACES, &parameters)? {
            look(column(row, 0)?, column(row, 1)?, column(row, 2)?, column(row, 3)?);
        }
    }
    Ok(())
}

/// Looks into a message: its session, place, id and row.
type Look<'l> = dyn FnMut(i64, i64, Option<&str>, &str) + 'l;

/// Passes the messages of these sessions on.
fn each_message(core: &Core, sessions: &[i64], look: &mut Look<'_>) -> Result<(), SessionError> {
    let (mut session, mut place) = (0_i64, 0_i64);
    loop {
        let parameters: [Parameter<'_>; 4] = [
            (&sessions, Type::INT8_ARRAY),
            (&session, Type::INT8),
            (&place, Type::INT8),
            (&AT_ONCE, Type::INT8),
        ];
        let found = core.rows("search", sql::MESSAGES, &parameters)?;
        if found.is_empty() {
            return Ok(());
        }
        for row in &found {
            (session, place) = (column(row, 0)?, column(row, 1)?);
            look(session, place, column(row, 2)?, column(row, 3)?);
        }
    }
}
