use super::*;

fn refused<T: DeserializeOwned + Default + std::fmt::Debug>(printed: &str) -> String {
    read::<T>(printed).unwrap_err().to_string()
}

#[test]
fn nothing_is_no_change() {
    for printed in ["", " \n\t", "{}"] {
        assert_eq!(read::<CallAnswer>(printed), Ok(CallAnswer::default()), "{printed:?}");
    }
}

#[test]
fn what_is_no_answer_is_named_and_quoted() {
    let garbage = "x".repeat(1_000);
    let message = refused::<CallAnswer>(&garbage);
    assert!(
        message.starts_with("its answer cannot be used: expected value at line 1"),
        "{message}"
    );
    assert!(message.ends_with(&format!(". It began: {}…", &garbage[..100])), "{message}");
    for (printed, named) in [
        ("[]", "expected a map"),
        ("null", "expected a map"),
        ("{\"decison\": \"block\"}", "unknown field `decison`"),
        ("{\"decision\": \"deny\"}", "unknown variant `deny`"),
        ("{\"arguments\": [1]}", "expected a map"),
        ("{} {}", "trailing characters"),
    ] {
        let message = refused::<CallAnswer>(printed);
        assert!(message.contains(named), "{printed}: {message}");
    }
}

#[test]
fn a_reason_needs_a_decision() {
    let reason = |printed| read::<CallAnswer>(printed).unwrap().block_reason();
    assert_eq!(reason(r#"{"decision":"block","reason":"no"}"#), Ok(Some("no".to_owned())));
    assert_eq!(reason(r#"{"decision":"block"}"#), Ok(Some("it gave no reason".to_owned())));
    let question = |printed| {
        let mut answer = read::<CallAnswer>(printed).unwrap();
        (answer.approval_reason(), answer.block_reason())
    };
    let asked = Some("it deletes files".to_owned());
    assert_eq!(question(r#"{"decision":"ask","reason":"it deletes files"}"#), (asked, Ok(None)));
    assert_eq!(question(r#"{"decision":"allow"}"#), (None, Ok(None)));
    assert!(read::<StartAnswer>(r#"{"decision":"ask"}"#).unwrap().block_reason().is_err());
    assert_eq!(reason(r#"{"decision":"allow","reason":"fine"}"#), Ok(None));
    assert!(reason(r#"{"reason":"no"}"#).is_err());
}

#[test]
fn new_messages_of_the_user_need_a_role_and_a_text() {
    let answer: ContextAnswer =
        read(r#"{"messages":[{"role":"user","content":"hello"}]}"#).unwrap();
    let hello = Message::User(myclaw_llm::UserMessage::text("hello", 0));
    assert_eq!(answer.messages, Some(vec![hello.clone()]));
    let printed = json!({ "messages": [hello] }).to_string();
    assert_eq!(read::<ContextAnswer>(&printed), Ok(answer));
    assert!(refused::<ContextAnswer>(r#"{"messages":[{"role":"robot"}]}"#).contains("`robot`"));
}

#[test]
fn a_result_is_a_text_or_blocks() {
    let text = read::<ResultAnswer>(r#"{"content":"a"}"#).unwrap();
    let blocks = read::<ResultAnswer>(r#"{"content":[{"type":"text","text":"a"}]}"#).unwrap();
    assert_eq!(text, blocks);
    assert_eq!(text.content, Some(vec![ContentBlock::text("a")]));
}
