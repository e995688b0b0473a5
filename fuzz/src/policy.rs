//! What must hold for any text that a model gives as a command, and for any pattern of the config.

use myclaw_policy::{ShellError, escape, matches_argument, matches_name, matches_path, parse};

/// A command is refused, or its words, quoted, are read as the same words.
///
/// # Panics
/// When a word changes, or a message about it could hide something.
pub fn shell_command(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(script) = parse(text) else { return };
    assert!(!script.commands.is_empty());
    for command in &script.commands {
        let shown = command.to_string();
        assert_eq!(escape(&shown), shown);
        let quoted: Vec<String> = command
            .words
            .iter()
            .map(|word| format!("'{}'", word.text.replace('\'', "'\\''")))
            .collect();
        let again = match parse(&quoted.join(" ")) {
            Ok(again) => again,
            // The quotes take room as well.
            Err(error) => return assert_eq!(error, ShellError::TooLong),
        };
        let before: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
        let after: Vec<&str> =
            again.commands[0].words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!((again.commands.len(), before), (1, after));
    }
}

/// The first line is a pattern, the second a name or path.
///
/// # Panics
/// When a pattern and what it matches do not go together.
pub fn patterns(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Some((pattern, name)) = text.split_once('\n') else { return };
    assert!(matches_name("*", name));
    assert!(name.contains('*') || matches_name(name, name));
    if !pattern.contains('*') {
        assert_eq!(matches_name(pattern, name), pattern == name);
    }
    if matches_argument(pattern, name) {
        assert!(pattern == name || pattern.contains('*') && matches_name(pattern, name));
        assert!(pattern == name || name.split('/').all(|part| part != ".."));
        assert!(pattern != "*" || !name.contains('/'));
    }
    if matches_path(pattern, name) {
        assert!(name.starts_with('/') && name.split('/').all(|part| part != ".."));
        assert!(matches_path("/**", name));
    }
}
