//! What is said, and the loop that serves a connection.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;

use super::connection::{Connection, IrcError};
use super::message::{Line, folded, is_channel};
use super::unconfirmed::{STILL_THERE, Unconfirmed};
use super::{CONFIRMATION, IRC, Irc, Outgoing, advice, format};
use crate::arrival::take_for_sure;
use crate::mention::{names, without_name};
use crate::pause::{LONGEST, Pause};
use crate::wire::WireError;
use crate::{Arrival, Chat, ChatKind, Intake, SendFailure, Sender, State};

/// Longest wait of one call; what is waited for decides when it ends.
const READ: Duration = Duration::from_secs(60 * 60);
/// Pause after a refusal that only the owner can end. Networks ban those who try often.
const OWNER_PAUSE: Duration = Duration::from_secs(10 * 60);
/// Between two attempts to have the nickname and the channels of the config.
const REGAIN: Duration = Duration::from_secs(60);
/// Lines that may wait for the connection.
const QUEUE: usize = 16;
/// The mark of CTCP.
const CTCP: char = '\u{1}';

impl Irc {
    /// Receives messages forever.
    pub(super) async fn receive_lines(&self, intake: &dyn Intake) {
        let mut pause = Pause::new();
        loop {
            let Err(error) = self.attempt(intake, &mut pause).await;
            self.account.set(State::Waiting(advice(&error)));
            match error.is_for_owner() {
                true => tokio::time::sleep(OWNER_PAUSE).await,
                false => pause.wait().await,
            }
        }
    }

    async fn attempt(
        &self,
        intake: &dyn Intake,
        pause: &mut Pause,
    ) -> Result<Infallible, IrcError> {
        let mut connection = Connection::register(&self.options).await?;
        for channel in &self.options.channels {
            connection.send(&format!("JOIN {channel}")).await?;
        }
        let (sender, mut outgoing) = mpsc::channel(QUEUE);
        self.memory.lock().outgoing = Some(sender);
        self.account.set(State::Working);
        self.account.set_note(connection.trouble(&self.options.nick));
        let ended = self.serve(&mut connection, &mut outgoing, intake, pause).await;
        self.memory.lock().outgoing = None;
        outgoing.close();
        // These were never sent, so nothing about them is uncertain.
        while let Some(line) = outgoing.recv().await {
            let reason = "the connection broke before it was sent".to_owned();
            let _ = line.sent.send(Err(SendFailure::Later { after: None, reason }));
        }
        ended
    }

    async fn serve(
        &self,
        connection: &mut Connection,
        outgoing: &mut mpsc::Receiver<Outgoing>,
        intake: &dyn Intake,
        pause: &mut Pause,
    ) -> Result<Infallible, IrcError> {
        let begun = Instant::now();
        let mut unconfirmed = Unconfirmed::new(begun);
        let mut regain = tokio::time::interval_at(begun + REGAIN, REGAIN);
        loop {
            let (deadline, is_over) = unconfirmed.deadline();
            tokio::select! {
                line = connection.read(READ) => {
                    let line = line?;
                    unconfirmed.hear(Instant::now());
                    // A server that bans this client closes each connection at once.
                    if begun.elapsed() >= LONGEST {
                        *pause = Pause::new();
                    }
                    self.handle(connection, line, &mut unconfirmed, intake).await?;
                    self.account.set_note(connection.trouble(&self.options.nick));
                }
                _ = regain.tick() => self.regain(connection).await?,
                Some(line) = outgoing.recv() => {
                    let Outgoing { target, text, sent } = line;
                    let word = Uuid::new_v4().simple().to_string();
                    let command = format!("PRIVMSG {target} :{text}\r\nPING :{word}");
                    unconfirmed.push(word, target, Instant::now(), sent);
                    connection.send(&command).await?;
                }
                () = tokio::time::sleep_until(deadline) => {
                    if is_over {
                        return Err(connection.failed(WireError::Silent(CONFIRMATION)));
                    }
                    unconfirmed.ask(Instant::now());
                    connection.send(&format!("PING :{STILL_THERE}")).await?;
                }
            }
        }
    }

    /// Tries again to have the nickname of the config, and to be in its channels.
    async fn regain(&self, connection: &mut Connection) -> Result<(), IrcError> {
        if connection.was_taken && connection.nick != self.options.nick {
            connection.send(&format!("NICK {}", self.options.nick)).await?;
        }
        let absent =
            connection.absent.keys().filter(|channel| !connection.kicked.contains(*channel));
        for channel in absent.cloned().collect::<Vec<_>>() {
            connection.send(&format!("JOIN {channel}")).await?;
        }
        Ok(())
    }

    async fn handle(
        &self,
        connection: &mut Connection,
        line: Line,
        unconfirmed: &mut Unconfirmed,
        intake: &dyn Intake,
    ) -> Result<(), IrcError> {
        match line.command.as_str() {
            "PING" => connection.send(&format!("PONG :{}", line.last())).await,
            "PONG" => {
                unconfirmed.confirm(line.last());
                Ok(())
            }
            // What servers say of a line that they do not deliver, before its PONG: nobody there, not permitted, too many,
            // no text, too long, only for people with an account, or only over TLS.
            "401" | "402" | "403" | "404" | "405" | "406" | "407" | "408" | "411" | "412"
            | "413" | "414" | "415" | "416" | "417" | "437" | "477" | "482" | "486" | "487"
            | "489" | "494" | "531" | "716" => {
                unconfirmed.refuse(&line);
                Ok(())
            }
            "FAIL" if line.parameter(0).eq_ignore_ascii_case("PRIVMSG") => {
                unconfirmed.refuse(&line);
                Ok(())
            }
            "NICK" if folded(line.nick()) == folded(&connection.nick) => {
                connection.nick = line.last().to_owned();
                Ok(())
            }
            // Somebody leaves the nickname of the config.
            "NICK" | "QUIT" if folded(line.nick()) == folded(&self.options.nick) => {
                match connection.was_taken {
                    true => connection.send(&format!("NICK {}", self.options.nick)).await,
                    false => Ok(()),
                }
            }
            "JOIN" if folded(line.nick()) == folded(&connection.nick) => {
                connection.absent.remove(&folded(line.parameter(0)));
                Ok(())
            }
            // Somebody threw it out; it comes back once. A program would throw it out again and again.
            "KICK" if folded(line.parameter(1)) == folded(&connection.nick) => {
                let channel = line.parameter(0);
                tracing::warn!(channel, by = line.nick(), "kicked out of a channel");
                let is_first = connection.kicked.insert(folded(channel));
                let reason = format!("thrown out by {}", line.nick());
                connection.absent.insert(folded(channel), reason);
                match is_first {
                    true => connection.send(&format!("JOIN {channel}")).await,
                    false => Ok(()),
                }
            }
            "471" | "473" | "474" | "475" => {
                let reason = line.last().to_owned();
                connection.absent.insert(folded(line.parameter(1)), reason);
                tracing::warn!(
                    channel = line.parameter(1),
                    reason = line.last(),
                    "a channel cannot be joined"
                );
                Ok(())
            }
            "ERROR" => Err(connection.failed(WireError::Broken(line.last().to_owned()))),
            "PRIVMSG" => self.hear(connection, &line, intake).await,
            // Programs never answer a NOTICE (RFC 2812, section 3.3.2). The server's own are no messages.
            "NOTICE" if line.source.contains('!') => {
                let reason = "it is a NOTICE, which programs never answer";
                self.drop(&connection.nick.clone(), &line, reason, intake).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn hear(
        &self,
        connection: &mut Connection,
        line: &Line,
        intake: &dyn Intake,
    ) -> Result<(), IrcError> {
        let said = line.last();
        let mut text = format::without_colours(said);
        if let Some(command) = said.strip_prefix(CTCP) {
            let command = command.trim_end_matches(CTCP);
            match command.split_once(' ').unwrap_or((command, "")) {
                ("ACTION", action) => text = format!("* {}", format::without_colours(action)),
                (request, _) => {
                    let reason = format!("it is a request to the program (CTCP {request})");
                    self.drop(&connection.nick.clone(), line, &reason, intake).await;
                    if request != "VERSION" || !self.has_room() {
                        return Ok(());
                    }
                    let answer = format!("NOTICE {} :{CTCP}VERSION MyClaw{CTCP}", line.nick());
                    return connection.send(&answer).await;
                }
            }
        }
        let arrival = self.arrival(line, &connection.nick, &text);
        take_for_sure(intake, arrival, None).await;
        Ok(())
    }

    /// Stores what nobody answers.
    async fn drop(&self, nick: &str, line: &Line, reason: &str, intake: &dyn Intake) {
        let text = format::without_colours(line.last().trim_matches(CTCP));
        let arrival = self.arrival(line, nick, &text);
        take_for_sure(intake, arrival, Some(reason.to_owned())).await;
    }

    fn arrival(&self, line: &Line, me: &str, text: &str) -> Arrival {
        let target = line.parameter(0);
        let is_group = is_channel(target.trim_start_matches(['@', '%', '+']));
        let chat = if is_group { target.trim_start_matches(['@', '%', '+']) } else { line.nick() };
        // Anybody may take a free nickname. An account of the network proves more, and else the whole mask.
        let id = line.tag("account").unwrap_or(&line.source).to_owned();
        Arrival {
            channel: IRC.to_owned(),
            account: self.options.account.clone(),
            chat: Chat {
                id: folded(chat),
                other_id: None,
                kind: if is_group { ChatKind::Group } else { ChatKind::Direct },
                thread: None,
                title: is_group.then(|| chat.to_owned()),
            },
            source_id: line.tag("msgid").map_or_else(|| Uuid::new_v4().to_string(), str::to_owned),
            reply_id: None,
            sender: Sender { id, name: Some(line.nick().to_owned()), handle: None, other_id: None },
            mentions_me: !is_group || names(text, me) || names(text, &self.options.nick),
            text: without_name(without_name(text, me), &self.options.nick).to_owned(),
            attachments: Vec::new(),
            edits: None,
            reply_to: None,
            passages: Vec::new(),
            ..Arrival::default()
        }
    }
}
