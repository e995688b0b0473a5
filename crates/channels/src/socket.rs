//! A Unix socket for scripts of this machine's user: lines of JSON in both directions.
//!
//! A script names a chat, sends messages, and gets the answers of that chat. An answer stays on disk until the script has
//! confirmed it, so one that comes back later gets what it missed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_files::portable::PermissionsExt as _;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    Account, AfterInterruption, Arrival, Capabilities, Channel, Chat, DEFAULT_ACCOUNT, Intake,
    Part, Refusal, SendFailure, Sender, State,
};

/// Name of the channel.
pub const SOCKET: &str = "socket";
/// Most scripts that are connected at the same time.
const MOST_CONNECTIONS: usize = 64;
/// Longest line, in bytes: room for the longest message in JSON.
const MOST_LINE: u64 = 1024 * 1024;
/// Lines that wait for a script that reads slowly. Then its parts wait on disk.
const MOST_LINES: usize = 64;
/// How long a part waits in memory for its script before it is tried again later.
const SEND_TIME: Duration = Duration::from_secs(60);
/// Largest file whose path a script is given, in bytes.
const MOST_FILE_BYTES: u64 = 100 * 1024 * 1024;
/// The chat of a script that names none.
const DEFAULT_CHAT: &str = "default";
/// Longest name of a chat, in bytes.
const MOST_NAME: usize = 128;
/// Pause after a connection could not be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// How the socket is set up.
#[derive(Debug, Clone)]
pub struct SocketOptions {
    /// Where the socket is.
    pub path: PathBuf,
}

/// The socket.
pub struct SocketChannel {
    options: SocketOptions,
    account: Account,
    chats: Mutex<HashMap<String, Listener>>,
    /// Wakes parts that wait for a script.
    news: Notify,
    /// Fires when the connections are to be closed.
    retired: CancellationToken,
}

/// The script that listens to a chat: the newest one that named it.
struct Listener {
    lines: mpsc::Sender<String>,
    connection: u64,
    /// Parts that are sent and not confirmed.
    open: HashMap<String, oneshot::Sender<()>>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
enum Line {
    /// Listens to a chat.
    Listen { chat: String },
    /// A message.
    Message {
        id: String,
        text: String,
        #[serde(default)]
        chat: Option<String>,
    },
    /// The script has a part.
    Ack { part: String },
}

impl SocketChannel {
    /// Sets the channel up. Nothing is opened yet.
    pub fn new(options: SocketOptions) -> Self {
        let account = Account::new(SOCKET, DEFAULT_ACCOUNT);
        let retired = CancellationToken::new();
        Self { options, account, chats: Mutex::default(), news: Notify::new(), retired }
    }

    async fn serve(self: Arc<Self>, intake: Arc<dyn Intake>) {
        let listener = match bind(&self.options.path).await {
            Ok(listener) => listener,
            Err(reason) => return self.account.set(State::Stopped(reason)),
        };
        self.account.set(State::Working);
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let own = myclaw_files::portable::process::geteuid().as_raw();
        let mut connection = 0;
        loop {
            // It fails only if the semaphore is closed, which nobody does.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a script cannot connect");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            // The mode of the file keeps others out already, but not the administrator's programs.
            if !stream.peer_cred().is_ok_and(|peer| peer.uid() == own) {
                tracing::warn!("a program of another user was refused at the socket");
                continue;
            }
            connection += 1;
            let (this, intake) = (Arc::clone(&self), Arc::clone(&intake));
            tokio::spawn(async move {
                tokio::select! {
                    () = this.converse(stream, connection, &*intake) => {}
                    () = this.retired.cancelled() => {}
                }
                this.chats.lock().retain(|_, listener| listener.connection != connection);
                drop(place);
            });
        }
    }

    async fn converse(&self, stream: UnixStream, connection: u64, intake: &dyn Intake) {
        let (reading, mut writing) = stream.into_split();
        let (lines, mut waiting) = mpsc::channel::<String>(MOST_LINES);
        let sending = async move {
            while let Some(line) = waiting.recv().await {
                if writing.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        };
        let receiving = async {
            let mut reader = BufReader::new(reading);
            let mut line = Vec::new();
            loop {
                line.clear();
                let read = (&mut reader).take(MOST_LINE + 1).read_until(b'\n', &mut line).await;
                if !read.is_ok_and(|read| read > 0) {
                    return;
                }
                if line.len() as u64 > MOST_LINE {
                    let answer = failure(None, &format!("a line has at most {MOST_LINE} bytes"));
                    let _ = lines.send(answer).await;
                    return;
                }
                if line.trim_ascii().is_empty() {
                    continue;
                }
                if let Some(answer) = self.answer(&line, connection, &lines, intake).await
                    && lines.send(answer).await.is_err()
                {
                    return;
                }
            }
        };
        tokio::select! {
            () = sending => {}
            () = receiving => {}
        }
    }

    /// Carries out a line of a script.
    async fn answer(
        &self,
        line: &[u8],
        connection: u64,
        lines: &mpsc::Sender<String>,
        intake: &dyn Intake,
    ) -> Option<String> {
        let parsed: Line = match serde_json::from_slice(line) {
            Ok(parsed) => parsed,
            Err(error) => {
                return Some(failure(
                    None,
                    &format!(
                        "not a line of this protocol: {error}; docs/channels/socket.md has it"
                    ),
                ));
            }
        };
        match parsed {
            Line::Listen { chat } => {
                if let Err(why) = self.listen(&chat, connection, lines) {
                    return Some(failure(None, &why));
                }
                Some(text(&json!({"type": "listening", "chat": chat})))
            }
            Line::Message { id, text: said, chat } => {
                let chat = chat.unwrap_or_else(|| DEFAULT_CHAT.to_owned());
                if let Err(why) = self.listen(&chat, connection, lines) {
                    return Some(failure(Some(&id), &why));
                }
                Some(self.message(id, said, chat, intake).await)
            }
            Line::Ack { part } => {
                let confirmed =
                    self.chats.lock().values_mut().find_map(|listener| listener.open.remove(&part));
                // Nobody may wait any more.
                confirmed.map(|confirmed| confirmed.send(()));
                None
            }
        }
    }

    async fn message(&self, id: String, said: String, chat: String, intake: &dyn Intake) -> String {
        let arrival = Arrival {
            channel: SOCKET.to_owned(),
            account: DEFAULT_ACCOUNT.to_owned(),
            sender: Sender { id: chat.clone(), name: None, handle: None, other_id: None },
            chat: Chat { id: chat, ..Chat::default() },
            source_id: id.clone(),
            reply_id: Some(id.clone()),
            text: said,
            attachments: Vec::new(),
            mentions_me: true,
            edits: None,
            reply_to: None,
            passages: Vec::new(),
            ..Arrival::default()
        };
        match intake.take(arrival).await {
            Ok(receipt) => text(&json!({
                "type": "accepted", "id": id, "messageId": receipt.id, "dropped": receipt.dropped,
            })),
            Err(Refusal::Unusable(reason)) => failure(Some(&id), &reason),
            Err(Refusal::Later(reason)) => {
                text(&json!({"type": "later", "id": id, "message": reason}))
            }
        }
    }

    fn listen(
        &self,
        chat: &str,
        connection: u64,
        lines: &mpsc::Sender<String>,
    ) -> Result<(), String> {
        if chat.is_empty() || chat.len() > MOST_NAME {
            return Err(format!("chat needs 1 to {MOST_NAME} bytes"));
        }
        let mut chats = self.chats.lock();
        if chats.get(chat).is_some_and(|listener| listener.connection == connection) {
            return Ok(());
        }
        let open = HashMap::new();
        let listener = Listener { lines: lines.clone(), connection, open };
        chats.insert(chat.to_owned(), listener);
        drop(chats);
        self.news.notify_waiters();
        Ok(())
    }

    /// Gives a part to its script; waits until one listens, and until it confirms.
    async fn deliver(&self, part: &Part) -> String {
        let chat = part.target.to_text();
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            // From here on, no script is missed.
            news.as_mut().enable();
            let found = self.chats.lock().get(&chat).map(|listener| listener.lines.clone());
            if let Some(lines) = found
                && let Ok(place) = lines.reserve().await
            {
                let (sender, confirmed) = oneshot::channel();
                match self.chats.lock().get_mut(&chat) {
                    Some(listener) => listener.open.insert(part.id.clone(), sender),
                    None => continue,
                };
                place.send(line_of(part));
                // It fails if the script goes away.
                if confirmed.await.is_ok() {
                    return part.id.clone();
                }
                continue;
            }
            news.await;
        }
    }
}

impl Channel for SocketChannel {
    fn account(&self) -> &Account {
        &self.account
    }

    fn capabilities(&self) -> Capabilities {
        // The script sees the id of the part.
        Capabilities {
            after_interruption: AfterInterruption::SendAgain,
            most_file_bytes: Some(MOST_FILE_BYTES),
            actions: &[],
        }
    }

    fn run(self: Arc<Self>, intake: Arc<dyn Intake>) -> BoxFuture<'static, ()> {
        Box::pin(self.serve(intake))
    }

    fn retire(&self) {
        self.retired.cancel();
    }

    fn send<'a>(&'a self, part: &'a Part) -> BoxFuture<'a, Result<String, SendFailure>> {
        Box::pin(async move {
            let sent = tokio::select! {
                sent = tokio::time::timeout(SEND_TIME, self.deliver(part)) => sent.ok(),
                () = self.retired.cancelled() => None,
            };
            sent.ok_or_else(|| {
                let reason = "no script listens to the chat, or it does not confirm".to_owned();
                SendFailure::Later { after: Some(Duration::ZERO), reason }
            })
        })
    }
}

/// Opens the socket for this user alone. What a killed process left there is removed: only one gateway serves a state
/// directory.
async fn bind(path: &Path) -> Result<UnixListener, String> {
    let said = |what: &str, error: &std::io::Error| {
        format!("{what} {}: {error}; set channels.socket.path to another place", path.display())
    };
    match tokio::fs::symlink_metadata(path).await {
        Ok(found) => {
            use myclaw_files::portable::FileTypeExt as _;
            if !found.file_type().is_socket() {
                let path = path.display();
                return Err(format!("{path} is no socket; remove it, or set channels.socket.path"));
            }
            if UnixStream::connect(path).await.is_ok() {
                let path = path.display();
                return Err(format!("another program serves {path}; set channels.socket.path"));
            }
            tokio::fs::remove_file(path).await.map_err(|error| said("cannot remove", &error))?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(said("cannot look at", &error)),
    }
    // Bound under another name, so that nobody can connect before the mode is right.
    let hidden = path.with_extension(format!("{}.new", std::process::id()));
    let listener = UnixListener::bind(&hidden).map_err(|error| said("cannot open", &error))?;
    let only_owner = std::fs::Permissions::from_mode(0o600);
    tokio::fs::set_permissions(&hidden, only_owner)
        .await
        .map_err(|error| said("cannot protect", &error))?;
    tokio::fs::rename(&hidden, path).await.map_err(|error| said("cannot open", &error))?;
    Ok(listener)
}

fn line_of(part: &Part) -> String {
    // The script runs as the same user, so it can read the file where it is, until it confirms the part.
    let file =
        part.file.as_ref().map(|file| json!({"name": file.name, "path": file.content.describe()}));
    text(&json!({
        "type": part.kind.as_str(),
        "partId": part.id,
        "chat": part.target.to_text(),
        "replyTo": part.reply_to,
        "answers": part.answers,
        "part": part.number,
        "parts": part.count,
        "text": part.text,
        "file": file,
    }))
}

fn failure(id: Option<&str>, message: &str) -> String {
    text(&json!({"type": "error", "id": id, "message": message}))
}

fn text(value: &Value) -> String {
    format!("{value}\n")
}
