//! The two forms of a path on Windows.

/// Longest path in the usual form that every program takes, in UTF-16 units (Windows: `MAX_PATH`, with a NUL at its end).
const MOST_UNITS: usize = 259;
/// Names that mean devices in the usual form, whatever follows a dot (Windows: "Naming Files, Paths, and Namespaces").
const DEVICES: [&str; 6] = ["AUX", "CON", "CONIN$", "CONOUT$", "NUL", "PRN"];
/// Devices with a digit behind the name.
const NUMBERED: [&str; 2] = ["COM", "LPT"];

/// `C:\…` for `\\?\C:\…`, if it means the same: Windows reads the first form by more rules.
pub(super) fn without_prefix(path: &str) -> Option<&str> {
    let rest = path.strip_prefix(r"\\?\")?;
    let (drive, names) = rest.split_once(r":\")?;
    let is_drive =
        drive.len() == 1 && drive.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let is_same = is_drive
        && rest.encode_utf16().count() <= MOST_UNITS
        && names.split_terminator('\\').all(is_plain);
    is_same.then_some(rest)
}

/// Whether a name means the same in both forms.
fn is_plain(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let is_numbered = NUMBERED.iter().any(|device| {
        let number = stem.strip_prefix(device).and_then(|rest| rest.parse::<char>().ok());
        number.is_some_and(|digit| digit.is_ascii_digit() || "¹²³".contains(digit))
    });
    !name.is_empty()
        && !name.contains('/')
        && !name.ends_with(['.', ' '])
        && !DEVICES.contains(&stem.as_str())
        && !is_numbered
}

#[cfg(test)]
mod tests;
