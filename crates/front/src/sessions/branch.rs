//! `myclaw sessions fork`, `title` and `label`.

use std::time::Duration;

use myclaw_session::{About, EntryId, LockWait, SessionKey};

use super::Sessions;
use crate::exit::CliError;
use crate::print::note;

/// Longest wait for a turn that is running in the session.
const WAIT: LockWait = LockWait::Until(Duration::from_secs(5));
/// Characters of a title: a line of a list.
pub const MOST_TITLE_CHARS: usize = 200;
/// Characters of a label.
const MOST_LABEL_CHARS: usize = 64;
/// Labels of one session.
const MOST_LABELS: usize = 32;

/// What to do with labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelChange {
    /// Add them.
    Add,
    /// Remove them.
    Remove,
}

impl Sessions {
    /// Begins a session that continues another one.
    pub fn fork(&self, name: &str, new_name: &str, at: Option<&str>) -> Result<(), CliError> {
        let from = self.find(name)?;
        let to = self.key(new_name)?;
        let at = match at.map(str::trim) {
            Some("") => return Err(CliError::usage("the id behind --at is empty")),
            at => at.map(EntryId::from_text),
        };
        let fork = self.catalog.fork(&from, at, &to)?;
        let new_name = self.name_of(&to);
        let place = match fork.origin.entry_id {
            Some(id) if at.is_some_and(|at| at != id) => {
                format!(" at {id}, after the results of the tools that the message called")
            }
            Some(id) => format!(" at {id}"),
            None => String::new(),
        };
        note(format_args!(
            "`{new_name}` continues `{}`{place}; `myclaw run --session {new_name}` goes on there",
            self.name_of(&from)
        ));
        super::note_damaged_lines(fork.skipped_lines, &self.catalog.describe(&from));
        Ok(())
    }

    /// Sets or removes the title of a session.
    pub fn title(&self, name: &str, title: Option<&str>) -> Result<(), CliError> {
        let key = self.find(name)?;
        let title = title.map(str::trim).filter(|title| !title.is_empty());
        let title = title.map(|title| checked(title, "title", MOST_TITLE_CHARS)).transpose()?;
        self.describe(&key, |about| about.title.clone_from(&title))?;
        Ok(())
    }

    /// Changes the labels of a session, and prints the new ones.
    pub fn label(
        &self,
        name: &str,
        labels: &[String],
        change: LabelChange,
    ) -> Result<(), CliError> {
        let key = self.find(name)?;
        let labels = labels
            .iter()
            .map(|label| checked(label.trim(), "label", MOST_LABEL_CHARS))
            .collect::<Result<Vec<_>, _>>()?;
        let known = self.reader(&key)?.about()?.labels;
        let added = labels.iter().filter(|label| !known.contains(label)).count();
        if change == LabelChange::Add && known.len() + added > MOST_LABELS {
            return Err(CliError::usage(format!(
                "a session has at most {MOST_LABELS} labels; remove some with `--remove`"
            )));
        }
        let about = self.describe(&key, |about| apply(about, &labels, change))?;
        let name = self.name_of(&key);
        if about.labels.is_empty() {
            note(format_args!("`{name}` has no labels"));
        } else {
            note(format_args!("`{name}` has the labels {}", about.labels.join(", ")));
        }
        Ok(())
    }
}

impl Sessions {
    /// Changes the title or labels of a session. The change is valid once it is in the transcript, even if the index
    /// cannot be written now.
    fn describe(&self, key: &SessionKey, change: impl Fn(&mut About)) -> Result<About, CliError> {
        let mut wanted = None;
        let described = self.catalog.change_about(key, WAIT, &mut |about| {
            change(about);
            wanted = Some(about.clone());
        });
        let error = match described {
            Ok(about) => return Ok(about),
            Err(error) => error,
        };
        let kept = self.catalog.read(key).ok().flatten().and_then(|reader| reader.about().ok());
        match wanted.filter(|wanted| Some(wanted) == kept.as_ref()) {
            Some(about) => {
                note(format_args!("myclaw: the change is saved, but not yet in the list: {error}"));
                Ok(about)
            }
            None => Err(error.into()),
        }
    }
}

fn apply(about: &mut About, labels: &[String], change: LabelChange) {
    about.labels.retain(|label| !labels.contains(label));
    if change == LabelChange::Add {
        about.labels.extend_from_slice(labels);
        about.labels.sort();
        about.labels.dedup();
    }
}

/// Checks a title or a label: one line of limited length.
fn checked(text: &str, what: &str, most: usize) -> Result<String, CliError> {
    let count = text.chars().count();
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(CliError::usage(format!("a {what} must be one line of text")));
    }
    if count > most {
        return Err(CliError::usage(format!(
            "a {what} has at most {most} characters, and this one has {count}"
        )));
    }
    Ok(text.to_owned())
}
