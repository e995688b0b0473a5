use tempfile::TempDir;

use super::*;

#[test]
fn a_project_that_names_programs_for_cargo_or_rustup_is_noticed() {
    let files = [
        (".cargo/config.toml", "", true),
        ("a/.cargo/config", "", true),
        ("rust-analyzer.toml", "", true),
        ("a/.rust-analyzer.toml", "", true),
        ("rust-toolchain.toml", "[toolchain]\npath = \"evil\"", true),
        ("rust-toolchain", "/evil", true),
        ("a/Cargo.toml", "[package]\nworkspace = \"../b\"", true),
        ("rust-toolchain.toml", "[toolchain]\nchannel = \"1.90\"", false),
        ("a/Cargo.toml", "[package]\nversion.workspace = true", false),
        ("b/rust-analyzer.toml", "", false),
    ];
    for (name, text, is_noticed) in files {
        let project = TempDir::new().unwrap();
        let path = project.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let found = Kind::Rust.obstacle(&project.path().join("a/src/lib.rs"), project.path());
        assert_eq!(found.is_some(), is_noticed, "{name}: {text}");
    }
}

#[test]
fn a_server_works_in_the_outermost_package_of_its_language() {
    let project = TempDir::new().unwrap();
    let at = project.path();
    fs::create_dir_all(at.join("x/y/src")).unwrap();
    fs::write(at.join("x/Cargo.toml"), "").unwrap();
    fs::write(at.join("x/y/Cargo.toml"), "").unwrap();
    assert_eq!(Kind::Rust.root(&at.join("x/y/src/lib.rs"), at), at.join("x"));
    assert_eq!(Kind::Rust.root(&at.join("lib.rs"), at), at);
    assert_eq!(Kind::Python.root(&at.join("x/y/a.py"), at), at);
}

#[test]
fn the_compiler_of_a_project_is_not_run_unless_it_is_trusted() {
    let (installed, project) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let modules = installed.path().join("node_modules");
    for (name, text) in [("typescript-language-server/lib/cli.mjs", ""), (".bin/x", "")] {
        fs::create_dir_all(modules.join(name).parent().unwrap()).unwrap();
        fs::write(modules.join(name), text).unwrap();
    }
    let server = modules.join("typescript-language-server/lib/cli.mjs");
    let options = |programs| Kind::TypeScript.options(programs, Some(&server));
    // Without a compiler of its own it would take that of the project.
    assert_eq!(options(ProjectPrograms::Refused), None);
    assert!(options(ProjectPrograms::Run).is_some_and(|options| options["tsserver"].is_null()));
    fs::create_dir_all(modules.join("typescript/lib")).unwrap();
    fs::write(modules.join("typescript/lib/tsserver.js"), "").unwrap();
    let own = options(ProjectPrograms::Refused).unwrap();
    let path = own["tsserver"]["path"].as_str().unwrap();
    assert!(path.ends_with("node_modules/typescript/lib/tsserver.js"), "{path}");
    assert!(!path.starts_with(project.path().to_str().unwrap()));
    assert_eq!(own["disableAutomaticTypingAcquisition"], true);
}
