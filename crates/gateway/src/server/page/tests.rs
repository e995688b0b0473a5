use std::collections::BTreeSet;
use std::path::Path;

use super::FILES;

#[test]
fn every_built_file_is_served_plain_and_compressed() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web-ui/dist");
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let built: BTreeSet<String> = entries.map(|name| name.into_string().unwrap()).collect();
    let names = FILES.iter().map(|file| match file.path {
        "/" => "index.html",
        path => path.trim_start_matches('/'),
    });
    let served = names.flat_map(|name| [name.to_owned(), format!("{name}.gz")]).collect();
    assert_eq!(built, served);
}
