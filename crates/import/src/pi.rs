//! Session files of Pi (pi-mono), which Clawdbot, Moltbot and OpenClaw write too: versions 1 to 3.
//!
//! A file is a tree: each entry names its parent, and the session is the path from the last entry to the root. So
//! the file is read twice: first for the tree alone, then for the entries of that path. Version 1 has no ids; there the
//! entries follow each other.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use myclaw_files::portable::FileExt;
use myclaw_session::{CompactionEntry, Entry, EntryId, Role};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Import;
use super::lines::Lines;
use super::message::{Converter, plain, summary_text, time};
use myclaw_front::exit::CliError;
use myclaw_front::sessions::MOST_TITLE_CHARS;

/// The fields of an entry that form the tree.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TreeLine<'a> {
    #[serde(borrow)]
    r#type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    parent_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    first_kept_entry_id: Option<Cow<'a, str>>,
    first_kept_entry_index: Option<usize>,
}

/// An entry of the file.
struct Node {
    id: EntryId,
    parent: Option<usize>,
    offset: u64,
    length: usize,
    /// Of a compaction: the entry from which on nothing is replaced.
    first_kept: Option<EntryId>,
}

/// Takes over the path that ends with the last entry.
pub(super) fn import(file: &File, path: &Path, import: &mut Import) -> Result<(), CliError> {
    let tree = read_tree(file, path, import)?;
    let branch = branch_of_last(&tree);
    import.left_out.add_many("entry of other branches", (tree.len() - branch.len()) as u64);
    let mut kept = KeptRows::new(branch.iter().filter_map(|node| tree[*node].first_kept));
    let mut converter = Converter::new(0);
    let mut line = Vec::new();
    for node in branch.into_iter().map(|node| &tree[node]) {
        line.resize(node.length, 0);
        file.read_exact_at(&mut line, node.offset)
            .map_err(|error| super::cannot_read(path, &error))?;
        // The same line was parsed as an object before.
        let Ok(mut fields) = serde_json::from_slice::<Map<String, Value>>(&line) else {
            import.left_out.add("damaged line");
            continue;
        };
        kept.begin(node.id);
        take(node, &mut fields, &mut converter, &mut kept, import)?;
    }
    Ok(())
}

fn read_tree(file: &File, path: &Path, import: &mut Import) -> Result<Vec<Node>, CliError> {
    let mut tree: Vec<Node> = Vec::new();
    let mut by_id: HashMap<EntryId, usize> = HashMap::new();
    // How many lines there were before the first entry: version 1 counts entries by lines, the header among them.
    let mut header_lines = 0;
    let mut lines = Lines::new(file, path);
    while let Some(line) = lines.next()? {
        let Ok(entry) = serde_json::from_slice::<TreeLine<'_>>(line.bytes) else {
            let kind = if line.is_terminated { "damaged line" } else { "half a last line" };
            import.left_out.add(kind);
            continue;
        };
        if entry.r#type.as_deref() == Some("session") {
            header_lines += 1;
            continue;
        }
        let number = tree.len();
        let id = entry.id.as_deref().filter(|id| !id.is_empty()).map(EntryId::from_text);
        let parent = match (&id, entry.parent_id.as_deref()) {
            (Some(_), Some(parent)) => by_id.get(&EntryId::from_text(parent)).copied(),
            (Some(_), None) => None,
            (None, _) => number.checked_sub(1),
        };
        let by_number =
            |index: usize| tree.get(index.checked_sub(header_lines)?).map(|node| node.id);
        let first_kept = entry
            .first_kept_entry_id
            .as_deref()
            .map(EntryId::from_text)
            .or_else(|| entry.first_kept_entry_index.and_then(by_number));
        let id = id.unwrap_or_else(EntryId::generate);
        by_id.insert(id, number);
        tree.push(Node { id, parent, offset: line.offset, length: line.bytes.len(), first_kept });
    }
    Ok(tree)
}

/// The entries from the root to the last one. Parents precede their children, so the loop ends.
fn branch_of_last(tree: &[Node]) -> Vec<usize> {
    let mut branch = Vec::new();
    let mut next = tree.len().checked_sub(1);
    while let Some(node) = next {
        branch.push(node);
        next = tree[node].parent.filter(|parent| *parent < node);
    }
    branch.reverse();
    branch
}

/// The rows of the first kept entries of compactions. An entry without a row, such as a change of the model, stands for
/// the next row.
struct KeptRows {
    rows: HashMap<EntryId, Option<EntryId>>,
    waiting: Vec<EntryId>,
}

impl KeptRows {
    fn new(wanted: impl Iterator<Item = EntryId>) -> Self {
        Self { rows: wanted.map(|id| (id, None)).collect(), waiting: Vec::new() }
    }

    /// An entry begins.
    fn begin(&mut self, entry: EntryId) {
        if self.rows.contains_key(&entry) {
            self.waiting.push(entry);
        }
    }

    /// There is a row.
    fn row(&mut self, row: EntryId) {
        for entry in self.waiting.drain(..) {
            self.rows.insert(entry, Some(row));
        }
    }

    fn of(&self, entry: Option<EntryId>) -> Option<EntryId> {
        self.rows.get(&entry?).copied().flatten()
    }
}

/// Takes over one entry.
fn take(
    node: &Node,
    fields: &mut Map<String, Value>,
    converter: &mut Converter,
    kept: &mut KeptRows,
    import: &mut Import,
) -> Result<(), CliError> {
    let ts = fields.get("timestamp").and_then(time).unwrap_or(0);
    converter.set_time(ts);
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let rows = match kind.as_str() {
        "message" => {
            let message = fields.get("message").unwrap_or(&Value::Null);
            converter.convert(message, Some(node.id), &mut import.left_out)
        }
        "custom_message" => {
            fields.insert("role".to_owned(), "custom".into());
            fields.remove("parentId");
            fields.remove("type");
            let message = Value::Object(std::mem::take(fields));
            converter.convert(&message, Some(node.id), &mut import.left_out)
        }
        "branch_summary" => {
            let mut row = plain(Role::User, summary_text(text("summary")), ts);
            row.row.id = node.id;
            vec![row]
        }
        "compaction" => {
            return import.entry(Entry::Compaction(CompactionEntry {
                id: node.id,
                ts,
                summary: text("summary").to_owned(),
                first_kept_id: kept.of(node.first_kept).unwrap_or(node.id),
                tokens_before: fields.get("tokensBefore").and_then(Value::as_u64).unwrap_or(0),
                old_count: 0,
                new_count: 0,
            }));
        }
        "session_info" => {
            import.about.title = as_title(text("name"));
            return Ok(());
        }
        kind => {
            import.left_out.add_named("entry of the type", kind);
            return Ok(());
        }
    };
    if let Some(first) = rows.first() {
        kept.row(first.row.id);
    }
    import.rows(rows)
}

/// A name as this program keeps titles: one line, not too long; `None` if nothing is left.
pub(super) fn as_title(name: &str) -> Option<String> {
    let printable = name.trim().chars().filter(|character| !character.is_control());
    let title: String = printable.take(MOST_TITLE_CHARS).collect();
    (!title.is_empty()).then_some(title)
}
