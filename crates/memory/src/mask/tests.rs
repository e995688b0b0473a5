use super::*;

fn masked(words: &[&str], text: &str) -> String {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let mask = Mask::new(&words).unwrap();
    let mut bytes = text.as_bytes().to_vec();
    let was_there = mask.apply(&mut bytes);
    assert_eq!(was_there, bytes != text.as_bytes());
    assert_eq!(bytes.len(), text.len());
    String::from_utf8(bytes).unwrap()
}

#[test]
fn words_become_stars_in_every_spelling_and_json_stays_json() {
    let log = r#"{"nuts":"Nuts, NUTS\nnuts donuts","ümlaut":"\u00fcmlaut \u00DCmlaut ümlaut","id":"x4711y"}"#;
    let clean = masked(&["nuts", "ümlaut", "4711"], log);
    let expected = r#"{"nuts":"****, ****\n**** donuts","ümlaut":"*********** *********** *******","id":"x****y"}"#;
    assert_eq!(clean, expected);
    assert!(serde_json::from_str::<serde_json::Value>(&clean).is_ok());
    assert_eq!(masked(&["say \"hi\""], r#"{"a":"say \"hi\""}"#), r#"{"a":"**********"}"#);
    assert_eq!(masked(&["hi"], "nothing"), "nothing");
    assert_eq!(masked(&["room 12"], "room 123, room 12"), "room 123, *******");
}

#[test]
fn telling_words_are_those_that_say_something() {
    assert_eq!(
        telling_words("The user's code is ZEBRA-4711, and the user likes it."),
        ["user's", "code", "ZEBRA-4711"]
    );
    assert_eq!(telling_words("I am allergic to peanuts"), ["allergic", "peanuts"]);
}

#[test]
fn files_keep_their_lengths_and_names_in_them_stay() {
    let directory = tempfile::tempdir().unwrap();
    let below = directory.path().join("a/b");
    fs::create_dir_all(&below).unwrap();
    let file = below.join("log.jsonl");
    fs::write(&file, "{\"content\":\"peanuts\"}\n").unwrap();
    fs::hard_link(&file, below.join("link")).unwrap();
    fs::write(directory.path().join("kept"), "peanuts").unwrap();
    let mask = Mask::new(&["peanuts".to_owned()]).unwrap();
    let is_wanted = |path: &Path| !path.ends_with("kept");
    let found = mask.files_with(directory.path(), &is_wanted);
    assert_eq!(found, [below.join("link"), file.clone()]);
    assert!(mask.apply_to_file(&file).unwrap());
    assert!(!mask.apply_to_file(&file).unwrap());
    assert_eq!(fs::read_to_string(below.join("link")).unwrap(), "{\"content\":\"*******\"}\n");
    assert!(mask.files_with(directory.path(), &is_wanted).is_empty());
}
