use super::{MAX_STDIN_BYTES, message, read_message};
use myclaw_front::exit::Exit;

#[test]
fn words_are_one_message() {
    assert_eq!(message(&["say".to_owned(), "hello".to_owned()]), Ok("say hello".to_owned()));
}

#[test]
fn blank_messages_are_refused() {
    for words in [vec![String::new()], vec![" ".to_owned(), "\n".to_owned()]] {
        assert_eq!(message(&words).expect_err("blank").exit, Exit::Usage);
    }
}

#[test]
fn standard_input_loses_its_last_line_ends_only() {
    assert_eq!(read_message(b" a\n\nb \r\n\n".as_slice()), Ok(" a\n\nb ".to_owned()));
}

#[test]
fn standard_input_is_bounded_and_text() {
    let limit = usize::try_from(MAX_STDIN_BYTES).expect("fits");
    assert!(read_message(vec![b'a'; limit].as_slice()).is_ok());
    let error = read_message(std::io::repeat(b'a')).expect_err("too large");
    assert!(error.message.contains("10 MiB"), "{error}");
    let error = read_message(b"ab\xff".as_slice()).expect_err("no text");
    assert!(error.message.contains("(byte 3)"), "{error}");
}
