use super::*;

struct Names(Vec<String>);

impl Choices for Names {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn search_text(&self, at: usize) -> &str {
        &self.0[at]
    }

    fn row(&self, at: usize) -> Row {
        let details = vec!["3h".to_owned(), "~/src".to_owned()];
        Row { name: self.0[at].clone(), about: String::new(), details }
    }
}

const WORDS: Words = Words { title: "Names", keys: "", letters: &['k'] };
const SIZE: Size = Size { columns: 40, rows: 6 };

fn press(list: &mut List<'_>, keys: &str) -> Option<Picked> {
    let mut rest = keys.as_bytes();
    while !rest.is_empty() {
        let (key, others) = rest.split_at(key_length(rest));
        if let Some(picked) = list.press(key, SIZE) {
            return Some(picked);
        }
        rest = others;
    }
    None
}

fn names() -> Names {
    Names((0..20).map(|number| format!("name {number} é漢")).collect())
}

#[test]
fn typing_narrows_the_list_and_keys_choose() {
    let names = names();
    let mut list = List::new(WORDS, &names, 0);
    assert_eq!(press(&mut list, "É 1\x1b[B\x1b[B\r"), Some(Picked::Entry(11)));
    assert_eq!(press(&mut list, "\x15\x1b[F\n"), Some(Picked::Entry(19)));
    assert_eq!(press(&mut list, "\x1b[5~\x1b[A\x0b"), Some(Picked::With('k', 15)));
    assert_eq!(press(&mut list, "\x06\x1b[3~"), None, "other keys do nothing");
    assert_eq!(press(&mut list, "nothing like it\r"), None);
    assert_eq!(press(&mut list, "\x15漢\x7f\x1b"), Some(Picked::Nothing));
}

#[test]
fn the_marked_entry_stays_on_the_screen_and_no_row_is_too_wide() {
    let names = names();
    let mut list = List::new(WORDS, &names, 0);
    press(&mut list, "\x1b[6~\x1b[6~\x1b[B");
    let picture = list.picture(SIZE, Paint::Plain);
    assert!(picture.contains("› name 7 é漢"), "{picture}");
    assert!(!picture.contains("name 4 "), "{picture}");
    assert!(picture.contains("  3h  ~/src"), "{picture}");
    for columns in 1..60 {
        let picture = list.picture(Size { columns, rows: 6 }, Paint::Plain);
        for row in picture.split("\r\n").map(|row| row.trim_start_matches("\x1b[H\x1b[2J")) {
            let row = row.rsplit("1H").next().unwrap();
            assert!(row.width() <= columns, "{columns}: {row:?}");
        }
    }
}

#[test]
fn the_end_of_a_path_is_kept() {
    assert_eq!(end_of_path("/home/me/src", 20), "/home/me/src");
    assert_eq!(end_of_path("/home/me/src", 7), "…me/src");
}
