//! Transcripts of this program.

use std::path::Path;

use myclaw_session::{Entry, SessionReader};

use super::Import;
use myclaw_front::exit::CliError;

/// When the session began, in milliseconds since the Unix epoch, if its header says so.
pub(super) fn created_at(path: &Path) -> Result<Option<u64>, CliError> {
    Ok(SessionReader::of_file(path)?.header()?.map(|header| header.created_at))
}

/// Takes over every entry.
pub(super) fn import(path: &Path, import: &mut Import) -> Result<(), CliError> {
    let reader = SessionReader::of_file(path)?;
    import.about = reader.about()?;
    let mut entries = reader.entries();
    for entry in entries.by_ref() {
        let entry = entry?;
        // Only the last of these entries is added, at the end.
        if !matches!(entry, Entry::About(_)) {
            import.entry(entry)?;
        }
    }
    import.left_out.add_many("damaged line", entries.skipped_lines() as u64);
    import.left_out.add_many("half a last line", u64::from(entries.has_torn_tail()));
    Ok(())
}
