//! Converts the hunks of a unified diff to the pairs of texts that the protocol needs.

use std::str::FromStr;

/// One change with the lines around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The lines before; `None` if there was no file, or nothing in it.
    pub(super) old: Option<String>,
    /// The lines after.
    pub(super) new: String,
    /// The first line of them in the new file, from 1.
    pub(super) line: u32,
}

/// The hunks of the diff of one file. Incomplete hunks are left out.
pub(super) fn hunks(diff: &str) -> Vec<Hunk> {
    let mut lines = diff.lines().peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let Some(mut open) = Open::of_header(line) else { continue };
        while let Some(line) = lines.next_if(|line| open.wants(line)) {
            open.take(line);
        }
        found.extend(open.finish());
    }
    found
}

/// A hunk that is being read.
struct Open {
    old_start: u32,
    new_start: u32,
    old_lines: u32,
    new_lines: u32,
    had_old_lines: bool,
    old: String,
    new: String,
    last: char,
}

impl Open {
    /// Reads `@@ -1,3 +1,4 @@`.
    fn of_header(line: &str) -> Option<Self> {
        let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
        let (old, new) = ranges.split_once(" +")?;
        let (old_start, old_lines) = range(old)?;
        let (new_start, new_lines) = range(new)?;
        Some(Self {
            old_start,
            new_start,
            old_lines,
            new_lines,
            had_old_lines: old_lines > 0,
            old: String::new(),
            new: String::new(),
            last: ' ',
        })
    }

    /// Whether `line` belongs to it.
    fn wants(&self, line: &str) -> bool {
        let is_full = self.old_lines == 0 && self.new_lines == 0;
        match line.chars().next() {
            Some('\\') => true,
            Some('+') => self.new_lines > 0,
            Some('-') => self.old_lines > 0,
            Some(' ') | None => !is_full,
            Some(_) => false,
        }
    }

    fn take(&mut self, line: &str) {
        let sign = line.chars().next().unwrap_or(' ');
        let text = line.get(1..).unwrap_or("");
        if sign == '\\' {
            // The line before has no line end.
            if self.last != '+' {
                self.old.pop();
            }
            if self.last != '-' {
                self.new.pop();
            }
            return;
        }
        self.last = sign;
        if sign != '+' {
            self.old_lines = self.old_lines.saturating_sub(1);
            self.old.push_str(text);
            self.old.push('\n');
        }
        if sign != '-' {
            self.new_lines = self.new_lines.saturating_sub(1);
            self.new.push_str(text);
            self.new.push('\n');
        }
    }

    fn finish(self) -> Option<Hunk> {
        let is_whole = self.old_lines == 0 && self.new_lines == 0;
        let is_new = self.old_start == 0 && !self.had_old_lines;
        is_whole.then(|| Hunk {
            old: (!is_new).then_some(self.old),
            new: self.new,
            line: self.new_start.max(1),
        })
    }
}

/// `4,2` is 2 lines from the 4th on; `4` is that line alone.
fn range(text: &str) -> Option<(u32, u32)> {
    let number = |text: &str| u32::from_str(text).ok();
    match text.split_once(',') {
        Some((start, count)) => Some((number(start)?, number(count)?)),
        None => Some((number(text)?, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk(old: Option<&str>, new: &str, line: u32) -> Hunk {
        Hunk { old: old.map(str::to_owned), new: new.to_owned(), line }
    }

    #[test]
    fn each_hunk_becomes_a_pair_of_texts() {
        let diff = "--- a/x\n+++ b/x\n@@ -3,3 +3,4 @@\n a\n-b\n+B\n+BB\n c\n@@ -20 +21 @@ fn f()\n--- old\n+++ new\n";
        assert_eq!(
            hunks(diff),
            [hunk(Some("a\nb\nc\n"), "a\nB\nBB\nc\n", 3), hunk(Some("-- old\n"), "++ new\n", 21)]
        );
    }

    #[test]
    fn a_new_file_has_no_old_text_and_a_removed_one_no_new() {
        assert_eq!(hunks("@@ -0,0 +1,2 @@\n+a\n+b\n"), [hunk(None, "a\nb\n", 1)]);
        assert_eq!(hunks("@@ -1,2 +0,0 @@\n-a\n-b\n"), [hunk(Some("a\nb\n"), "", 1)]);
    }

    #[test]
    fn line_ends_that_are_missing_stay_missing() {
        let note = "\\ No newline at end of file";
        assert_eq!(hunks(&format!("@@ -1 +1 @@\n-a\n{note}\n+b\n")), [hunk(Some("a"), "b\n", 1)]);
        assert_eq!(
            hunks(&format!("@@ -1,2 +1,2 @@\n-a\n+b\n c\n{note}\n")),
            [hunk(Some("a\nc"), "b\nc", 1)]
        );
    }

    #[test]
    fn what_is_cut_off_is_left_out() {
        let diff = "@@ -1 +1 @@\n-a\n+b\n@@ -9,2 +9,2 @@\n-a\n[... 40 characters cut ...]\n";
        assert_eq!(hunks(diff), [hunk(Some("a\n"), "b\n", 1)]);
        assert_eq!(hunks("no diff at all"), []);
    }
}
