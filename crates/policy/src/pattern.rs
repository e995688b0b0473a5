//! Wildcards in names and paths.

/// Whether `name` matches `pattern`, in which `*` stands for any characters, or none. Both are compared as they are.
pub fn matches_name(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    // The earliest place of each piece leaves the most room for those behind it.
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

/// Whether the absolute `path` matches `pattern`, in which `*` stands for any characters of one component and `**`, as a
/// whole component, for any number of components. A path with a `.` or `..` component matches nothing, because the
/// file it names is elsewhere.
pub fn matches_path(pattern: &str, path: &str) -> bool {
    let (Some(pattern), Some(path)) = (pattern.strip_prefix('/'), path.strip_prefix('/')) else {
        return false;
    };
    let components: Vec<&str> = path.split('/').collect();
    if components.iter().any(|component| matches!(*component, "" | "." | "..")) {
        return false;
    }
    // One row of the usual table: whether the patterns so far match the first `n` components. The work is bounded by
    // the product of the two lengths, whatever the pattern.
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
