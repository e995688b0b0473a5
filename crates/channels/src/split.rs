//! Cuts long texts at a channel's limit.

/// How a channel counts the units of its limit.
type Measure = fn(&str) -> usize;

/// The UTF-16 units of a text.
pub fn utf16_units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// The parts of a Markdown text, each of at most `limit` units: cut at the last paragraph, line or word that fits. A code
/// block that continues in the next part is closed, and opened again there.
///
/// A limit too small for a line with its code fences is treated as the smallest that is not.
pub fn split(text: &str, limit: usize, measure: Measure) -> Vec<String> {
    if measure(text) <= limit {
        return vec![text.to_owned()];
    }
    let mut splitter = Splitter {
        limit: limit.max(1),
        measure,
        parts: Vec::new(),
        current: String::new(),
        gap: None,
        fence: None,
    };
    for line in text.split('\n') {
        splitter.line(line);
    }
    splitter.finish()
}

/// Cuts a text so that each part fits after rendering, which can make a text longer, for example by the columns of a
/// table.
pub(crate) fn split_rendered(
    text: &str,
    limit: usize,
    measure: Measure,
    fits: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    split(text, limit, measure)
        .into_iter()
        .flat_map(|part| match fits(&part) || limit <= 256 {
            true => vec![part],
            false => split_rendered(&part, limit / 2, measure, fits),
        })
        .collect()
}

/// What is put behind a preview.
pub(crate) const GOES_ON: &str = " …";

/// The beginning of a reply, as long as it fits together with [`GOES_ON`], and what `render` makes of it: a text to show
/// and its length. `None` if there is nothing to see yet.
pub(crate) fn preview(
    text: &str,
    most_units: usize,
    split: fn(&str, usize) -> Vec<String>,
    render: impl FnOnce(&str) -> (String, usize),
) -> Option<(String, String)> {
    let most = most_units.saturating_sub(utf16_units(GOES_ON));
    let first = split(text, most).into_iter().next()?;
    let (shown, units) = render(&first);
    let is_shown = units > 0 && units <= most;
    is_shown.then(|| (format!("{shown}{GOES_ON}"), format!("{first}{GOES_ON}")))
}

/// A code block that is open.
#[derive(Clone)]
struct Fence {
    /// Its first line.
    opening: String,
    /// The line that closes it.
    closing: String,
}

struct Splitter {
    limit: usize,
    measure: Measure,
    parts: Vec<String>,
    current: String,
    /// Where the last empty line outside of code is in `current`.
    gap: Option<usize>,
    fence: Option<Fence>,
}

impl Splitter {
    fn line(&mut self, line: &str) {
        let next = fence_after(self.fence.as_ref(), line);
        // A closing line needs no further one behind it.
        let reserve = next.as_ref().map_or(0, |fence| (self.measure)(&fence.closing) + 1);
        if self.fits(line, reserve) {
            self.append(line);
        } else {
            self.flush();
            if !self.fits(line, reserve) {
                // The paragraph that was carried over fills the part already.
                self.gap = None;
                if !self.is_fresh() {
                    self.flush();
                }
            }
            if self.fits(line, reserve) { self.append(line) } else { self.long_line(line) }
        }
        self.fence = next;
        if line.trim().is_empty() && self.fence.is_none() {
            self.gap = Some(self.current.len());
        }
    }

    fn fits(&self, line: &str, reserve: usize) -> bool {
        let newline = usize::from(!self.current.is_empty());
        (self.measure)(&self.current) + newline + (self.measure)(line) + reserve <= self.limit
    }

    /// Whether the current part holds nothing but the opening of a code block.
    fn is_fresh(&self) -> bool {
        self.current.is_empty()
            || self.fence.as_ref().is_some_and(|fence| self.current == fence.opening)
    }

    fn append(&mut self, line: &str) {
        if !self.current.is_empty() {
            self.current.push('\n');
        }
        self.current.push_str(line);
    }

    /// A line that is longer than a part: cut at the last word that fits.
    fn long_line(&mut self, line: &str) {
        let mut rest = line;
        while !rest.is_empty() {
            let reserve = self.fence.as_ref().map_or(0, |fence| (self.measure)(&fence.closing) + 1);
            let newline = usize::from(!self.current.is_empty());
            let used = (self.measure)(&self.current) + newline + reserve;
            // At least one character, so that it ends.
            let room = self.limit.saturating_sub(used).max(1);
            let mut end = 0;
            let mut units = 0;
            for (at, character) in rest.char_indices() {
                let next = at + character.len_utf8();
                units += (self.measure)(&rest[at..next]);
                if units > room && end > 0 {
                    break;
                }
                end = next;
                if units >= room {
                    break;
                }
            }
            if end < rest.len()
                && let Some(space) = rest[..end].rfind(' ').filter(|at| *at > 0)
            {
                end = space;
            }
            let (piece, after) = rest.split_at(end);
            self.append(piece);
            rest = after.strip_prefix(' ').unwrap_or(after);
            if !rest.is_empty() {
                self.gap = None;
                self.flush();
            }
        }
    }

    /// Ends the current part: at its last paragraph if that is not too far back, else where it is.
    fn flush(&mut self) {
        let gap =
            self.gap.take().filter(|gap| (self.measure)(&self.current[..*gap]) * 2 > self.limit);
        if let Some(gap) = gap {
            let carried = self.current.split_off(gap);
            let part = std::mem::replace(&mut self.current, trimmed_start(&carried));
            self.push(&part);
            return;
        }
        if self.is_fresh() {
            return;
        }
        let mut part = std::mem::take(&mut self.current);
        if let Some(fence) = &self.fence {
            part.push('\n');
            part.push_str(&fence.closing);
            self.current = fence.opening.clone();
        }
        self.push(&part);
    }

    fn push(&mut self, part: &str) {
        let part = part.trim_end();
        let part = trimmed_start(part);
        if !part.trim().is_empty() {
            self.parts.push(part);
        }
    }

    fn finish(mut self) -> Vec<String> {
        let last = std::mem::take(&mut self.current);
        self.push(&last);
        self.parts
    }
}

/// Without empty lines at the start; the first line keeps its indentation.
fn trimmed_start(text: &str) -> String {
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n')
        && line.trim().is_empty()
    {
        rest = after;
    }
    rest.to_owned()
}

/// The code block that is open after a line.
fn fence_after(open: Option<&Fence>, line: &str) -> Option<Fence> {
    let indent = line.len() - line.trim_start().len();
    let body = line.trim_start();
    let Some(mark) = body.chars().next().filter(|mark| matches!(mark, '`' | '~')) else {
        return open.cloned();
    };
    let width = body.chars().take_while(|other| *other == mark).count();
    let info = &body[width..];
    match open {
        Some(fence) => {
            let own = fence.closing.trim_start();
            let closes = own.starts_with(mark) && width >= own.len() && info.trim().is_empty();
            if closes { None } else { Some(fence.clone()) }
        }
        None if width >= 3 && !(mark == '`' && info.contains('`')) => Some(Fence {
            opening: line.trim_end().to_owned(),
            closing: format!("{}{}", &line[..indent], mark.to_string().repeat(width)),
        }),
        None => None,
    }
}

#[cfg(test)]
mod tests;
