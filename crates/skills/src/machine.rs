//! What a skill's requirements are checked against.

use std::env::consts::OS;
use std::path::{Path, PathBuf};

use myclaw_files::portable::PermissionsExt;

use crate::Requirements;

/// The programs, variables and operating system of this machine.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// Directories with programs, in search order: those of `PATH`.
    pub program_directories: Vec<PathBuf>,
    /// Names of the environment variables that are set and not empty.
    pub variables: Vec<String>,
}

impl Machine {
    /// The requirements that are not met, as short phrases such as `program ffmpeg`. Empty if all are met.
    pub fn missing(&self, requirements: &Requirements) -> Vec<String> {
        let systems = &requirements.systems;
        let is_other_system =
            !systems.is_empty() && !systems.iter().any(|name| is_this_system(name));
        let system = is_other_system.then(|| format!("operating system {}", systems.join(" or ")));
        let programs = requirements.programs.iter().filter(|name| !self.has_program(name));
        let any = &requirements.any_program;
        let has_any = any.is_empty() || any.iter().any(|name| self.has_program(name));
        let unreadable = &requirements.unreadable;
        let unreadable =
            unreadable.iter().map(|field| format!("what `{field}` says, which cannot be read"));
        let variables = requirements.variables.iter().filter(|name| !self.variables.contains(name));
        system
            .into_iter()
            .chain(programs.map(|name| format!("program {name}")))
            .chain((!has_any).then(|| format!("program {}", any.join(" or "))))
            .chain(variables.map(|name| format!("variable {name}")))
            .chain(unreadable)
            .collect()
    }

    /// A name with a slash is not a program name, so a skill cannot probe for files.
    fn has_program(&self, name: &str) -> bool {
        !name.is_empty()
            && !name.contains('/')
            && self.program_directories.iter().any(|directory| is_executable(&directory.join(name)))
    }
}

fn is_executable(path: &Path) -> bool {
    const ANY_EXECUTE_BIT: u32 = 0o111;
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & ANY_EXECUTE_BIT != 0)
}

/// Whether `name` is this operating system, by the name of Rust, Node.js or everyday use.
fn is_this_system(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    match OS {
        "macos" => matches!(name.as_str(), "macos" | "darwin" | "mac"),
        "windows" => matches!(name.as_str(), "windows" | "win32"),
        other => name == other,
    }
}
