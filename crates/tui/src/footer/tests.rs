use super::{Footer, Rows};
use myclaw_front::terminal::{Paint, Size, Style};

fn rows(typed: &str) -> Rows {
    Rows {
        above: vec![(Style::Dim, "runs".to_owned())],
        typed: typed.to_owned(),
        status: Some("status".to_owned()),
    }
}

#[test]
fn it_is_drawn_below_a_text_that_goes_on_where_it_stopped() {
    for size in [Size { columns: 20, rows: 30 }, Size { columns: 20, rows: 5 }] {
        let mut screen = vt100::Parser::new(size.rows as u16, size.columns as u16, 0);
        let mut footer = Footer::default();
        let mut write = |text: &str, width: usize, typed: &str| {
            let mut out = footer.erase(size);
            out.push_str(text);
            footer.draw(rows(typed), width, size, Paint::Styled, &mut out);
            screen.process(out.as_bytes());
            let rows: Vec<String> = screen.screen().rows(0, size.columns as u16).collect();
            let rows = rows.iter().map(|row| row.trim_end()).collect::<Vec<_>>();
            rows.join("\n").trim_end().to_owned()
        };
        assert!(write("one\r\ntwo", 3, "").ends_with("one\ntwo\nruns\n>\nstatus"));
        assert!(write(" three", 9, "漢字").ends_with("two three\nruns\n> 漢字\nstatus"));
        assert!(write("\r\n", 0, "x").ends_with("two three\nruns\n> x\nstatus"));
        assert_eq!(screen.screen().cursor_position().1, 3, "behind what was typed");
        screen.process(footer.erase(size).as_bytes());
        assert!(screen.screen().contents().trim_end().ends_with("two three"));
    }
}

#[test]
fn it_waits_while_the_text_ends_at_the_margin() {
    let size = Size { columns: 10, rows: 10 };
    let mut out = String::new();
    let mut footer = Footer::default();
    footer.draw(rows(""), 20, size, Paint::Plain, &mut out);
    assert_eq!(out, "");
    assert_eq!(footer.erase(size), "");
}
