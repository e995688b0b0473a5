//! The programs under load, and what the system says about them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use myclaw_testkit::{RunningChild, Signal, TempHome, WireFormat, peak_memory};
use serde_json::{Value, json};

use crate::Fallible;
use crate::model::Model;
use crate::wire::Address;

/// Longest wait for the end of a program.
const PATIENCE: Duration = Duration::from_secs(60);
/// Ticks of `/proc/PID/stat` in a second. It is 100 on every Linux.
const TICKS: f64 = 100.0;

/// A running gateway or relay.
pub(crate) struct Server {
    child: RunningChild,
    pub(crate) address: Address,
}

/// A home for gateways, one after the other.
pub(crate) struct GatewayHome {
    pub(crate) home: TempHome,
    port: u16,
}

impl GatewayHome {
    /// A config that allows the largest number of runs at the same time.
    pub(crate) fn new(model: &Model, change: impl FnOnce(&mut Value)) -> Fallible<Self> {
        let home = TempHome::new();
        // A blank file keeps the starter text out of the prompt.
        home.write_in_workspace("AGENTS.md", "\n");
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let url = format!("http://127.0.0.1:{}", model.port);
        let mut config = TempHome::config_for(&url, WireFormat::AnthropicMessages);
        config["gateway"] = json!({"port": port, "token": "token-of-the-load"});
        config["agents"] = json!({"defaults": {"lanes": {"main": 1_000}}});
        change(&mut config);
        home.write_config(&config);
        Ok(Self { home, port })
    }

    pub(crate) fn start(&self, program: &Path) -> Server {
        let child = RunningChild::spawn(self.home.command(program).arg("gateway"));
        child.wait_for_stderr("listening on http://127.0.0.1:");
        Server {
            child,
            address: Address { port: self.port, token: "token-of-the-load".to_owned() },
        }
    }
}

impl Server {
    pub(crate) fn relay(program: &Path, model: &Model, home: &TempHome) -> Fallible<Self> {
        let child = RunningChild::spawn(home.command(program).arg(model.port.to_string()));
        let said = child.wait_for_stderr("\n");
        let port = said.trim().rsplit(' ').next().unwrap_or_default().parse()?;
        Ok(Self { child, address: Address { port, token: String::new() } })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The id of the thread with this name.
    pub(crate) fn thread(&self, name: &str) -> Option<u32> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.id())).ok()?;
        threads.filter_map(Result::ok).find_map(|thread| {
            let comm = fs::read_to_string(thread.path().join("comm")).ok()?;
            if comm.trim() == name { thread.file_name().to_str()?.parse().ok() } else { None }
        })
    }

    /// User and system time so far, in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap_or_default();
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        let ticks = fields.split_whitespace().skip(11).take(2);
        ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS
    }

    /// Peak memory, in megabytes.
    pub(crate) fn peak(&self) -> f64 {
        peak_memory(self.id()).unwrap_or_default() as f64 / 1e6
    }

    /// Memory at this moment, in megabytes.
    pub(crate) fn memory(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
        kilobytes.map_or(0.0, |kilobytes: f64| kilobytes * 1024.0 / 1e6)
    }

    /// Ends it as its user would.
    pub(crate) fn stop(self) {
        self.child.signal(Signal::Terminate);
        drop(self.child.wait(PATIENCE));
    }
}
