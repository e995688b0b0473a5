use std::path::PathBuf;

use super::*;
use crate::{Level, Limits};

fn confinement() -> Confinement {
    let mut confinement = Confinement::new(
        Level::Container { engine: ContainerEngine::Docker, image: "image".to_owned() },
        "/w",
    );
    confinement.read_only = vec![PathBuf::from("/shown")];
    confinement.limits = Limits {
        memory: Some(1000),
        processes: Some(20),
        file_size: Some(30),
        open_files: Some(40),
        cpu_seconds: None,
    };
    confinement
}

fn arguments(confinement: &Confinement) -> Result<Vec<String>, SandboxError> {
    let container = Container {
        engine: ContainerEngine::Docker,
        image: "image",
        name: "myclaw-1",
        confinement,
        needed: vec![(Path::new("/s/proxy"), "rw")],
        directory: Path::new("/w/sub"),
        environment: vec![(OsStr::new("NAME"), OsStr::new("a value"))],
    };
    Ok(container.arguments()?.into_iter().map(|word| word.into_string().unwrap()).collect())
}

#[test]
fn the_whole_command_line() {
    let expected = [
        "run",
        "--rm",
        "--interactive",
        "--pull=never",
        "--read-only",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        "--tmpfs=/tmp",
        "--name=myclaw-1",
        "--network=none",
        "--memory=1000",
        "--pids-limit=20",
        "--ulimit=nproc=20:20",
        "--ulimit=fsize=30:30",
        "--ulimit=nofile=40:40",
        "--volume=/shown:/shown:ro",
        "--volume=/w:/w:rw",
        "--volume=/s/proxy:/s/proxy:rw",
        "--env=NAME=a value",
        "--workdir=/w/sub",
        "image",
    ];
    assert_eq!(arguments(&confinement()).unwrap(), expected);
}

#[test]
fn an_open_network_is_the_default_one_of_the_engine() {
    let mut confinement = confinement();
    confinement.network = Network::Open;
    assert!(!arguments(&confinement).unwrap().iter().any(|word| word.starts_with("--network")));
}

#[test]
fn a_path_that_would_be_read_as_two_is_refused() {
    let mut confinement = confinement();
    confinement.read_write = vec![PathBuf::from("/a:/etc")];
    assert!(arguments(&confinement).unwrap_err().to_string().contains("/a:/etc"));
}
