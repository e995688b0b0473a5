//! Characters that look like those of ASCII, in which marks can be written.

/// Most blanks at one place of a mark.
pub(super) const MOST_BLANKS: usize = 32;

/// The letters that look like the one in front. Small forms of capitals count as small letters.
const SIMILAR: [(char, &str); 45] = [
    ('a', "аɑαᴀ"),
    ('A', "АΑᎪ"),
    ('b', "ьвʙ"),
    ('B', "ВΒᏴ"),
    ('c', "сϲᴄⅽ"),
    ('C', "СϹⅭᏟ"),
    ('d', "ԁᴅⅾ"),
    ('D', "ⅮᎠ"),
    ('e', "еҽєεᴇℯ"),
    ('E', "ЕΕᎬ"),
    ('f', "ꜰϝſ"),
    ('g', "ɡցɢℊ"),
    ('h', "һհнʜℎ"),
    ('H', "НΗᎻ"),
    ('i', "іıιɪⅰ"),
    ('I', "ІΙӀⅠ"),
    ('j', "јϳᴊ"),
    ('J', "ЈͿ"),
    ('k', "кκᴋ"),
    ('K', "КΚ"),
    ('l', "ӏʟℓⅼ"),
    ('L', "ⅬᏞ"),
    ('m', "мᴍⅿ"),
    ('M', "МΜⅯ"),
    ('n', "пոηɴ"),
    ('N', "Ν"),
    ('o', "оοσօᴏℴ"),
    ('O', "ОΟՕ"),
    ('p', "рρᴘ"),
    ('P', "РΡᏢ"),
    ('q', "ԛզ"),
    ('r', "гʀᴦ"),
    ('s', "ѕꜱʂ"),
    ('S', "ЅՏᏚ"),
    ('t', "тτᴛ"),
    ('T', "ТΤᎢ"),
    ('u', "υսᴜ"),
    ('v', "νѵᴠⅴ"),
    ('w', "ԝѡωᴡ"),
    ('x', "хχⅹ"),
    ('X', "ХΧⅩ"),
    ('y', "уүγʏ"),
    ('Y', "УΥҮ"),
    ('z', "ᴢ"),
    ('Z', "Ζ"),
];

/// Alphabets in a row, capitals first, and how many letters are in one.
const ALPHABETS: [(u32, u32, u32, char); 6] = [
    // The bold, italic and other letters of mathematics.
    (0x1d400, 0x1d6a3, 52, 'A'),
    // In circles and squares.
    (0x24b6, 0x24cf, 26, 'A'),
    (0x24d0, 0x24e9, 26, 'a'),
    (0x1f130, 0x1f149, 26, 'A'),
    (0x1f150, 0x1f169, 26, 'A'),
    (0x1f170, 0x1f189, 26, 'A'),
];

/// The ASCII character that `character` is, or that it looks like.
pub fn folded(character: char) -> Option<char> {
    if character.is_ascii() {
        return Some(character);
    }
    let number = u32::from(character);
    match character {
        '！'..='～' => return char::from_u32(number - 0xfee0),
        '‐'..='―' | '−' | '﹣' => return Some('-'),
        '‿' | '﹍'..='﹏' => return Some('_'),
        '𝟎'..='𝟿' => return char::from_digit((number - 0x1d7ce) % 10, 10),
        _ => {}
    }
    let in_a_row = ALPHABETS.iter().find(|(first, last, ..)| (*first..=*last).contains(&number));
    if let Some((first, _, count, letter)) = in_a_row {
        let at = (number - first) % count;
        let (from, at) = if at < 26 { (*letter, at) } else { ('a', at - 26) };
        return char::from_u32(u32::from(from) + at);
    }
    // Other scripts are long, and none of these letters is behind U+AB00.
    let may_be = number < 0x590 || (0x1300..0xab00).contains(&number);
    let is_in = |letters: &str| letters.contains(character);
    SIMILAR.iter().filter(|_| may_be).find(|(_, letters)| is_in(letters)).map(|(letter, _)| *letter)
}

/// Whether `text` begins with `phrase`, in any case and with any blanks.
pub(super) fn begins_with(text: &str, phrase: &str) -> bool {
    let mut characters = text.chars().peekable();
    for wanted in phrase.chars() {
        if wanted == ' ' {
            let mut blanks = 0;
            while blanks < MOST_BLANKS && characters.next_if(|found| is_blank(*found)).is_some() {
                blanks += 1;
            }
            if blanks == 0 {
                return false;
            }
        } else if !characters
            .next()
            .and_then(folded)
            .is_some_and(|found| found.eq_ignore_ascii_case(&wanted))
        {
            return false;
        }
    }
    true
}

/// `text` without `word` at its end, in any case.
pub(super) fn without_end<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let mut characters = text.char_indices().rev();
    let mut from = text.len();
    for wanted in word.chars().rev() {
        let (at, found) = characters.next()?;
        if !found.to_lowercase().eq(wanted.to_lowercase()) {
            return None;
        }
        from = at;
    }
    Some(&text[..from])
}

pub(super) fn is_blank(character: char) -> bool {
    character.is_whitespace()
}
