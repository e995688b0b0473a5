//! The user's page about the config: what it shows must be what happens.

use std::collections::BTreeSet;

use myclaw_config::json_schema;
use serde_json::Value;

use crate::support::Home;

fn page() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/use/config.md"))
        .unwrap()
}

/// The fenced blocks of the page, each with what stands behind its opening fence.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let parts: Vec<_> = page.split("```").collect();
    parts.chunks_exact(2).filter_map(|pair| pair[1].split_once('\n')).collect()
}

#[test]
fn examples_load_and_wrong_ones_give_the_messages_shown() {
    let page = page();
    let fenced: Vec<_> = blocks(&page)
        .into_iter()
        .filter(|(kind, _)| kind.starts_with("json5") || *kind == "text")
        .collect();
    let (mut right, mut wrong) = (0, 0);
    for (index, (kind, text)) in fenced.iter().enumerate() {
        let home = Home::with_config(text).variable("ANTHROPIC_API_KEY", "k");
        match *kind {
            "json5" => {
                right += 1;
                home.load().unwrap();
            }
            "json5 wrong" => {
                wrong += 1;
                assert_eq!(home.rendered_error(), fenced[index + 1].1.trim_end());
            }
            _ => {}
        }
    }
    assert_eq!((right, wrong), (2, 3));
}

/// The places of values that are no section, written as on the page.
fn keys_of(schema: &Value, root: &Value, at: &str, found: &mut BTreeSet<String>) {
    let target =
        schema["$ref"].as_str().and_then(|name| root["$defs"].get(name.strip_prefix("#/$defs/")?));
    let schema = target.unwrap_or(schema);
    let properties = schema["properties"].as_object();
    let branches = schema["anyOf"].as_array().into_iter().flatten();
    let is_section = properties.is_some();
    if !is_section && !at.is_empty() && !at.ends_with("[]") && !at.ends_with("<name>") {
        found.insert(at.to_owned());
    }
    for (key, property) in properties.into_iter().flatten() {
        keys_of(property, root, format!("{at}.{key}").trim_start_matches('.'), found);
    }
    for branch in branches {
        keys_of(branch, root, at, found);
    }
    for (keyword, suffix) in [("items", "[]"), ("additionalProperties", ".<name>")] {
        if schema[keyword].is_object() {
            keys_of(&schema[keyword], root, &format!("{at}{suffix}"), found);
        }
    }
}

#[test]
fn every_key_is_on_the_page_and_nothing_else() {
    let schema = json_schema();
    let mut known = BTreeSet::new();
    keys_of(&schema, &schema, "", &mut known);
    known.remove("$schema");
    let page = page();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let shown: BTreeSet<_> = rows.map(|(key, _)| key.to_owned()).collect();
    assert_eq!(shown, known);
}
