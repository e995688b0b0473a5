//! The words of a text as the index has them: in lower case, without common endings, and without words that say nothing.

/// Most bytes of a word. Longer ones are keys, addresses and data, of which the beginning is enough.
const MAX_WORD_BYTES: usize = 40;

/// Words that are in most texts.
const COMMON: &str = " a an the and or but of to in on at by for from with about as into is are was were be been am do does \
                      did have has had it its this that these those there here i me my we our you your he she they them his \
                      her their what which who whom whose when where why how not no yes so if then than can could would \
                      should will shall may might must just also very more most some any all der die das und oder ist sind \
                      war ein eine einen ich du er sie es wir ihr mein dein was wer wie wo wann nicht ";

/// Calls `take` for each word of `text`.
pub(super) fn each_word(text: &str, mut take: impl FnMut(&str)) {
    let mut word = String::new();
    let mut end = |word: &mut String| {
        if !word.is_empty() {
            let stem = stem(word);
            if !is_common(word) {
                take(stem);
            }
            word.clear();
        }
    };
    for sign in text.chars() {
        if is_ideograph(sign) {
            // Chinese and Japanese are written without spaces.
            end(&mut word);
            word.push(sign);
            end(&mut word);
        } else if sign.is_alphanumeric() {
            if word.len() < MAX_WORD_BYTES {
                word.extend(sign.to_lowercase());
            }
        } else if sign != '\'' && sign != '’' {
            end(&mut word);
        }
    }
    end(&mut word);
}

fn is_common(word: &str) -> bool {
    COMMON.match_indices(word).any(|(at, found)| {
        let bytes = COMMON.as_bytes();
        bytes[at - 1] == b' ' && bytes[at + found.len()] == b' '
    })
}

/// The word without an ending of a few forms: the plural, and two of verbs.
fn stem(word: &str) -> &str {
    const SHORTEST: usize = 4;
    const ENDINGS: [&str; 5] = ["ing", "ed", "es", "en", "s"];
    if !word.is_ascii() || word.ends_with("ss") {
        return word;
    }
    let without = |ending: &&str| word.strip_suffix(*ending).filter(|rest| rest.len() >= SHORTEST);
    let stem = ENDINGS.iter().find_map(without).unwrap_or(word);
    // "planning" and "plan", "notice" and "noticed".
    let bytes = stem.as_bytes();
    let is_double = bytes.len() > SHORTEST && bytes[bytes.len() - 1] == bytes[bytes.len() - 2];
    let doubled = stem.len() < word.len() && is_double;
    let stem = if doubled { &stem[..stem.len() - 1] } else { stem };
    stem.strip_suffix('e').filter(|rest| rest.len() >= SHORTEST).unwrap_or(stem)
}

/// Hiragana, Katakana, and the blocks of Chinese characters.
fn is_ideograph(sign: char) -> bool {
    matches!(sign, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests;
