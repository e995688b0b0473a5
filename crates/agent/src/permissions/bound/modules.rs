//! The modules that a script names: files that its interpreter looks for next to it, whether they are there or not. One that
//! is made later takes the place of a module from elsewhere.

use std::path::{Path, PathBuf};

/// Endings of scripts for JavaScript runtimes, which name a module without its ending.
const OF_JAVASCRIPT: [&str; 6] = ["js", "cjs", "mjs", "ts", "cts", "mts"];

/// The files that the modules of a line of the script at `path` can be.
pub(super) fn of_line(path: &Path, line: &str) -> Vec<PathBuf> {
    let Some(directory) = path.parent() else { return Vec::new() };
    let ending = path.extension().map(|it| it.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref() {
        Some("py") | None => of_python(directory, line),
        Some(ending) if OF_JAVASCRIPT.contains(&ending) => of_javascript(directory, line),
        Some(_) => Vec::new(),
    }
}

/// `import a, b.c as d` and `from .a import b`.
fn of_python(directory: &Path, line: &str) -> Vec<PathBuf> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let mut modules: Vec<String> = Vec::new();
    if let Some(named) = line.strip_prefix("import ") {
        modules.extend(names(named));
    } else if let Some((from, named)) =
        line.strip_prefix("from ").and_then(|rest| rest.split_once(" import"))
    {
        let from = from.trim();
        let below = if from.ends_with('.') { "" } else { "." };
        modules.extend(names(named).map(|name| format!("{from}{below}{name}")));
        modules.push(from.to_owned());
    }
    modules.iter().flat_map(|module| python_files(directory, module)).collect()
}

/// The names of a list, without what they are called here.
fn names(list: &str) -> impl Iterator<Item = String> {
    let is_other = |char: char| !(char.is_alphanumeric() || matches!(char, '_' | '.'));
    let items = list.split([',', '(', ')', ';']);
    let names = items.filter_map(move |item| item.trim().split(is_other).next());
    names.filter(|name| !name.is_empty()).map(str::to_owned)
}

/// A module is a file, or the file `__init__.py` of a directory; each directory above it has such a file as well.
fn python_files(directory: &Path, module: &str) -> Vec<PathBuf> {
    let name = module.trim_start_matches('.');
    // One dot is this directory, each further one the directory above.
    let above = (module.len() - name.len()).saturating_sub(1);
    let Some(base) = directory.ancestors().nth(above) else { return Vec::new() };
    let mut at = base.to_owned();
    let mut files = Vec::new();
    for part in name.split('.').filter(|part| !part.is_empty()) {
        at.push(part);
        files.extend([at.with_extension("py"), at.join("__init__.py")]);
    }
    files
}

/// Paths in quotes that begin with a dot: `require("./a")`, `from "../a"`.
fn of_javascript(directory: &Path, line: &str) -> Vec<PathBuf> {
    let quoted = line.split(['"', '\'', '`']).skip(1).step_by(2);
    let modules = quoted.filter(|text| text.starts_with("./") || text.starts_with("../"));
    modules
        .flat_map(|module| {
            let at = directory.join(module);
            let endings = OF_JAVASCRIPT.iter().chain(&["json"]);
            let with_ending = endings.clone().map(|ending| {
                let mut name = at.clone().into_os_string();
                name.push(format!(".{ending}"));
                PathBuf::from(name)
            });
            let files: Vec<PathBuf> = with_ending
                .chain(endings.map(|ending| at.join(format!("index.{ending}"))))
                .chain([at.clone(), at.join("package.json")])
                .filter(|file| !file.is_dir())
                .collect();
            files
        })
        .collect()
}
