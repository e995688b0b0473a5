use super::*;

async fn all(input: &[u8], most: usize) -> Vec<Line> {
    let mut lines = Lines::new(input, most);
    let mut found = Vec::new();
    while let Some(line) = lines.next().await.unwrap() {
        found.push(line);
    }
    found
}

#[tokio::test]
async fn lines_end_at_any_end_and_at_the_end_of_the_stream() {
    let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
    assert_eq!(all(b"a\r\nb\n\nc", 10).await, [whole("a"), whole("b"), whole(""), whole("c")]);
    assert_eq!(all(b"", 10).await, []);
}

#[tokio::test]
async fn of_a_line_that_is_too_long_the_ends_stay() {
    let mut input = b"{\"id\":7,".to_vec();
    input.extend(vec![b'x'; 300_000]);
    input.extend(b",\"end\":1}\nnext\n");
    let found = all(&input, 1_000).await;
    let [Line::TooLong { head, tail, bytes }, Line::Whole(next)] = &found[..] else {
        panic!("{} lines", found.len());
    };
    assert!(head.starts_with(b"{\"id\":7,") && tail.ends_with(b",\"end\":1}"));
    assert_eq!((head.len(), tail.len(), *bytes), (512, 512, 300_017));
    assert_eq!(next, b"next");
}
