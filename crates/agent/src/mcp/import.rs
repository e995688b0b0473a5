//! The MCP servers that are set up for other programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use myclaw_config::{Environment, McpServerConfig, is_mcp_server_name, json5_value};
use myclaw_files::read_regular;
use myclaw_packages::plain_name;
use serde_json::{Map, Value, json};

/// Largest file that is read.
const MAX_BYTES: u64 = 32 << 20;
/// Longest name of a server.
const MAX_NAME: usize = 24;

/// A program whose servers can be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportSource {
    /// Claude Code, and the project files that it shares with others.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// goose.
    Goose,
    /// OpenClaw.
    OpenClaw,
}

/// A server of another program.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// Its name here.
    pub name: String,
    /// The file that has it.
    pub file: PathBuf,
    /// Its entry for the config; or why it cannot be taken over.
    pub entry: Result<Value, String>,
}

impl ImportSource {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::ClaudeCode, Self::Codex, Self::Cursor, Self::VsCode, Self::Goose, Self::OpenClaw];

    /// The files in which it keeps servers, which may be missing.
    pub fn files(self, home: &Path, directory: &Path) -> Vec<PathBuf> {
        match self {
            Self::ClaudeCode => vec![home.join(".claude.json"), directory.join(".mcp.json")],
            Self::Codex => vec![home.join(".codex/config.toml")],
            Self::Cursor => vec![home.join(".cursor/mcp.json"), directory.join(".cursor/mcp.json")],
            Self::VsCode => vec![
                home.join(".config/Code/User/mcp.json"),
                home.join("Library/Application Support/Code/User/mcp.json"),
                directory.join(".vscode/mcp.json"),
            ],
            Self::Goose => vec![home.join(".config/goose/config.yaml")],
            Self::OpenClaw => vec![home.join(".openclaw/openclaw.json")],
        }
    }

    /// Where the servers are in a file.
    fn servers(self, file: &Value, directory: &Path) -> Vec<(String, Value)> {
        let of = |value: &Value| -> Vec<(String, Value)> {
            let fields = value.as_object().into_iter().flatten();
            fields.map(|(name, entry)| (name.clone(), entry.clone())).collect()
        };
        match self {
            Self::ClaudeCode => {
                let mut servers = of(&file["mcpServers"]);
                let project = &file["projects"][directory.to_string_lossy().as_ref()];
                servers.extend(of(&project["mcpServers"]));
                servers
            }
            Self::Cursor => of(&file["mcpServers"]),
            Self::VsCode => of(&file["servers"]),
            Self::Codex => of(&file["mcp_servers"]),
            Self::Goose => of(&file["extensions"]),
            Self::OpenClaw => of(&file["mcp"]["servers"]),
        }
    }
}

/// Reads the servers in `file`, which `source` has written, or a program with files like it. `directory` is the project whose
/// servers are wanted.
///
/// # Errors
/// The file cannot be read; why.
pub fn read_servers(
    source: ImportSource,
    file: &Path,
    directory: &Path,
    environment: &Environment,
) -> Result<Vec<Imported>, String> {
    let bytes = read_regular(file, MAX_BYTES).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    servers_in(source, &text, file, directory, environment)
}

/// The servers in the text of such a file.
pub(super) fn servers_in(
    source: ImportSource,
    text: &str,
    file: &Path,
    directory: &Path,
    environment: &Environment,
) -> Result<Vec<Imported>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let parsed = match source {
        ImportSource::Codex => toml::from_str(text).map_err(|error| no_toml(text, &error))?,
        ImportSource::Goose => {
            serde_saphyr::from_str(text).map_err(|error| format!("it is no YAML: {error}"))?
        }
        _ => json5_value(text).ok_or("it is no JSON")?,
    };
    let mut found: BTreeMap<String, Imported> = BTreeMap::new();
    for (name, entry) in source.servers(&parsed, directory) {
        // Extensions of goose that are part of it.
        if matches!(
            entry["type"].as_str(),
            Some("builtin" | "platform" | "frontend" | "inline_python")
        ) {
            continue;
        }
        let Some(name) = name_here(&name) else { continue };
        let entry = converted(&entry).and_then(|entry| with_known_variables(entry, environment));
        let file = file.to_owned();
        found.entry(name.clone()).or_insert(Imported { name, file, entry });
    }
    Ok(found.into_values().collect())
}

/// What is wrong with a text that is no TOML, and where.
fn no_toml(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    format!("it is no TOML: line {line}: {}", error.message())
}

/// A server as an editor passes it over ACP: its name here and its config.
///
/// # Errors
/// It cannot be used; its name and why.
pub fn editor_server(server: &Value) -> Result<(String, McpServerConfig), String> {
    let given = server["name"].as_str().unwrap_or("a server without a name");
    let unusable = |why: &str| format!("{given}: {why}");
    let name = name_here(given).filter(|_| server["name"].is_string());
    let name = name.ok_or_else(|| unusable("it has no name that can be used"))?;
    if !matches!(server["type"].as_str(), None | Some("stdio" | "http" | "sse")) {
        return Err(unusable("servers of this type are not known"));
    }
    let mut entry = server.clone();
    for key in ["env", "headers"] {
        // Variables and headers are lists of names and values.
        let pairs =
            server[key].as_array().into_iter().flatten().filter_map(|pair| {
                Some((pair["name"].as_str()?.to_owned(), pair["value"].clone()))
            });
        entry[key] = Value::Object(pairs.collect());
    }
    let entry = converted(&entry).map_err(|why| unusable(&why))?;
    let config = serde_json::from_value(entry).map_err(|error| unusable(&error.to_string()))?;
    Ok((name, config))
}

/// The nearest name that a server may have here.
fn name_here(name: &str) -> Option<String> {
    let mut plain = plain_name(name)?;
    plain.truncate(MAX_NAME);
    let plain = plain.trim_end_matches('-');
    let plain = if plain == "mcp" { "mcp-server" } else { plain };
    is_mcp_server_name(plain).then(|| plain.to_owned())
}

/// The entry in the words of this program's config.
fn converted(entry: &Value) -> Result<Value, String> {
    let first = |names: &[&str]| {
        names.iter().map(|name| &entry[*name]).find(|value| !value.is_null()).cloned()
    };
    let url = first(&["url", "uri", "serverUrl", "httpUrl"]);
    let mut made = Map::new();
    match (first(&["command", "cmd"]), url) {
        (Some(Value::String(command)), _) if !command.trim().is_empty() => {
            made.insert("command".to_owned(), json!(command));
        }
        (None, Some(Value::String(url))) if !url.trim().is_empty() => {
            return with_address(&url, entry);
        }
        _ => return Err("it names no program and no address".to_owned()),
    }
    if let Some(args) = first(&["args"]) {
        let is_text =
            |args: &Value| args.as_array().is_some_and(|args| args.iter().all(Value::is_string));
        if !is_text(&args) {
            return Err("its arguments are no list of texts".to_owned());
        }
        made.insert("args".to_owned(), args);
    }
    let mut env = Map::new();
    for (name, value) in
        first(&["env", "envs"]).as_ref().and_then(Value::as_object).into_iter().flatten()
    {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Null => continue,
            other => other.to_string(),
        };
        env.insert(name.clone(), json!(value));
    }
    // Variables that are passed on: goose, Codex.
    for name in
        first(&["env_keys", "env_vars"]).as_ref().and_then(Value::as_array).into_iter().flatten()
    {
        if let Some(name) = name.as_str() {
            env.insert(name.to_owned(), json!(format!("${{{name}}}")));
        }
    }
    if !env.is_empty() {
        made.insert("env".to_owned(), Value::Object(env));
    }
    if let Some(Value::String(cwd)) = first(&["cwd"]) {
        made.insert("cwd".to_owned(), json!(cwd));
    }
    Ok(with_common_keys(made, entry))
}

/// The entry of a server with an address.
fn with_address(url: &str, entry: &Value) -> Result<Value, String> {
    let mut headers = Map::new();
    for key in ["headers", "http_headers"] {
        for (name, value) in entry[key].as_object().into_iter().flatten() {
            headers.insert(name.clone(), json!(value.as_str().ok_or("a header of it is no text")?));
        }
    }
    // Headers that are variables: Codex.
    for (name, variable) in entry["env_http_headers"].as_object().into_iter().flatten() {
        headers
            .insert(name.clone(), json!(format!("${{{}}}", variable.as_str().unwrap_or_default())));
    }
    if let Some(variable) = entry["bearer_token_env_var"].as_str() {
        headers.insert("Authorization".to_owned(), json!(format!("Bearer ${{{variable}}}")));
    }
    let mut made = Map::from_iter([("url".to_owned(), json!(url))]);
    if !headers.is_empty() {
        made.insert("headers".to_owned(), Value::Object(headers));
    }
    Ok(with_common_keys(made, entry))
}

/// The entry with the keys that all servers may have.
fn with_common_keys(mut made: Map<String, Value>, entry: &Value) -> Value {
    let first = |names: &[&str]| {
        names.iter().map(|name| &entry[*name]).find(|value| !value.is_null()).cloned()
    };
    if first(&["enabled"]) == Some(json!(false)) || first(&["disabled"]) == Some(json!(true)) {
        made.insert("enabled".to_owned(), json!(false));
    }
    // Claude Code and Cursor mean milliseconds with a number without a unit in its name.
    if let Some(seconds) =
        first(&["tool_timeout_sec", "timeoutSeconds"]).and_then(|value| value.as_f64())
        && seconds >= 1.0
    {
        made.insert("timeoutSeconds".to_owned(), json!(seconds.min(86_400.0) as u64));
    }
    let mut tools = Map::new();
    for (names, key) in [
        (["enabled_tools", "available_tools", "includeTools"], "allow"),
        (["disabled_tools", "disabledTools", "excludeTools"], "deny"),
    ] {
        if let Some(list) =
            first(&names).filter(|list| list.as_array().is_some_and(|list| !list.is_empty()))
        {
            tools.insert(key.to_owned(), list);
        }
    }
    if !tools.is_empty() {
        made.insert("tools".to_owned(), Value::Object(tools));
    }
    Value::Object(made)
}

/// The entry with references to variables as this program writes them. A variable that is not set would make the config
/// unusable.
fn with_known_variables(mut entry: Value, environment: &Environment) -> Result<Value, String> {
    let mut missing = Vec::new();
    rewrite(&mut entry, &mut |text| {
        let mut made = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            made.push_str(&rest[..at]);
            let Some(end) = rest[at..].find('}') else { break };
            let inner = &rest[at + 2..at + end];
            rest = &rest[at + end + 1..];
            let (name, usual) = match inner.split_once(":-") {
                Some((name, usual)) => (name, Some(usual)),
                None => (inner.strip_prefix("env:").unwrap_or(inner), None),
            };
            // An answer that VS Code asks for.
            let name = match name.strip_prefix("input:") {
                Some(input) => input.to_uppercase().replace(['-', ' ', '.'], "_"),
                None => name.to_owned(),
            };
            match (environment.get(&name), usual) {
                (Some(_), _) => made.push_str(&format!("${{{name}}}")),
                (None, Some(usual)) => made.push_str(usual),
                (None, None) => missing.push(name),
            }
        }
        made.push_str(rest);
        made
    });
    missing.sort();
    missing.dedup();
    match missing[..] {
        [] => Ok(entry),
        _ => Err(format!(
            "it needs variables that are not set: {}; put them into the file `.env` of the state directory and import it again",
            missing.join(", ")
        )),
    }
}

/// The entry with the values of its variables, all of which are set.
pub(super) fn with_values(mut entry: Value, environment: &Environment) -> Value {
    rewrite(&mut entry, &mut |text| {
        let mut made = String::new();
        let mut rest = text;
        while let Some((before, name, behind)) = rest
            .split_once("${")
            .and_then(|(before, behind)| Some((before, behind.split_once('}')?)))
            .map(|(before, (name, behind))| (before, name, behind))
        {
            made.push_str(before);
            made.push_str(environment.get(name).unwrap_or_default());
            rest = behind;
        }
        made + rest
    });
    entry
}

fn rewrite(value: &mut Value, change: &mut dyn FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rewrite(field, change)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
