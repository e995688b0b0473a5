use super::*;

#[test]
fn a_goal_ends_at_the_first_of_its_bounds() {
    let work = GoalWork::begin(1.0);
    let (fresh, used_up) = (Goal::new("x"), Goal { turns_left: 0, ..Goal::new("x") });
    let minutes = |count: u64| Duration::from_secs(count * 60);
    let reached =
        |goal: &Goal, elapsed: Duration, spent: f64| work.bound_after(goal, elapsed, spent);
    assert_eq!(reached(&fresh, minutes(119), 5.99), None);
    assert_eq!(reached(&fresh, minutes(119), 6.0).as_deref(), Some("it cost $5.00"));
    assert_eq!(reached(&fresh, minutes(120), 1.0).as_deref(), Some("it took two hours"));
    assert_eq!(reached(&used_up, minutes(0), 1.0).as_deref(), Some("its turns are used up"));
    assert_eq!(reached(&used_up.taken_up(), minutes(0), 1.0), None);
}
