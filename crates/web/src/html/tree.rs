//! Walks through the tree of a page without recursion, so that no nesting can exhaust the stack.

use dom_query::{Document, NodeRef};

/// Elements after which a reader expects a new line.
const BLOCKS: [&str; 24] = [
    "address",
    "article",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "li",
    "main",
    "p",
    "pre",
    "section",
    "table",
    "tr",
    "ul",
];

/// How large a tree is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) elements: usize,
    pub(super) depth: usize,
    /// The deepest nesting of lists and quotations.
    pub(super) indent: usize,
    /// Bytes that writing the page as HTML may look at: html5ever looks for the next `<` after each `&`, and after each
    /// byte 0xC2, with which some letters begin.
    pub(super) escaping: u64,
}

/// Measures the tree.
pub(super) fn measure(document: &Document) -> Size {
    let (mut size, mut depth, mut indent) = (Size::default(), 0, 0);
    walk(document, |step| match step {
        Step::Enter(node) => {
            depth += 1;
            indent += usize::from(is_indenting(node));
            size.elements += usize::from(node.is_element());
            size.depth = size.depth.max(depth);
            size.indent = size.indent.max(indent);
            size.escaping = size.escaping.saturating_add(escaping(node));
            Descend::Yes
        }
        Step::Leave(node) => {
            depth -= 1;
            indent -= usize::from(is_indenting(node));
            Descend::Yes
        }
    });
    size
}

/// The text of the page without any formatting, and without what is in elements called `skipped`.
pub(super) fn plain_text(document: &Document, skipped: &[&str]) -> String {
    let mut text = String::new();
    walk(document, |step| {
        match step {
            Step::Enter(node) if node.is_text() => text.push_str(&node.text()),
            Step::Enter(node) if is_one_of(node, skipped) => return Descend::No,
            Step::Leave(node) if is_one_of(node, &BLOCKS) => text.push('\n'),
            _ => {}
        }
        Descend::Yes
    });
    text
}

/// See [`Size::escaping`].
fn escaping(node: &NodeRef<'_>) -> u64 {
    let of_text = |text: &str| {
        let looks = text.bytes().filter(|byte| matches!(byte, b'&' | 0xC2)).count();
        (looks as u64).saturating_mul(text.len() as u64)
    };
    match node.is_text() {
        true => of_text(&node.text()),
        false => node.attrs().iter().map(|attribute| of_text(&attribute.value)).sum(),
    }
}

fn is_indenting(node: &NodeRef<'_>) -> bool {
    is_one_of(node, &["ul", "ol", "blockquote"])
}

fn is_one_of(node: &NodeRef<'_>, names: &[&str]) -> bool {
    node.is_element() && node.node_name().is_some_and(|name| names.contains(&&*name))
}

enum Step<'a, 'b> {
    Enter(&'a NodeRef<'b>),
    Leave(&'a NodeRef<'b>),
}

/// Whether the children of a node are visited.
#[derive(PartialEq, Eq)]
enum Descend {
    Yes,
    No,
}

fn walk<'a>(document: &'a Document, mut visit: impl FnMut(Step<'_, 'a>) -> Descend) {
    let root = document.root();
    let mut next = root.first_child();
    while let Some(node) = next {
        if visit(Step::Enter(&node)) == Descend::Yes
            && let Some(child) = node.first_child()
        {
            next = Some(child);
            continue;
        }
        visit(Step::Leave(&node));
        let mut last = node;
        next = loop {
            if let Some(sibling) = last.next_sibling() {
                break Some(sibling);
            }
            match last.parent() {
                Some(parent) if parent.id != root.id => {
                    visit(Step::Leave(&parent));
                    last = parent;
                }
                _ => break None,
            }
        };
    }
}
