//! Circles between the modules of a crate, by what each imports as `crate::…` or `super::…`.
//!
//! A name that a module only passes on (`pub use`) counts as one of the module that defines it. That a module declares
//! another one is no import.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The names from the crate's root to a module, or to something in it.
type Names = Vec<String>;

/// A module of a crate.
struct Module {
    text: String,
    /// What it passes on, and where that is.
    passed_on: BTreeMap<String, Names>,
}

/// The modules that import themselves over others, with those of them that each imports.
pub(crate) fn circles(crate_directory: &Path) -> BTreeMap<String, Vec<String>> {
    let modules = modules(&crate_directory.join("src"));
    let imports: BTreeMap<&Names, BTreeSet<Names>> = modules
        .iter()
        .map(|(name, module)| {
            let imported = paths(&module.text).into_iter();
            let homes = imported.map(|path| home(&modules, absolute(name, path)));
            (name, homes.filter(|home| home != name).collect())
        })
        .collect();
    let in_circles: BTreeSet<&Names> =
        imports.keys().copied().filter(|name| reached(&imports, name).contains(*name)).collect();
    let shown = |name: &Names| if name.is_empty() { "lib".to_owned() } else { name.join("::") };
    in_circles
        .iter()
        .map(|name| {
            let others = imports[*name].iter().filter(|other| in_circles.contains(other));
            (shown(name), others.map(shown).collect())
        })
        .collect()
}

fn reached(imports: &BTreeMap<&Names, BTreeSet<Names>>, from: &Names) -> BTreeSet<Names> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from.clone()];
    while let Some(next) = open.pop() {
        for other in imports.get(&next).into_iter().flatten() {
            if reached.insert(other.clone()) {
                open.push(other.clone());
            }
        }
    }
    reached
}

/// All modules that have a file and are no tests.
fn modules(source: &Path) -> BTreeMap<Names, Module> {
    let files =
        super::sources(source).into_iter().filter(|file| !file.starts_with(source.join("bin")));
    let modules = files.map(|file| {
        let relative = file.strip_prefix(source).unwrap().with_extension("");
        let mut name: Names =
            relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        if name.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
            name.pop();
        }
        let text = code(&fs::read_to_string(&file).unwrap());
        let passed_on = passed_on(&text);
        (name, Module { text, passed_on })
    });
    modules.collect()
}

/// The text without comments and without the module of its tests.
pub(crate) fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The names of other crates that the root of a crate passes on, with the module in which they stand.
pub(crate) fn from_other_crates(root: &Path) -> BTreeSet<Names> {
    let text = code(&fs::read_to_string(root).unwrap());
    let mut names = BTreeSet::new();
    let mut module = Names::new();
    for (at, _) in text.match_indices("pub ") {
        let (before, behind) = (&text[..at], &text[at + 4..]);
        if before.ends_with('\n') {
            module.clear();
        }
        if let Some(name) = behind.strip_prefix("mod ") {
            module = vec![name.split([' ', ';']).next().unwrap_or_default().to_owned()];
        } else if let Some(used) = behind.strip_prefix("use ") {
            let others = tree(used)
                .0
                .into_iter()
                .filter(|path| path[0].starts_with("myclaw_") || path[0] == "futures_util");
            let last = others.filter_map(|path| path.last().cloned());
            names.extend(last.map(|name| [module.clone(), vec![name]].concat()));
        }
    }
    names
}

/// What a file imports from another crate, without the name of that.
pub(crate) fn imported_from(file: &Path, krate: &str) -> Vec<Names> {
    let paths = paths_of(&code(&fs::read_to_string(file).unwrap()), &[&format!("{krate}::")]);
    paths.into_iter().map(|path| path[1..].to_vec()).collect()
}

/// The paths that begin with `crate` or `super`, wherever they stand.
fn paths(text: &str) -> Vec<Names> {
    paths_of(text, &["crate::", "super::"])
}

fn paths_of(text: &str, beginnings: &[&str]) -> Vec<Names> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = beginnings.iter().filter_map(|word| rest.find(word)).min() {
        let is_whole = !rest[..at].ends_with(|char: char| char.is_alphanumeric() || char == '_');
        // A visibility such as `pub(in crate::x)` imports nothing.
        let is_import = is_whole && !rest[..at].ends_with("(in ");
        let (read, behind) = tree(&rest[at..]);
        if is_import {
            found.extend(read);
        }
        rest = behind;
    }
    found
}

/// What `pub use` passes on, by name.
fn passed_on(text: &str) -> BTreeMap<String, Names> {
    let statements = text.split("\npub").skip(1).chain(text.strip_prefix("pub"));
    let used = statements.filter_map(|text| {
        let behind = text.strip_prefix("(crate)").or_else(|| text.strip_prefix("(super)"));
        behind.unwrap_or(text).strip_prefix(" use ")
    });
    let paths = used.flat_map(|text| tree(text).0);
    paths.filter_map(|path| Some((path.last()?.clone(), path))).collect()
}

/// Reads a path, which may end with several between braces; gives each, and the text behind.
pub(crate) fn tree(text: &str) -> (Vec<Names>, &str) {
    let mut names = Names::new();
    let mut rest = text.trim_start();
    loop {
        let length = rest.find(|char: char| !char.is_alphanumeric() && char != '_');
        let (name, behind) = rest.split_at(length.unwrap_or(rest.len()));
        names.push(name.to_owned());
        rest = behind;
        let Some(behind) = rest.strip_prefix("::") else { break };
        rest = behind;
        if let Some(mut inner) = rest.strip_prefix('{') {
            let mut all = Vec::new();
            loop {
                inner = inner.trim_start();
                if let Some(behind) = inner.strip_prefix('}') {
                    return (all, behind);
                }
                let (read, behind) = tree(inner);
                all.extend(read.into_iter().map(|path| [names.clone(), path].concat()));
                // Another name for it, and the comma, are skipped.
                let end = behind.find([',', '}']).unwrap_or(behind.len());
                inner = behind[end..].trim_start_matches(',');
                if inner.is_empty() {
                    return (all, inner);
                }
            }
        }
    }
    (vec![names], rest)
}

/// A path from the root of the crate, which `module` writes in its own way.
fn absolute(module: &Names, path: Names) -> Names {
    let mut at = module.clone();
    let mut path = path.into_iter().peekable();
    while let Some(step) = path.next_if(|name| ["crate", "super", "self"].contains(&name.as_str()))
    {
        match step.as_str() {
            "crate" => at.clear(),
            "super" => drop(at.pop()),
            _ => {}
        }
    }
    at.into_iter().chain(path).collect()
}

/// The module that defines what is at `path`, over all that only pass it on.
fn home(modules: &BTreeMap<Names, Module>, path: Names) -> Names {
    let mut path = path;
    // Names that are passed on in a circle do not compile.
    loop {
        let length = (0..=path.len()).rev().find(|length| modules.contains_key(&path[..*length]));
        let (module, rest) = path.split_at(length.unwrap_or_default());
        let passed_on = rest.first().and_then(|name| {
            let target = modules[module].passed_on.get(name)?;
            let target = absolute(&module.to_vec(), target.clone());
            // What comes from another crate is as good as defined here.
            modules.contains_key(&target[..target.len().min(module.len() + 1)]).then_some(target)
        });
        match passed_on {
            Some(target) if target != path[..=module.len()] => {
                path = [target, rest[1..].to_vec()].concat();
            }
            _ => return module.to_vec(),
        }
    }
}

#[test]
fn paths_are_read_and_resolved() {
    let text = "use crate::{A, b::{C as D, e}};\npub(in crate::x) fn f(g: super::h::I) { super::super::j() }";
    let names = |path: &[&str]| path.iter().map(|name| (*name).to_owned()).collect::<Names>();
    let read = paths(text);
    let wanted = [
        names(&["crate", "A"]),
        names(&["crate", "b", "C"]),
        names(&["crate", "b", "e"]),
        names(&["super", "h", "I"]),
        names(&["super", "super", "j"]),
    ];
    assert_eq!(read, wanted);
    let module = |text: &str| Module { text: code(text), passed_on: passed_on(text) };
    let modules = BTreeMap::from([
        (names(&[]), module("mod b;\npub use b::{C, c::E};\npub use myclaw_x::Y;")),
        (names(&["b"]), module("mod c;\npub(crate) use self::c::D;\npub struct C;")),
        (names(&["b", "c"]), module("pub struct D; pub struct E;")),
    ]);
    for (path, wanted) in [
        (&["C"][..], &["b"][..]),
        (&["E"], &["b", "c"]),
        (&["b", "D"], &["b", "c"]),
        (&["b", "c", "D", "new"], &["b", "c"]),
        (&["Y"], &[]),
    ] {
        assert_eq!(home(&modules, names(path)), names(wanted), "{path:?}");
    }
}
