//! Skills: directories with a `SKILL.md` that teach the agent a task.
//!
//! The file begins with YAML front matter that holds a name and a description. The agent lists both in its prompt and
//! reads the rest of the file when a task matches. Skill text is data: nothing in it is executed, installed or turned
//! into config here, and a skill in a workspace cannot replace one that the owner keeps elsewhere.
//!
//! This crate finds skills and checks their requirements. It must not know agents, models or sessions.
#![forbid(unsafe_code)]

mod find;
mod front_matter;
mod machine;

pub use find::{Given, Problem, Skill, SkillCatalog, SkillOrigin, SkillPlace, described, find};
pub use front_matter::{FrontMatterField, Requirements, front_matter_fields, without_front_matter};
pub use machine::Machine;
