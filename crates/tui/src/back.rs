//! Going back: a copy of the session that ends before an earlier message, and the branches that came about in this way.

use std::collections::HashMap;

use myclaw_agent::{Said, messages_of_user};
use myclaw_session::{FORKED_FROM, IndexedSession, SessionKey};

use super::{Chat, View};
use myclaw_front::exit::CliError;
use myclaw_front::picker::{Choices, Picked, Row, Words, pick};
use myclaw_front::report::first_line;
use myclaw_front::time::local_minute;

/// Most sessions among which the branches are looked for: the latest ones.
const MOST_SESSIONS: usize = 10_000;
/// Most sessions above another one.
const MOST_DEPTH: usize = 1_000;

/// What goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GoesBack {
    /// The talk alone.
    Talk,
    /// The talk, and the files with it.
    TalkAndFiles,
}

impl GoesBack {
    fn title(self) -> &'static str {
        match self {
            Self::Talk => "Go back to which message",
            Self::TalkAndFiles => "Go back to which message, with the files",
        }
    }
}

/// Lines to choose from, each with the text in which it is found before it.
struct ChosenLines(Vec<(String, String)>);

impl Choices for ChosenLines {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn search_text(&self, at: usize) -> &str {
        self.0.get(at).map_or("", |(text, _)| text)
    }

    fn row(&self, at: usize) -> Row {
        let name = self.0.get(at).map(|(_, line)| line.clone()).unwrap_or_default();
        Row { name, ..Row::default() }
    }
}

impl Chat {
    /// Makes a session without the last message of the user and what followed, and changes to it. Returns the message.
    pub(super) async fn go_back(&mut self) -> Result<Option<String>, CliError> {
        match messages_of_user(&*self.sessions.catalog, self.session.key())?.pop() {
            Some(said) => self.go_back_before(said, GoesBack::Talk).await,
            None => {
                self.say("there is no message to send again")?;
                Ok(None)
            }
        }
    }

    async fn go_back_before(
        &mut self,
        said: Said,
        what: GoesBack,
    ) -> Result<Option<String>, CliError> {
        let key = match self.free_session(None) {
            Ok(key) => key,
            Err(message) => return self.say(&message).map(|()| None),
        };
        let before = self.sessions.name_of(self.session.key());
        let mut files = None;
        if what == GoesBack::TalkAndFiles {
            match self.session.rewind(&said, &key).await {
                Ok(rewound) => files = Some(rewound.lines()),
                Err(error) => return self.say(&error.message).map(|()| None),
            }
        } else if let Some(last) = said.before {
            self.sessions.catalog.fork(self.session.key(), Some(last), &key)?;
        }
        self.session = self.session.open_beside(key);
        self.forget_context();
        let name = self.sessions.name_of(self.session.key());
        if let Some(files) = files {
            self.say(&files)?;
        }
        self.say(&format!("once more, in `{name}`; `{before}` stays as it is"))?;
        Ok(Some(said.message.content))
    }

    /// Lets the user choose an earlier message, and goes back to it: its text is in the editor then.
    ///
    /// # Errors
    /// The session cannot be read, or standard output is closed.
    pub(super) async fn choose_and_go_back(&mut self, what: GoesBack) -> Result<(), CliError> {
        let mut said = messages_of_user(&*self.sessions.catalog, self.session.key())?;
        if said.is_empty() {
            return self.say("there is no earlier message to go back to");
        }
        let lines: Vec<String> = said
            .iter()
            .map(|said| {
                format!("{}  {}", local_minute(said.message.ts), first_line(&said.message.content))
            })
            .collect();
        let last = lines.len() - 1;
        let Some(at) = self.choose_line(what.title(), lines, last).await else {
            return Ok(());
        };
        if let Some(text) = self.go_back_before(said.swap_remove(at), what).await? {
            self.leftover.unsent = text;
        }
        Ok(())
    }

    /// Shows the branches of this session, and changes to the one that the user chooses.
    ///
    /// # Errors
    /// The sessions cannot be read, or standard output is closed.
    pub(super) async fn tree(&mut self) -> Result<(), CliError> {
        let (sessions, _) = match self.sessions.latest(MOST_SESSIONS) {
            Ok(found) => found,
            Err(error) => return self.say(&error.message),
        };
        let branches = branches(&sessions, self.session.key());
        if branches.len() < 2 {
            return self
                .say("this session has no branches yet; Esc twice, /fork or /retry makes one");
        }
        let lines: Vec<String> =
            branches.iter().map(|(depth, key)| self.branch(*depth, key)).collect();
        if !matches!(self.view, View::Terminal) {
            return self.say(&lines.join("\n"));
        }
        let current = branches.iter().position(|(_, key)| *key == *self.session.key());
        let chosen = self.choose_line("Go on in which branch", lines, current.unwrap_or(0)).await;
        let Some((_, key)) = chosen.and_then(|at| branches.get(at)) else { return Ok(()) };
        if key == self.session.key() {
            return Ok(());
        }
        self.continue_session(key.as_str()).await
    }

    /// Lets the user choose one of the lines.
    async fn choose_line(
        &self,
        title: &'static str,
        lines: Vec<String>,
        current: usize,
    ) -> Option<usize> {
        let words = Words { title, keys: ", typing searches; this session is kept", letters: &[] };
        let lines = lines.into_iter().map(|line| (line.to_lowercase(), line)).collect();
        match pick(&self.interrupts, words, &ChosenLines(lines), current).await {
            Picked::Entry(at) => Some(at),
            Picked::With(..) | Picked::Nothing => None,
        }
    }

    fn branch(&self, depth: usize, key: &SessionKey) -> String {
        let mark = if *key == *self.session.key() { "*" } else { " " };
        let title = self.sessions.title_of(key).unwrap_or_default();
        format!(
            "{mark} {}{}  {}",
            "  ".repeat(depth),
            self.sessions.name_of(key),
            first_line(&title)
        )
    }
}

/// The sessions that have the first one above `key` in common, each below the one that it was forked from, with its depth.
fn branches(sessions: &[IndexedSession], key: &SessionKey) -> Vec<(usize, SessionKey)> {
    let parent = |session: &IndexedSession| {
        let extra = session.entry.extra.as_ref()?;
        Some(extra.get(FORKED_FROM)?.as_str()?.to_owned())
    };
    let parents: HashMap<&str, String> = sessions
        .iter()
        .filter_map(|session| Some((session.key.as_str(), parent(session)?)))
        .collect();
    let mut root = key.as_str();
    for _ in 0..MOST_DEPTH {
        let Some(above) = parents.get(root) else { break };
        root = above.as_str();
    }
    let mut children: HashMap<&str, Vec<&SessionKey>> = HashMap::new();
    // The oldest first: forks of the same session in the order in which they came about.
    for session in sessions.iter().rev() {
        if let Some(above) = parents.get(session.key.as_str()) {
            children.entry(above.as_str()).or_default().push(&session.key);
        }
    }
    let mut found = Vec::new();
    let first = sessions.iter().find(|session| session.key.as_str() == root);
    let mut open: Vec<(usize, &SessionKey)> =
        first.map(|first| (0, &first.key)).into_iter().collect();
    if open.is_empty() {
        // The session that they all come from was deleted.
        open.extend(children.remove(root).into_iter().flatten().rev().map(|key| (1, key)));
    }
    while let Some((depth, key)) = open.pop() {
        found.push((depth, key.clone()));
        let below = children.remove(key.as_str()).into_iter().flatten().rev();
        open.extend(below.map(|key| (depth + 1, key)));
    }
    found
}

#[cfg(test)]
mod tests {
    use myclaw_session::{IndexedSession, SessionKey};
    use serde_json::json;

    use super::branches;

    fn session(name: &str, parent: Option<&str>) -> IndexedSession {
        let extra = parent
            .map(|parent| json!({"forkedFrom": SessionKey::for_cli("main", parent).as_str()}));
        let entry = json!({
            "sessionId": "x", "updatedAt": 1, "sessionFile": "x.jsonl", "extra": extra.unwrap_or(json!({})),
        });
        IndexedSession {
            key: SessionKey::for_cli("main", name),
            entry: serde_json::from_value(entry).expect("an entry"),
        }
    }

    #[test]
    fn branches_stand_below_the_session_that_they_come_from() {
        // The latest first, as the index lists them.
        let sessions = [
            session("d", Some("b")),
            session("other", None),
            session("c", Some("a")),
            session("b", Some("a")),
            session("a", None),
        ];
        for current in ["a", "b", "c", "d"] {
            let found = branches(&sessions, &SessionKey::for_cli("main", current));
            let found: Vec<(usize, String)> =
                found.into_iter().map(|(depth, key)| (depth, key.parts().peer_id)).collect();
            let expected = [(0, "a"), (1, "b"), (2, "d"), (1, "c")];
            assert_eq!(found, expected.map(|(depth, name)| (depth, name.to_owned())), "{current}");
        }
    }
}
