//! The items of an answer: where the pieces of each go.

use super::event::{Kind, Place, Prose};
use crate::{ErrorClass, ModelError};

/// Most items of one answer: far more than any model writes, so only a faulty server reaches it.
const MAX_ITEMS: usize = 10_000;

/// One item of the output.
#[derive(Debug)]
pub(super) struct Slot {
    /// Its place in the output.
    pub(super) number: u64,
    id: String,
    kind: Kind,
    /// Position in the message, once something is in the item.
    pub(super) index: Option<usize>,
    /// The kind of its text. Reasoning that comes both as a summary and in full is taken once.
    pub(super) prose: Option<Prose>,
    /// The first part without any content so far.
    pub(super) next_part: u64,
    /// Arguments that came with the start of a call, used if no others follow.
    pub(super) first_arguments: String,
    pub(super) closed: bool,
}

/// All items so far; closed ones too, because the end of a stream repeats them.
#[derive(Debug, Default)]
pub(super) struct Slots(Vec<Slot>);

impl Slots {
    /// The item at `place`, made if there is none; `None` if there is one of another kind or one that is done.
    pub(super) fn open(
        &mut self,
        place: Place<'_>,
        kind: Kind,
    ) -> Result<Option<&mut Slot>, ModelError> {
        let position = match self.position(place) {
            Some(position) => position,
            None if self.0.len() == MAX_ITEMS => {
                let message = format!("the answer has more than {MAX_ITEMS} items");
                return Err(ModelError::new(ErrorClass::Unknown, message));
            }
            None => {
                self.0.push(Slot {
                    number: place.number.unwrap_or(self.0.len() as u64),
                    id: place.id.to_owned(),
                    kind,
                    index: None,
                    prose: None,
                    next_part: 0,
                    first_arguments: String::new(),
                    closed: false,
                });
                self.0.len() - 1
            }
        };
        Ok(self.0.get_mut(position).filter(|slot| slot.kind == kind && !slot.closed))
    }

    /// The call at `place`, open or closed.
    pub(super) fn call(&self, place: Place<'_>) -> Option<&Slot> {
        self.0.get(self.position(place)?).filter(|slot| slot.kind == Kind::Call)
    }

    /// The calls that were not closed, and the arguments that they began with.
    pub(super) fn open_calls(&self) -> impl Iterator<Item = (usize, &str)> {
        let open = self.0.iter().filter(|slot| slot.kind == Kind::Call && !slot.closed);
        open.filter_map(|slot| Some((slot.index?, slot.first_arguments.as_str())))
    }

    /// The place of the item `id`, or of the one at `number` where no item is known by that id.
    pub(super) fn place<'e>(&self, id: &'e str, number: u64) -> Place<'e> {
        let known = self.0.iter().find(|slot| !id.is_empty() && slot.id == id);
        Place { number: Some(known.map_or(number, |slot| slot.number)), id }
    }

    /// By number, else by id, else the item that is open.
    fn position(&self, place: Place<'_>) -> Option<usize> {
        self.0.iter().rposition(|slot| match place.number {
            Some(number) => slot.number == number,
            None if place.id.is_empty() => !slot.closed,
            None => slot.id == place.id,
        })
    }
}
