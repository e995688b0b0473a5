use serde_json::{Value, json};

use super::*;

async fn read_all(bytes: &[u8]) -> io::Result<Vec<Value>> {
    let mut input = bytes;
    let mut messages = Vec::new();
    while let Some(message) = read(&mut input).await? {
        messages.push(message);
    }
    Ok(messages)
}

#[tokio::test]
async fn messages_arrive_as_they_were_sent() {
    let messages = [json!({"text": "a\nb\0"}), json!({"text": "x".repeat(3 * STEP)}), json!(null)];
    let bytes: Vec<u8> = messages.iter().flat_map(|message| encode(message).unwrap()).collect();
    assert_eq!(read_all(&bytes).await.unwrap(), messages);
}

#[tokio::test]
async fn an_end_within_a_message_is_an_error() {
    let bytes = encode(&json!({"text": "abc"})).unwrap();
    for length in 1..bytes.len() {
        let error = read_all(&bytes[..length]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{length}");
    }
}

#[tokio::test]
async fn bytes_that_are_no_message_are_an_error() {
    let mut too_long = u32::MAX.to_be_bytes().to_vec();
    too_long.extend_from_slice(b"{}");
    let mut no_json = 3_u32.to_be_bytes().to_vec();
    no_json.extend_from_slice(b"{]}");
    let mut deep = u32::try_from(10_000).unwrap().to_be_bytes().to_vec();
    deep.extend(std::iter::repeat_n(b'[', 10_000));
    for bytes in [too_long, no_json, deep] {
        let error = read_all(&bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
