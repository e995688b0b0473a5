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

#[cfg(test)]
mod tests;
