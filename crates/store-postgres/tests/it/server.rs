//! A server for all tests, and a database of its own for each.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use myclaw_store::Store;
use myclaw_store_postgres::{Address, Options, PostgresStore};
use myclaw_testkit::PostgresServer;
use tokio_postgres::{Client, NoTls};

use crate::pooler::pooler;

/// The server; `None` if there is none on this machine. It ends with the process.
pub(crate) fn server() -> Option<&'static PostgresServer> {
    static SERVER: OnceLock<Option<PostgresServer>> = OnceLock::new();
    SERVER.get_or_init(|| PostgresServer::start("fsync = off\nmax_connections = 400")).as_ref()
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(work)
}

/// The address of a new database.
pub(crate) async fn database(server: &PostgresServer) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let client = connect(&server.url("postgres")).await;
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    server.url(&name)
}

/// The addresses of new databases: one at the server, and one behind a pooler in transaction mode, if there is one.
pub(crate) fn databases() -> Vec<String> {
    let Some(server) = server() else { return Vec::new() };
    let direct = block_on(database(server));
    let pooled = pooler(server).map(|port| {
        let url = block_on(database(server));
        url.replace(&format!(":{}/", server.port()), &format!(":{port}/"))
    });
    std::iter::once(direct).chain(pooled).collect()
}

/// A connection past the store.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub(crate) async fn open(url: &str) -> Arc<dyn Store> {
    open_with(url, Options::default()).await
}

pub(crate) async fn open_with(url: &str, options: Options) -> Arc<dyn Store> {
    Arc::new(PostgresStore::open(Address::parse(url).unwrap(), options).await.unwrap())
}
