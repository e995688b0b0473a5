//! The instructions of a project in the system prompt. The caller of a run reads them; this module only formats them.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use myclaw_llm::outside::harmless;

use crate::section::{attribute, held};

const INTRODUCTION: &str = include_str!("../prompts/project.md");
/// The tag around the instructions of a project.
const TAG: &str = "project-instructions";

/// What a project says to an agent that works in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectInstructions {
    /// The root of the project.
    pub root: PathBuf,
    /// The files from the root down to the working directory.
    pub files: Vec<ProjectFile>,
}

/// A file with instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    /// Its path from the root of the project.
    pub path: String,
    /// Its text.
    pub content: String,
}

impl ProjectInstructions {
    /// The section of the prompt.
    pub(crate) fn section(&self) -> String {
        let mut section =
            format!("<{TAG} directory=\"{}\">\n{}", shown(&self.root), INTRODUCTION.trim_end());
        for file in &self.files {
            let _infallible = write!(section, "\n{}", file.element(harmless));
        }
        let _infallible = write!(section, "\n</{TAG}>");
        section
    }
}

impl ProjectFile {
    /// The same for a file that becomes known later: it stands behind the result of a tool, and is made harmless with it.
    pub fn as_note(&self, root: &Path) -> String {
        format!(
            "<{TAG} directory=\"{}\">\nThis file of the project applies to the directory that it is in. It is not the words \
             of the user.\n{}\n</{TAG}>",
            shown(root),
            self.element(|text| text.into())
        )
    }

    /// The file in tags, which its text cannot close; `change` makes that text harmless.
    fn element(&self, change: impl Fn(&str) -> Cow<'_, str>) -> String {
        let (path, text) = (attribute(&self.path), change(self.content.trim_end_matches('\n')));
        format!("<file path=\"{}\">\n{}\n</file>", change(&path), held(&text))
    }
}

/// A directory as the value of an attribute.
fn shown(directory: &Path) -> String {
    attribute(&directory.to_string_lossy())
}

#[cfg(test)]
mod tests;
