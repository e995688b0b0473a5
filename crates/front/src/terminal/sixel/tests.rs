use std::collections::HashSet;

use super::*;

/// What a terminal shows: the colour of each pixel, as parts in percent; `None` where nothing is drawn.
fn decode(sequence: &str) -> Vec<Vec<Option<[u32; 3]>>> {
    let body = sequence.strip_prefix("\x1bP0;1q\"1;1;").expect("the beginning");
    let mut rest = body.strip_suffix("\x1b\\").expect("the end");
    let number = |rest: &mut &str| -> u32 {
        let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        *rest = after.strip_prefix(';').unwrap_or(after);
        number.parse().expect("a number")
    };
    let (width, height) = (number(&mut rest) as usize, number(&mut rest) as usize);
    let mut screen = vec![vec![None; width]; height];
    let (mut colours, mut colour) = (HashMap::new(), 0);
    let (mut top, mut column) = (0, 0);
    while let Some(char) = rest.chars().next() {
        rest = &rest[1..];
        let (count, char) = match char {
            '#' => {
                colour = number(&mut rest);
                if rest.starts_with("2;") {
                    number(&mut rest);
                    let parts = [number(&mut rest), number(&mut rest), number(&mut rest)];
                    colours.insert(colour, parts);
                }
                continue;
            }
            '$' => {
                column = 0;
                continue;
            }
            '-' => {
                (top, column) = (top + BAND, 0);
                continue;
            }
            '!' => {
                let count = number(&mut rest);
                let char = rest.chars().next().expect("columns");
                rest = &rest[1..];
                (count, char)
            }
            char => (1, char),
        };
        let bits = u8::try_from(char).expect("a sixel") - b'?';
        for _ in 0..count {
            for row in (0..BAND).filter(|row| bits & 1 << row != 0) {
                screen[top + row][column] = Some(colours[&colour]);
            }
            column += 1;
        }
    }
    screen
}

fn picture(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 4]) -> Pixels {
    let rows = (0..height).flat_map(|row| (0..width).map(move |column| (column, row)));
    Pixels { width, height, rgba: rows.flat_map(|(column, row)| pixel(column, row)).collect() }
}

#[test]
fn few_colours_are_kept_and_nothing_is_drawn_where_the_picture_is_transparent() {
    let colour = |column: u32, row: u32| match (column / 5, row / 7) {
        (0, _) => [255, 0, 0, 255],
        (_, 0) => [0, 0, 255, 255],
        _ => [0, 0, 0, 0],
    };
    let shown = decode(&encode(&picture(11, 13, colour)));
    assert_eq!((shown.len(), shown[0].len()), (13, 11));
    for (row, pixels) in shown.iter().enumerate() {
        for (column, pixel) in pixels.iter().enumerate() {
            let expected = match colour(column as u32, row as u32) {
                [_, _, _, 0] => None,
                [red, _, blue, _] => Some([red, 0, blue].map(|part| u32::from(part) * 100 / 255)),
            };
            assert_eq!(*pixel, expected, "{column} {row}");
        }
    }
}

#[test]
fn many_colours_become_256_that_are_near() {
    let byte = |value: u32| u8::try_from(value).expect("a byte");
    let colour = |column, row| [byte(column * 4), byte(row * 4), byte((column + row) * 2), 255];
    let shown = decode(&encode(&picture(64, 64, colour)));
    let colours: HashSet<[u32; 3]> =
        shown.iter().flatten().map(|pixel| pixel.expect("drawn")).collect();
    assert!((200..=256).contains(&colours.len()), "{}", colours.len());
    for (row, pixels) in shown.iter().enumerate() {
        for (column, pixel) in pixels.iter().enumerate() {
            let [red, green, blue, _] = colour(column as u32, row as u32);
            for (drawn, wanted) in pixel.expect("drawn").into_iter().zip([red, green, blue]) {
                assert!(drawn.abs_diff(u32::from(wanted) * 100 / 255) <= 10, "{column} {row}");
            }
        }
    }
}

#[test]
fn a_picture_without_pixels_is_an_empty_one() {
    assert_eq!(encode(&picture(1, 1, |_, _| [0; 4])), "\x1bP0;1q\"1;1;1;1-\x1b\\");
}
