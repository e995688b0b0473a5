use std::collections::BTreeMap;
use std::fs;

use super::{ALL, EarlierProgram, FILE, LOG, PROGRAM, STORE, StateFormats, StateFormatsError};

fn written(program: &str, formats: &[(&str, u32)]) -> StateFormats {
    let formats = formats.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
    StateFormats { program: program.to_owned(), formats, ..StateFormats::default() }
}

#[test]
fn the_first_program_of_a_directory_writes_its_formats() {
    let parent = tempfile::tempdir().unwrap();
    let state = parent.path().join("state");
    assert_eq!(StateFormats::check(&state).unwrap(), None);
    StateFormats::record(&state).unwrap();
    let found = StateFormats::check(&state).unwrap().unwrap();
    let names: BTreeMap<_, _> = ALL.iter().map(|one| (one.name.to_owned(), one.newest)).collect();
    assert_eq!((&*found.program, &found.formats, &found.before), (PROGRAM, &names, &None));
    StateFormats::record(&state).unwrap();
    assert_eq!(StateFormats::check(&state).unwrap().unwrap(), found, "it is written once");
}

#[test]
fn an_update_keeps_what_was_before() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join(FILE);
    written("0.0.9", &[("log", LOG.newest), ("store", STORE.newest - 1), ("later", 7)])
        .write(&path)
        .unwrap();
    StateFormats::record(state.path()).unwrap();
    let found = StateFormats::check(state.path()).unwrap().unwrap();
    let raised = BTreeMap::from([("store".to_owned(), (STORE.newest - 1, STORE.newest))]);
    let before = EarlierProgram { program: Some("0.0.9".to_owned()), raised };
    assert_eq!(found.before, Some(before));
    assert_eq!(
        found.formats["later"], 7,
        "the format of a kind of file that this program does not know stays"
    );

    // Nothing is known of a directory without the file, except that it was used.
    fs::remove_file(&path).unwrap();
    StateFormats::record(state.path()).unwrap();
    assert_eq!(StateFormats::check(state.path()).unwrap().unwrap().before, None);
    fs::remove_file(&path).unwrap();
    fs::create_dir(state.path().join("sessions")).unwrap();
    StateFormats::record(state.path()).unwrap();
    let found = StateFormats::check(state.path()).unwrap().unwrap();
    assert_eq!(found.before, Some(EarlierProgram { program: None, raised: BTreeMap::new() }));
}

#[test]
fn a_newer_format_of_each_kind_is_refused_and_stays() {
    for format in &ALL {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join(FILE);
        written("9.0.0", &[(format.name, format.newest + 1)]).write(&path).unwrap();
        let before = fs::read(&path).unwrap();
        let refused = StateFormats::record(state.path()).unwrap_err();
        assert!(
            matches!(&refused, StateFormatsError::Newer(text) if text.contains(format.what)),
            "{refused}"
        );
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}
