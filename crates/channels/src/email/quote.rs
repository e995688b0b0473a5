//! What is new in a mail: its text without the mails that it quotes below, and without a signature.

/// Most lines of the sentence that introduces a quotation.
const MOST_INTRODUCTION: usize = 4;

/// A text without quoted mails and signature. If nothing else is there, all of it.
pub(super) fn new_text(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.iter().enumerate().position(|(at, line)| ends_text(line, &lines[at..]));
    let mut kept = &lines[..end.unwrap_or(lines.len())];
    // A quotation with words of the sender below it is answered line by line, and needed.
    let own = last_own(kept);
    if own < kept.len() && kept[own..].iter().any(|line| line.starts_with('>')) {
        kept = without_introduction(&kept[..own]);
    }
    let new = kept.join("\n");
    let new = new.trim_matches(['\n', ' ', '\t', '\u{a0}']);
    if new.is_empty() { text.trim().to_owned() } else { new.to_owned() }
}

/// The text of a mail that passes another one on: what its sender wrote above, and the other mail.
pub(super) fn split_forward(text: &str) -> (String, Option<String>) {
    let text = text.replace("\r\n", "\n");
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) =
        lines.iter().enumerate().position(|(at, line)| begins_forward(line, &lines[at..]))
    else {
        return (text, None);
    };
    let joined = |lines: &[&str]| lines.join("\n").trim().to_owned();
    (joined(&lines[..at]), Some(joined(&lines[at..])))
}

/// Whether a line begins a mail that is passed on. `rest` begins with it.
fn begins_forward(line: &str, rest: &[&str]) -> bool {
    let line = line.trim();
    let is_dashed =
        line.starts_with("-----") && line.ends_with("-----") && line.contains(char::is_alphabetic);
    // Apple's sentences stand above a header.
    let is_sentence = line.ends_with(':')
        && ["Begin forwarded", "Anfang der weitergeleiteten", "Début du message"]
            .iter()
            .any(|it| line.starts_with(it));
    is_dashed || is_sentence || (line != "--" && ends_text(line, rest))
}

/// The number of lines up to the last one that is neither empty nor quoted.
fn last_own(lines: &[&str]) -> usize {
    let is_own = |line: &&str| !line.trim().is_empty() && !line.starts_with('>');
    lines.iter().rposition(is_own).map_or(0, |at| at + 1)
}

/// Whether a line begins a signature, or a mail that is quoted whole. `rest` begins with it.
fn ends_text(line: &str, rest: &[&str]) -> bool {
    let line = line.trim_end_matches('\r');
    if line == "-- " || line == "--" {
        return true;
    }
    let dashes = line.trim();
    if dashes.starts_with("-----") && dashes.ends_with("-----") && dashes.contains("Original") {
        return true;
    }
    // Outlook quotes below a header of its own.
    let begins = |line: &str, names: &[&str]| {
        let line = line.trim_start_matches(['*', ' ']);
        names.iter().any(|name| line.starts_with(name))
    };
    let next = &rest[1..rest.len().min(5)];
    begins(line, &["From: ", "From:*", "Von: ", "Von:*", "De : "])
        && next
            .iter()
            .any(|line| begins(line, &["Sent:", "Date:", "Gesendet:", "Datum:", "Envoyé"]))
        && next
            .iter()
            .any(|line| begins(line, &["To:", "Subject:", "An:", "Betreff:", "À", "Objet"]))
}

/// Lines without a sentence such as `On Monday, Ann <ann@example.org> wrote:` at their end.
fn without_introduction<'a, 'b>(lines: &'a [&'b str]) -> &'a [&'b str] {
    let end = last_own(lines);
    let lines = &lines[..end];
    let start = lines.iter().rposition(|line| line.trim().is_empty()).map_or(0, |at| at + 1);
    let sentence = &lines[start..];
    let names = |word: char| word.is_ascii_digit() || word == '@';
    let is_introduction = sentence.len() <= MOST_INTRODUCTION
        && sentence.last().is_some_and(|line| line.trim_end().ends_with(':'))
        && sentence.iter().any(|line| line.contains(names));
    if is_introduction { &lines[..start] } else { lines }
}

/// HTML without the mail that it quotes at its end, as Gmail, Outlook, Apple Mail and Thunderbird mark it.
pub(super) fn new_html(html: &str) -> &str {
    const MARKS: [&str; 6] = [
        "class=\"gmail_quote",
        "id=\"divrplyfwdmsg\"",
        "id=\"appendonsend\"",
        "<blockquote type=\"cite\"",
        "class=\"moz-cite-prefix\"",
        "class=\"protonmail_quote",
    ];
    let lower = html.to_ascii_lowercase();
    let end = MARKS.iter().filter_map(|mark| lower.find(mark)).min();
    let start = end.and_then(|end| lower[..=end].rfind('<'));
    start.map_or(html, |start| &html[..start])
}

/// HTML in which the ends of blocks are ends of lines for the converter, which knows `<br>` and `</p>` only.
pub(super) fn with_breaks(html: &str) -> String {
    const BLOCKS: [&str; 10] =
        ["div", "tr", "li", "h1", "h2", "h3", "h4", "blockquote", "pre", "table"];
    let mut out = String::with_capacity(html.len() + html.len() / 8);
    let mut rest = html;
    while let Some(at) = rest.find("</") {
        let name = &rest[at + 2..];
        let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
        out.push_str(&rest[..at]);
        if BLOCKS.iter().any(|block| block.eq_ignore_ascii_case(&name[..end])) {
            out.push_str("<br>");
        }
        out.push_str("</");
        rest = name;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests;
