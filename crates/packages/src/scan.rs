//! What a reader should look at before an approval. A scan finds what is written plainly; it proves nothing.

use myclaw_files::shortened;
use myclaw_policy::{escape, is_deceptive};

use crate::Tree;

/// What no scan can say.
pub const CANNOT_KNOW: &str = "This scan looks for known signs in the texts. It cannot know what a program does when it runs, what a server \
     answers later, what an address leads to tomorrow, or what a text talks a model into.";

/// Most remarks of a kind.
const MOST: usize = 20;
/// Most characters of a line that are shown.
const MAX_LINE: usize = 120;
/// Shortest run of letters without a blank that may hide something.
const PAYLOAD: usize = 200;

/// Words with which a text speaks to an agent instead of about its task.
const ADDRESSED: [&str; 14] = [
    "ignore previous",
    "ignore all previous",
    "ignore the above",
    "disregard previous",
    "disregard all",
    "do not tell the user",
    "don't tell the user",
    "without telling the user",
    "do not mention this",
    "without asking the user",
    "without asking for confirmation",
    "you are now",
    "system prompt",
    "reveal your instructions",
];
/// Words that fetch something.
const DOWNLOADS: [&str; 12] = [
    "curl ",
    "wget ",
    "invoke-webrequest",
    "iwr ",
    "urllib.request",
    "requests.get",
    "fetch(",
    "npx ",
    "uvx ",
    "pip install",
    "npm install",
    "git clone",
];
/// Words that make text a program.
const DECODES: [&str; 7] =
    ["base64 -d", "base64 --decode", "b64decode", "atob(", "eval(", "exec(", "fromcharcode"];

/// What to look at, one line each.
pub fn scan(tree: &Tree) -> Vec<String> {
    let mut found = Found::default();
    for (path, entry) in tree.files() {
        let Some(text) = entry.text() else {
            found.add(Kind::Binary, format!("{path}: no text, {} bytes", entry.bytes.len()));
            continue;
        };
        let is_prose = path.ends_with(".md");
        for (number, line) in (1..).zip(text.lines()) {
            let at = format!("{path}:{number}: {}", shown(line));
            let lower = line.to_lowercase();
            let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
            // A mark at the beginning says how the file is encoded.
            let mut chars = line.trim_start_matches('\u{feff}').chars();
            if chars.any(|char| char != '\t' && is_deceptive(char)) {
                found.add(Kind::Hidden, at.clone());
            }
            if has(&ADDRESSED) {
                found.add(Kind::Addressed, at.clone());
            }
            if is_prose && line.contains("<!--") {
                found.add(Kind::Comment, at.clone());
            }
            if has(&DECODES) || line.split(is_boundary).any(|word| word.len() >= PAYLOAD) {
                found.add(Kind::Encoded, at.clone());
            }
            if has(&DOWNLOADS) {
                found.add(Kind::Download, at);
            }
        }
    }
    found.lines()
}

fn is_boundary(char: char) -> bool {
    !(char.is_ascii_alphanumeric() || matches!(char, '+' | '/' | '=' | '_' | '-' | '\\'))
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Hidden,
    Addressed,
    Comment,
    Encoded,
    Download,
    Binary,
}

impl Kind {
    const ALL: [(Self, &str); 6] = [
        (Self::Hidden, "hidden or deceptive characters"),
        (Self::Addressed, "text that gives the agent orders"),
        (Self::Comment, "a comment that a reader of the page does not see"),
        (Self::Encoded, "encoded or evaluated text"),
        (Self::Download, "downloads or installs something"),
        (Self::Binary, "a file that cannot be read"),
    ];
}

/// The first remarks of each kind, and how many there are.
#[derive(Default)]
struct Found([(usize, Vec<String>); 6]);

impl Found {
    fn add(&mut self, kind: Kind, line: String) {
        let (count, lines) = &mut self.0[kind as usize];
        *count += 1;
        if lines.len() < MOST {
            lines.push(line);
        }
    }

    fn lines(self) -> Vec<String> {
        let mut all = Vec::new();
        for (kind, what) in Kind::ALL {
            let (count, lines) = &self.0[kind as usize];
            all.extend(lines.iter().map(|line| format!("{what}: {line}")));
            if *count > lines.len() {
                all.push(format!("{what}: {} more", count - lines.len()));
            }
        }
        all
    }
}

fn shown(line: &str) -> String {
    shortened(&escape(line.trim()), MAX_LINE).into_owned()
}
