use super::*;

const LONGEST: usize = 1_000;

fn text(text: &str) -> Parsed {
    let (result, status) = (Some(text.to_owned()), Status::Success);
    Parsed::Block(Block { status, result, new_session_id: None, error: None, inputs: None })
}

fn written(json: &str) -> String {
    format!("---NANOCLAW_OUTPUT_START---\n{json}\n---NANOCLAW_OUTPUT_END---\n")
}

fn parse<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Parsed> {
    let mut parser = BlockParser::new(LONGEST);
    let mut found = Vec::new();
    for chunk in chunks {
        parser.feed(chunk, &mut |parsed| found.push(parsed));
        assert!(parser.buffer.len() <= LONGEST + chunk.len(), "it keeps {}", parser.buffer.len());
    }
    parser.finish(&mut |parsed| found.push(parsed));
    found
}

#[test]
fn chunks_may_end_anywhere() {
    let output = format!(
        "noise ---NANOCLAW_OUTPUT_{}---NANOCLAW{}more noise",
        written(r#"{"status":"success","result":"Grüße","newSessionId":null,"extra":1}"#),
        written(r#"{"result":"two"}"#),
    );
    let wanted = vec![text("Grüße"), text("two")];
    let bytes = output.as_bytes();
    for size in 1..bytes.len() {
        assert_eq!(parse(bytes.chunks(size)), wanted, "chunks of {size}");
    }
    for cut in 0..bytes.len() {
        assert_eq!(parse([&bytes[..cut], &bytes[cut..]]), wanted, "cut at {cut}");
    }
}

#[test]
fn what_is_no_block_is_left_out() {
    let unusable = |json: &str| {
        let output = format!("{}{}", written(json), written(r#"{"result":"next"}"#));
        let found = parse([output.as_bytes()]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(matches!(&found[0], Parsed::Unusable(_)), "{found:?}");
        assert_eq!(found[1], text("next"));
    };
    for json in ["", "not JSON", "[1]", r#"{"result":1}"#, r#"{"status":"done"}"#, "\0\u{fffd}"] {
        unusable(json);
    }
    unusable(&format!(r#"{{"result":"{}"}}"#, "x".repeat(LONGEST)));
}

#[test]
fn a_block_without_an_end_does_not_swallow_the_next_one() {
    let output = format!("---NANOCLAW_OUTPUT_START---\n{{\"res{}", written(r#"{"result":"a"}"#));
    assert_eq!(parse([output.as_bytes()]), vec![text("a")]);
    let found = parse([&b"---NANOCLAW_OUTPUT_START---\n{\"result\":\"a\"}"[..]]);
    assert_eq!(found, vec![Parsed::Unusable("the last block has no end".to_owned())]);
}

#[test]
fn an_endless_output_needs_no_memory() {
    let noise = vec![b'-'; 10_000];
    assert_eq!(parse(std::iter::repeat_n(noise.as_slice(), 100)), Vec::new());
    let begun = b"---NANOCLAW_OUTPUT_START---".as_slice();
    let endless = std::iter::once(begun).chain(std::iter::repeat_n(noise.as_slice(), 100));
    assert_eq!(parse(endless).len(), 1);
}
