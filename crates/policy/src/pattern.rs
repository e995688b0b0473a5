//! Wildcards in names and paths.

/// True if `name` matches `pattern`, in which `*` matches any number of characters. Both are compared unchanged.
pub fn matches_name(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    // Placing each piece as early as possible leaves the most room for those after it.
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

/// True if the absolute `path` matches `pattern`. `*` matches any characters within one component; `**`, as a whole
/// component, matches any number of components. A path with a `.` or `..` component matches nothing, because the file
/// that it names is elsewhere.
pub fn matches_path(pattern: &str, path: &str) -> bool {
    let (Some(pattern), Some(path)) = (pattern.strip_prefix('/'), path.strip_prefix('/')) else {
        return false;
    };
    let components: Vec<&str> = path.split('/').collect();
    if components.iter().any(|component| matches!(*component, "" | "." | "..")) {
        return false;
    }
    // One row of the usual table: whether the patterns so far match the first `n` components. The work is bounded by
    // the product of the two lengths, for any pattern.
    let mut reached = vec![false; components.len() + 1];
    reached[0] = true;
    for part in pattern.split('/') {
        let mut next = vec![false; components.len() + 1];
        if part == "**" {
            let mut any = false;
            for (index, slot) in next.iter_mut().enumerate() {
                any |= reached[index];
                *slot = any;
            }
        } else {
            for (index, component) in components.iter().enumerate() {
                next[index + 1] = reached[index] && matches_name(part, component);
            }
        }
        reached = next;
    }
    reached[components.len()]
}

/// True if an argument of a command matches `pattern`: `*` matches any characters but `/`, and `**` any characters. A
/// pattern with a wildcard matches no argument with a `..` component, because that leads out of the directory that its
/// author meant. The work is bounded by the product of the two lengths.
pub fn matches_argument(pattern: &str, argument: &str) -> bool {
    if !pattern.contains('*') {
        return pattern == argument;
    }
    if has_parent_component(argument) {
        return false;
    }
    let text: Vec<char> = argument.chars().collect();
    // Whether the pattern so far matches the first `n` characters.
    let mut reached = vec![false; text.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    let mut rest = pattern;
    while let Some(next) = rest.chars().next() {
        let mut next_reached = vec![false; text.len() + 1];
        let (token, crosses) = match rest {
            _ if rest.starts_with("**") => ("**", true),
            _ if next == '*' => ("*", false),
            _ => ("", false),
        };
        if token.is_empty() {
            for (index, character) in text.iter().enumerate() {
                next_reached[index + 1] = reached[index] && *character == next;
            }
            rest = rest.get(next.len_utf8()..).unwrap_or_default();
        } else {
            let mut any = false;
            for index in 0..=text.len() {
                any |= reached[index];
                next_reached[index] = any;
                any &= crosses || text.get(index).is_none_or(|character| *character != '/');
            }
            rest = rest.get(token.len()..).unwrap_or_default();
        }
        reached = next_reached;
    }
    reached.last() == Some(&true)
}

/// Whether a part of the argument, also after an option's name, goes up to the parent directory.
pub(crate) fn has_parent_component(argument: &str) -> bool {
    argument
        .split(['/', '=', ':', ','])
        .any(|part| part == ".." || (part.starts_with('-') && part.ends_with("..")))
}

#[cfg(test)]
mod tests;
