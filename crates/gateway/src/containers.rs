//! Chats that a group of the host answers: its container, instead of a session of this process.
//!
//! The host has a ledger of its own. A message goes there before it is acknowledged, and what the host sends goes from there
//! into the outbox, under the id that the host gave it. So each step is repeated after a crash, and has one effect.

mod showing;

use std::sync::{Arc, Weak};

use myclaw_channels::{Arrival, AttachmentContent, ChatKind};
use myclaw_config::{BindingMatch, ChatId, Config, HostBinding};
use myclaw_delivery::DeliveryError;
use myclaw_delivery::current::Current;
use myclaw_delivery::delivery::Delivery;
use myclaw_delivery::delivery::Saying;
use myclaw_delivery::route::Route;
use myclaw_delivery::routing::{
    Command, Groups, Handed, as_one_text, bindings, edited, files, says,
};
use myclaw_delivery::rows::{MessageId, PartKind};
use myclaw_gateway_client::Say;
use myclaw_host::{
    Accepted, Addressing, FileChannel, Folder, Host, HostOptions, Inbound, Messenger, Outbound,
    OutboundKind, Progress,
};
use myclaw_store::{BoxFuture, Change, Records};
use tokio_util::sync::CancellationToken;

use showing::Showing;

/// The route of each group's newest message.
const ROUTES: Records<Route> = Records::new("host-route");
/// Record kind: parts of the host that are in the outbox.
const PART: &str = "host-part";
/// Reply to chats that are bound to no group.
const NOBODY: &str = "This chat cannot be answered at the moment. Its owner sees the reason with `myclaw channels status`.";

const HELP: &str = "Write a message, and the agent of this group answers. What you write while it works reaches it too.\n\n\
                    /stop – stops what it does\n/new – begins a new session\n\
                    /again – sends again what may not have arrived\n/status – shows who answers here\n/help – shows this\n\n\
                    Where / is for commands of the app, write !stop, !new, !again, !status and !help.";

/// Makes the options of the host from the config. The error says why there is none.
pub type MakeHost = Box<dyn FnOnce(&Config) -> Result<HostOptions, String> + Send>;

/// The host in this process, or why there is none.
pub(crate) struct Containers {
    host: Result<Host, String>,
}

impl Containers {
    /// Opens the host if the config wants one.
    pub(crate) async fn open(config: &Config, make: MakeHost) -> Option<Self> {
        config.host.as_ref()?;
        let host = match make(config) {
            Ok(options) => open(options).await,
            Err(problem) => Err(problem),
        };
        Some(Self { host })
    }

    /// One line for each thing that the owner has to correct.
    pub(crate) fn problems(&self, config: &Config) -> Vec<String> {
        match &self.host {
            Err(problem) => vec![format!("the host of containers does not run: {problem}")],
            Ok(host) => bindings(config)
                .filter_map(|binding| chat_of(host, binding).err())
                .map(|problem| format!("{problem}; messages of its chat are not answered"))
                .collect(),
        }
    }

    async fn take(
        &self,
        delivery: &Delivery,
        binding: &HostBinding,
        (arrival, route): (&Arrival, &Route),
    ) -> Result<Handed, DeliveryError> {
        let nobody = |reason: String| Handed::Dropped { reason, say: Some(NOBODY.to_owned()) };
        let host = match &self.host {
            Ok(host) => host,
            Err(problem) => return Ok(nobody(format!("the host does not run: {problem}"))),
        };
        let chat = match chat_of(host, binding) {
            Ok(chat) => chat,
            Err(problem) => return Ok(nobody(problem)),
        };
        let mut text = as_one_text(arrival);
        let missing =
            arrival.attachments.iter().filter_map(|attachment| match &attachment.content {
                AttachmentContent::Missing(reason) => {
                    Some(format!("\n[a file is not here: {reason}]"))
                }
                AttachmentContent::Bytes(_) => None,
            });
        text.extend(missing);
        if let Some(original) = &arrival.edits {
            let original = delivery.newest_version(&MessageId::of(route, original)).await?;
            let useless = |reason: &str| Handed::Dropped { reason: reason.to_owned(), say: None };
            match host.text_of(&chat, original.as_str()).await.map_err(|error| failed(&error))? {
                None => return Ok(useless("the edited message is not known")),
                Some(known) if says(&known, &text) => {
                    return Ok(useless("the edit changes nothing"));
                }
                Some(_) => text = edited(&text),
            }
        }
        remember(delivery, &binding.folder, route).await?;
        let is_direct = arrival.chat.kind == ChatKind::Direct;
        let inbound = Inbound {
            id: MessageId::of(route, &arrival.source_id).as_str().to_owned(),
            chat,
            sender: arrival.sender.name.clone().unwrap_or_else(|| arrival.sender.id.clone()),
            text,
            at_ms: None,
            addressing: match is_direct || arrival.mentions_me {
                true => Addressing::ToAgent,
                false => Addressing::ByText,
            },
            files: files(arrival).into_iter().map(|file| (file.name, file.bytes)).collect(),
        };
        let accepted = host.accept(inbound).await.map_err(|error| failed(&error))?;
        Ok(match accepted {
            Accepted::ForAgent => Handed::Taken { is_for_agent: true },
            Accepted::Overheard | Accepted::Known => Handed::Taken { is_for_agent: false },
            Accepted::NoGroup => nobody(format!("the group {} is gone", binding.folder)),
            Accepted::Unusable(reason) => Handed::Dropped { say: Some(reason.clone()), reason },
        })
    }

    async fn obey(
        &self,
        binding: &HostBinding,
        command: Command,
        sender: &str,
    ) -> Result<String, DeliveryError> {
        let (Ok(host), Ok(folder)) = (&self.host, Folder::try_from(binding.folder.clone())) else {
            return Ok(NOBODY.to_owned());
        };
        Ok(match command {
            Command::Help => HELP.to_owned(),
            Command::Stop if host.stop(&folder) => "Stopped.".to_owned(),
            Command::Stop => "Nothing runs.".to_owned(),
            // The router does it for all chats alike.
            Command::Again => String::new(),
            Command::New => {
                host.begin_anew(&folder).await.map_err(|error| failed(&error))?;
                "The next message begins a new session.".to_owned()
            }
            Command::Status => {
                let status = host.status(&folder).await.map_err(|error| failed(&error))?;
                let does = if status.is_working { "works" } else { "waits" };
                let session = status.session.map(|id| format!("session `{id}`"));
                let session = session.unwrap_or_else(|| "no session".to_owned());
                let open = status.open;
                format!(
                    "group {folder}, which {does}, messages without an answer: {open}, {session}, your id {sender}"
                )
            }
        })
    }

    /// Works until `stop` fires. A failure concerns the host alone.
    pub(crate) async fn serve(
        &self,
        (delivery, current): (Weak<Delivery>, Arc<Current>),
        say: Say,
        stop: CancellationToken,
    ) {
        let Ok(host) = &self.host else { return };
        let serving = async {
            let files = FileChannel::open(host.home())?;
            let (of_host, of_chats) = (files.clone(), host.clone());
            let showing = Arc::new(Showing::new(Weak::clone(&delivery)));
            let messenger = Chats { files, host: of_chats, delivery, current, showing };
            host.serve(of_host, Arc::new(messenger), stop).await
        };
        if let Err(error) = serving.await {
            say(&format!("the host of containers has stopped: {error}; restart the gateway"));
        }
    }
}

impl Groups for Containers {
    fn take<'a>(
        &'a self,
        delivery: &'a Delivery,
        binding: &'a HostBinding,
        message: (&'a Arrival, &'a Route),
    ) -> BoxFuture<'a, Result<Handed, DeliveryError>> {
        Box::pin(self.take(delivery, binding, message))
    }

    fn obey<'a>(
        &'a self,
        binding: &'a HostBinding,
        command: Command,
        sender: &'a str,
    ) -> BoxFuture<'a, Result<String, DeliveryError>> {
        Box::pin(self.obey(binding, command, sender))
    }
}

async fn open(options: HostOptions) -> Result<Host, String> {
    let opening = tokio::task::spawn_blocking(move || Host::open(options));
    let host = opening.await.map_err(|error| error.to_string())?;
    let host = host.map_err(|error| error.to_string())?;
    host.check().await.map_err(|error| error.to_string())?;
    Ok(host)
}

/// The chat by which the host knows a group.
fn chat_of(host: &Host, binding: &HostBinding) -> Result<String, String> {
    let name = &binding.folder;
    let folder =
        Folder::try_from(name.clone()).map_err(|problem| format!("host.bindings: {problem}"))?;
    host.chat_of(&folder).ok_or_else(|| {
        format!(
            "host.bindings names the group {name}, which does not exist: \
             `myclaw groups add CHAT --folder {name}` adds it"
        )
    })
}

/// Stores from where messages for a group come.
async fn remember(delivery: &Delivery, folder: &str, route: &Route) -> Result<(), DeliveryError> {
    let note = |known: Option<Route>| match known {
        Some(known) if known == *route => Change::Keep,
        _ => Change::put(route.clone(), None),
    };
    ROUTES.update(delivery.ledger().store(), folder, note).await?;
    Ok(())
}

/// Where a group's messages go: where its newest one came from, else the chat that the binding describes.
async fn route_to(
    delivery: &Delivery,
    binding: &HostBinding,
) -> Result<Option<Route>, DeliveryError> {
    let known = ROUTES.get(delivery.ledger().store(), &binding.folder).await?;
    Ok(known.map(|known| known.row).or_else(|| described(&binding.matches)))
}

/// The route that a binding describes, for groups from which no message has come yet.
fn described(rule: &BindingMatch) -> Option<Route> {
    let chat = match rule.peer.as_ref().or(rule.group.as_ref())? {
        ChatId::Number(number) => number.to_string(),
        ChatId::Name(name) if name.trim().starts_with('@') => return None,
        ChatId::Name(name) => name.trim().to_owned(),
    };
    let account = rule.account.clone().unwrap_or_else(|| "default".to_owned());
    Some(Route { channel: rule.channel.clone(), account, chat })
}

fn failed(error: &myclaw_host::HostError) -> DeliveryError {
    DeliveryError::Internal(error.to_string())
}

/// Delivers what the host sends: to the chats of bound groups through the outbox, and to others through files.
struct Chats {
    files: FileChannel,
    host: Host,
    delivery: Weak<Delivery>,
    current: Arc<Current>,
    showing: Arc<Showing>,
}

impl Chats {
    /// The binding of the chat that the host knows by this name.
    fn binding(&self, chat: &str) -> Option<HostBinding> {
        let config = self.current.config();
        let is_of =
            |binding: &&HostBinding| chat_of(&self.host, binding).is_ok_and(|it| it == chat);
        bindings(&config).find(is_of).cloned()
    }

    async fn put(&self, binding: &HostBinding, part: &Outbound) -> Result<(), String> {
        let delivery = self.delivery.upgrade().ok_or("the gateway stops")?;
        let text = |error: DeliveryError| error.to_string();
        let route = route_to(&delivery, binding).await.map_err(text)?.ok_or_else(|| {
            format!("no message has come yet from the chat of the group {}", binding.folder)
        })?;
        let kind = match part.kind {
            OutboundKind::Notice => PartKind::Report,
            OutboundKind::Message | OutboundKind::Voice { .. } => PartKind::Reply,
        };
        let said = (PART, &*part.id);
        let speech = match &part.kind {
            OutboundKind::Voice { audio: Some(name), .. } => {
                Some(self.host.home().channel().join("out").join(name))
            }
            _ => None,
        };
        let files = match &speech {
            Some(path) => delivery.keep_spoken(said, &route, path).await.map_err(text)?,
            None => None,
        };
        // The text goes out too: the chat may refuse voice messages, and a text can hold links.
        let saying = Saying { text: part.text.clone(), files: files.into_iter().collect() };
        let shown = showing::name(&binding.folder);
        self.showing.has_said(binding);
        delivery.say_once(said, (&route, &shown), (kind, saying)).await.map_err(text)?;
        self.showing.go_on(&delivery, binding, &route);
        if let Some(path) = speech {
            drop(std::fs::remove_file(path));
        }
        Ok(())
    }
}

impl Messenger for Chats {
    fn deliver<'a>(&'a self, part: &'a Outbound) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async {
            match self.binding(&part.chat) {
                Some(binding) => self.put(&binding, part).await,
                None => self.files.deliver(part).await,
            }
        })
    }

    fn shows(&self, chat: &str) -> bool {
        self.binding(chat).is_some()
    }

    fn show(&self, chat: &str, progress: Progress) {
        let Some(binding) = self.binding(chat) else { return };
        match progress {
            Progress::Working => self.showing.begin(binding),
            Progress::Writing(text) => self.showing.write(&binding, text),
            Progress::Waiting => self.showing.pause(&binding),
        }
    }
}
