//! The command lines of the docs: each is one that the program understands.

use std::fs;
use std::path::{Path, PathBuf};

use myclaw_testkit::TempHome;

use crate::run;

/// Where a line of the docs is.
struct Shown {
    place: String,
    words: Vec<String>,
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listed = fs::read_dir(root.join("docs")).expect("the docs");
    let mut pages: Vec<PathBuf> = listed.map(|entry| entry.expect("an entry").path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

/// The lines of the code blocks for a shell, each with the lines that continue it.
fn lines_of_code(page: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let (mut is_code, mut open) = (false, String::new());
    for (number, line) in page.lines().enumerate() {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            is_code = !is_code && ["sh", "bash", "console"].contains(&kind.trim());
            continue;
        }
        if !is_code {
            continue;
        }
        match line.strip_suffix('\\') {
            Some(begun) => open.push_str(begun),
            None => {
                open.push_str(line);
                lines.push((number + 1, std::mem::take(&mut open)));
            }
        }
    }
    lines
}

/// The words of the first command of a line that is this program's; without a pipe, redirections and comments.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut has_word, mut quote) = (String::new(), false, None);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(mark), letter) if letter == mark => quote = None,
            (Some('"'), '\\') => word.extend(letters.next()),
            (Some(_), letter) => word.push(letter),
            (None, '\'' | '"') => (quote, has_word) = (Some(letter), true),
            (None, '#') if !has_word => break,
            (None, '|' | '>' | '<' | ';' | '&') => break,
            (None, letter) if letter.is_whitespace() => {
                if std::mem::take(&mut has_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            (None, letter) => {
                word.push(letter);
                has_word = true;
            }
        }
    }
    if has_word {
        words.push(word);
    }
    let is_variable = |word: &String| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    let mut words: Vec<String> =
        words.into_iter().skip_while(|word| word == "$" || is_variable(word)).collect();
    (words.first().is_some_and(|word| word == "myclaw")).then(|| words.split_off(1))
}

fn shown() -> Vec<Shown> {
    let mut found = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for (number, line) in lines_of_code(&text) {
            if let Some(words) = words(&line) {
                found.push(Shown { place: format!("{name}:{number}"), words });
            }
        }
    }
    found
}

/// Each line is parsed by the program itself, which prints its help instead of doing it.
#[test]
fn every_command_line_of_the_docs_is_understood() {
    let home = TempHome::new();
    let lines = shown();
    assert!(lines.len() > 100, "{} lines were found", lines.len());
    let mut wrong = Vec::new();
    for Shown { place, mut words } in lines {
        // What is an argument of another program stands behind two hyphens.
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.truncate(end);
        words.push("--help".to_owned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = run(&home, &words);
        let is_help = output.code() == Some(0) && output.stdout().contains("Usage:");
        if !is_help {
            let why = output.stderr().lines().next().unwrap_or_default().to_owned();
            wrong.push(format!("{place}: myclaw {}: {why}", words.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
