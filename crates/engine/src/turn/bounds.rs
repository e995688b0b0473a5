//! Step `bounds`: what ends a turn that would go on.

use super::Turn;

/// Whether the iteration cap is reached. A run without a cap still ends by abort.
pub(super) fn iterations_are_used_up(turn: &Turn<'_>) -> bool {
    turn.limits.max_iterations.is_some_and(|cap| turn.tally.iterations >= cap)
}
