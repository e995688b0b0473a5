//! The resources that sessions have read, and which of them have changed since, as their server says.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// Most resources of a server that are watched for all sessions; the oldest gives way.
const MAX_WATCHED: usize = 64;

/// The resources of one server that are watched.
#[derive(Default)]
pub(crate) struct Watched(Mutex<VecDeque<Entry>>);

struct Entry {
    session: String,
    uri: String,
    has_changed: bool,
}

impl Watched {
    /// A session reads a resource: changes count from now on.
    pub(crate) fn begin(&self, session: &str, uri: &str) {
        self.end(session, uri);
        let mut entries = self.0.lock();
        if entries.len() == MAX_WATCHED {
            entries.pop_front();
        }
        let (session, uri) = (session.to_owned(), uri.to_owned());
        entries.push_back(Entry { session, uri, has_changed: false });
    }

    /// A session has not read the resource.
    pub(crate) fn end(&self, session: &str, uri: &str) {
        self.0.lock().retain(|entry| entry.session != session || entry.uri != uri);
    }

    /// The server says that a resource has changed, or a part of it, whose address then begins with that of the resource.
    pub(crate) fn note(&self, uri: &str) {
        for entry in self.0.lock().iter_mut() {
            let behind = uri.strip_prefix(entry.uri.as_str());
            let is_it = behind.is_some_and(|rest| {
                rest.is_empty() || entry.uri.ends_with('/') || rest.starts_with(['/', '#', '?'])
            });
            entry.has_changed |= is_it;
        }
    }

    /// What has changed since a session has read it. It is reported once, and watched again when the session reads it again.
    pub(crate) fn take_changed(&self, session: &str) -> Vec<String> {
        let mut changed = Vec::new();
        self.0.lock().retain(|entry| {
            let is_reported = entry.session == session && entry.has_changed;
            if is_reported {
                changed.push(entry.uri.clone());
            }
            !is_reported
        });
        changed
    }

    /// Whether no session waits for a change.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// The addresses of which changes are wanted, in order.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let mut addresses: Vec<String> =
            self.0.lock().iter().map(|entry| entry.uri.clone()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_WATCHED, Watched};

    #[test]
    fn a_change_is_reported_once_to_each_session_that_has_read_it() {
        let watched = Watched::default();
        for (session, uri) in [("a", "x://one"), ("a", "x://two"), ("b", "x://one")] {
            watched.begin(session, uri);
        }
        watched.note("x://one");
        watched.note("x://one");
        watched.note("x://two-more");
        assert_eq!(watched.take_changed("a"), ["x://one"]);
        assert!(watched.take_changed("a").is_empty());
        assert_eq!(watched.take_changed("b"), ["x://one"]);
        // A part of a resource counts as the resource. What a session reads again is as it was read.
        watched.note("x://two/part");
        watched.begin("a", "x://two");
        assert!(watched.take_changed("a").is_empty());
        watched.note("x://two/part");
        assert_eq!(watched.take_changed("a"), ["x://two"]);
    }

    #[test]
    fn the_oldest_gives_way() {
        let watched = Watched::default();
        (0..=MAX_WATCHED).for_each(|number| watched.begin("a", &format!("x://{number}")));
        assert_eq!(watched.addresses().len(), MAX_WATCHED);
        watched.note("x://0");
        assert!(watched.take_changed("a").is_empty());
    }
}
