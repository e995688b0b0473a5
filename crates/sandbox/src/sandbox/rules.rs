//! What a confinement means for the helper process.

use std::path::{Path, PathBuf};

use crate::basis::{AF_INET, AF_INET6, AF_UNIX};
use crate::plan::{BrokerRules, FileRules, FilterRules, Ipc, Plan, Root, Tcp, real_place};
use crate::{Confinement, Network, SandboxError};

/// Places that belong to the namespaces of a confined process. Not `/proc`: its files lead to other processes.
const OWN_PLACES: [&str; 4] = ["/dev", "/run", "/tmp", "/var/tmp"];

/// What images have at the top. None of it is shared with the machine.
const PLACES_OF_IMAGES: [&str; 14] = [
    "/app", "/bin", "/etc", "/home", "/lib", "/lib64", "/media", "/mnt", "/opt", "/root", "/sbin",
    "/srv", "/usr", "/var",
];

/// Landlock, the filter and the broker are all that confines.
pub(super) fn on_the_machine(confinement: &Confinement, plan: &mut Plan) {
    let broker = broker(confinement);
    plan.files = Some(FileRules {
        // With a proxy, the network holds nothing but the sandbox itself.
        tcp: if confinement.network == Network::None { Tcp::Closed } else { Tcp::Open },
        ..files(&broker)
    });
    plan.broker = Some(broker);
    let families = families(&confinement.network);
    plan.filter = Some(FilterRules { families, ipc: Ipc::Shared });
}

/// Namespaces confine, and are enough unless a directory that may be changed holds something protected.
pub(super) fn in_namespaces(confinement: &Confinement, root: Root, plan: &mut Plan) {
    let mut broker = broker(confinement);
    if broker.brokered.is_empty() {
        return;
    }
    // Landlock would open what is mounted below such a place too, so names there change only through the broker as well.
    let (above, own): (Vec<PathBuf>, Vec<PathBuf>) = OWN_PLACES
        .map(PathBuf::from)
        .into_iter()
        .partition(|place| broker.brokered.iter().any(|path| real_place(path).starts_with(place)));
    broker.writable.extend_from_slice(&above);
    broker.brokered.extend(above);
    plan.files = Some(FileRules { own, tcp: Tcp::Open, root, ..files(&broker) });
    // Nothing else of the machine is there, or it cannot be changed.
    broker.writable.push("/".into());
    broker.readable.push("/".into());
    plan.broker = Some(broker);
    plan.filter = Some(filter_in_namespaces());
}

pub(super) fn filter_in_namespaces() -> FilterRules {
    FilterRules { families: vec![AF_UNIX, AF_INET, AF_INET6], ipc: Ipc::Private }
}

/// As in namespaces, for a container whose image may be changed as well.
pub(super) fn in_a_container(confinement: &Confinement, plan: &mut Plan) {
    in_namespaces(confinement, Root::Image, plan);
    if let Some(files) = &mut plan.files {
        files.own.extend(PLACES_OF_IMAGES.map(PathBuf::from));
    }
}

fn broker(confinement: &Confinement) -> BrokerRules {
    BrokerRules::new(
        confinement.writable().map(Path::to_owned).collect(),
        confinement.readable().map(Path::to_owned).collect(),
        confinement.protected_places(),
        confinement.protected_names.clone(),
    )
}

fn files(broker: &BrokerRules) -> FileRules {
    FileRules {
        readable: broker.readable.iter().chain(&broker.brokered).cloned().collect(),
        writable: broker.open(),
        ..FileRules::default()
    }
}

/// The socket of the proxy, if there is one.
pub(super) fn proxy_socket(confinement: &Confinement) -> Result<Option<PathBuf>, SandboxError> {
    match &confinement.network {
        Network::None | Network::Open => Ok(None),
        Network::Proxy { socket } if socket.exists() => Ok(Some(socket.clone())),
        Network::Proxy { socket } => Err(SandboxError::Demand(format!(
            "there is no socket of a proxy at {}; start MyClaw anew",
            socket.display()
        ))),
    }
}

/// The kernel does not apply the process limit of users to root.
pub(super) fn processes_of_root(confinement: &Confinement) -> Option<u64> {
    confinement.limits.processes.filter(|_| myclaw_files::portable::process::getuid().is_root())
}

/// Never Unix sockets: those with a path lead to every service of the machine.
fn families(network: &Network) -> Vec<i32> {
    match network {
        Network::Open | Network::Proxy { .. } => vec![AF_INET, AF_INET6],
        Network::None => Vec::new(),
    }
}
