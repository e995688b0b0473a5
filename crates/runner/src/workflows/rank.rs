//! Which workflows fit a description.

use std::collections::{HashMap, HashSet};

use super::Workflow;

/// A workflow that fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// Its place in the list that was given.
    pub index: usize,
    /// How well it fits: more is better, and every ranker has its own scale.
    pub score: f64,
}

/// The workflows that fit, and what decided that.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// What the ranking went by, for the result: "ranked by …".
    pub by: &'static str,
    /// Why it is not as good as it could be: a sentence that says what to do.
    pub shortcoming: Option<String>,
    /// The best first.
    pub ranked: Vec<Ranked>,
}

/// Ranks workflows by how well they fit a description. Blocks, for seconds where a model must be read first.
pub trait Ranker: Send + Sync {
    /// What the ranking goes by, for the result: "ranked by …".
    fn name(&self) -> &'static str;

    /// The workflows that fit, the best first. Those that do not fit are left out.
    ///
    /// # Errors
    /// There is no ranking; the text says why.
    fn rank(&self, query: &str, workflows: &[Workflow]) -> Result<Vec<Ranked>, String>;

    /// The same with what the ranking went by, which a ranker that falls back to another one knows only then.
    ///
    /// # Errors
    /// As for [`Ranker::rank`].
    fn ranking(&self, query: &str, workflows: &[Workflow]) -> Result<Ranking, String> {
        let ranked = self.rank(query, workflows)?;
        Ok(Ranking { by: self.name(), shortcoming: None, ranked })
    }
}

/// Ranks by words that the query and a workflow share (BM25). A rare word counts for more than a common one, and a word
/// of the name for more than one of the description.
#[derive(Debug, Clone, Copy)]
pub struct KeywordRanker;

/// The usual constants of BM25: how much a word that is repeated adds, and how much a long text loses.
const SATURATION: f64 = 1.2;
const LENGTH_LOSS: f64 = 0.75;
/// How often a word of the name counts.
const NAME_WEIGHT: usize = 2;
/// Words without meaning for a search.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "at", "by", "can", "for", "from", "i", "in", "is", "it", "me", "my",
    "of", "on", "or", "please", "that", "the", "this", "to", "was", "what", "with", "you", "your",
];

impl Ranker for KeywordRanker {
    fn name(&self) -> &'static str {
        "keywords"
    }

    fn rank(&self, query: &str, workflows: &[Workflow]) -> Result<Vec<Ranked>, String> {
        let wanted: HashSet<String> = words(query).collect();
        let texts: Vec<Vec<String>> = workflows.iter().map(text).collect();
        let mut holders: HashMap<&str, f64> = HashMap::new();
        for text in &texts {
            let distinct: HashSet<&str> = text.iter().map(String::as_str).collect();
            distinct.into_iter().for_each(|word| *holders.entry(word).or_default() += 1.0);
        }
        let count = texts.len() as f64;
        let average = texts.iter().map(Vec::len).sum::<usize>() as f64 / count.max(1.0);
        let score = |text: &Vec<String>| -> f64 {
            let length =
                LENGTH_LOSS.mul_add(text.len() as f64 / average.max(1.0), 1.0 - LENGTH_LOSS);
            wanted
                .iter()
                .map(|word| {
                    let found = text.iter().filter(|other| *other == word).count() as f64;
                    let holders = holders.get(word.as_str()).copied().unwrap_or_default();
                    let rarity = ((count - holders + 0.5) / (holders + 0.5) + 1.0).ln();
                    rarity * found * (SATURATION + 1.0) / SATURATION.mul_add(length, found)
                })
                .sum()
        };
        let mut ranked: Vec<Ranked> = texts
            .iter()
            .enumerate()
            .map(|(index, text)| Ranked { index, score: score(text) })
            .filter(|ranked| ranked.score > 0.0)
            .collect();
        ranked.sort_by(|left, right| right.score.total_cmp(&left.score));
        Ok(ranked)
    }
}

/// The words of a workflow.
fn text(workflow: &Workflow) -> Vec<String> {
    let name = words(&workflow.name).collect::<Vec<_>>();
    let mut text = words(&workflow.description).collect::<Vec<_>>();
    text.extend(workflow.args.iter().flat_map(|name| words(name)));
    for _ in 0..NAME_WEIGHT {
        text.extend_from_slice(&name);
    }
    text
}

/// The words of a text, in lower case and without the usual endings of English.
fn words(text: &str) -> impl Iterator<Item = String> {
    let lower = text.to_lowercase();
    let words: Vec<String> = lower
        .split(|char: char| !char.is_alphanumeric())
        .filter(|word| !word.is_empty() && !STOP_WORDS.contains(word))
        .map(stem)
        .collect();
    words.into_iter()
}

/// Cuts endings so that `invoices`, `invoice` and `invoicing` are one word. What is left need not be a word.
fn stem(word: &str) -> String {
    /// Fewer characters than this are never cut down to.
    const SHORTEST: usize = 3;
    for ending in ["ing", "ies", "ed", "es", "s", "e", "y"] {
        if let Some(rest) = word.strip_suffix(ending)
            && rest.chars().count() >= SHORTEST
        {
            return rest.to_owned();
        }
    }
    word.to_owned()
}

#[cfg(test)]
mod tests;
