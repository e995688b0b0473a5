//! Mistakes in the rules of the config.

use myclaw_config::ConfigPath;

/// A rule that cannot mean what its author wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{place}`: {problem}")]
pub struct PolicyError {
    /// The entry in the config.
    pub place: ConfigPath,
    /// What is wrong with it.
    pub problem: PolicyProblem,
}

/// What is wrong with an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyProblem {
    /// No tool has that name.
    #[error("there is no tool `{name}`{}", tool_hint(name, .suggestion.as_deref()))]
    UnknownTool {
        /// The entry.
        name: String,
        /// A similar name, if there is one.
        suggestion: Option<String>,
    },
    /// A rule in the form of another program.
    #[error(
        "`{name}` names no tool: a rule here is for a whole tool, such as `bash`. Which commands may run is in `tools.exec` \
         (docs/operate/policy.md)"
    )]
    NotATool {
        /// The entry.
        name: String,
    },
    /// No group has that name.
    #[error("there is no group `{name}`{}", hint(.suggestion.as_deref()))]
    UnknownGroup {
        /// The entry.
        name: String,
        /// A similar name, if there is one.
        suggestion: Option<String>,
    },
    /// An empty entry.
    #[error("the entry is empty; remove it, or name a tool or program")]
    EmptyEntry,
    /// A program that is neither a name nor an absolute path.
    #[error(
        "`{program}` is neither a program's name nor an absolute path; write `git` or `/usr/bin/git`"
    )]
    RelativeProgram {
        /// The entry's program.
        program: String,
    },
    /// `...` anywhere but at the end.
    #[error(
        "`...` stands for all further arguments of `{program}`, so it must be the last pattern"
    )]
    RestNotLast {
        /// The entry's program.
        program: String,
    },
}

/// The same for the name of a tool.
fn tool_hint(name: &str, suggestion: Option<&str>) -> String {
    if name.starts_with("mcp_") || name.contains("__") {
        return "; the tools of MCP servers are `SERVER__TOOL`, and `mcp:SERVER` means all of one"
            .to_owned();
    }
    hint(suggestion)
}

fn hint(suggestion: Option<&str>) -> String {
    match suggestion {
        Some(name) => format!("; did you mean `{name}`?"),
        None => "; `myclaw policy explain` lists the tools".to_owned(),
    }
}
