//! Pictures as sixels: six rows of pixels at a time, in at most 256 colours.

use std::collections::HashMap;
use std::fmt::Write as _;

use myclaw_tools::Pixels;

/// Most colours that every terminal with sixels has.
const MOST_COLOURS: usize = 256;
/// Rows of a band.
const BAND: usize = 6;
/// Pixels that are less opaque show the background.
const OPAQUE: u8 = 128;

/// A colour in five bits per part, which is as fine as the choice of the palette is.
type Cell = u16;

/// The sequence that shows `pixels` at the cursor.
pub(super) fn encode(pixels: &Pixels) -> String {
    let (width, height) = (pixels.width as usize, pixels.height as usize);
    let cells: Vec<Option<Cell>> = pixels.rgba.chunks_exact(4).map(cell).collect();
    let palette = Palette::of(&pixels.rgba);
    let mut out = format!("\x1bP0;1q\"1;1;{width};{height}");
    for (number, colour) in palette.colours.iter().enumerate() {
        let [red, green, blue] = colour.map(|part| (u32::from(part) * 100 + 127) / 255);
        let _infallible = write!(out, "#{number};2;{red};{green};{blue}");
    }
    for top in (0..height).step_by(BAND) {
        // For each colour of the band, the rows of each column that have it, one bit for each row.
        let mut columns: Vec<(u8, Vec<u8>)> = Vec::new();
        for row in top..height.min(top + BAND) {
            for column in 0..width {
                let cell = cells.get(row * width + column).copied().flatten();
                let Some(number) = cell.and_then(|cell| palette.numbers.get(&cell)) else {
                    continue;
                };
                let at =
                    columns.iter().position(|(colour, _)| colour == number).unwrap_or_else(|| {
                        columns.push((*number, vec![0; width]));
                        columns.len() - 1
                    });
                columns[at].1[column] |= 1 << (row - top);
            }
        }
        for (number, bits) in &columns {
            let _infallible = write!(out, "#{number}");
            runs(bits, &mut out);
            out.push('$');
        }
        out.push('-');
    }
    out.push_str("\x1b\\");
    out
}

/// Writes columns; several equal ones as a number and one of them.
fn runs(bits: &[u8], out: &mut String) {
    for run in bits.chunk_by(|one, next| one == next) {
        let char = char::from(b'?' + run[0]);
        match run.len() {
            count @ 4.. => {
                let _infallible = write!(out, "!{count}{char}");
            }
            count => out.extend(std::iter::repeat_n(char, count)),
        }
    }
}

/// The colour of a pixel; `None` if the background shows.
fn cell(pixel: &[u8]) -> Option<Cell> {
    let [red, green, blue, opacity] = *pixel else { return None };
    let part = |value: u8| u16::from(value >> 3);
    (opacity >= OPAQUE).then(|| part(red) << 10 | part(green) << 5 | part(blue))
}

/// The colours of a picture.
struct Palette {
    colours: Vec<[u8; 3]>,
    /// The colour that stands for each cell.
    numbers: HashMap<Cell, u8>,
}

/// Pixels in one cell: how many, and the sums of their parts.
#[derive(Clone, Copy, Default)]
struct Count {
    pixels: u64,
    sums: [u64; 3],
}

impl Palette {
    /// Chooses colours by median cut: the cells are divided into boxes, each time the one with the most pixels times its
    /// longest side, at the middle of its pixels. Each box is the mean of its pixels.
    fn of(rgba: &[u8]) -> Self {
        let mut counts: HashMap<Cell, Count> = HashMap::new();
        for pixel in rgba.chunks_exact(4) {
            let Some(cell) = cell(pixel) else { continue };
            let count = counts.entry(cell).or_default();
            count.pixels += 1;
            for (sum, part) in count.sums.iter_mut().zip(pixel) {
                *sum += u64::from(*part);
            }
        }
        let mut cells: Vec<(Cell, Count)> = counts.into_iter().collect();
        cells.sort_unstable_by_key(|(cell, _)| *cell);
        let mut boxes = vec![cells];
        while boxes.len() < MOST_COLOURS {
            let weight = |cells: &Vec<(Cell, Count)>| {
                u64::from(longest(cells).1)
                    * cells.iter().map(|(_, count)| count.pixels).sum::<u64>()
            };
            let Some(at) = (0..boxes.len()).max_by_key(|at| weight(&boxes[*at])) else { break };
            if weight(&boxes[at]) == 0 {
                break;
            }
            let cells = boxes.swap_remove(at);
            boxes.extend(halves(cells));
        }
        let mut palette = Self { colours: Vec::new(), numbers: HashMap::new() };
        for (number, cells) in (0..=u8::MAX).zip(boxes.iter().filter(|cells| !cells.is_empty())) {
            let pixels: u64 = cells.iter().map(|(_, count)| count.pixels).sum();
            let mean = |part: usize| {
                let sum: u64 = cells.iter().map(|(_, count)| count.sums[part]).sum();
                u8::try_from(sum / pixels.max(1)).unwrap_or(u8::MAX)
            };
            palette.colours.push([mean(0), mean(1), mean(2)]);
            palette.numbers.extend(cells.iter().map(|(cell, _)| (*cell, number)));
        }
        palette
    }
}

/// A part of a cell: 0 is red, 1 green, 2 blue.
fn part(cell: Cell, which: u16) -> u16 {
    cell >> (10 - 5 * which) & 31
}

/// The part in which cells differ most, and by how much.
fn longest(cells: &[(Cell, Count)]) -> (u16, u16) {
    let side = |which: u16| {
        let parts = || cells.iter().map(|(cell, _)| part(*cell, which));
        parts().max().unwrap_or(0) - parts().min().unwrap_or(0)
    };
    (0..3).map(|which| (which, side(which))).max_by_key(|(_, side)| *side).unwrap_or((0, 0))
}

/// Both halves have a cell at least: `cells` has two that differ.
fn halves(mut cells: Vec<(Cell, Count)>) -> [Vec<(Cell, Count)>; 2] {
    let which = longest(&cells).0;
    cells.sort_by_key(|(cell, _)| part(*cell, which));
    let all: u64 = cells.iter().map(|(_, count)| count.pixels).sum();
    let mut before = 0;
    let middle = cells.iter().position(|(_, count)| {
        before += count.pixels;
        before * 2 >= all
    });
    let at = (middle.unwrap_or(0) + 1).min(cells.len() - 1);
    let rest = cells.split_off(at);
    [cells, rest]
}

#[cfg(test)]
mod tests;
