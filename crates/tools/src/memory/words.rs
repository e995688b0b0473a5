//! Ranks passages by the words of a query, as BM25 does, with scores from 0 to 1.

use std::collections::HashMap;

/// Most words of a query that count.
const MAX_WORDS: usize = 64;
/// How soon a word that occurs often stops to count more: the usual `k1` of BM25.
const SATURATION: f64 = 1.2;
/// How much long passages are held back: the usual `b` of BM25.
const LENGTH_WEIGHT: f64 = 0.75;
/// Words from this length on also match words that begin with them, as in "invoice" and "invoices".
const SHORTEST_STEM: usize = 4;
/// By how much such words may differ in length.
const LONGEST_ENDING: usize = 3;
/// How much such a word counts.
const STEM_WEIGHT: f64 = 0.5;

/// The words of a query, and how often each occurs in the passages.
pub(super) struct Query {
    /// Each word with its place in the counts.
    words: HashMap<String, usize>,
    passages: Vec<Counts>,
}

struct Counts {
    of_words: Box<[f64]>,
    length: f64,
}

impl Query {
    pub(super) fn new(text: &str) -> Self {
        let mut all = HashMap::new();
        for word in words(text) {
            let next = all.len();
            if next < MAX_WORDS {
                all.entry(word).or_insert(next);
            }
        }
        Self { words: all, passages: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Counts the words in the next passage. The words of its path count too: notes are often named by day or subject.
    pub(super) fn count(&mut self, path: &str, text: &str) {
        let mut of_words = vec![0.0; self.words.len()].into_boxed_slice();
        let mut length = 0.0;
        for word in words(path).into_iter().chain(words(text)) {
            length += 1.0;
            if let Some(place) = self.words.get(&word) {
                of_words[*place] += 1.0;
                continue;
            }
            for (wanted, place) in &self.words {
                if have_one_stem(wanted, &word) {
                    of_words[*place] += STEM_WEIGHT;
                }
            }
        }
        self.passages.push(Counts { of_words, length });
    }

    /// The score of each passage: the share of the query's words that it has, where rare words count more. Words that
    /// occur nowhere do not count.
    pub(super) fn scores(&self) -> Vec<f64> {
        let total = self.passages.len() as f64;
        let average = self.passages.iter().map(|passage| passage.length).sum::<f64>() / total;
        let rarity: Vec<f64> = (0..self.words.len())
            .map(|place| {
                let having =
                    self.passages.iter().filter(|passage| passage.of_words[place] > 0.0).count();
                let having = having as f64;
                let rarity = (1.0 + (total - having + 0.5) / (having + 0.5)).ln();
                if having > 0.0 { rarity } else { 0.0 }
            })
            .collect();
        let best: f64 = rarity.iter().sum();
        let score = |passage: &Counts| {
            let length = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * passage.length / average;
            let parts = passage.of_words.iter().zip(&rarity);
            let sum: f64 =
                parts.map(|(count, rarity)| rarity * count / (count + SATURATION * length)).sum();
            if best > 0.0 { sum / best } else { 0.0 }
        };
        self.passages.iter().map(score).collect()
    }
}

/// Whether one word is the beginning of the other, up to a short ending.
fn have_one_stem(left: &str, right: &str) -> bool {
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    long.starts_with(short)
        && short.chars().count() >= SHORTEST_STEM
        && long[short.len()..].chars().count() <= LONGEST_ENDING
}

/// The words of a text, in lower case. Chinese and Japanese are written without spaces, so each of their characters is a
/// word.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for char in text.chars() {
        let stands_alone = is_ideograph(char);
        if (stands_alone || !char.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if stands_alone {
            words.push(char.to_string());
        } else if char.is_alphanumeric() {
            word.extend(char.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Hiragana, Katakana, and the blocks of Chinese characters.
fn is_ideograph(char: char) -> bool {
    matches!(char, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests;
