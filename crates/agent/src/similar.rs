//! Suggestions for a name that does not exist.

use strsim::osa_distance;

/// The end of a message about the unknown name `wanted`: `; did you mean `x`?`, or a full stop.
pub fn did_you_mean<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wanted, candidates)
        .map_or_else(|| ".".to_owned(), |name| format!("; did you mean `{name}`?"))
}

/// The candidate that is most similar to `wanted`: at most a third of its letters differ, or `wanted` is the beginning
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
            let distance = osa_distance(&wanted, &name);
            let allowed = name.chars().count().div_ceil(3);
            (distance <= allowed || name.starts_with(&wanted)).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests;
