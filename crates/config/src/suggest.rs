//! The known word nearest to one that is not known.

/// The candidate that `word` most likely was meant to be, if any is near enough: the same but for case, `_` and `-`, or
/// at most a third of the letters off.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = plain(word);
    let most = (word.len() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, &plain(candidate)), candidate))
        .filter(|&(distance, candidate)| distance <= most && distance < candidate.chars().count())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Longest word that is compared; none of the known ones is nearly so long, and the cost is quadratic.
const MAX_COMPARED: usize = 64;

fn plain(word: &str) -> Vec<char> {
    word.chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .flat_map(char::to_lowercase)
        .take(MAX_COMPARED)
        .collect()
}

/// How many letters must be added, dropped, changed or swapped with their neighbour.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before_last = vec![0; right.len() + 1];
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, &letter) in left.iter().enumerate() {
        let mut current = vec![row + 1; right.len() + 1];
        for (column, &other) in right.iter().enumerate() {
            let mut best = (last[column] + usize::from(letter != other))
                .min(last[column + 1] + 1)
                .min(current[column] + 1);
            if row > 0 && column > 0 && letter == right[column - 1] && left[row - 1] == other {
                best = best.min(before_last[column - 1] + 1);
            }
            current[column + 1] = best;
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests;
