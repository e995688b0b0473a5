//! Lines of an answer that name a file to send: `MEDIA: path`.

/// Begins a line that names a file.
pub(crate) const MARK: &str = "MEDIA:";
/// Tells the model how to send a file.
pub const NOTE: &str = "To send a file of the working directory to the person, name it in your answer, on a line \
                               of its own: MEDIA: path/of/the/file";

/// A text without the lines that name files, as a preview shows it.
pub(crate) fn without_files(text: &str) -> String {
    find(text).0
}

/// The text without the lines that name files, and the paths. What is in a code block is text.
pub(crate) fn find(text: &str) -> (String, Vec<String>) {
    let (mut lines, mut paths) = (Vec::new(), Vec::new());
    let mut is_code = false;
    for line in text.split('\n') {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            is_code = !is_code;
        }
        let path = trimmed.strip_prefix(MARK).filter(|_| !is_code);
        let path = path.map(|path| path.trim().trim_matches(['`', '"', '\'']));
        match path.filter(|path| !path.is_empty()) {
            Some(path) => paths.push(path.to_owned()),
            None => lines.push(line),
        }
    }
    let text = lines.join("\n");
    let text = if paths.is_empty() { text } else { text.trim().to_owned() };
    (text, paths)
}
