//! The known word nearest to one that is not known.

use strsim::osa_distance;

/// The candidate that `word` most likely was meant to be, if any is near enough: the same but for case, `_` and `-`, or
/// at most a third of the letters off.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = plain(word);
    let most = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (osa_distance(&word, &plain(candidate)), candidate))
        .filter(|&(distance, candidate)| distance <= most && distance < candidate.chars().count())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Longest word that is compared; none of the known ones is nearly so long, and the cost is quadratic.
const MAX_COMPARED: usize = 64;

fn plain(word: &str) -> String {
    word.chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .flat_map(char::to_lowercase)
        .take(MAX_COMPARED)
        .collect()
}

#[cfg(test)]
mod tests;
