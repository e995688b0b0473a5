//! What is said, and the loop that serves a connection.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;

use super::connection::{Connection, IrcError};
use super::message::{Line, folded, is_channel};
use super::{IRC, Irc, Outgoing, Unconfirmed, advice, format};
use crate::pause::{LONGEST, Pause};
use crate::wire::WireError;
use crate::{Arrival, Chat, ChatKind, Intake, Refusal, SendFailure, Sender, State};

/// How long a server may say nothing before it is asked whether it is there, and how long it may take to answer.
const QUIET: Duration = Duration::from_secs(120);
/// Lines that may wait for the connection.
const QUEUE: usize = 16;
/// The mark of CTCP.
const CTCP: char = '\u{1}';

impl Irc {
    /// Receives messages for ever, or returns if the account cannot be used.
    pub(super) async fn receive_lines(&self, intake: &dyn Intake) {
        let mut pause = Pause::new();
        loop {
            let ended = self.serve(intake, &mut pause).await;
            self.lock().outgoing = None;
            if let Err(error) = ended {
                let reason = advice(&error);
                if error.is_final() {
                    return self
                        .set_state(State::Stopped(format!("{reason}, and restart the gateway")));
                }
                self.set_state(State::Waiting(reason));
            }
            pause.wait().await;
        }
    }

    async fn serve(&self, intake: &dyn Intake, pause: &mut Pause) -> Result<(), IrcError> {
        let mut connection = Connection::register(&self.options).await?;
        for channel in &self.options.channels {
            connection.send(&format!("JOIN {channel}")).await?;
        }
        let (sender, mut outgoing) = mpsc::channel(QUEUE);
        self.lock().outgoing = Some(sender);
        self.set_state(State::Working);
        let begun = Instant::now();
        let mut unconfirmed = Unconfirmed::new();
        let mut is_asked = false;
        loop {
            tokio::select! {
                line = connection.read(QUIET) => match line {
                    Ok(line) => {
                        is_asked = false;
                        // A server that bans this client closes each connection at once.
                        if begun.elapsed() >= LONGEST {
                            *pause = Pause::new();
                        }
                        self.handle(&mut connection, line, &mut unconfirmed, intake).await?;
                    }
                    Err(IrcError::Wire { error: WireError::Silent(_), .. }) if !is_asked => {
                        is_asked = true;
                        connection.send("PING :still-there").await?;
                    }
                    Err(error) => return Err(error),
                },
                Some(line) = outgoing.recv() => {
                    let Outgoing { target, text, sent } = line;
                    let word = Uuid::new_v4().simple().to_string();
                    let command = format!("PRIVMSG {target} :{text}\r\nPING :{word}");
                    unconfirmed.retain(|_, (_, waiting)| !waiting.is_closed());
                    unconfirmed.insert(word, (target, sent));
                    connection.send(&command).await?;
                }
            }
        }
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
                if let Some((_, sent)) = unconfirmed.remove(line.last()) {
                    let _ = sent.send(Ok(()));
                }
                Ok(())
            }
            // No such nick, cannot send there, too many of them; they come before the PONG.
            "401" | "403" | "404" | "407" | "411" | "412" | "477" => {
                let target = folded(line.parameter(1));
                let reason = format!("the IRC server refused it: {}", line.last());
                let of_target = unconfirmed.iter().find(|(_, (other, _))| folded(other) == target);
                let word = of_target.map(|(word, _)| word.clone());
                if let Some((_, sent)) = word.and_then(|word| unconfirmed.remove(&word)) {
                    let _ = sent.send(Err(SendFailure::Never { reason }));
                }
                Ok(())
            }
            "NICK" if folded(line.nick()) == folded(&connection.nick) => {
                connection.nick = line.last().to_owned();
                Ok(())
            }
            // Somebody threw it out; it comes back once. A program would throw it out again and again.
            "KICK" if folded(line.parameter(1)) == folded(&connection.nick) => {
                let channel = line.parameter(0);
                tracing::warn!(channel, by = line.nick(), "kicked out of a channel");
                match connection.kicked.insert(folded(channel)) {
                    true => connection.send(&format!("JOIN {channel}")).await,
                    false => Ok(()),
                }
            }
            "471" | "473" | "474" | "475" => {
                tracing::warn!(
                    channel = line.parameter(1),
                    reason = line.last(),
                    "a channel cannot be joined"
                );
                Ok(())
            }
            "ERROR" => Err(connection.failed(WireError::Broken(line.last().to_owned()))),
            "PRIVMSG" => self.hear(connection, &line, intake).await,
            // Programs never answer a NOTICE (RFC 2812, section 3.3.2).
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
                ("VERSION", _) if self.has_room() => {
                    let answer = format!("NOTICE {} :{CTCP}VERSION MyClaw{CTCP}", line.nick());
                    return connection.send(&answer).await;
                }
                _ => return Ok(()),
            }
        }
        let arrival = self.arrival(line, &connection.nick, text);
        let mut pause = Pause::new();
        // Nobody says it again, so it is kept here until it is on disk.
        loop {
            match intake.take(arrival.clone()).await {
                Ok(_) => return Ok(()),
                Err(Refusal::Unusable(reason)) => {
                    tracing::warn!(%reason, "a message cannot be used");
                    return Ok(());
                }
                Err(Refusal::Later(reason)) => {
                    tracing::warn!(%reason, "a message cannot be taken; trying again");
                    pause.wait().await;
                }
            }
        }
    }

    fn arrival(&self, line: &Line, me: &str, text: String) -> Arrival {
        let target = line.parameter(0);
        let is_group = is_channel(target.trim_start_matches(['@', '%', '+']));
        let chat = if is_group { target.trim_start_matches(['@', '%', '+']) } else { line.nick() };
        // A nickname belongs to whoever takes it. An account of the network proves more, and else the whole mask.
        let id = line.tag("account").unwrap_or(&line.source).to_owned();
        Arrival {
            channel: IRC.to_owned(),
            account: self.options.account.clone(),
            chat: Chat {
                id: folded(chat),
                kind: if is_group { ChatKind::Group } else { ChatKind::Direct },
                thread: None,
                title: is_group.then(|| chat.to_owned()),
            },
            source_id: line.tag("msgid").map_or_else(|| Uuid::new_v4().to_string(), str::to_owned),
            reply_id: None,
            sender: Sender { id, name: Some(line.nick().to_owned()), handle: None },
            mentions_me: !is_group || names(&text, me),
            text,
            attachments: Vec::new(),
            edits: None,
            reply_to: None,
        }
    }
}

/// Whether a text holds a nickname as a word.
fn names(text: &str, nick: &str) -> bool {
    let (text, nick) = (folded(text), folded(nick));
    let is_part = |c: char| c.is_alphanumeric() || "-_[]{}\\|^`".contains(c);
    text.match_indices(&nick).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + nick.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_nickname_is_a_word() {
        for (text, is_named) in [
            ("Claw: hi", true),
            ("hi claw!", true),
            ("CLAW", true),
            ("@claw hi", true),
            ("clawfoot", false),
            ("my_claw", false),
            ("", false),
        ] {
            assert_eq!(names(text, "claw"), is_named, "{text}");
        }
    }
}
