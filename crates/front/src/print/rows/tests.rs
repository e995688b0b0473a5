use super::{aligned, fitting};

fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
}

#[test]
fn what_fits_is_aligned() {
    let rows = rows(&[&["NAME", "TITLE"], &["漢字x", "Rome  by train"], &["a"]]);
    let lines = ["NAME   TITLE", "漢字x  Rome  by train", "a"];
    assert_eq!(aligned(&rows), lines);
    assert_eq!(fitting(&rows, 21), lines);
}

#[test]
fn the_last_column_is_broken_below_itself() {
    let rows = rows(&[
        &["NAME", "AGE", "TITLE"],
        &["main", "5 m", "Mend the failing tests of the shop"],
        &["other", "", "short"],
        &["third"],
    ]);
    let lines = [
        "NAME   AGE  TITLE",
        "main   5 m  Mend the failing tests",
        "            of the shop",
        "other       short",
        "third",
    ];
    assert_eq!(fitting(&rows, 36), lines);
}

#[test]
fn a_long_first_cell_has_a_line_of_its_own() {
    let rows = rows(&[
        &["MODEL", "CONTEXT", "IMAGES", "KEY"],
        &["a/short", "200k", "yes", "missing"],
        &["provider/a-long-name", "8k", "", "set"],
        &["provider/alone-and-longer"],
    ]);
    let lines = [
        "MODEL    CONTEXT  IMAGES  KEY",
        "a/short  200k     yes     missing",
        "provider/a-long-name",
        "         8k               set",
        "provider/alone-and-longer",
    ];
    assert_eq!(fitting(&rows, 33), lines);
}

#[test]
fn cells_stand_one_after_the_other_where_there_is_no_room() {
    let rows = rows(&[
        &["NAME", "LAST USED", "MODEL", "TITLE"],
        &["main", "2026-11-26 10:30", "provider/a-model", "Mend the failing tests of the shop"],
        &["other", "2026-11-26 10:31", "p/m", ""],
    ]);
    let lines = [
        "NAME",
        "    LAST USED  MODEL  TITLE",
        "main",
        "    2026-11-26 10:30",
        "    provider/a-model",
        "    Mend the failing tests of",
        "    the shop",
        "other",
        "    2026-11-26 10:31  p/m",
    ];
    assert_eq!(fitting(&rows, 30), lines);
    // A path is copied, so it is in one piece.
    let long = "/home/ann/a/very/long/path/of/a/project";
    assert_eq!(
        fitting(&self::rows(&[&["config", long]]), 30),
        ["config".to_owned(), format!("    {long}")]
    );
}
