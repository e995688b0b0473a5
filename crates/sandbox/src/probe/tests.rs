use super::*;

/// A machine that has everything.
fn full() -> Probe {
    Probe {
        landlock: 6,
        seccomp: true,
        bubblewrap: Some("/usr/bin/bwrap".into()),
        podman: Some("/usr/bin/podman".into()),
        docker: Some("/usr/bin/docker".into()),
    }
}

fn container(engine: ContainerEngine) -> Level {
    Level::Container { engine, image: "image".to_owned() }
}

fn refusal(probe: &Probe, level: Level) -> String {
    probe.check(&Confinement::new(level, "/w")).unwrap_err().to_string()
}

#[test]
fn a_machine_with_everything_offers_every_level() {
    for level in [
        Level::Limits,
        Level::Landlock,
        Level::Bubblewrap,
        container(ContainerEngine::Podman),
        container(ContainerEngine::Docker),
    ] {
        full().check(&Confinement::new(level, "/w")).unwrap();
    }
}

#[test]
fn what_is_missing_is_named_with_its_remedy() {
    let old = Probe { landlock: 4, ..full() };
    let message = refusal(&old, Level::Landlock);
    assert!(message.contains("version 4") && message.contains("Linux 6.12"), "{message}");
    let none = Probe { landlock: 0, ..full() };
    assert!(refusal(&none, Level::Landlock).contains("no Landlock"));
    for level in [Level::Landlock, Level::Bubblewrap] {
        assert!(refusal(&Probe { seccomp: false, ..full() }, level).contains("seccomp"));
    }
    let bare = Probe { bubblewrap: None, podman: None, docker: None, ..full() };
    assert!(refusal(&bare, Level::Bubblewrap).contains("apt install bubblewrap"));
    assert!(refusal(&bare, container(ContainerEngine::Podman)).contains("apt install podman"));
    assert!(refusal(&bare, container(ContainerEngine::Docker)).contains("apt install docker.io"));
}

#[test]
fn a_proxy_needs_a_level_that_closes_the_network() {
    for (level, expected) in [
        (Level::Limits, false),
        (Level::Landlock, true),
        (Level::Bubblewrap, true),
        (container(ContainerEngine::Podman), true),
    ] {
        let mut confinement = Confinement::new(level.clone(), "/w");
        confinement.network = Network::Proxy { socket: "/dev/null".into() };
        assert_eq!(full().check(&confinement).is_ok(), expected, "{level:?}");
    }
}

#[test]
fn the_workspace_is_absolute() {
    let error = full().check(&Confinement::new(Level::Landlock, "w")).unwrap_err();
    assert!(error.to_string().contains("not an absolute path"), "{error}");
}
