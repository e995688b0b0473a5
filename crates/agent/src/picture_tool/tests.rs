//! Tests of the files of pictures.

use super::*;

const PIXEL: &[u8] = include_bytes!("../../../cli/tests/data/pixel.png");

#[test]
fn pictures_of_one_millisecond_have_files_of_their_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let save = || save(directory.path(), PIXEL).expect("saved").0;
    let mut paths: Vec<PathBuf> = (0..50).map(|_| save()).collect();
    paths.dedup();
    assert_eq!(paths.len(), 50);
    assert!(paths.iter().all(|path| std::fs::read(path).expect("a picture") == PIXEL));
}
