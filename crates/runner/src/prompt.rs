//! The system prompt, made at every start: role, the two `MISSION.md`, and the guides, in the order of the protocol.

use std::io::ErrorKind;
use std::path::Path;

use myclaw_files::read_regular;

const ROLE: &str = include_str!("../prompts/role.md");
const TOOLS: &str = include_str!("../prompts/tools.md");
const WORKFLOWS: &str = include_str!("../prompts/workflows.md");
const BROWSER: &str = include_str!("../prompts/browser.md");
const ASK_BOSS: &str = include_str!("../prompts/ask_boss.md");

/// Most bytes of a `MISSION.md`: a longer one would crowd out the messages.
const MAX_MISSION_BYTES: usize = 200_000;

/// The prompt. `say` gets a line about each `MISSION.md` that exists and cannot be used whole.
pub(crate) fn system_prompt(name: &str, workspace: &Path, say: &dyn Fn(&str)) -> String {
    let role = ROLE.replace("{assistantName}", name);
    let missions = ["global", "group"].map(|directory| {
        let path = workspace.join(directory).join("MISSION.md");
        mission(&path).unwrap_or_else(|problem| {
            say(&problem);
            None
        })
    });
    let [global, group] = missions.map(Option::unwrap_or_default);
    let parts = [role.as_str(), &global, &group, TOOLS, WORKFLOWS, BROWSER, ASK_BOSS];
    let parts: Vec<&str> =
        parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

fn mission(path: &Path) -> Result<Option<String>, String> {
    // One byte more, to see whether there is more.
    match read_regular(path, MAX_MISSION_BYTES as u64 + 1) {
        Ok(bytes) if bytes.len() > MAX_MISSION_BYTES => Err(format!(
            "{} is left out: it has more than {MAX_MISSION_BYTES} bytes; make it shorter",
            path.display()
        )),
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} is left out: it cannot be read: {error}", path.display())),
    }
}
