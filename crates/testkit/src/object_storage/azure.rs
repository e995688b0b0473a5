//! Azurite, Microsoft's server with the protocol of Azure's storage, in Node.js.

use std::path::Path;
use std::process::{Child, Command};

use super::serve;

/// The account of every such server, and its key, which Microsoft has published:
/// <https://learn.microsoft.com/azure/storage/common/storage-use-azurite>.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const CONTAINER: &str = "test-container";
/// Makes the container.
const MAKE: &str = "
    const [port, account, key, container] = process.argv.slice(1);
    const date = new Date().toUTCString(), version = '2021-08-06', path = `/${account}/${container}`;
    const said = `PUT${'\\n'.repeat(12)}x-ms-date:${date}\\nx-ms-version:${version}\\n/${account}${path}\\nrestype:container`;
    const tag = require('node:crypto').createHmac('sha256', Buffer.from(key, 'base64')).update(said).digest('base64');
    const headers = { 'x-ms-date': date, 'x-ms-version': version, authorization: `SharedKey ${account}:${tag}` };
    fetch(`http://127.0.0.1:${port}${path}?restype=container`, { method: 'PUT', headers })
        .then((answer) => process.exit(answer.status === 201 ? 0 : 1));
";

/// A server on a port of its own, with one container. It keeps everything in memory, and ends with this value.
#[derive(Debug)]
pub struct AzureStorage {
    port: u16,
    server: Child,
}

impl AzureStorage {
    /// Starts a server. `None` if `AZURITE` does not name the directory of the package; the test says that it is skipped.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start() -> Option<Self> {
        let Some(package) = std::env::var_os("AZURITE") else {
            crate::skip_without("AZURITE is not set");
            return None;
        };
        let (port, server) = serve("azurite", |port| {
            let mut command = Command::new("node");
            command.arg(Path::new(&package).join("dist/src/blob/main.js"));
            command.args(["--blobHost", "127.0.0.1", "--blobPort", port]);
            command.args(["--inMemoryPersistence", "--skipApiVersionCheck", "--silent"]);
            command
        });
        let storage = Self { port, server };
        let mut make = Command::new("node");
        make.args(["-e", MAKE, &port.to_string(), ACCOUNT, KEY, CONTAINER]);
        assert!(make.status().expect("node").success(), "the container is not made");
        Some(storage)
    }

    /// The address of a prefix of its container, as `gateway.blobs` has it.
    pub fn address(&self, prefix: &str) -> String {
        let key = KEY.replace('/', "%2F").replace('+', "%2B").replace('=', "%3D");
        let endpoint = format!("http://127.0.0.1:{}/{ACCOUNT}", self.port);
        format!("az://{ACCOUNT}:{key}@{CONTAINER}/{prefix}?endpoint={endpoint}")
    }
}

impl Drop for AzureStorage {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
