use super::*;

#[test]
fn a_goal_ends_at_the_first_of_its_bounds() {
    let fresh = Goal::new("x").unwrap();
    let used_up = Goal { turns_left: 0, ..fresh.clone() };
    let reached = |goal: &Goal, minutes: u64, cost: f64, most_cost: f64| {
        let goal = Goal { seconds: minutes * 60, cost, ..goal.clone() };
        let (before, begun) = ((cost, goal.seconds), Instant::now());
        Pursuit { goal, before, begun, spent_before: 0.0, most_cost }.bound()
    };
    assert_eq!(reached(&fresh, 119, 4.99, MOST_COST), None);
    assert_eq!(reached(&fresh, 119, 5.0, MOST_COST).as_deref(), Some("it cost $5.00"));
    assert_eq!(reached(&fresh, 0, 5.0, 6.0), None);
    assert_eq!(reached(&fresh, 120, 1.0, MOST_COST).as_deref(), Some("it took two hours"));
    assert_eq!(reached(&used_up, 0, 1.0, MOST_COST).as_deref(), Some("its turns are used up"));
    let again = Goal { cost: 5.0, seconds: 7_200, ..used_up }.taken_up();
    assert_eq!((again.turns_left, again.cost, again.seconds), (MOST_TURNS, 0.0, 0));
}

#[test]
fn a_goal_without_a_condition_is_refused() {
    for text in ["", "  ", "!", " ! "] {
        let error = Goal::new(text).unwrap_err();
        assert_eq!(error.message, "a goal needs a condition, or a command behind `!`");
    }
}
