//! The page of the variables of the environment, and the one place where they are declared.

use std::collections::BTreeSet;
use std::fs;

use myclaw_files::variables::{ALL, UsedBy};

use crate::docs_links::{files_below, has_extension, relative, root};

/// Where they are declared.
const DECLARED_IN: &str = "crates/files/src/variables.rs";

const HEAD: &str = "# Variables of the environment

Names that begin with `MYCLAW_`. The page is made from `crates/files/src/variables.rs`; `scripts/make-pages` writes it. A
variable that is set and blank counts as unset. Keys of providers, `NO_COLOR`, `NO_PROXY` and others that do not belong to
MyClaw are in [auth.md](auth.md), [cli.md](cli.md) and [models.md](models.md).
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for used_by in UsedBy::ALL {
        page += &format!("\n## {}\n\n| variable | |\n|---|---|\n", used_by.heading());
        for variable in ALL.iter().filter(|variable| variable.used_by == used_by) {
            page += &format!("| `{}` | {} |\n", variable.name, variable.text);
        }
    }
    page
}

/// The words of a text that begin with `MYCLAW_`.
fn variables_of(text: &str) -> BTreeSet<&str> {
    let is_part = |character: char| character.is_ascii_uppercase() || character == '_';
    text.split(|character| !is_part(character))
        .filter(|word| word.len() > "MYCLAW_".len() && word.starts_with("MYCLAW_"))
        .collect()
}

#[test]
fn the_page_is_what_the_declarations_say() {
    let path = root().join("docs/use/environment.md");
    if std::env::var_os("MYCLAW_WRITE_PAGES").is_some() {
        fs::write(&path, page()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, page(), "run scripts/make-pages");
}

#[test]
fn every_variable_is_declared_and_each_declared_one_is_used() {
    let declared: BTreeSet<&str> = ALL.iter().map(|variable| variable.name).collect();
    let mut used = BTreeSet::new();
    for directory in ["crates", "scripts", "container", ".ci", "docs"] {
        for path in files_below(&root().join(directory)) {
            if relative(&path) == DECLARED_IN || relative(&path) == "docs/use/environment.md" {
                continue;
            }
            let Ok(text) = fs::read_to_string(&path) else { continue };
            for name in variables_of(&text) {
                assert!(
                    declared.contains(name),
                    "{}: {name} is not in {DECLARED_IN}",
                    relative(&path)
                );
                used.insert(name.to_owned());
            }
        }
    }
    let program = fs::read_to_string(root().join(DECLARED_IN)).unwrap();
    for variable in ALL {
        // The program's own are used by their constant.
        let is_constant = program.contains(&format!("&str = \"{}\"", variable.name));
        assert!(is_constant || used.contains(variable.name), "nothing uses {}", variable.name);
    }
}

#[test]
fn the_program_names_a_variable_by_its_constant() {
    for path in files_below(&root().join("crates")) {
        let place = relative(&path);
        let is_program =
            place.contains("/src/") && !place.contains("/tests") && has_extension(&path, &["rs"]);
        if !is_program || place == DECLARED_IN || place.starts_with("crates/testkit/") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let literals =
            code.flat_map(|line| line.split('"')).filter(|text| variables_of(text).contains(text));
        let literal = literals.into_iter().next();
        assert!(literal.is_none(), "{place}: {literal:?} stands for a constant of {DECLARED_IN}");
    }
}
