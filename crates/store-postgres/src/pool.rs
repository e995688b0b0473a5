//! A few connections, which are made when they are needed and again when they broke.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{poll_fn, try_join, try_join3};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Connection, Error, Row, Socket};

use myclaw_store::StoreError;

use crate::failure::Failure;
use crate::tenant::Tenant;
use crate::tls::Stream;
use crate::{Address, Options};

/// How long a connection may take to be ready, shared by the hosts of the address.
const CONNECT: Duration = Duration::from_secs(10);
/// How long the server may take for one answer, a commit excepted.
pub(crate) const ANSWER: Duration = Duration::from_secs(15);
/// What holds whatever an administrator has set for the database or the user: commits that a crash of the server would lose, and
/// searches that leave something out.
const SETTINGS: &str = "SET synchronous_commit = on; SET gin_fuzzy_search_limit = 0";
/// Whether somebody has. A pooler in transaction mode gives [`SETTINGS`] to one of its connections only, so each transaction says
/// it again then.
const ARE_OTHERS_SET: &str = "
    SELECT EXISTS (SELECT FROM pg_settings WHERE name = 'synchronous_commit' AND reset_val IN ('off', 'local')
        OR name = 'gin_fuzzy_search_limit' AND reset_val <> '0')";
const BEGIN: &str =
    "BEGIN; SET LOCAL synchronous_commit = on; SET LOCAL gin_fuzzy_search_limit = 0";
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// A parameter of a statement with its type, so that the server need not be asked for it.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// A connection, and what serves it.
type Connected = (Client, Connection<Socket, Stream>);

/// The connections of a store.
pub(crate) struct Pool {
    address: Address,
    patience: Duration,
    pub(crate) creates_tenant: bool,
    idle: Mutex<Vec<Client>>,
    places: Arc<Semaphore>,
    are_others_set: AtomicBool,
}

/// A connection that is lent. It is closed when this is dropped, unless it is given back: something may be unfinished on it.
pub(crate) struct Lent {
    client: Client,
    pool: Arc<Pool>,
    _place: OwnedSemaphorePermit,
}

impl Pool {
    pub(crate) fn new(address: Address, options: &Options) -> Self {
        Self {
            address,
            patience: options.patience,
            creates_tenant: options.creates_tenant,
            idle: Mutex::default(),
            places: Arc::new(Semaphore::new(options.connections.max(1))),
            are_others_set: AtomicBool::default(),
        }
    }

    /// The server and the database, for people.
    pub(crate) fn server(&self) -> &str {
        self.address.server()
    }

    /// Whose tables these are.
    pub(crate) fn tenant(&self) -> &Tenant {
        &self.address.tenant
    }

    /// The attempts of one call.
    pub(crate) fn attempts(self: &Arc<Self>) -> Attempts {
        Attempts { until: Instant::now() + self.patience, pool: Arc::clone(self) }
    }

    pub(crate) async fn get(self: &Arc<Self>) -> Result<Lent, Failure> {
        // Nobody closes the semaphore.
        let places = Arc::clone(&self.places);
        let place = places.acquire_owned().await.map_err(|_| Failure::lasting("is closed"))?;
        let idle = {
            let mut idle = self.idle.lock();
            idle.retain(|client| !client.is_closed());
            idle.pop()
        };
        let client = match idle {
            Some(client) => client,
            None => self.connect(|_| {}).await?.0,
        };
        Ok(Lent { client, pool: Arc::clone(self), _place: place })
    }

    /// A new connection, and the task that serves it until it ends. `notified` gets the payload of each notification.
    pub(crate) async fn connect(
        &self,
        notified: impl Fn(&str) + Send + 'static,
    ) -> Result<(Client, JoinHandle<()>), Failure> {
        let (client, mut connection) = self.connect_to_any().await?;
        let served = tokio::spawn(async move {
            // The client sees the failure in its calls.
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notification(notification) = message {
                    notified(notification.payload());
                }
            }
        });
        let others = client.query_typed_one(ARE_OTHERS_SET, &[]);
        let ((), others) = answer(try_join(client.batch_execute(SETTINGS), others)).await?;
        self.are_others_set.store(others.try_get(0)?, Ordering::Relaxed);
        Ok((client, served))
    }

    /// A connection to the first host that takes writes.
    async fn connect_to_any(&self) -> Result<Connected, Failure> {
        let Address { configs, last, tls, .. } = &self.address;
        // Time is left for what the connection is for.
        let shares = u32::try_from(configs.len()).unwrap_or(u32::MAX).saturating_add(1);
        let longest = if shares == 2 { CONNECT } else { CONNECT.min(self.patience) / shares };
        let (mut at, mut failures) = (last.load(Ordering::Relaxed), Vec::new());
        for _ in configs {
            let connecting = configs[at].connect(tls.clone());
            match timeout(longest, connecting).await {
                Ok(Ok(connected)) => {
                    last.store(at, Ordering::Relaxed);
                    return Ok(connected);
                }
                Ok(Err(error)) => failures.push(error.into()),
                Err(_) => {
                    let why = "does not answer; check that it runs, and its address";
                    failures.push(Failure::passing(why));
                }
            }
            at = (at + 1) % configs.len();
        }
        // What the owner has to change says more than a host that is away.
        let most = failures.iter().position(|failure| !failure.is_passing());
        let most = most.unwrap_or(failures.len().saturating_sub(1));
        Err(failures.swap_remove(most))
    }

    /// The rows of a statement that writes nothing, or can be carried out twice. It is tried again while the database
    /// cannot be reached.
    pub(crate) async fn query(
        self: &Arc<Self>,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let attempts = self.attempts();
        loop {
            match attempts.within(self.query_once(sql, parameters)).await {
                Ok(rows) => return Ok(rows),
                Err(failure) => attempts.after(failure, self.server()).await?,
            }
        }
    }

    async fn query_once(
        self: &Arc<Self>,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let client = self.get().await?;
        let asked = client.query_typed(sql, parameters);
        let rows = if self.are_others_set.load(Ordering::Relaxed) {
            let (begin, commit) = (client.batch_execute(BEGIN), client.batch_execute("COMMIT"));
            answer(try_join3(begin, asked, commit)).await?.1
        } else {
            answer(asked).await?
        };
        client.give_back();
        Ok(rows)
    }
}

/// Waits for an answer of the server, for [`ANSWER`] at most.
pub(crate) async fn answer<T>(asked: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    let late = || Failure::passing(format!("did not answer for {} s", ANSWER.as_secs()));
    Ok(timeout(ANSWER, asked).await.map_err(|_| late())??)
}

impl Lent {
    /// Makes the connection available to others. Nothing must be unfinished on it.
    pub(crate) fn give_back(self) {
        if !self.client.is_closed() {
            self.pool.idle.lock().push(self.client);
        }
    }
}

/// The calls of the client, about the tables of the tenant. Requests are sent in the order in which their futures are polled
/// first.
impl Lent {
    pub(crate) async fn query_typed(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Error> {
        self.client.query_typed(&self.pool.tenant().statement(sql), parameters).await
    }

    pub(crate) async fn query_typed_one(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Row, Error> {
        self.client.query_typed_one(&self.pool.tenant().statement(sql), parameters).await
    }

    pub(crate) async fn execute_typed(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<u64, Error> {
        self.client.execute_typed(&self.pool.tenant().statement(sql), parameters).await
    }

    pub(crate) async fn batch_execute(&self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(&self.pool.tenant().statement(sql)).await
    }
}

/// The attempts of one call, until its time is over.
pub(crate) struct Attempts {
    until: Instant,
    pool: Arc<Pool>,
}

impl Attempts {
    /// Carries out one attempt, for the time that is left.
    pub(crate) async fn within<T>(
        &self,
        attempt: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let late = || Failure::passing("did not answer in time; check its load and its locks");
        timeout_at(self.until, attempt).await.map_err(|_| late())?
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// There is no point in another, or no time.
    pub(crate) async fn after(&self, failure: Failure, server: &str) -> Result<(), StoreError> {
        // The others may be to the same server that does not answer; each of them would cost a wait of its own.
        self.pool.idle.lock().clear();
        if !failure.is_passing() || Instant::now() + PAUSE >= self.until {
            return Err(failure.into_error(server));
        }
        sleep(PAUSE).await;
        Ok(())
    }
}
