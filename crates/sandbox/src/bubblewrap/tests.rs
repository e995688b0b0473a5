use std::path::PathBuf;

use super::*;
use crate::Level;

fn line(confinement: &Confinement) -> String {
    let words = arguments(confinement, Path::new("/opt/myclaw"), Path::new("/w/sub"));
    words.into_iter().map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_closed_network_is_a_namespace_of_its_own() {
    let mut confinement = Confinement::new(Level::Bubblewrap, "/w");
    assert!(line(&confinement).contains(" --unshare-net "));
    confinement.network = Network::Open;
    assert!(!line(&confinement).contains("--unshare-net"));
    confinement.network = Network::Proxy { socket: "/s/proxy".into() };
    let line = line(&confinement);
    assert!(
        line.contains(" --unshare-net ") && line.contains(" --bind /s/proxy /s/proxy "),
        "{line}"
    );
}

#[test]
fn what_may_be_changed_comes_after_what_may_be_read() {
    let mut confinement = Confinement::new(Level::Bubblewrap, "/w");
    confinement.read_only = vec![PathBuf::from("/shown")];
    confinement.read_write = vec![PathBuf::from("/shared")];
    confinement.temporary = Some(PathBuf::from("/t"));
    let end = "--ro-bind /shown /shown --bind /shared /shared --bind /t /t --bind /w /w \
               --ro-bind /opt/myclaw /opt/myclaw --remount-ro / --chdir /w/sub --";
    assert!(line(&confinement).ends_with(end), "{}", line(&confinement));
}

/// For root, the settings of the kernel that are in it could be changed otherwise.
#[test]
fn the_files_of_the_kernel_are_read_only() {
    let line = line(&Confinement::new(Level::Bubblewrap, "/w"));
    assert!(line.contains(" --proc /proc --remount-ro /proc "), "{line}");
}

#[test]
fn access_to_the_workspace() {
    let mut confinement = Confinement::new(Level::Bubblewrap, "/w");
    confinement.access = WorkspaceAccess::Ro;
    assert!(line(&confinement).contains(" --ro-bind /w /w "));
    confinement.access = WorkspaceAccess::None;
    let line = line(&confinement);
    assert!(
        line.contains(" --tmpfs /w --remount-ro /w ") && !line.contains("bind /w /w"),
        "{line}"
    );
}

#[test]
fn directories_with_sockets_and_secrets_are_not_shared() {
    let line = line(&Confinement::new(Level::Bubblewrap, "/w"));
    for path in ["/", "/run", "/var", "/home", "/root", "/etc", "/tmp", "/sys", "/dev", "/proc"] {
        assert!(
            !line.contains(&format!("bind {path} "))
                && !line.contains(&format!("bind-try {path} ")),
            "{path}"
        );
    }
}
