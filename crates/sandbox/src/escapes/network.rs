//! Attempts to reach a server. The servers are on this machine.

use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use super::{Attempt, Scene, calls};

pub(super) const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "TCP to loopback",
        run: |scene| TcpStream::connect(("127.0.0.1", scene.tcp_port)).map(drop),
    },
    Attempt { name: "route to other machines (no packet is sent)", run: |_| route() },
    Attempt { name: "UDP to loopback", run: udp },
    Attempt {
        name: "raw socket",
        run: |_| calls::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
    },
    Attempt { name: "packet socket", run: |_| calls::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) },
    Attempt { name: "netlink socket", run: |_| calls::socket(libc::AF_NETLINK, libc::SOCK_RAW, 0) },
    Attempt {
        name: "socket to the host of a virtual machine",
        run: |_| calls::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0),
    },
    Attempt { name: "abstract Unix socket", run: abstract_socket },
    Attempt {
        name: "Unix socket outside",
        run: |scene| UnixStream::connect(scene.outside.join("socket")).map(drop),
    },
    Attempt { name: "Unix socket of a service in the workspace", run: in_workspace },
    Attempt {
        name: "Unix datagram from a pair of sockets",
        run: |scene| calls::send_from_pair(&scene.outside.join("datagram")),
    },
];

/// Choosing a route sends nothing. The address belongs to no machine: it is reserved for documentation.
fn route() -> io::Result<()> {
    UdpSocket::bind("0.0.0.0:0")?.connect("192.0.2.1:9")
}

fn udp(scene: &Scene) -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(("127.0.0.1", scene.udp_port))?;
    socket.send(b"out")?;
    // Where nobody listened, the answer has come, and this one fails.
    socket.send(b"out").map(drop)
}

fn abstract_socket(scene: &Scene) -> io::Result<()> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(&scene.abstract_name)?).map(drop)
}

fn in_workspace(scene: &Scene) -> io::Result<()> {
    UnixStream::connect(scene.workspace.join("socket")).map(drop)
}
