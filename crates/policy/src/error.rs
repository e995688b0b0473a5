//! Mistakes in the rules of the config.

/// A rule that cannot mean what its author wanted. `place` is the path of the list in the config.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No tool has that name.
    #[error("`{place}`: there is no tool `{name}`{}", hint(.suggestion.as_deref()))]
    UnknownTool {
        /// Path of the list in the config.
        place: String,
        /// The entry.
        name: String,
        /// A similar name, if there is one.
        suggestion: Option<String>,
    },
    /// No group has that name.
    #[error("`{place}`: there is no group `{name}`{}", hint(.suggestion.as_deref()))]
    UnknownGroup {
        /// Path of the list in the config.
        place: String,
        /// The entry.
        name: String,
        /// A similar name, if there is one.
        suggestion: Option<String>,
    },
    /// An empty entry.
    #[error("`{place}` has an empty entry; remove it, or name a tool or program")]
    EmptyEntry {
        /// Path of the list in the config.
        place: String,
    },
    /// A program that is neither a name nor an absolute path.
    #[error(
        "`{place}`: `{program}` is neither a program's name nor an absolute path; write `git` or `/usr/bin/git`"
    )]
    RelativeProgram {
        /// Path of the list in the config.
        place: String,
        /// The entry's program.
        program: String,
    },
    /// `...` anywhere but at the end.
    #[error(
        "`{place}`: `...` stands for all further arguments of `{program}`, so it must be the last pattern"
    )]
    RestNotLast {
        /// Path of the list in the config.
        place: String,
        /// The entry's program.
        program: String,
    },
}

fn hint(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}
