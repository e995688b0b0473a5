use myclaw_llm::{ResolveModel, resolve_model};

use super::*;

fn choice(id: &str, window: u64, source: WindowSource) -> ActiveModel {
    let resolve = ResolveModel { provider: "lab", id, base_url: None, api: None };
    let mut model = resolve_model(resolve);
    model.context_window = window;
    ActiveModel { window: source, ..ActiveModel::new(model, Vec::new()) }
}

#[test]
fn the_limits_hold_to_the_token() {
    for (tokens, source, notices) in [
        (32_000, WindowSource::Known, Some(0)),
        (31_999, WindowSource::Known, Some(1)),
        (16_000, WindowSource::Known, Some(1)),
        (15_999, WindowSource::Known, None),
        (15_999, WindowSource::Stated, Some(1)),
        (8_192, WindowSource::Stated, Some(1)),
    ] {
        let guarded = guard(vec![choice("m", tokens, source)]);
        assert_eq!(guarded.ok().map(|(_, notices)| notices.len()), notices, "{tokens} {source:?}");
    }
}

#[test]
fn a_refusal_names_the_model_its_tokens_and_the_minimum() {
    let Err(error) = guard(vec![choice("tiny", 4_096, WindowSource::Known)]) else { panic!() };
    let text = error.to_string();
    assert!(text.contains("lab/tiny") && text.contains("4096") && text.contains("16000"), "{text}");
    assert_eq!(error.class(), "window_too_small");
}

#[test]
fn a_model_that_is_too_small_is_passed_over_for_the_next() {
    let choices = vec![
        choice("tiny", 4_096, WindowSource::Known),
        choice("large", 200_000, WindowSource::Known),
    ];
    let (kept, notices) = guard(choices).unwrap_or_default();
    assert_eq!(kept.iter().map(ActiveModel::reference).collect::<Vec<_>>(), ["lab/large"]);
    assert_eq!(notices.len(), 1);
}
