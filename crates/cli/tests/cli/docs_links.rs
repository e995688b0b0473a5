//! The links of the docs, and the pages that messages and comments name: each leads somewhere.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).expect("the repository")
}

/// The files below a directory. Without those of packages and builds, and test data, which others have written.
pub(crate) fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_symlink() || ["target", "node_modules", "dist", "data"].contains(&name.as_str())
        {
            continue;
        }
        match path.is_dir() {
            true => found.extend(files_below(&path)),
            false => found.push(path),
        }
    }
    found
}

pub(crate) fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|end| extensions.iter().any(|extension| end == *extension))
}

/// The pages of this repository for people: those in docs/ and those at the top.
pub(crate) fn pages() -> Vec<PathBuf> {
    let top = fs::read_dir(root()).expect("the repository");
    let mut pages: Vec<PathBuf> = top.map(|entry| entry.expect("an entry").path()).collect();
    pages.extend(files_below(&root().join("docs")));
    pages.retain(|path| has_extension(path, &["md"]));
    pages.sort();
    pages
}

pub(crate) fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The lines of a page that are no code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchors of a page, as GitHub makes them of its headings.
fn anchors(page: &str) -> Vec<String> {
    let headings = prose(page).filter_map(|line| {
        let text = line.trim_start_matches('#');
        (text.len() < line.len()).then(|| text.strip_prefix(' ')).flatten()
    });
    let mut anchors: Vec<String> = Vec::new();
    for heading in headings {
        let lower = heading.trim().to_lowercase();
        let kept = lower.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        anchors.push(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
    }
    anchors
}

/// Where the links and pictures of a page lead to: what stands in parentheses behind a bracket.
fn targets(page: &str) -> Vec<String> {
    let text = prose(page).collect::<Vec<_>>().join("\n");
    let ends = text.split("](").skip(1);
    ends.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned()).collect()
}

#[test]
fn every_link_of_the_docs_leads_to_a_page_and_a_heading() {
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for target in targets(&text) {
            // Examples of links, and addresses of others.
            if target == "uri" || target.contains("://") {
                continue;
            }
            count += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let to = match file {
                "" => page.clone(),
                file => page.parent().expect("a directory").join(file),
            };
            let is_right = to.exists()
                && (anchor.is_empty()
                    || fs::read_to_string(&to)
                        .is_ok_and(|to| anchors(&to).contains(&anchor.to_owned())));
            if !is_right {
                wrong.push(format!("{}: {target}", relative(&page)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 300, "{count} links were found");
}

/// Who comes to docs/ finds each page from its index, and from that of its directory.
#[test]
fn every_page_is_in_the_index_of_its_directory_and_of_all() {
    let docs = root().join("docs");
    let index = fs::read_to_string(docs.join("README.md")).expect("the index");
    let mut wrong = Vec::new();
    for page in pages().iter().filter_map(|page| page.strip_prefix(&docs).ok()) {
        let (directory, name) = (page.parent().expect("a directory"), page.file_name());
        let of_directory = fs::read_to_string(docs.join(directory).join("README.md"));
        let name = name.unwrap_or_default().to_string_lossy().into_owned();
        let is_listed = name == "README.md"
            || of_directory.is_ok_and(|listed| listed.contains(&format!("]({name})")));
        let target = page.display().to_string();
        if !is_listed || (target != "README.md" && !index.contains(&format!("]({target})"))) {
            wrong.push(target);
        }
    }
    assert!(wrong.is_empty(), "no index lists {}", wrong.join(", "));
}

/// The paths of pages in a text: `docs/` with what follows, if no other path stands before it.
fn named_pages(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("docs/") {
        let is_part = text[..at].ends_with(|c: char| c.is_alphanumeric() || "/.-_@".contains(c));
        let rest = &text[at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"/.-_".contains(c));
        let path = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
        if !is_part && has_extension(Path::new(path), &["md", "json"]) {
            found.push(path.to_owned());
        }
    }
    found
}

/// Messages, help texts and comments send their reader to a page: it is there.
#[test]
fn every_page_that_a_source_names_exists() {
    let root = root();
    let places = ["crates", "scripts", "bench", "container", "fuzz", "web-ui", "examples", ".ci"];
    let (mut count, mut wrong) = (0, Vec::new());
    for file in places.iter().flat_map(|place| files_below(&root.join(place))) {
        // Tests make projects that have pages of their own.
        if relative(&file).contains("/tests") {
            continue;
        }
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for page in named_pages(&text) {
            count += 1;
            if !root.join(&page).exists() {
                wrong.push(format!("{}: {page}", relative(&file)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 60, "{count} names of pages were found");
}
