//! The names of the types that crates offer: a reader of two crates must not take one type for another.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The names that several crates have for types of their own. A further one needs a name that says what it is of.
const SHARED: [&str; 23] = [
    "About",
    "Accepted",
    "Access",
    "Address",
    "Arrival",
    "Attachment",
    "AuthProfile",
    "Change",
    "CommandLine",
    "DownloadError",
    "Failure",
    "Launch",
    "Level",
    "Limits",
    "Login",
    "Network",
    "Refusal",
    "Running",
    "Say",
    "Source",
    "Target",
    "Wanted",
    "WriteError",
];

#[test]
fn a_type_that_a_crate_offers_has_a_name_of_its_own() {
    let mut offered: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (krate, _) in super::CRATES {
        for name in types_of(krate) {
            offered.entry(name).or_default().insert(krate);
        }
    }
    assert!(offered.contains_key("SessionKey") && offered.len() > 500, "{}", offered.len());
    offered.retain(|_, crates| crates.len() > 1);
    let found: BTreeSet<&str> = offered.keys().map(String::as_str).collect();
    let known = BTreeSet::from(SHARED);
    let new: Vec<_> = offered.iter().filter(|(name, _)| !known.contains(name.as_str())).collect();
    assert!(new.is_empty(), "rename one of them: {new:?}");
    let over: Vec<_> = known.difference(&found).collect();
    assert!(
        over.is_empty(),
        "these have names of their own now, remove them from the list: {over:?}"
    );
}

/// The types that the root of a crate takes from its modules.
fn types_of(krate: &str) -> Vec<String> {
    let source = super::crates().join(krate).join("src");
    let Ok(text) = fs::read_to_string(source.join("lib.rs")) else { return Vec::new() };
    let text = super::circles::code(&text);
    let is_own = |path: &Vec<String>| {
        let module = path[0].trim_start_matches("self");
        path.len() > 1
            && (source.join(format!("{module}.rs")).exists() || source.join(module).is_dir())
    };
    let used = text.split("\npub use ").skip(1);
    let paths = used.flat_map(|text| super::circles::tree(text).0).filter(is_own);
    let names = paths.filter_map(|mut path| path.pop());
    let is_type =
        |name: &String| name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
    names.filter(is_type).collect()
}
