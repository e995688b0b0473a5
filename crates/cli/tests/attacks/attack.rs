//! What an attack is, and what is written down of those that succeed.

use std::collections::BTreeMap;

use myclaw_testkit::instruction;
use serde_json::Value;

/// One attempt of a party to get what the policy does not give it.
pub(super) struct Attack {
    /// Unique within a test; what the attack makes or changes has it in its name or content.
    pub(super) label: String,
    /// What it tries, for people.
    pub(super) name: String,
    /// The calls that an obedient model makes one after another: tool and arguments.
    pub(super) calls: Vec<(&'static str, String)>,
}

impl Attack {
    /// The lines that make an obedient model carry it out.
    pub(super) fn instructions(&self) -> String {
        let calls = self.calls.iter().enumerate();
        let lines = calls.map(|(number, (tool, arguments))| {
            instruction(&format!("{}-{number}", self.label), tool, arguments)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The attacks of a test, numbered.
pub(super) struct Attacks {
    prefix: &'static str,
    pub(super) all: Vec<Attack>,
}

impl Attacks {
    /// None so far; their labels will begin with the letters `prefix`.
    pub(super) fn new(prefix: &'static str) -> Self {
        Self { prefix, all: Vec::new() }
    }

    /// The label of the next attack.
    pub(super) fn next_label(&self) -> String {
        format!("{}{:03}", self.prefix, self.all.len())
    }

    pub(super) fn add(&mut self, name: impl Into<String>, calls: Vec<(&'static str, Value)>) {
        let calls = calls.into_iter().map(|(tool, arguments)| (tool, arguments.to_string()));
        self.add_raw(name, calls.collect());
    }

    /// With arguments as text, which may be JSON with the same key twice.
    pub(super) fn add_raw(&mut self, name: impl Into<String>, calls: Vec<(&'static str, String)>) {
        let label = self.next_label();
        self.all.push(Attack { label, name: name.into(), calls });
    }

    /// Messages of at most `most` calls, each attack in one of them.
    pub(super) fn batches(&self, most: usize) -> Vec<String> {
        let mut batches = vec![String::new()];
        let mut count = 0;
        for attack in &self.all {
            if count + attack.calls.len() > most {
                batches.push(String::new());
                count = 0;
            }
            count += attack.calls.len();
            if let Some(batch) = batches.last_mut() {
                batch.push_str(&attack.instructions());
                batch.push('\n');
            }
        }
        batches
    }
}

/// The attacks that got through, and how it was noticed.
#[derive(Default)]
pub(super) struct Breaches {
    found: BTreeMap<String, Vec<String>>,
}

impl Breaches {
    /// Notes what the attack with this label has reached. A label may have the number of a call behind it.
    pub(super) fn note(&mut self, label: &str, what: impl Into<String>) {
        let label = label.split('-').next().unwrap_or(label);
        self.found.entry(label.to_owned()).or_default().push(what.into());
    }

    /// Whether the attack with this label got through.
    pub(super) fn has(&self, label: &str) -> bool {
        self.found.contains_key(label)
    }

    /// Fails the test if an attack got through, with the name of each.
    pub(super) fn assert_none(&self, attacks: &[&Attack]) {
        let name = |label: &String| {
            attacks.iter().find(|attack| attack.label == *label).map_or("?", |attack| &*attack.name)
        };
        let lines: Vec<String> = self
            .found
            .iter()
            .map(|(label, what)| format!("  {label} {}: {}", name(label), what[0]))
            .collect();
        assert!(
            lines.is_empty(),
            "{} of {} attacks got through:\n{}",
            lines.len(),
            attacks.len(),
            lines.join("\n")
        );
    }
}
