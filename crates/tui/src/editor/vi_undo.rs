//! `u` of the keys of vi: it undoes a command as a whole, with what was typed until Escape.
//!
//! The line editor has a point to go back to for each edit and each typed word, and makes a command with a count (`2dw`) of as
//! many edits.

use reedline::{
    EditCommand, EditMode, PromptEditMode, PromptViMode, ReedlineEvent, ReedlineRawEvent,
    UndoBehavior, Vi,
};

/// The keys of vi, with an undo for each edit of the command that `u` undoes.
pub(super) struct WholeCommands {
    inner: Vi,
    /// The edits of the last commands, the newest last. Those of before something else has changed the line are not known, and
    /// are undone one by one.
    edits: Vec<usize>,
    insertion: Insertion,
}

/// What was changed since insert mode began, with the command that began it.
struct Insertion {
    /// The points to go back to that the line editor has made for it. Where that is not known, they are fewer.
    points: usize,
    /// What was typed in a row.
    typed: String,
    last: UndoBehavior,
}

impl Insertion {
    fn with(points: usize) -> Self {
        Self { points, typed: String::new(), last: UndoBehavior::CreateUndoPoint }
    }

    fn add(&mut self, command: &EditCommand) {
        let now = match command {
            EditCommand::InsertChar(typed) => {
                self.typed.push(*typed);
                UndoBehavior::InsertCharacter(*typed)
            }
            EditCommand::Backspace => UndoBehavior::Backspace(self.typed.pop()),
            _ => {
                self.typed.clear();
                match is_change(command) {
                    true => UndoBehavior::CreateUndoPoint,
                    false => UndoBehavior::MoveCursor,
                }
            }
        };
        self.points += usize::from(now.create_undo_point_after(&self.last));
        self.last = now;
    }
}

impl WholeCommands {
    pub(super) fn of(inner: Vi) -> Self {
        Self { inner, edits: Vec::new(), insertion: Insertion::with(0) }
    }

    fn is_inserting(&self) -> bool {
        matches!(self.inner.edit_mode(), PromptEditMode::Vi(PromptViMode::Insert))
    }

    fn end_command(&mut self, points: usize) {
        if points > 0 {
            self.edits.push(points);
        }
    }

    /// The event with as many undos as the last commands need. An Escape that arrives with the next key is one event with it.
    fn with_undos(&mut self, event: ReedlineEvent) -> ReedlineEvent {
        let undo = ReedlineEvent::Edit(vec![EditCommand::Undo]);
        match event {
            ReedlineEvent::Multiple(parts) => ReedlineEvent::Multiple(
                parts.into_iter().map(|part| self.with_undos(part)).collect(),
            ),
            event if event == undo => {
                ReedlineEvent::Multiple(vec![undo; self.edits.pop().unwrap_or(1)])
            }
            event => event,
        }
    }

    /// Counts what an event in insert mode does.
    fn insert(&mut self, event: &ReedlineEvent) {
        match event {
            ReedlineEvent::Edit(commands) => {
                commands.iter().for_each(|command| self.insertion.add(command));
            }
            // The line goes on. If it does not, there is nothing left to undo.
            ReedlineEvent::Enter => self.insertion.add(&EditCommand::InsertNewline),
            ReedlineEvent::None | ReedlineEvent::Repaint => {}
            _ => {
                self.edits.clear();
                self.insertion.points = 0;
            }
        }
    }
}

impl EditMode for WholeCommands {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let was_inserting = self.is_inserting();
        let event = self.inner.parse_event(event);
        let is_inserting = self.is_inserting();
        if was_inserting && is_inserting {
            self.insert(&event);
            return event;
        }
        if was_inserting {
            self.end_command(self.insertion.points);
        }
        if !matches!(event, ReedlineEvent::Multiple(_)) {
            if !was_inserting && !matches!(event, ReedlineEvent::None | ReedlineEvent::Repaint) {
                self.edits.clear();
            }
            self.insertion = Insertion::with(0);
            return event;
        }
        let points = changes(&event);
        match is_inserting {
            true => self.insertion = Insertion::with(points),
            false => self.end_command(points),
        }
        self.with_undos(event)
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.inner.edit_mode()
    }
}

/// How many points to go back to an event makes.
fn changes(event: &ReedlineEvent) -> usize {
    match event {
        ReedlineEvent::Edit(commands) => {
            commands.iter().filter(|command| is_change(command)).count()
        }
        ReedlineEvent::Multiple(parts) => parts.iter().map(changes).sum(),
        _ => 0,
    }
}

fn is_change(command: &EditCommand) -> bool {
    command.edit_type() == EditCommand::CutChar.edit_type()
}
