//! Draws what a program shows in a terminal, as an SVG. `scripts/make-pictures` calls it:
//!
//! ```text
//! terminal_picture OUT.svg COLUMNS ROWS PROGRAM [LINE WAIT]...
//! ```
//!
//! Each LINE is typed once the screen ends with the prompt, and WAIT is a text that its answer shows. The program gets the
//! environment and the directory of the caller. The picture is the screen at the end, without its empty rows.
#![expect(clippy::expect_used, clippy::panic, reason = "a picture is made or the script stops")]

use std::fmt::Write as _;
use std::process::Command;

use myclaw_testkit::Terminal;
use vt100::{Cell, Color, Parser};

/// Width and height of a cell, and the size of the text in it, in pixels.
const CELL: (f32, f32) = (8.4, 18.0);
const TEXT_SIZE: u8 = 14;
/// Space around the rows, in pixels; that above them holds the three buttons of a window.
const MARGIN: f32 = 14.0;
const TITLE_BAR: f32 = 34.0;
const BACKGROUND: &str = "#1b1e25";
const FOREGROUND: &str = "#d7dae0";
/// The sixteen colours that a terminal calls by number. Their shades are a user's choice; these are readable on the
/// background.
const SHADES: [&str; 16] = [
    "#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0",
    "#7f848e", "#f48771", "#b5e08c", "#f0d197", "#8cc8ff", "#dd9ff0", "#7fd6e0", "#ffffff",
];
/// The steps of the colour cube of 256-colour terminals.
const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];

fn shade(color: Color, default: &str) -> String {
    match color {
        Color::Default => default.to_owned(),
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        Color::Idx(index @ 0..16) => SHADES[usize::from(index)].to_owned(),
        Color::Idx(index @ 16..232) => {
            let step = |divisor: u8| STEPS[usize::from((index - 16) / divisor % 6)];
            format!("#{:02x}{:02x}{:02x}", step(36), step(6), step(1))
        }
        Color::Idx(index) => {
            let grey = 8 + (index - 232) * 10;
            format!("#{grey:02x}{grey:02x}{grey:02x}")
        }
    }
}

/// How a cell is drawn: the attributes of its text, and the colour behind it.
fn style(cell: &Cell) -> (String, Option<String>) {
    let (mut front, mut back) =
        (shade(cell.fgcolor(), FOREGROUND), shade(cell.bgcolor(), BACKGROUND));
    if cell.inverse() {
        std::mem::swap(&mut front, &mut back);
    }
    let mut attributes = format!(" fill=\"{front}\"");
    for (is_set, attribute) in [
        (cell.bold(), " font-weight=\"bold\""),
        (cell.italic(), " font-style=\"italic\""),
        (cell.underline(), " text-decoration=\"underline\""),
        (cell.dim(), " opacity=\"0.65\""),
    ] {
        if is_set {
            attributes.push_str(attribute);
        }
    }
    (attributes, (back != BACKGROUND).then_some(back))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// One row: runs of cells of one style, each as wide as its cells, whatever the reader's font is.
fn draw_row(parser: &Parser, row: u16, top: f32, svg: &mut String) {
    let (_, columns) = parser.screen().size();
    let mut column = 0;
    while column < columns {
        let start = column;
        let Some(first) = parser.screen().cell(row, start) else { return };
        let (attributes, back) = style(first);
        let mut text = String::new();
        while let Some(cell) = parser.screen().cell(row, column)
            && style(cell) == (attributes.clone(), back.clone())
        {
            if !cell.is_wide_continuation() {
                text.push_str(if cell.has_contents() { cell.contents() } else { " " });
            }
            column += 1;
        }
        let (x, width) = (MARGIN + f32::from(start) * CELL.0, f32::from(column - start) * CELL.0);
        if let Some(back) = back {
            let (y, height) = (top - CELL.1 + 5.0, CELL.1);
            writeln!(svg, r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height}" fill="{back}"/>"#)
                .expect("a text grows");
        }
        let shown = text.trim_end();
        if shown.trim_start().is_empty() {
            continue;
        }
        let cells = column
            - start
            - u16::try_from(text.chars().count() - shown.chars().count()).expect("a row");
        let length = f32::from(cells) * CELL.0;
        writeln!(
            svg,
            r#"<text x="{x:.1}" y="{top:.1}" textLength="{length:.1}" xml:space="preserve"{attributes}>{}</text>"#,
            escaped(shown)
        )
        .expect("a text grows");
    }
}

fn draw(parser: &Parser) -> String {
    let (_, columns) = parser.screen().size();
    let text = parser.screen().contents();
    let rows = u16::try_from(text.trim_end().lines().count()).expect("a screen");
    let width = 2.0 * MARGIN + f32::from(columns) * CELL.0;
    let height = TITLE_BAR + f32::from(rows) * CELL.1 + MARGIN;
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="{TEXT_SIZE}">
<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>
<circle cx="20" cy="17" r="5.5" fill="#e06c75"/><circle cx="38" cy="17" r="5.5" fill="#e5c07b"/><circle cx="56" cy="17" r="5.5" fill="#98c379"/>
"##
    );
    for row in 0..rows {
        draw_row(parser, row, TITLE_BAR + f32::from(row + 1) * CELL.1 - 5.0, &mut svg);
    }
    svg.push_str("</svg>\n");
    svg
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, columns, rows, program, lines @ ..] = arguments.as_slice() else {
        panic!("usage: terminal_picture OUT.svg COLUMNS ROWS PROGRAM [LINE WAIT]...");
    };
    let size = |number: &String| number.parse::<u16>().expect("a number of columns or rows");
    let (columns, rows) = (size(columns), size(rows));
    let mut command = Command::new(program);
    command.envs(std::env::vars()).env("TERM", "xterm-256color").env("COLORTERM", "truecolor");
    let mut terminal = Terminal::spawn_sized(&command, columns, rows);
    let at_prompt = |screen: &str| screen.ends_with("You:");
    terminal.expect_screen(at_prompt);
    for pair in lines.chunks_exact(2) {
        terminal.send_line(&pair[0]);
        terminal.expect(&pair[1]);
        terminal.expect_screen(at_prompt);
    }
    let mut parser = Parser::new(rows, columns, 0);
    parser.process(&terminal.raw());
    std::fs::write(out, draw(&parser)).expect("writing the picture");
}
