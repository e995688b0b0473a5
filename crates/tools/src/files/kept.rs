//! The file's own characters in lines that a model wrote: quotes, dashes, kinds of spaces, and how letters are composed.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Instant;

use myclaw_files::{Sameness, characters, folded};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// Most lines among which the one is looked for that a new line replaces.
const MAX_COMPARED: usize = 64;

/// Lines that are replaced: as the file has them, and as the model wrote them.
pub(crate) struct Kept<'f> {
    lines: Vec<(&'f str, String)>,
    deadline: Instant,
}

impl<'f> Kept<'f> {
    /// Of these lines only those matter in which the file differs from the model. What stays is searched for until
    /// `deadline`.
    pub(crate) fn new(lines: impl Iterator<Item = (&'f str, String)>, deadline: Instant) -> Self {
        let mut lines: Vec<_> = lines.collect();
        if lines.iter().all(|(file, written)| file == written) {
            lines.clear();
        }
        Self { lines, deadline }
    }

    /// Line `step` of `count` new lines. Where it agrees with the line that it replaces, it gets the file's characters.
    pub(crate) fn line(&self, step: usize, count: usize, new: String) -> String {
        let replaced = if self.lines.len() == count || self.lines.len() > MAX_COMPARED {
            self.lines.get(step)
        } else {
            self.lines.iter().max_by_key(|(_, written)| shared_ends(written, &new))
        };
        match replaced {
            Some((file, written)) if file != written => self.merged(file, written, &new),
            _ => new,
        }
    }

    fn merged(&self, file: &str, written: &str, new: &str) -> String {
        let (of_file, of_written) = (Parts::of(file.trim_end()), Parts::of(written.trim_end()));
        if of_file.form != of_written.form {
            return new.to_owned();
        }
        let (old, new) = (keys(written.trim_end()), keys(new));
        let mut merged = String::new();
        let deadline = Some(self.deadline);
        for operation in capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline) {
            match operation {
                DiffOp::Equal { old_index, new_index, len } => {
                    let same = old_index..old_index + len;
                    of_written.copy(same, &of_file, &new[new_index..], &mut merged);
                }
                DiffOp::Insert { new_index, new_len, .. }
                | DiffOp::Replace { new_index, new_len, .. } => {
                    new[new_index..new_index + new_len]
                        .iter()
                        .for_each(|key| merged.push_str(key.written));
                }
                DiffOp::Delete { .. } => {}
            }
        }
        merged
    }
}

/// The number of characters that two lines share at their ends.
fn shared_ends(one: &str, other: &str) -> usize {
    let (one, other) = (one.trim(), other.trim());
    let start = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let end = one.chars().rev().zip(other.chars().rev()).take_while(|(a, b)| a == b).count();
    start + end
}

/// A character as it was written. Two are equal if they differ only in how they are composed.
#[derive(Debug, Clone)]
struct Key<'t> {
    written: &'t str,
    form: Cow<'t, str>,
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.form == other.form
    }
}

impl Eq for Key<'_> {}

impl std::hash::Hash for Key<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.form.hash(state);
    }
}

fn keys(text: &str) -> Vec<Key<'_>> {
    characters(text, Sameness::Typography)
        .map(|written| Key { written, form: folded(written, Sameness::Composition) })
        .collect()
}

/// A line in the form in which it is compared, and the characters that it is made of.
struct Parts<'t> {
    form: String,
    /// Each character, and where it is in the form.
    characters: Vec<(&'t str, Range<usize>)>,
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Self {
        let mut form = String::with_capacity(text.len());
        let characters = characters(text, Sameness::Typography)
            .map(|character| {
                let start = form.len();
                form.push_str(&folded(character, Sameness::Typography));
                (character, start..form.len())
            })
            .collect();
        Self { form, characters }
    }

    /// Appends for the characters `same` of this line those that the file has for them. Where the file's begin or end
    /// elsewhere, as with an ellipsis for three dots of which one is removed, those of `new` are written.
    fn copy(&self, same: Range<usize>, file: &Parts<'_>, new: &[Key<'_>], merged: &mut String) {
        let mut next = same.start;
        while next < same.end {
            let (first, place) = (next, &self.characters[next].1);
            let mut own = file.characters.partition_point(|(_, own)| own.start < place.start);
            let first_own = own;
            let starts_here = |own: &usize| {
                file.characters.get(*own).is_some_and(|(_, own)| own.start == place.start)
            };
            let (mut end, mut own_end) = (place.end, place.start);
            next += 1;
            if starts_here(&own) {
                while own_end != end || own == first_own {
                    if own_end < end || own == first_own {
                        own_end = file.characters[own].1.end;
                        own += 1;
                    } else if next < same.end {
                        end = self.characters[next].1.end;
                        next += 1;
                    } else {
                        break;
                    }
                }
            }
            if own_end == end && own > first_own {
                file.characters[first_own..own].iter().for_each(|(own, _)| merged.push_str(own));
            } else {
                let offset = first - same.start;
                new[offset..offset + (next - first)]
                    .iter()
                    .for_each(|key| merged.push_str(key.written));
            }
        }
    }
}

#[cfg(test)]
mod tests;
