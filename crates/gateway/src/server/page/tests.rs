use std::collections::BTreeSet;
use std::path::Path;

use super::{FILES, MERMAID, expanded};

#[test]
fn every_built_file_is_served_plain_and_compressed() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web-ui/dist");
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let built: BTreeSet<String> = entries.map(|name| name.into_string().unwrap()).collect();
    let names = FILES.iter().map(|file| match file.path {
        "/" => "index.html",
        path => path.trim_start_matches('/'),
    });
    let mut served: BTreeSet<String> =
        names.flat_map(|name| [name.to_owned(), format!("{name}.gz")]).collect();
    // The large one is there compressed alone.
    assert!(served.remove(&MERMAID[1..]));
    assert_eq!(built, served);
    for file in &FILES {
        let plain = expanded(file.gzip);
        assert!(plain.len() > 100, "{}", file.path);
        assert!(file.plain.is_none_or(|own| own == plain), "{}", file.path);
    }
}
