//! What is in a package, and what it asks for: a function of its bytes alone.

use std::collections::BTreeSet;

use myclaw_config::{CommandLine, HooksConfig, json5_value};
use myclaw_policy::escape;
use myclaw_skills::{Given, Machine, SkillCatalog, SkillOrigin, described};
use serde_json::{Map, Value};

use crate::{Tree, TreeError};

/// What Claude Code calls a plugin's description of itself.
const MANIFEST: &str = ".claude-plugin/plugin.json";
/// The variable that stands for the directory of a package, in the plugins of others too.
pub const ROOT: &str = "${CLAUDE_PLUGIN_ROOT}";
/// Longest name of a package.
const MAX_NAME: usize = 40;
/// Most directories that a message names.
const MAX_HINTS: usize = 10;
/// Longest text of one wish that is shown.
const MAX_SHOWN: usize = 2_000;
/// The events of Claude Code's hooks that have a counterpart here.
pub const CLAUDE_EVENTS: [&str; 6] =
    ["PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "PreCompact", "Stop"];
/// Seconds after which such a hook is stopped, if it does not say, and at most.
const CLAUDE_TIMEOUT: u64 = 60;
const MAX_CLAUDE_TIMEOUT: u64 = 600;
/// Scripts that npm would run, which never happens here.
const INSTALL_SCRIPTS: [&str; 4] = ["preinstall", "install", "postinstall", "prepare"];

/// A text in a package: a skill, a command or an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageDocument {
    /// Its name in the package.
    pub name: String,
    /// What it says it is for; empty if it does not.
    pub description: String,
    /// Its file.
    pub path: String,
}

/// An MCP server of a package.
#[derive(Debug, Clone, PartialEq)]
pub struct PackageServer {
    /// Its name in the package.
    pub name: String,
    /// Its entry, as it is written.
    pub entry: Value,
}

/// A hook that is written for Claude Code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaudeHookEntry {
    /// Its event, one of [`CLAUDE_EVENTS`].
    pub event: String,
    /// What it is for, as a pattern; everything without it.
    pub matcher: Option<String>,
    /// A line for the shell.
    pub command: String,
    /// Seconds after which it is stopped.
    pub timeout_seconds: u64,
}

/// What is in a package.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackageContents {
    /// The name that it gives itself.
    pub name: Option<String>,
    /// Its version, if it says one.
    pub version: Option<String>,
    /// Its skills.
    pub skills: Vec<PackageDocument>,
    /// Its commands.
    pub commands: Vec<PackageDocument>,
    /// Its agents.
    pub agents: Vec<PackageDocument>,
    /// Its hooks.
    pub hooks: HooksConfig,
    /// Its hooks that are written for Claude Code.
    pub claude_hooks: Vec<ClaudeHookEntry>,
    /// Its MCP servers.
    pub servers: Vec<PackageServer>,
    /// What is in it and has no effect here, with the reason.
    pub unused: Vec<String>,
    /// Further lines of what it asks for.
    needs: Vec<String>,
}

impl PackageContents {
    /// Reads what is in a package.
    ///
    /// # Errors
    /// A file that says what is in it cannot be read, or nothing in it can be used.
    pub fn of(tree: &Tree) -> Result<Self, TreeError> {
        let mut contents = Self::default();
        let manifest = json_file(tree, MANIFEST)?.unwrap_or_default();
        let text = |key: &str| manifest[key].as_str().map(str::to_owned);
        contents.name = text("name");
        contents.version = text("version");
        contents.npm(tree)?;
        contents.find_skills(tree, &paths(&manifest["skills"]))?;
        contents.commands = documents(tree, "commands/", &paths(&manifest["commands"]));
        contents.agents = documents(tree, "agents/", &paths(&manifest["agents"]));
        for hooks in parts(tree, "hooks/hooks.json", &manifest["hooks"])? {
            contents.add_hooks(&hooks)?;
        }
        for servers in parts(tree, ".mcp.json", &manifest["mcpServers"])? {
            contents.add_servers(&servers);
        }
        for (key, file) in [("lspServers", ".lsp.json"), ("outputStyles", "output-styles/")] {
            let has_files = tree.files().any(|(path, _)| path.starts_with(file));
            if !manifest[key].is_null() || has_files {
                contents.unused.push(format!("{key}: there is nothing like that here"));
            }
        }
        if !tree.left_out().is_empty() {
            let links = tree.left_out().join(", ");
            contents.unused.push(format!("links, which are left out: {links}"));
        }
        if contents.is_empty() {
            let below = subdirectories(tree);
            let hint = match below.is_empty() {
                true => String::new(),
                false => format!("; with --subdirectory it could be one of: {}", below.join(", ")),
            };
            return Err(TreeError(format!(
                "nothing in it can be used: there is no SKILL.md, no commands/*.md, no agents/*.md, no hooks/hooks.json and no \
                 .mcp.json{hint}"
            )));
        }
        Ok(contents)
    }

    fn is_empty(&self) -> bool {
        self.skills.is_empty()
            && self.commands.is_empty()
            && self.agents.is_empty()
            && self.servers.is_empty()
            && self.hooks.commands().next().is_none()
            && self.claude_hooks.is_empty()
    }

    /// What the `package.json` of npm adds.
    fn npm(&mut self, tree: &Tree) -> Result<(), TreeError> {
        let Some(package) = json_file(tree, "package.json")? else { return Ok(()) };
        let text = |key: &str| package[key].as_str().map(str::to_owned);
        self.name = self.name.take().or_else(|| text("name"));
        self.version = self.version.take().or_else(|| text("version"));
        let scripts = INSTALL_SCRIPTS.iter().filter(|name| package["scripts"][**name].is_string());
        for name in scripts {
            self.unused.push(format!("the install script `{name}`: none is ever run"));
        }
        let dependencies = package["dependencies"].as_object().into_iter().flatten();
        let names: Vec<String> = dependencies.map(|(name, _)| escape(name)).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            self.unused.push(format!("the dependencies {names}: they are not installed"));
        }
        Ok(())
    }

    fn find_skills(&mut self, tree: &Tree, more: &[String]) -> Result<(), TreeError> {
        let mut catalog = SkillCatalog::default();
        for (path, entry) in tree.files() {
            let Some(directory) =
                path.strip_suffix("SKILL.md").map(|path| path.trim_end_matches('/'))
            else {
                continue;
            };
            let parent = directory.rsplit_once('/').map_or("", |(parent, _)| parent);
            let is_place = directory.is_empty()
                || matches!(parent, "skills" | ".claude/skills" | ".agents/skills")
                || more.iter().any(|place| place == parent || place == directory);
            if !is_place {
                self.unused.push(format!("{path}: skills are in skills/NAME/"));
                continue;
            }
            let name = directory.rsplit('/').next().filter(|name| !name.is_empty());
            let name = name.or(self.name.as_deref()).unwrap_or("skill").to_owned();
            let text = String::from_utf8_lossy(&entry.bytes).into_owned();
            let given = Given {
                file: path.into(),
                base: "".into(),
                directory: name,
                text,
                origin: SkillOrigin::Package,
            };
            if let Err(why) = catalog.add(given, &Machine::default()) {
                return Err(TreeError(format!("the skill {path}: {why}")));
            }
        }
        for skill in catalog.skills {
            let needs = &skill.requirements;
            let wanted = [
                ("programs", needs.programs.join(", ")),
                ("one of the programs", needs.any_program.join(", ")),
                ("variables", needs.variables.join(", ")),
            ];
            for (what, names) in wanted.iter().filter(|(_, names)| !names.is_empty()) {
                self.needs.push(format!("the skill {} needs the {what} {names}", skill.name));
            }
            let path = skill.file.to_string_lossy().into_owned();
            self.skills.push(PackageDocument {
                name: skill.name,
                description: skill.description,
                path,
            });
        }
        // What a directory without a plugin's manifest is called: as its only skill.
        if let (None, [only]) = (&self.name, self.skills.as_slice()) {
            self.name = Some(only.name.clone());
        }
        Ok(())
    }

    /// Hooks in the words of this program, and those of Claude Code.
    fn add_hooks(&mut self, file: &Value) -> Result<(), TreeError> {
        let events = if file["hooks"].is_object() { &file["hooks"] } else { file };
        let mut own = Map::new();
        for (event, hooks) in events.as_object().into_iter().flatten() {
            match event.chars().next().is_some_and(char::is_uppercase) {
                true => self.add_claude_hooks(event, hooks),
                false if event == "description" => {}
                false => drop(own.insert(event.clone(), hooks.clone())),
            }
        }
        // A session begins before anything is said in it, in whatever order a file has that.
        self.claude_hooks.sort_by_key(|hook| hook.event != "SessionStart");
        let hooks: HooksConfig = serde_json::from_value(Value::Object(own))
            .map_err(|error| TreeError(format!("its hooks: {error}; docs/operate/hooks.md")))?;
        self.hooks.before_agent_start.extend(hooks.before_agent_start);
        self.hooks.context.extend(hooks.context);
        self.hooks.tool_call.extend(hooks.tool_call);
        self.hooks.tool_result.extend(hooks.tool_result);
        self.hooks.before_session_compact.extend(hooks.before_session_compact);
        self.hooks.session_compact.extend(hooks.session_compact);
        self.hooks.agent_end.extend(hooks.agent_end);
        Ok(())
    }

    /// The hooks of an event of Claude Code: lists of hooks, each list for what its matcher names.
    fn add_claude_hooks(&mut self, event: &str, lists: &Value) {
        let named = escape(event);
        if !CLAUDE_EVENTS.contains(&event) {
            self.unused.push(format!("the hooks {named}: there is no such event here"));
            return;
        }
        if event == "Stop" {
            self.unused.push(
                "what the hooks Stop answer: a turn that is over is not continued".to_owned(),
            );
        }
        for list in lists.as_array().into_iter().flatten() {
            let matcher = list["matcher"].as_str().map(str::to_owned);
            for hook in list["hooks"].as_array().into_iter().flatten() {
                let command = hook["command"].as_str().filter(|line| !line.trim().is_empty());
                match command.filter(|_| hook["type"] == "command") {
                    Some(command) => self.claude_hooks.push(ClaudeHookEntry {
                        event: event.to_owned(),
                        matcher: matcher.clone(),
                        command: command.to_owned(),
                        timeout_seconds: hook["timeout"]
                            .as_u64()
                            .unwrap_or(CLAUDE_TIMEOUT)
                            .clamp(1, MAX_CLAUDE_TIMEOUT),
                    }),
                    None => {
                        let kind = escape(hook["type"].as_str().unwrap_or("no type"));
                        self.unused
                            .push(format!("a hook {named} of {kind}: only commands are run"));
                    }
                }
            }
        }
    }

    fn add_servers(&mut self, file: &Value) {
        let servers = if file["mcpServers"].is_object() { &file["mcpServers"] } else { file };
        for (name, entry) in servers.as_object().into_iter().flatten() {
            self.servers.push(PackageServer { name: name.clone(), entry: entry.clone() });
        }
    }

    /// What it asks for, one line each, with hidden characters written out. Entries of servers are shown as they are written,
    /// so that nothing that counts is missing.
    pub fn wishes(&self) -> Vec<String> {
        let described = |what: &str, document: &PackageDocument| {
            let PackageDocument { name, description, .. } = document;
            let colon = if description.is_empty() { "" } else { ": " };
            format!("{what} {name}{colon}{description}")
        };
        let mut wishes: Vec<String> = Vec::new();
        wishes.extend(self.skills.iter().map(|skill| described("skill", skill)));
        wishes.extend(self.commands.iter().map(|command| described("command", command)));
        wishes.extend(self.agents.iter().map(|agent| described("agent", agent)));
        let mut texts: Vec<String> = Vec::new();
        for (event, _, hook) in self.hooks.commands() {
            let (line, program) = match hook.command {
                CommandLine::Shell(line) => (line.clone(), "a line for the shell"),
                CommandLine::Program(words) => {
                    (serde_json::to_string(words).unwrap_or_default(), "a program")
                }
            };
            let tools = hook.tools.map(|tools| format!(" for the tools {}", tools.join(", ")));
            wishes.push(format!(
                "hook {}{}: runs {program} with all your rights, at most {} s: {line}",
                event.as_str(),
                tools.unwrap_or_default(),
                hook.timeout_seconds
            ));
            texts.push(line);
        }
        for hook in &self.claude_hooks {
            let matcher = hook.matcher.as_deref().filter(|matcher| !matcher.is_empty());
            let matcher = matcher.map(|matcher| format!(" for {matcher}")).unwrap_or_default();
            wishes.push(format!(
                "hook {}{matcher}: runs a line for the shell with all your rights, at most {} s: {}",
                hook.event, hook.timeout_seconds, hook.command
            ));
            texts.push(hook.command.clone());
        }
        for server in &self.servers {
            let entry = server.entry.to_string();
            wishes.push(format!("MCP server {}: {entry}", server.name));
            texts.push(entry);
        }
        let variables: BTreeSet<String> = texts.iter().flat_map(|text| variables(text)).collect();
        wishes.extend(
            variables.iter().map(|name| format!("the variable {name} of your environment")),
        );
        let hosts: BTreeSet<String> = texts.iter().flat_map(|text| hosts(text)).collect();
        wishes.extend(hosts.iter().map(|host| format!("the host {host}")));
        wishes.extend(self.needs.iter().cloned());
        wishes.iter().map(|wish| cut(&escape(wish))).collect()
    }
}

/// The directories of a source that look like packages.
fn subdirectories(tree: &Tree) -> Vec<String> {
    let package = |(path, _): (&String, _)| {
        let plugin = path.strip_suffix("/.claude-plugin/plugin.json");
        let skill = || {
            path.strip_suffix("/SKILL.md").map(|directory| {
                directory.rsplit_once("/skills/").map_or(directory, |(above, _)| above)
            })
        };
        plugin.or_else(skill).map(escape)
    };
    let found: BTreeSet<String> = tree.files().filter_map(package).collect();
    found.into_iter().take(MAX_HINTS).collect()
}

/// The nearest name that a package may have: lower-case letters, digits and hyphens.
pub fn plain_name(name: &str) -> Option<String> {
    let mut plain = String::new();
    // Of `@scope/name` both count.
    for char in name.chars().flat_map(char::to_lowercase) {
        match char {
            'a'..='z' | '0'..='9' => plain.push(char),
            _ if !plain.ends_with('-') && !plain.is_empty() => plain.push('-'),
            _ => {}
        }
    }
    plain.truncate(MAX_NAME);
    let plain = plain.trim_end_matches('-');
    (!plain.is_empty()).then(|| plain.to_owned())
}

/// A long wish is shown up to a limit, and refused nowhere: its digest is what counts.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => {
            format!("{}… ({} bytes more, in the package)", &text[..end], text.len() - end)
        }
        None => text.to_owned(),
    }
}

/// The variables that a text names as `${NAME}` or `${NAME:-usual}`.
fn variables(text: &str) -> Vec<String> {
    let names = text.split("${").skip(1).filter_map(|rest| {
        let end = rest.find(|char: char| !char.is_ascii_alphanumeric() && char != '_')?;
        Some(rest[..end].to_owned())
    });
    names.filter(|name| !name.is_empty() && !ROOT.contains(name.as_str())).collect()
}

/// The hosts of the addresses in a text.
fn hosts(text: &str) -> Vec<String> {
    let behind = text.split("://").skip(1);
    let hosts = behind.map(|rest| {
        let end = rest.find(['/', '"', '?', '#', '\\', ' ']);
        rest[..end.unwrap_or(rest.len())].to_owned()
    });
    hosts.filter(|host| !host.is_empty()).collect()
}

/// A file that says what is in the package.
fn json_file(tree: &Tree, path: &str) -> Result<Option<Value>, TreeError> {
    let Some(entry) = tree.get(path) else { return Ok(None) };
    let text = entry.text().map(|text| text.trim_start_matches('\u{feff}'));
    let value = text.and_then(json5_value).filter(Value::is_object);
    value.map(Some).ok_or_else(|| TreeError(format!("its file {path} is no JSON object")))
}

/// Paths of a manifest, without `./` and the slash at the end.
fn paths(value: &Value) -> Vec<String> {
    let list = match value {
        Value::String(path) => vec![path.as_str()],
        Value::Array(paths) => paths.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let plain = |path: &str| path.trim_start_matches("./").trim_end_matches('/').to_owned();
    list.into_iter().map(plain).collect()
}

/// What a usual file and the manifest say; the manifest names more files, or has it in itself.
fn parts(tree: &Tree, usual: &str, value: &Value) -> Result<Vec<Value>, TreeError> {
    let mut files: BTreeSet<String> = paths(value).into_iter().collect();
    files.insert(usual.to_owned());
    let mut found = Vec::new();
    for file in &files {
        match json_file(tree, file)? {
            Some(part) => found.push(part),
            None if file == usual => {}
            None => {
                return Err(TreeError(format!(
                    "its manifest names {}, which is not in it",
                    escape(file)
                )));
            }
        }
    }
    found.extend(Some(value.clone()).filter(Value::is_object));
    Ok(found)
}

/// The Markdown files of a directory, and those that a manifest names.
fn documents(tree: &Tree, usual: &str, more: &[String]) -> Vec<PackageDocument> {
    let place = |path: &str| {
        let below = more.iter().find_map(|place| path.strip_prefix(&format!("{place}/")));
        let named = more.iter().any(|place| place == path);
        let file = path.rsplit('/').next().unwrap_or(path);
        path.strip_prefix(usual).or(below).or(named.then_some(file)).map(str::to_owned)
    };
    let found = tree.files().filter_map(|(path, entry)| {
        let name = place(path)?.strip_suffix(".md")?.replace('/', ":");
        let description = entry.text().and_then(|text| described(text, &name).ok());
        let description = description.map(|(_, description)| description).unwrap_or_default();
        Some(PackageDocument { name, description, path: path.clone() })
    });
    found.collect()
}
