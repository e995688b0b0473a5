//! The YAML at the beginning of a `SKILL.md` or of a command.
//!
//! One bad field costs no other: what is not valid YAML is read line by line, and what is missing or too long gets a value,
//! with a remark about it.

use std::collections::BTreeMap;

use serde_json::Value;

/// Longest name, in characters: the limit of the Agent Skills format.
const MAX_NAME_CHARS: usize = 64;
/// Longest description, in characters: the limit of the Agent Skills format.
const MAX_DESCRIPTION_CHARS: usize = 1_024;
/// Names under which agents keep their own part of `metadata`.
const OWN_METADATA: [&str; 4] = ["myclaw", "openclaw", "moltbot", "clawdbot"];

/// The kinds of requirements. Those of the config are about the program that made the format.
const REQUIREMENTS: [&str; 4] = ["bins", "anyBins", "env", "config"];

/// What a skill says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    pub(crate) name: String,
    /// One line.
    pub(crate) description: String,
    pub(crate) requirements: Requirements,
    /// What was wrong, and what was taken instead.
    pub(crate) remarks: Vec<String>,
}

/// What a machine must have for a skill to be listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Operating systems, one of which it must be; empty means any.
    pub systems: Vec<String>,
    /// Programs, all of which must be on the path.
    pub programs: Vec<String>,
    /// Programs, one of which must be on the path; empty means no such requirement.
    pub any_program: Vec<String>,
    /// Environment variables, all of which must be set.
    pub variables: Vec<String>,
    /// The fields that cannot be read. A skill with one is not usable, because nobody can say what it needs.
    pub unreadable: Vec<String>,
}

type Fields = BTreeMap<String, Value>;

impl FrontMatter {
    /// Reads the front matter of `text`, the beginning of the `SKILL.md` of a directory of this name. The error says what to
    /// change.
    pub(crate) fn parse(text: &str, directory: &str) -> Result<Self, String> {
        let (yaml, body) = split(text);
        let yaml = yaml.ok_or("it does not begin with front matter: a line `---`, then `name:` and `description:`, then `---`")?;
        let mut remarks = Vec::new();
        let fields = serde_saphyr::from_str(yaml).unwrap_or_else(|error| {
            let error = error.to_string();
            let error = error.lines().next().unwrap_or_default();
            remarks.push(format!(
                "the front matter is not valid YAML ({error}), so it was read line by line; put quotes around texts with `: `"
            ));
            line_by_line(yaml)
        });
        let name = name(fields.get("name"), directory, &mut remarks)?;
        let description = description(fields.get("description"), body, &mut remarks)?;
        let requirements = requirements(fields.get("metadata"));
        Ok(Self { name, description, requirements, remarks })
    }
}

/// The text of a file without its front matter.
pub fn without_front_matter(text: &str) -> &str {
    match split(text) {
        (Some(_), body) => body,
        (None, _) => text,
    }
}

/// The lines between the first two lines `---`, and the text after them.
fn split(text: &str) -> (Option<&str>, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some((first, rest)) = text.split_once('\n') else { return (None, text) };
    if first.trim_end() != "---" {
        return (None, text);
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return (Some(&rest[..end]), &rest[end + line.len()..]);
        }
        end += line.len();
    }
    (None, text)
}

/// The fields of text that is not valid YAML. A field is YAML if it is by itself, else it is the text after its colon with the
/// indented lines below.
fn line_by_line(yaml: &str) -> Fields {
    separate(yaml).into_iter().map(|field| (field.name, field.value)).collect()
}

/// A field of front matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontMatterField {
    /// Its name.
    pub name: String,
    /// Its value: a text if it is not valid YAML by itself.
    pub value: Value,
    /// The line of the file on which it begins, from 1.
    pub line: usize,
}

impl FrontMatterField {
    /// Its texts: those of a list, or of a text with commas between them.
    pub fn texts(&self) -> Vec<String> {
        match &self.value {
            Value::Array(items) => items.iter().filter_map(|item| text_of(Some(item))).collect(),
            value => {
                let text = text_of(Some(value)).unwrap_or_default();
                let parts = text.split(',').map(|part| part.trim().to_owned());
                parts.filter(|part| !part.is_empty()).collect()
            }
        }
    }

    /// Its text in one line.
    pub fn line_of_text(&self) -> String {
        one_line(&text_of(Some(&self.value)).unwrap_or_default())
    }
}

/// The fields of the front matter of `text`, each read by itself, so that one bad field costs no other; and the text below.
/// `None` without front matter.
pub fn front_matter_fields(text: &str) -> Option<(Vec<FrontMatterField>, &str)> {
    let (yaml, body) = split(text);
    let mut fields = separate(yaml?);
    // The first line is that of the mark.
    fields.iter_mut().for_each(|field| field.line += 1);
    Some((fields, body))
}

/// The fields, with their lines from 1.
fn separate(yaml: &str) -> Vec<FrontMatterField> {
    let mut blocks: Vec<(usize, &str, String)> = Vec::new();
    for (index, line) in yaml.lines().enumerate() {
        let is_indented = line.starts_with([' ', '\t', '-']) || line.trim().is_empty();
        match line.split_once(':') {
            Some((key, rest)) if !is_indented && !key.starts_with('#') => {
                blocks.push((index + 1, key.trim(), rest.trim().to_owned()));
            }
            _ => {
                if let Some((.., block)) = blocks.last_mut() {
                    block.push('\n');
                    block.push_str(line);
                }
            }
        }
    }
    let value = |key: &str, block: String| {
        let alone: Option<Fields> = serde_saphyr::from_str(&format!("{key}: {block}")).ok();
        let text = block.strip_prefix(['>', '|']).unwrap_or(&block);
        let text = text.trim().trim_matches(['"', '\'']);
        alone.and_then(|mut fields| fields.remove(key)).unwrap_or_else(|| text.into())
    };
    let field = |(line, key, block): (usize, &str, String)| FrontMatterField {
        name: key.to_owned(),
        value: value(key, block),
        line,
    };
    blocks.into_iter().map(field).collect()
}

/// A text, or a number or word that YAML takes for something else.
fn text_of(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// The name in the form that names have, or that of the directory.
fn name(
    value: Option<&Value>,
    directory: &str,
    remarks: &mut Vec<String>,
) -> Result<String, String> {
    let given = text_of(value).filter(|name| !name.trim().is_empty());
    let good = given.as_deref().map(plain_name).filter(|name| !name.is_empty());
    let name = good.clone().unwrap_or_else(|| plain_name(directory));
    if name.is_empty() {
        return Err(format!(
            "it has no name: write `name:` with up to {MAX_NAME_CHARS} lower-case letters, digits and hyphens"
        ));
    }
    match (given, good) {
        (None, _) => remarks.push(format!("the front matter has no `name`; `{name}` is taken")),
        (Some(given), _) if given != name => {
            let given: String = given.escape_default().take(MAX_NAME_CHARS).collect();
            remarks.push(format!(
                "its name `{given}` must be up to {MAX_NAME_CHARS} lower-case letters, digits and hyphens; `{name}` is taken"
            ));
        }
        _ => {}
    }
    Ok(name)
}

/// Lower-case letters, digits, hyphens and underscores; other characters become one hyphen.
fn plain_name(name: &str) -> String {
    let mut plain = String::new();
    for char in name.trim().chars().flat_map(char::to_lowercase) {
        let is_allowed = char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
        if is_allowed || char == '-' && !plain.is_empty() {
            plain.push(char);
        } else if !plain.is_empty() && !plain.ends_with('-') {
            plain.push('-');
        }
    }
    plain.truncate(MAX_NAME_CHARS);
    plain.trim_end_matches('-').to_owned()
}

/// The description in one line, or the first paragraph of the text.
fn description(
    value: Option<&Value>,
    body: &str,
    remarks: &mut Vec<String>,
) -> Result<String, String> {
    let given = text_of(value).map(|text| one_line(&text)).filter(|text| !text.is_empty());
    let description = match given {
        Some(given) => given,
        None => {
            let paragraphs = body.split("\n\n").map(str::trim);
            let first =
                paragraphs.map(one_line).find(|text| !text.is_empty() && !text.starts_with('#'));
            let first = first.ok_or("the front matter has no `description`")?;
            remarks.push(
                "the front matter has no `description`; the first paragraph is taken".to_owned(),
            );
            first
        }
    };
    Ok(match description.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        Some(_) => {
            remarks.push(format!(
                "its description is longer than {MAX_DESCRIPTION_CHARS} characters; the model sees the beginning"
            ));
            description.chars().take(MAX_DESCRIPTION_CHARS - 1).chain(['\u{2026}']).collect()
        }
        None => description,
    })
}

/// The requirements in `metadata`: a mapping, or the same mapping written as a string of JSON, which is YAML too.
fn requirements(metadata: Option<&Value>) -> Requirements {
    let mut found = Requirements::default();
    let mapping = match metadata {
        Some(Value::Object(mapping)) => mapping.clone(),
        Some(Value::String(text)) => match serde_saphyr::from_str::<Value>(text) {
            Ok(Value::Object(mapping)) => mapping,
            _ => {
                if text.contains("requires") || OWN_METADATA.iter().any(|own| text.contains(own)) {
                    found.unreadable.push("metadata".to_owned());
                }
                return found;
            }
        },
        _ => return found,
    };
    let own = OWN_METADATA.iter().find_map(|name| Some((*name, mapping.get(*name)?)));
    let Some((name, own)) = own.filter(|(_, own)| !own.is_null()) else { return found };
    let place = format!("metadata.{name}");
    let Value::Object(own) = own else {
        found.unreadable.push(place);
        return found;
    };
    let mut unreadable = Vec::new();
    let mut list = |place: String, value: Option<&Value>| match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        }
        Some(_) => {
            unreadable.push(place);
            Vec::new()
        }
    };
    found.systems = list(format!("{place}.os"), own.get("os"));
    let is_misspelled =
        |key: &&String| *key != "requires" && key.to_lowercase().starts_with("requir");
    found.unreadable.extend(own.keys().filter(is_misspelled).map(|key| format!("{place}.{key}")));
    match own.get("requires") {
        None | Some(Value::Null) => {}
        Some(Value::Object(requires)) => {
            // What is not known here may be a misspelled requirement.
            let unknown = requires.keys().filter(|key| !REQUIREMENTS.contains(&key.as_str()));
            found.unreadable.extend(unknown.map(|key| format!("{place}.requires.{key}")));
            let mut named = |key: &str| list(format!("{place}.requires.{key}"), requires.get(key));
            found.programs = named("bins");
            found.any_program = named("anyBins");
            found.variables = named("env");
        }
        Some(_) => unreadable.push(format!("{place}.requires")),
    }
    found.unreadable.extend(unreadable);
    found
}

/// The text with each run of white space as one space.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
