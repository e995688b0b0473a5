use super::*;

fn document(number: u64) -> Document {
    Document {
        session: SessionKey::for_cli("main", &format!("s{}", number / 3)),
        row: EntryId::from_text(&format!("row{number}")),
        second: 1_000 + number as u32,
    }
}

#[test]
fn a_segment_gives_back_what_was_put_in() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one");
    let mut builder = Builder::default();
    for number in 0..300_u64 {
        if number % 3 == 0 {
            builder.begin(&document(number).session);
        }
        let text = format!("peanut number{number} {}", "boiler ".repeat(number as usize % 40));
        builder.add(document(number), &text);
    }
    builder.write(&path).unwrap();
    let segment = Segment::open(&path).unwrap();
    assert_eq!(segment.documents(), 300);
    assert_eq!(segment.document(217).unwrap(), document(217));
    assert_eq!(segment.names().unwrap().nth(217), Some(document(217).name()));
    assert!(segment.has(&document(0).session));
    assert!(!segment.has(&SessionKey::for_cli("main", "other")));
    assert_eq!(segment.postings("peanut").unwrap().len(), 300);
    assert_eq!(segment.postings("number217").unwrap(), [(217, 1)]);
    assert_eq!(segment.postings("nothing").unwrap(), []);
    let boiler = segment.postings("boiler").unwrap();
    assert!(boiler.contains(&(5, 5)) && boiler.contains(&(39, 15)), "{boiler:?}");
    assert!(segment.gain(5, 5) > segment.gain(5, 1));
}

#[test]
fn a_damaged_segment_is_refused_and_never_believed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one");
    let mut builder = Builder::default();
    builder.begin(&document(0).session);
    builder.add(document(0), "peanut butter");
    builder.write(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(Segment::open(&path).is_err(), "{length}");
    }
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 0xff;
        std::fs::write(&path, &changed).unwrap();
        if let Ok(segment) = Segment::open(&path) {
            let _ = (
                segment.document(0),
                segment.postings("peanut"),
                segment.names().map(Iterator::count),
            );
        }
    }
}
