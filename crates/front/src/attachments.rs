//! Pictures that belong to a message: named by an option, or by their path in the text.

use std::path::{Path, PathBuf};

use myclaw_files::read_regular;
use myclaw_llm::{ContentBlock, ImageContent};
use myclaw_tools::{picture_from_bytes, shown_size};
use serde_json::{Value, json};

use crate::exit::CliError;
use crate::terminal::images::is_picture;

/// Most pictures that the text of a message attaches.
const MOST_PICTURES: usize = 8;
/// Largest file with a picture.
const MOST_BYTES: u64 = 20 * 1024 * 1024;

/// A picture for the model.
pub struct Attachment {
    /// The file.
    path: PathBuf,
    bytes: u64,
    image: ImageContent,
}

impl Attachment {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is said about it when the message is sent.
    pub fn line(&self) -> String {
        format!("picture: {}, {}", self.path.display(), shown_size(self.bytes))
    }
}

/// The content of a message: its pictures before its text.
pub fn content(attachments: Vec<Attachment>, text: String) -> Vec<ContentBlock> {
    let pictures = attachments.into_iter().map(|attachment| ContentBlock::Image(attachment.image));
    pictures.chain([ContentBlock::text(text)]).collect()
}

/// The pictures, as a gateway takes them with a message.
pub fn for_gateway(attachments: Vec<Attachment>) -> Vec<Value> {
    let picture =
        |Attachment { image, .. }| json!({"mediaType": image.mime_type, "data": image.data});
    attachments.into_iter().map(picture).collect()
}

/// Reads the pictures that an option names.
///
/// # Errors
/// One cannot be read, or is no picture.
pub fn named(paths: &[PathBuf]) -> Result<Vec<Attachment>, CliError> {
    paths.iter().map(|path| read(path.clone()).map_err(CliError::usage)).collect()
}

/// Reads the pictures whose paths stand in `text`, relative to `place`; and what is wrong with the others.
pub async fn mentioned(text: &str, place: &Path) -> (Vec<Attachment>, Vec<String>) {
    let paths: Vec<PathBuf> = words(text)
        .iter()
        .filter_map(|word| path_of(word, place))
        .filter(|path| is_picture(path) && path.is_file())
        .take(MOST_PICTURES)
        .collect();
    if paths.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let reading = tokio::task::spawn_blocking(move || paths.into_iter().map(read).collect());
    let results: Vec<Result<Attachment, String>> = reading.await.unwrap_or_default();
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(attachment) => found.push(attachment),
            Err(problem) => problems.push(problem),
        }
    }
    (found, problems)
}

/// Checks that `text` begins with the path of a picture, relative to `place`.
///
/// # Errors
/// What is wrong with the file.
pub fn check_first(text: &str, place: &Path) -> Result<(), String> {
    let first = words(text).into_iter().next().unwrap_or_default();
    let path = path_of(&first, place).unwrap_or_else(|| place.join(first));
    if !is_picture(&path) {
        let path = path.display();
        return Err(format!("{path} is no picture: its name ends with .png, .jpg, .gif or .webp"));
    }
    read(path).map(drop)
}

fn read(path: PathBuf) -> Result<Attachment, String> {
    let bytes = read_regular(&path, MOST_BYTES + 1)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if count > MOST_BYTES {
        let most = MOST_BYTES / 1024 / 1024;
        return Err(format!("{} has more than {most} MiB; make it smaller", path.display()));
    }
    let image = picture_from_bytes(bytes)
        .map_err(|problem| format!("{} cannot be used: {problem}", path.display()))?;
    Ok(Attachment { path, bytes: count, image })
}

/// A path as it stands in a message, one word.
pub fn quoted(path: &Path) -> String {
    let mut out = String::new();
    for char in path.to_string_lossy().chars() {
        if char.is_whitespace() || matches!(char, '\'' | '"' | '\\') {
            out.push('\\');
        }
        out.push(char);
    }
    out
}

/// The words of a text, as a shell separates them: terminals quote the path of a file that is dropped on them.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        let Some(word) = words.last_mut() else { break };
        match (quote, char) {
            (None, '\'' | '"') if word.is_empty() => quote = Some(char),
            (Some(open), char) if open == char => quote = None,
            (None, '\\') => word.extend(chars.next()),
            (None, char) if char.is_whitespace() => words.push(String::new()),
            (_, char) => word.push(char),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn path_of(word: &str, place: &Path) -> Option<PathBuf> {
    let word =
        word.trim_start_matches(['@', '(']).trim_end_matches([',', ';', ':', '?', '!', ')', '.']);
    let word = word.strip_prefix("file://").unwrap_or(word);
    if word.is_empty() {
        return None;
    }
    match word.strip_prefix("~/") {
        Some(below) => Some(PathBuf::from(std::env::var_os("HOME")?).join(below)),
        None => Some(place.join(word)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{path_of, quoted, words};

    #[test]
    fn paths_are_found_as_terminals_write_them() {
        let text = "what is in /a/b\\ c.png, 'd e.jpg' and (x.gif)? It's mine";
        let paths: Vec<PathBuf> =
            words(text).iter().filter_map(|word| path_of(word, Path::new("/w"))).collect();
        for expected in ["/a/b c.png", "/w/d e.jpg", "/w/x.gif"] {
            assert!(paths.contains(&PathBuf::from(expected)), "{expected}: {paths:?}");
        }
        let odd = Path::new("/a b/it's \\ c.png");
        assert_eq!(words(&quoted(odd)), ["/a b/it's \\ c.png"]);
        assert_eq!(path_of("@shot.png", Path::new("/w")), Some(PathBuf::from("/w/shot.png")));
        assert_eq!(path_of("?", Path::new("/w")), None);
    }
}
