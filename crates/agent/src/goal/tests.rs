use super::*;

#[test]
fn a_goal_ends_at_the_first_of_its_bounds() {
    let fresh = Goal::new("x").unwrap();
    let used_up = Goal { turns_left: 0, ..fresh.clone() };
    let minutes = |count: u64| Duration::from_secs(count * 60);
    let reached = |goal: &Goal, elapsed: Duration, spent: f64| {
        Pursuit::begin(goal.clone(), 1.0).bound_after(elapsed, spent)
    };
    assert_eq!(reached(&fresh, minutes(119), 5.99), None);
    assert_eq!(reached(&fresh, minutes(119), 6.0).as_deref(), Some("it cost $5.00"));
    assert_eq!(reached(&fresh, minutes(120), 1.0).as_deref(), Some("it took two hours"));
    assert_eq!(reached(&used_up, minutes(0), 1.0).as_deref(), Some("its turns are used up"));
    assert_eq!(reached(&used_up.taken_up(), minutes(0), 1.0), None);
}

#[test]
fn a_goal_without_a_condition_is_refused() {
    for text in ["", "  ", "!", " ! "] {
        let error = Goal::new(text).unwrap_err();
        assert_eq!(error.message, "a goal needs a condition, or a command behind `!`");
    }
}
