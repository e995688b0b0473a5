//! Progress of an active run, for those who show it or may stop it.

use tokio_util::sync::CancellationToken;

use super::{Phase, Run, Stopped};
use crate::HostError;
use crate::channel::Progress;
use crate::job::without_internal;

/// Begins what a model says to itself.
const INTERNAL: &str = "<internal>";

impl Run<'_> {
    /// Something is being done from now on.
    pub(super) fn works(&self) {
        self.shared.working.lock().insert(self.group.folder.clone(), self.interrupt.clone());
        self.show(Progress::Working);
    }

    /// Nothing is being done any more.
    pub(super) fn rests(&self) {
        self.shared.working.lock().remove(&self.group.folder);
        self.show(Progress::Waiting);
    }

    /// Shows what the model has written so far.
    pub(super) fn writes(&self, text: &str) {
        let text = so_far(text);
        if !text.is_empty() {
            self.show(Progress::Writing(text));
        }
    }

    /// Whether the chat shows what is done. What a task does is not shown, because nobody waits for it.
    pub(super) fn is_shown(&self) -> bool {
        let messenger = self.shared.messenger.get();
        self.task.is_none() && messenger.is_some_and(|it| it.shows(&self.group.jid))
    }

    /// Whether messages that come now belong to another session.
    pub(super) async fn is_session_over(&self) -> Result<bool, HostError> {
        let beginnings = self.shared.ledger.beginnings(&self.group.folder).await?;
        Ok(self.task.is_none() && beginnings != self.state.row.beginnings)
    }

    pub(super) fn is_being_stopped(&self) -> bool {
        matches!(self.phase, Phase::Stopped(_))
    }

    /// Ends the container, for this reason. It may have ended by itself.
    pub(super) fn stop(&mut self, why: Stopped, stop: &CancellationToken) {
        self.phase = Phase::Stopped(why);
        self.log.line("stopped");
        stop.cancel();
    }

    fn show(&self, progress: Progress) {
        if let Some(messenger) = self.shared.messenger.get().filter(|_| self.is_shown()) {
            messenger.show(&self.group.jid, progress);
        }
    }
}

/// What a chat may see of a text that is not whole: nothing of what the model says to itself, also where that has no end
/// yet.
fn so_far(text: &str) -> String {
    let text = without_internal(text);
    let said = text.split(INTERNAL).next().unwrap_or_default();
    let begun = (1..INTERNAL.len()).rev().find(|count| said.ends_with(&INTERNAL[..*count]));
    said[..said.len() - begun.unwrap_or(0)].trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::so_far;

    #[test]
    fn nothing_of_what_is_internal_is_shown() {
        for (text, shown) in [
            ("a <b", "a <b"),
            ("a <inter", "a"),
            ("a <internal>secret", "a"),
            ("a <internal>secret</inter", "a"),
            ("a <internal>secret</internal> b", "a  b"),
            ("<internal>x</internal><internal>y", ""),
        ] {
            assert_eq!(so_far(text), shown, "{text}");
        }
    }
}
