//! Suggests the known word that is nearest to an unknown one.

use strsim::osa_distance;

/// The candidate that `word` most likely means, if one is near enough: equal except for case, `_` and `-`, or with
/// at most a third of the letters different.
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

/// Longest word that is compared; known words are much shorter, and the cost is quadratic.
const MAX_COMPARED: usize = 64;

/// The word without differences of case, `_` and `-`.
pub(crate) fn plain(word: &str) -> String {
    word.chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .flat_map(char::to_lowercase)
        .take(MAX_COMPARED)
        .collect()
}

#[cfg(test)]
mod tests;
