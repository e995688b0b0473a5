//! The system prompt: sections in a fixed order, the same bytes from turn to turn.
//!
//! The prompt holds nothing that changes between turns, so that a provider's cache of the prefix stays warm. The time
//! is part of each user message instead (see `transcript`).

use std::borrow::Cow;
use std::env::consts::{ARCH, OS};
use std::fmt::Write;
use std::path::Path;

use jiff::tz::TimeZone;
use myclaw_llm::ToolSchema;
use myclaw_llm::outside::harmless;

use crate::section::{attribute, held, held_line};
use crate::workspace::BootstrapFile;
use crate::{ProjectInstructions, SkillSummary};

const IDENTITY: &str = include_str!("../prompts/identity.md");
const SAFETY: &str = include_str!("../prompts/safety.md");
/// Precedes the notes of a session that is not the owner's.
const NOTES: &str = include_str!("../prompts/notes.md");
/// Precedes the list of what the agent remembers.
const MEMORY: &str = include_str!("../prompts/memory.md");
/// Stands in the place of an empty list.
const NOTHING_REMEMBERED: &str = "(nothing)";
/// Precedes the list of skills.
const SKILLS: &str = "\nThese skills teach you tasks. When one fits the task, read its file with `read` before you \
                      begin; paths in it start in its directory:";
/// The tool that the model reads skills with.
const READ_TOOL: &str = "read";

/// The inputs of the prompt.
pub(crate) struct PromptParts<'a> {
    /// Replaces the built-in identity text.
    pub(crate) identity: Option<&'a BootstrapFile>,
    pub(crate) bootstrap: &'a [BootstrapFile],
    pub(crate) tools: &'a [ToolSchema],
    pub(crate) skills: &'a [SkillSummary],
    pub(crate) working_directory: &'a Path,
    /// `provider/model`.
    pub(crate) model: &'a str,
    /// The IANA name of the user's time zone, if it is known.
    pub(crate) time_zone: Option<&'a str>,
    /// What the program around the engine says about replies.
    pub(crate) note: Option<&'a str>,
    /// What the project in the working directory says.
    pub(crate) project: Option<&'a ProjectInstructions>,
    /// The notes of a session that has a workspace of its own.
    pub(crate) notes: Option<&'a BootstrapFile>,
    /// What the agent remembers; `None` if it has no tools for notes.
    pub(crate) memory: Option<&'a str>,
}

/// Builds the prompt: identity, bootstrap files, the project's instructions, tools with skills, notes, memory, safety,
/// runtime.
/// Sections without content are omitted. No text in a section can close it or imitate another one.
pub(crate) fn build_system_prompt(parts: &PromptParts<'_>) -> String {
    let identity = parts.identity.map_or(Cow::Borrowed(IDENTITY), |file| held(&file.content));
    let mut prompt = format!("<identity>\n{}\n</identity>", identity.trim_end());
    if !parts.bootstrap.is_empty() {
        prompt.push_str("\n\n<bootstrap-files>");
        for file in parts.bootstrap {
            let text = held(file.content.trim_end_matches('\n'));
            let _infallible =
                write!(prompt, "\n<file path=\"{}\">\n{text}\n</file>", attribute(file.name));
        }
        prompt.push_str("\n</bootstrap-files>");
    }
    if let Some(project) = parts.project.filter(|project| !project.files.is_empty()) {
        let _infallible = write!(prompt, "\n\n{}", project.section());
    }
    if !parts.tools.is_empty() {
        prompt.push_str("\n\n<tools>\nYour tools: ");
        for (number, tool) in parts.tools.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            let _infallible = write!(prompt, "{comma}{}", tool.name);
        }
        prompt.push_str("\nRelative paths start in the working directory.");
        push_skills(&mut prompt, parts);
        prompt.push_str("\n</tools>");
    }
    if let Some(notes) = parts.notes {
        let text = harmless(notes.content.trim_end_matches('\n'));
        let text = held(&text);
        let (name, introduction) = (attribute(notes.name), NOTES.trim_end());
        let _infallible =
            write!(prompt, "\n\n<notes path=\"{name}\">\n{introduction}\n{text}\n</notes>");
    }
    if let Some(memory) = parts.memory {
        let list = harmless(if memory.is_empty() { NOTHING_REMEMBERED } else { memory });
        let (introduction, list) = (MEMORY.trim_end(), held(&list));
        let _infallible = write!(prompt, "\n\n<memory>\n{introduction}\n{list}\n</memory>");
    }
    let _infallible = write!(
        prompt,
        "\n\n<safety>\n{}\n</safety>\n\n<runtime>\n- Platform: {} {}\n- Working directory: {}\n- Model: {}\n\
         - Each user message ends with the time it was sent, in UTC.",
        SAFETY.trim_end(),
        platform(),
        architecture(),
        held_line(&parts.working_directory.to_string_lossy()),
        held_line(parts.model),
    );
    if let Some(time_zone) = parts.time_zone {
        let _infallible = write!(prompt, "\n- User's time zone: {}", held_line(time_zone));
    }
    if let Some(note) = parts.note {
        let _infallible = write!(prompt, "\n- {}", held_line(note));
    }
    prompt.push_str("\n</runtime>");
    prompt
}

/// Lists the skills, if the model can read them.
fn push_skills(prompt: &mut String, parts: &PromptParts<'_>) {
    if parts.skills.is_empty() || !parts.tools.iter().any(|tool| tool.name == READ_TOOL) {
        return;
    }
    prompt.push_str(SKILLS);
    for skill in parts.skills {
        prompt.push('\n');
        prompt.push_str(&skill.line());
    }
}

/// The user's time zone: from the config, else from this machine if its zone has a name.
pub(crate) fn time_zone(configured: Option<&str>) -> Option<String> {
    let machine = || TimeZone::system().iana_name().map(str::to_owned);
    configured.map(str::to_owned).or_else(machine)
}

/// The operating system by its Node.js name, which prompts in this field use.
fn platform() -> &'static str {
    match OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    }
}

/// The processor by its Node.js name.
fn architecture() -> &'static str {
    match ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        "x86" => "ia32",
        other => other,
    }
}

#[cfg(test)]
mod tests;
