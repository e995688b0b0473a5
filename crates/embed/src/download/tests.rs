use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::sync::Mutex;

use tempfile::TempDir;

use super::*;

const CONTENT: &[u8] = b"the weights of a model";

fn digest_of(content: &[u8]) -> String {
    let digest = ring::digest::digest(&SHA256, content);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Answers each connection with the next of `answers`, a head and a body; returns the address and, later, the ranges that
/// were asked for.
fn serve(answers: Vec<(String, Vec<u8>)>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for (head, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(&stream).lines().map(Result::unwrap);
            let head_lines: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let range = head_lines.iter().find_map(|line| line.strip_prefix("range: "));
            asked.push(range.unwrap_or("all").to_owned());
            stream
                .write_all(format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n").as_bytes())
                .unwrap();
            stream.write_all(&body).unwrap();
        }
        asked
    });
    (address, thread)
}

fn answer(status: &str, length: usize, body: &[u8]) -> (String, Vec<u8>) {
    (format!("{status}\r\ncontent-length: {length}"), body.to_owned())
}

fn fetch(address: &str, directory: &Path) -> Result<Vec<String>, String> {
    let checksums = format!("{}  onnx/model.onnx\n", digest_of(CONTENT));
    let source = Source::new(Some(address), Some(&checksums)).unwrap();
    let lines = Mutex::new(Vec::new());
    let outcome = source.fetch(directory, &|line| lines.lock().unwrap().push(line.to_owned()));
    outcome.map_err(|error| error.to_string())?;
    Ok(lines.into_inner().unwrap())
}

#[test]
fn a_download_that_was_cut_off_is_continued() {
    let directory = TempDir::new().unwrap();
    let (address, server) = serve(vec![
        answer("200 OK", CONTENT.len(), &CONTENT[..10]),
        answer("206 Partial Content", CONTENT.len() - 10, &CONTENT[10..]),
    ]);
    let error = fetch(&address, directory.path()).unwrap_err();
    assert!(error.contains("/onnx/model.onnx cannot be downloaded: "), "{error}");
    assert!(!directory.path().join("onnx/model.onnx").exists());
    let lines = fetch(&address, directory.path()).unwrap();
    assert!(lines[0].contains("downloading http://127.0.0.1"), "{lines:?}");
    assert_eq!(server.join().unwrap(), ["all", "bytes=10-"]);
    assert_eq!(std::fs::read(directory.path().join("onnx/model.onnx")).unwrap(), CONTENT);
    assert_eq!(std::fs::read_dir(directory.path().join("onnx")).unwrap().count(), 1);
    // What is there is not asked for again.
    fetch(&address, directory.path()).unwrap();
}

#[test]
fn a_server_that_cannot_continue_begins_again() {
    let directory = TempDir::new().unwrap();
    std::fs::create_dir(directory.path().join("onnx")).unwrap();
    let partial = directory.path().join("onnx/model.onnx.partial");
    std::fs::write(&partial, "something longer than the file that is wanted").unwrap();
    let (address, server) = serve(vec![
        answer("416 Range Not Satisfiable", 0, b""),
        answer("200 OK", CONTENT.len(), CONTENT),
    ]);
    fetch(&address, directory.path()).unwrap();
    assert_eq!(server.join().unwrap(), ["bytes=45-", "all"]);
    assert_eq!(std::fs::read(directory.path().join("onnx/model.onnx")).unwrap(), CONTENT);
}

#[test]
fn another_content_is_not_kept() {
    let directory = TempDir::new().unwrap();
    let (address, server) =
        serve(vec![answer("200 OK", 5, b"wrong"), answer("404 Not Found", 0, b"")]);
    let error = fetch(&address, directory.path()).unwrap_err();
    let digest = digest_of(b"wrong");
    assert!(
        error.contains(&format!("is not the expected file: its SHA-256 is {digest}")),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(directory.path().join("onnx")).unwrap().count(), 0);
    let error = fetch(&address, directory.path()).unwrap_err();
    assert!(error.contains("the server answers 404 Not Found"), "{error}");
    server.join().unwrap();
    let error = fetch(&address, directory.path()).unwrap_err();
    assert!(error.contains("Connection refused"), "{error}");
}

#[test]
fn a_source_must_be_an_address_and_a_list() {
    assert!(Source::new(None, None).is_ok());
    for base in ["", "ftp://example.org", "/models", "http:"] {
        let error = Source::new(Some(base), None).err().unwrap().to_string();
        assert!(error.contains("is no address of http"), "{error}");
    }
    let digest = digest_of(CONTENT);
    for list in [
        String::new(),
        "abc  model.onnx".to_owned(),
        format!("{digest} model.onnx"),
        format!("{digest}  ../model.onnx"),
        format!("{digest}  /model.onnx"),
        format!("{digest}  a?b"),
        format!("{digest}  onnx//model.onnx"),
    ] {
        let error = Source::new(None, Some(&list)).err().unwrap().to_string();
        assert!(error.starts_with("line 1 of the checksums"), "{list}: {error}");
    }
}
