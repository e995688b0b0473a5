//! The open tool calls, where every message answers all calls of the message before.

use std::collections::HashSet;

use super::{Checked, unique, violation};

/// The calls so far, in the words of one API.
pub(super) struct Calls<'a> {
    /// The name of a call.
    call: &'static str,
    /// The name of its result.
    result: &'static str,
    /// Every id so far.
    seen: HashSet<&'a str>,
    /// Calls of the message before.
    open: Vec<&'a str>,
    /// Those of them that this message has answered.
    answered: HashSet<&'a str>,
}

impl<'a> Calls<'a> {
    pub(super) fn new(call: &'static str, result: &'static str) -> Self {
        Self { call, result, seen: HashSet::new(), open: Vec::new(), answered: HashSet::new() }
    }

    pub(super) fn are_there_any(&self) -> bool {
        !self.seen.is_empty()
    }

    pub(super) fn made(&mut self, id: &'a str, place: &str) -> Checked {
        unique(&mut self.seen, id, place, &format!("the {} id", self.call))?;
        self.open.push(id);
        Ok(())
    }

    pub(super) fn answered(&mut self, id: &'a str, place: &str) -> Checked {
        if !self.open.contains(&id) {
            let Self { call, result, .. } = self;
            let rule = format!("{result} {id:?} answers no {call} of the message before");
            return Err(violation(place, rule));
        }
        unique(&mut self.answered, id, place, "the result of")
    }

    /// To be called at the end of every message of a user.
    pub(super) fn all_answered(&mut self, place: &str) -> Checked {
        let answered = std::mem::take(&mut self.answered);
        self.open.retain(|id| !answered.contains(id));
        match self.open.as_slice() {
            [] => Ok(()),
            open => {
                let Self { call, result, .. } = self;
                let rule = format!("{call} ids without a {result} directly after them: {open:?}");
                Err(violation(place, rule))
            }
        }
    }
}
