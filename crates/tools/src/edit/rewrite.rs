//! Turns the lines of `oldText` and `newText` into the smallest changes of the file.

use std::time::Instant;

use myclaw_files::composed;
use similar::DiffOp;

use super::locate::{Located, Region};
use crate::files::{LineEnding, Lines, Splice, diff_deadline, differences, kept};

/// Most lines that are compared line by line; beyond that the comparison could take seconds.
const MAX_COMPARED: usize = 2_000;

/// The changes in all regions. Lines that `oldText` and `newText` share keep their bytes in the file.
/// Where they agree within a line, the file's own characters stay.
pub(super) fn splices(text: &str, lines: &Lines<'_>, located: &Located) -> Vec<Splice> {
    let operations = operations(&located.old, &located.new);
    let deadline = diff_deadline();
    located
        .regions
        .iter()
        .flat_map(|region| {
            let first = lines.index_at(region.start());
            let ending = lines.ending_at(first..first + region.pieces.len());
            let rewrite = Rewrite { text, region, located, ending, deadline };
            operations.iter().flat_map(move |operation| rewrite.apply(*operation))
        })
        .collect()
}

fn operations(old: &[String], new: &[String]) -> Vec<DiffOp> {
    if old.len().max(new.len()) <= MAX_COMPARED {
        let form = |line: &String| composed(line).into_owned();
        let (old, new): (Vec<_>, Vec<_>) =
            (old.iter().map(form).collect(), new.iter().map(form).collect());
        return differences(&old, &new, None);
    }
    let whole =
        DiffOp::Replace { old_index: 0, old_len: old.len(), new_index: 0, new_len: new.len() };
    vec![whole]
}

struct Rewrite<'a> {
    /// The text of the file.
    text: &'a str,
    region: &'a Region,
    located: &'a Located,
    ending: LineEnding,
    /// The end of the search for what stays.
    deadline: Instant,
}

impl Rewrite<'_> {
    fn apply(&self, operation: DiffOp) -> Vec<Splice> {
        match operation {
            DiffOp::Equal { .. } => Vec::new(),
            DiffOp::Insert { old_index, new_index, new_len } => {
                vec![self.insert(old_index, new_index, new_len)]
            }
            DiffOp::Delete { old_index, old_len, .. } => vec![self.delete(old_index, old_len)],
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                self.replace(old_index, old_len, new_index, new_len)
            }
        }
    }

    /// New lines before piece `at`, or after the last one.
    fn insert(&self, at: usize, new_index: usize, new_len: usize) -> Splice {
        let ending = self.ending.as_str();
        let lines = (new_index..new_index + new_len).map(|index| self.line(index));
        match self.region.pieces.get(at) {
            Some(piece) => {
                let replacement = lines.map(|line| line + ending).collect();
                Splice { range: piece.start..piece.start, replacement }
            }
            None => {
                let end = self.region.pieces.last().map_or(0, |piece| piece.end);
                Splice {
                    range: end..end,
                    replacement: lines.map(|line| format!("{ending}{line}")).collect(),
                }
            }
        }
    }

    /// Removes pieces with the line ending after them, or before them at the end of the region.
    fn delete(&self, at: usize, count: usize) -> Splice {
        let pieces = &self.region.pieces;
        let range = match pieces.get(at + count) {
            Some(next) => pieces[at].start..next.start,
            None => {
                let start = if at == 0 { pieces[0].start } else { pieces[at - 1].end };
                start..pieces[at + count - 1].end
            }
        };
        Splice { range, replacement: String::new() }
    }

    /// Replaces lines one by one as long as both sides have lines, so that the line endings between them stay.
    fn replace(&self, at: usize, old_len: usize, new_index: usize, new_len: usize) -> Vec<Splice> {
        let pieces = &self.region.pieces;
        let common = old_len.min(new_len);
        let replaced = (at..at + old_len).map(|old| {
            (&self.text[pieces[old].clone()], self.region.shift.apply(&self.located.old[old]))
        });
        let new = (new_index..new_index + new_len).map(|index| self.line(index)).collect();
        let mut lines = kept(replaced, new, self.deadline).into_iter();
        let mut splices: Vec<Splice> = (0..common)
            .zip(lines.by_ref())
            .map(|(step, line)| Splice { range: pieces[at + step].clone(), replacement: line })
            .collect();
        if let Some(last) = splices.last_mut() {
            last.range.end = pieces[at + old_len - 1].end;
            for line in lines {
                last.replacement.push_str(self.ending.as_str());
                last.replacement.push_str(&line);
            }
        }
        splices
    }

    fn line(&self, index: usize) -> String {
        self.region.shift.apply(&self.located.new[index])
    }
}
