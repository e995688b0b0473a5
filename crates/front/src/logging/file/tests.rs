use super::*;

#[test]
fn a_full_file_is_put_aside_and_the_oldest_goes() {
    let directory = tempfile::tempdir().unwrap();
    let open =
        || RotatingFile { max_bytes: 10, ..RotatingFile::in_directory(directory.path().into()) };
    // Two processes that write in turn.
    let (one, other) = (open(), open());
    for number in 0..20 {
        let writer = if number % 2 == 0 { &one } else { &other };
        writer.append(format!("line {number:02}\n").as_bytes()).unwrap();
    }
    let mut kept = Vec::new();
    for name in ["myclaw.log", "myclaw.log.1", "myclaw.log.2", "myclaw.log.3", "myclaw.log.4"] {
        kept.push(fs::read_to_string(directory.path().join(name)).unwrap());
    }
    assert_eq!(
        kept,
        [
            "line 18\nline 19\n",
            "line 16\nline 17\n",
            "line 14\nline 15\n",
            "line 12\nline 13\n",
            "line 10\nline 11\n",
        ]
    );
    assert!(!directory.path().join("myclaw.log.5").exists());
}
