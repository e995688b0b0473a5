//! Guessing what was meant.

/// How a message goes on that named `wanted`: `; did you mean `x`?`, or just a full stop.
pub(crate) fn did_you_mean<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> String {
    nearest(wanted, candidates)
        .map_or_else(|| ".".to_owned(), |name| format!("; did you mean `{name}`?"))
}

/// The candidate that `wanted` is most likely a slip of: at most a third of its letters differ, or it is the beginning
/// of the candidate.
fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    if wanted.is_empty() {
        return None;
    }
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let name = candidate.to_lowercase();
            let distance = edit_distance(&wanted, &name);
            let allowed = name.chars().count().div_ceil(3);
            (distance <= allowed || name.starts_with(&wanted)).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, delete, replace or swap with their neighbour.
fn edit_distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, left_char) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, right_char) in right.iter().enumerate() {
            let replaced = last[column] + usize::from(left_char != right_char);
            let mut best = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            let is_swap = row > 0
                && column > 0
                && *left_char == right[column - 1]
                && left[row - 1] == *right_char;
            if is_swap {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests;
