//! `u` of the keys of vi: it undoes a command as a whole.
//!
//! The line editor has a point to go back to for each edit, and makes a command with a count (`2dw`) of as many edits.

use reedline::{EditCommand, EditMode, PromptEditMode, ReedlineEvent, ReedlineRawEvent, Vi};

/// The keys of vi, with an undo for each edit of the command that `u` undoes.
pub(super) struct WholeCommands {
    inner: Vi,
    /// The edits of the last commands, the newest last. Those of before something else has changed the line are not known, and
    /// are undone one by one.
    edits: Vec<usize>,
}

impl WholeCommands {
    pub(super) fn of(inner: Vi) -> Self {
        Self { inner, edits: Vec::new() }
    }
}

impl EditMode for WholeCommands {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let event = self.inner.parse_event(event);
        let ReedlineEvent::Multiple(parts) = &event else {
            if !matches!(event, ReedlineEvent::None | ReedlineEvent::Repaint) {
                self.edits.clear();
            }
            return event;
        };
        let undo = ReedlineEvent::Edit(vec![EditCommand::Undo]);
        if parts.contains(&undo) {
            let of_command = |_| self.edits.pop().unwrap_or(1);
            let count = parts.iter().map(of_command).sum();
            return ReedlineEvent::Multiple(vec![undo; count]);
        }
        match parts.iter().map(changes).sum() {
            0 => {}
            count => self.edits.push(count),
        }
        event
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.inner.edit_mode()
    }
}

/// How many points to go back to an event makes.
fn changes(event: &ReedlineEvent) -> usize {
    match event {
        ReedlineEvent::Edit(commands) => {
            let change = EditCommand::CutChar.edit_type();
            commands.iter().filter(|command| command.edit_type() == change).count()
        }
        ReedlineEvent::Multiple(parts) => parts.iter().map(changes).sum(),
        _ => 0,
    }
}
