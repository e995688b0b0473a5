use super::*;
use crate::demo_model;
use ThinkingLevel::*;

fn model(levels: &[(ThinkingLevel, Option<&str>)]) -> Model {
    let levels = levels.iter().map(|(level, word)| (*level, word.map(str::to_owned)));
    Model { reasoning: true, thinking_levels: ThinkingLevels::new(levels), ..demo_model() }
}

#[test]
fn a_level_that_is_not_offered_becomes_the_next_lower_or_else_the_lowest() {
    let always_thinks = model(&[(Low, None), (High, None)]);
    let effective = ThinkingLevel::ALL.map(|level| always_thinks.thinking_level(level));
    assert_eq!(effective, [Low, Low, Low, Low, High, High]);
    let unlisted = ThinkingLevel::ALL.map(|level| model(&[]).thinking_level(level));
    assert_eq!(unlisted, [Off, Minimal, Low, Medium, High, High]);
}

#[test]
fn a_model_that_cannot_think_is_off() {
    let model = Model { reasoning: false, ..model(&[]) };
    assert!(ThinkingLevel::ALL.iter().all(|level| model.thinking_level(*level) == Off));
}

#[test]
fn the_word_is_the_providers_where_it_has_its_own() {
    let model = model(&[(Xhigh, Some("max")), (High, None)]);
    assert_eq!((model.thinking_word(Xhigh), model.thinking_word(High)), ("max", "high"));
}

#[test]
fn words_are_read_and_others_refused() {
    assert_eq!(" XHigh ".parse(), Ok(Xhigh));
    let error = "more".parse::<ThinkingLevel>().map_err(|error| error.to_string());
    assert_eq!(
        error,
        Err("\"more\" is not a thinking level: use off, minimal, low, medium, high or xhigh"
            .to_owned())
    );
}
