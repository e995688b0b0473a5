//! `/theme`: shows the colours that there are, and changes them for this chat and the next ones.

use myclaw_agent::{Home, config_write::change_config};
use myclaw_config::{ConfigChange, ConfigFile, ThemeName};
use myclaw_front::terminal::choose_palette;
use serde::Deserialize as _;
use serde_json::json;

/// The names, with what they are.
const THEMES: [(&str, &str); 6] = [
    ("auto", "as the background of the terminal needs it"),
    ("dark", "for a dark background"),
    ("light", "for a light background"),
    ("basic", "the 16 colours of the terminal's own theme"),
    ("plain", "no colours"),
    ("high-contrast", "few and strong colours, and nothing faint"),
];
/// Where the name is in the config.
const KEY: &str = "terminal.theme";

/// The themes; a star is before the one that the config names.
pub(super) fn list(current: ThemeName) -> String {
    let line = |(name, what): &(&str, &str)| {
        let mark = if named(name) == Some(current) { "*" } else { " " };
        format!("{mark} {name:<14} {what}")
    };
    let lines: Vec<String> = THEMES.iter().map(line).collect();
    format!("{}\n/theme NAME changes it, for the next chats too", lines.join("\n"))
}

fn named(name: &str) -> Option<ThemeName> {
    ThemeName::deserialize(json!(name)).ok()
}

/// Uses another theme at once, and keeps it in the config. Returns the theme, if there is one of that name, and what to say.
pub(super) async fn change(home: &Home, name: &str) -> (Option<ThemeName>, String) {
    let Some(theme) = named(name) else {
        let names: Vec<&str> = THEMES.iter().map(|(name, _)| *name).collect();
        return (None, format!("there is no theme `{name}`; write one of {}", names.join(", ")));
    };
    choose_palette(theme).await;
    let said = match keep(home, name).await {
        Ok(()) => format!("theme: {name}, for the next chats too"),
        Err(problem) => format!(
            "theme: {name}, in this chat only, because the config was not changed: {problem}"
        ),
    };
    (Some(theme), said)
}

async fn keep(home: &Home, name: &str) -> Result<(), String> {
    let file = ConfigFile::read(&home.paths).map_err(|error| error.to_string())?;
    let path = KEY.parse().map_err(|_| format!("{KEY} is no key"))?;
    let change = ConfigChange::Set { path, value: json!(name) };
    change_config(home, &file, &[change]).await.map_err(|error| error.to_string())?;
    Ok(())
}
