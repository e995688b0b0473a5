//! This machine as a node of a gateway elsewhere: it connects, and runs what the gateway asks for under its own rules.

mod link;
mod state;
mod work;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::SplitSink;
use futures_util::{SinkExt as _, StreamExt as _};
use myclaw_agent::SessionConfig;
use myclaw_executor::{BareCommands, CallServer, CallService, ServerLimits, text_of};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::link::{Socket, Trouble};
use self::state::Paired;
use self::work::Work;
use crate::message::{Hello, MOST_CALLS, Opening, PROTOCOL, REPLACED};
use crate::remote::RemoteGateway;
use crate::{ClientError, PlainLink, Say};

/// First and longest pause before the next attempt to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Pause between two looks whether the owner has approved this node.
const APPROVAL_PAUSE: Duration = Duration::from_secs(2);
/// A connection that lasted this long makes the next pause the first one again.
const STABLE: Duration = Duration::from_secs(60);
/// Time for a frame to leave, and time without any frame after which the gateway counts as gone: it sends a ping every
/// 15 seconds.
const FRAME_TIME: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_secs(45);
/// Time for calls to end with everything they started when the connection has ended.
const END_TIME: Duration = Duration::from_secs(10);
/// Why a connection is given up on which no frame leaves.
const TAKES_NOTHING: &str = "it takes nothing";

/// How a node begins.
#[derive(Debug, Clone, Default)]
pub struct NodeOptions {
    /// Address of the gateway, to pair with.
    pub url: Option<String>,
    /// A PEM file with the certificate of the gateway, or of the authority that signed it; those of the system without one.
    pub ca: Option<PathBuf>,
    /// Whether a plain connection to another machine is accepted.
    pub link: PlainLink,
    /// A code to pair with. Without one, the node was paired before.
    pub code: Option<String>,
    /// How the node is called. Default: the name of the machine.
    pub name: Option<String>,
}

/// Serves a gateway until `stop` fires. `session` has the rules for what runs here. A lost connection is made again.
///
/// # Errors
/// The node is not paired, the gateway no longer knows it, or its config cannot be used.
pub async fn serve_node(
    session: SessionConfig,
    options: NodeOptions,
    say: Say,
    stop: CancellationToken,
) -> Result<(), ClientError> {
    let state = session.home.paths.state_dir().to_owned();
    let paired = match &options.code {
        Some(code) => pair(&state, code, &options, &say).await?,
        None => {
            if options.url.is_some() || options.name.is_some() {
                let why = "--url and --name are for pairing; add --pair CODE, or leave them out";
                return Err(ClientError::Unusable(why.to_owned()));
            }
            Paired::read(&state).await?
        }
    };
    let work = Arc::new(Work::new(&session).await?);
    say(&format!("this node offers {}", work.capabilities().join(", ")));
    let mut node = Node { gateway: paired.gateway()?, paired, work, say, told: None };
    tokio::select! {
        () = stop.cancelled() => {}
        ended = node.serve(&stop) => ended?,
    }
    // Calls that still run are dropped, which ends what they started.
    session.close_jobs(&|_| {}).await;
    Ok(())
}

/// Pairs with a gateway, and keeps the token.
async fn pair(
    state: &std::path::Path,
    code: &str,
    options: &NodeOptions,
    say: &Say,
) -> Result<Paired, ClientError> {
    let Some(url) = options.url.clone() else {
        let why = "--pair needs the address of the gateway: --url ws://127.0.0.1:18789";
        return Err(ClientError::Unusable(why.to_owned()));
    };
    let ca = options.ca.as_deref().map(std::path::absolute).transpose();
    let ca = ca.map_err(|error| ClientError::Unusable(format!("--ca: {error}")))?;
    let gateway = RemoteGateway::new(&url, ca.as_deref(), options.link)?;
    let host = myclaw_files::portable::host_name();
    let name = options.name.clone().unwrap_or(host);
    let answer = gateway.pair(&json!({"code": code, "name": name})).await?;
    let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
    if answer["scope"] != "node" {
        return Err(ClientError::Unusable(format!(
            "the code was made for a device with the scope `{}`; deny that device, and make a code with `myclaw devices \
             code --scope node`",
            text("scope")
        )));
    }
    let link = options.link;
    let paired =
        Paired { url, ca, link, id: text("id"), name: text("name"), token: text("token").into() };
    paired.write(state).await?;
    say(&format!(
        "paired as {} ({}); the owner lets it in with `myclaw nodes approve {}` on the gateway's machine",
        paired.name, paired.id, paired.id
    ));
    Ok(paired)
}

/// How a connection ended.
enum Ended {
    /// It may be made again.
    Lost(String),
    /// Another process has the connection of this node.
    Replaced,
}

struct Node {
    gateway: RemoteGateway,
    paired: Paired,
    work: Arc<Work>,
    say: Say,
    /// What was said last, so that it is said once.
    told: Option<String>,
}

impl Node {
    async fn serve(&mut self, stop: &CancellationToken) -> Result<(), ClientError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let begun = Instant::now();
            let wait = match self.gateway.connect_node(&self.paired.token).await {
                Ok(socket) => match self.attend(socket, stop).await {
                    Ended::Replaced => {
                        let why = "another process connected as this node; stop one of the two";
                        return Err(ClientError::Unusable(why.to_owned()));
                    }
                    Ended::Lost(why) => {
                        self.tell(format!("the connection ended ({why}); connecting again"));
                        if begun.elapsed() >= STABLE {
                            pause = FIRST_PAUSE;
                        }
                        pause
                    }
                },
                Err(Trouble::Pending) => {
                    self.tell(format!("waits for the owner's approval of {}", self.paired.id));
                    APPROVAL_PAUSE
                }
                Err(Trouble::Unknown) => {
                    return Err(ClientError::Unusable(
                        "the gateway does not accept this node: it was denied or revoked, or its token was replaced; \
                         pair it again with --url and --pair"
                            .to_owned(),
                    ));
                }
                Err(Trouble::Later(why)) => {
                    self.tell(format!("no connection: {why}; trying again"));
                    pause
                }
            };
            tokio::time::sleep(wait).await;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }

    /// Serves one connection. When it ends, so does everything that it asked for.
    async fn attend(&mut self, socket: Socket, stop: &CancellationToken) -> Ended {
        let hello = Opening::Hello(Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            capabilities: self.work.capabilities(),
        });
        let (mut output, mut input) = socket.split();
        if !send(&mut output, json!(hello).to_string()).await {
            return Ended::Lost(TAKES_NOTHING.to_owned());
        }
        let limits = ServerLimits { calls: MOST_CALLS, commands: BareCommands::Refused };
        let service = Arc::clone(&self.work) as Arc<dyn CallService>;
        let (mut server, replies) = CallServer::new(service, limits);
        // A task of its own: what waits to be sent must not keep requests from being taken.
        let mut writing = AbortOnDropHandle::new(tokio::spawn(send_all(replies, output)));
        let mut is_welcome = false;
        let ended = loop {
            let goes_on = tokio::select! {
                frame = tokio::time::timeout(SILENCE, input.next()) => match frame {
                    Err(_) => Err("the gateway is silent".to_owned()),
                    Ok(None) => Err("the gateway is gone".to_owned()),
                    Ok(Some(Err(error))) => Err(error.to_string()),
                    Ok(Some(Ok(Message::Close(Some(frame))))) if u16::from(frame.code) == REPLACED => {
                        break Ended::Replaced;
                    }
                    Ok(Some(Ok(Message::Close(frame)))) => {
                        Err(frame.map_or_else(String::new, |frame| frame.reason.to_string()))
                    }
                    Ok(Some(Ok(Message::Text(text)))) if is_welcome => {
                        server.take_text(&text).await.map_err(|error| other_language(&error))
                    }
                    Ok(Some(Ok(Message::Text(text)))) => {
                        is_welcome = true;
                        self.welcome(&text)
                    }
                    Ok(Some(Ok(_))) => Ok(()),
                },
                () = server.ended() => Ok(()),
                _ = &mut writing => Err(TAKES_NOTHING.to_owned()),
                () = stop.cancelled() => Err("this node stops".to_owned()),
            };
            if let Err(why) = goes_on {
                break Ended::Lost(why);
            }
        };
        server.end(END_TIME).await;
        ended
    }

    /// Takes the first frame of the gateway.
    fn welcome(&mut self, text: &str) -> Result<(), String> {
        match serde_json::from_str(text) {
            Ok(Opening::Welcome { version, .. }) => {
                self.tell(format!("connected to the gateway (version {version})"));
                Ok(())
            }
            Ok(Opening::Hello(_)) => Err("the gateway speaks as a node".to_owned()),
            Err(error) => Err(other_language(&error)),
        }
    }

    fn tell(&mut self, what: String) {
        if self.told.as_ref() != Some(&what) {
            (self.say)(&what);
            self.told = Some(what);
        }
    }
}

fn other_language(error: &serde_json::Error) -> String {
    format!("the gateway speaks another language: {error}")
}

/// Sends replies until one does not leave.
async fn send_all(mut replies: mpsc::Receiver<Vec<u8>>, mut output: SplitSink<Socket, Message>) {
    while let Some(reply) = replies.recv().await {
        if !send(&mut output, text_of(reply)).await {
            return;
        }
    }
}

async fn send(output: &mut SplitSink<Socket, Message>, text: String) -> bool {
    matches!(tokio::time::timeout(FRAME_TIME, output.send(Message::text(text))).await, Ok(Ok(())))
}
