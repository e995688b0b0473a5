//! Moves the messages of a session from one place to the next.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::Handover;
use myclaw_agent::speech::transcriber;
use myclaw_engine::{TakenState, incomplete_remark};
use myclaw_llm::{ContentBlock, StopReason, TextContent, ToolCall};
use myclaw_session::EntryId;
use myclaw_speech::AudioFormat;
use myclaw_store::Held;
use tokio_util::sync::CancellationToken;

use super::answering::Texts;
use super::desk::Desk;
use super::{Delivery, Report};
use crate::DeliveryError;
use crate::ledger::OpenMessage;
use crate::routing::{ShownFile, content};
use crate::rows::{Incoming, MessageState, PartKind};

/// Pause before a step that failed, for example on a full disk, is tried again; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Where messages are.
struct Places(HashMap<EntryId, Handover>);

/// An answer in the log.
struct Found<'p> {
    row: EntryId,
    text: &'p str,
    /// The calls with which it ends.
    calls: &'p [ToolCall],
    /// Why it ended.
    stop_reason: StopReason,
    /// Paths of the pictures that were made for it.
    pictures: &'p [String],
}

impl Places {
    fn of(&self, message: &OpenMessage) -> Option<&Handover> {
        self.0.get(&message.id.entry())
    }

    /// The answer, if there is one.
    fn answer(&self, message: &OpenMessage) -> Option<Found<'_>> {
        match self.of(message) {
            Some(Handover::Taken(TakenState::Answered {
                row,
                text,
                calls,
                stop_reason,
                pictures,
            })) => Some(Found { row: *row, text, calls, stop_reason: *stop_reason, pictures }),
            _ => None,
        }
    }
}

impl Delivery {
    /// Works on the messages of a desk, until it is removed or another gateway has it.
    pub(super) async fn serve(self: &Arc<Self>, desk: &Desk) {
        let mut open = Vec::new();
        let Some(held) = self.claim_desk(desk).await else {
            return self.leave_to_others(desk, open).await;
        };
        while let Err(error) = self.take_over(desk).await {
            tracing::error!(desk = %held.id(), %error, "not taken over; trying again");
            tokio::time::sleep(FIRST_PAUSE).await;
        }
        loop {
            tokio::select! {
                () = desk.wake.notified() => {}
                () = held.lost() => {}
            }
            let mut pause = FIRST_PAUSE;
            // Boxed: a desk waits for most of its life, and holds little then.
            while !held.is_lost()
                && let Err(error) = self.advance_under(&held, desk, &mut open).await
            {
                let session = desk.session.key().as_str();
                tracing::error!(session, %error, "messages cannot be worked on; trying again");
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = held.lost() => {}
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            if held.is_lost() {
                return self.leave_to_others(desk, open).await;
            }
            if let Err(error) = self.keep_choice(desk).await {
                tracing::warn!(%error, "the model that was chosen for a session is not stored");
            }
            if open.is_empty() && self.remove_if_idle(desk).await {
                if let Err(error) = held.release().await {
                    tracing::warn!(%error, "a desk is held until its lease ends");
                }
                return;
            }
        }
    }

    /// The same as [`Self::advance`]. If the desk is lost meanwhile, its turn ends at once, whatever else waits for the store.
    async fn advance_under(
        &self,
        held: &Held,
        desk: &Desk,
        open: &mut Vec<OpenMessage>,
    ) -> Result<(), DeliveryError> {
        let mut advancing = Box::pin(self.advance(desk, open));
        tokio::select! {
            outcome = &mut advancing => return outcome,
            () = held.lost() => desk.session.abandon(),
        }
        advancing.await
    }

    /// Moves each message of a desk one step on.
    async fn advance(&self, desk: &Desk, open: &mut Vec<OpenMessage>) -> Result<(), DeliveryError> {
        open.extend(desk.take_arrived());
        self.drop_settled(desk, open).await?;
        // Before the look at the log: what these runs have done is then in it.
        let failures = desk.failures();
        if open.is_empty() {
            desk.forget_failures(failures.len());
            return Ok(());
        }
        let places = self.places(desk, open).await?;
        self.settle_answered(desk, open, &places).await?;
        for failure in &failures {
            // Sessions in a database that others use may be away, or with their former owner for a moment.
            let is_of_sessions = self.ledger().claims().is_shared() && failure.is_of_sessions();
            if (is_of_sessions || failure.may_pass && !failure.ids.is_empty())
                && self.waits_out(desk, failure, open).await?
            {
                continue;
            }
            let session = desk.session.key().as_str();
            tracing::warn!(session, class = failure.class, error = failure.message, "a run failed");
            let report = Report::of_run(failure);
            let failed = open.extract_if(.., |message| failure.ids.contains(&message.id.entry()));
            let mut failed: Vec<OpenMessage> = failed.collect();
            if failure.ids.is_empty() {
                // It failed before it took anything, and would fail again.
                failed = self.take_back(desk, open, &places).await?;
            }
            self.settle_reported(desk, failed, &report, open).await?;
        }
        desk.forget_failures(failures.len());
        self.settle_dropped(desk, open, &places).await?;
        self.hand_over(desk, open, &places).await?;
        self.go_on(desk, open, &places).await
    }

    /// Where the messages are. A log is not searched for messages that it cannot hold: the cost of a message does not
    /// grow with the age of its session.
    async fn places(&self, desk: &Desk, open: &[OpenMessage]) -> Result<Places, DeliveryError> {
        let ids = open.iter().map(|message| message.id.entry());
        let (fresh, handed_over): (Vec<EntryId>, Vec<EntryId>) =
            ids.partition(|id| desk.is_fresh(*id));
        let mut places = match handed_over.is_empty() {
            true => HashMap::new(),
            false => desk.session.whereabouts(handed_over).await?,
        };
        places.extend(fresh.into_iter().map(|id| (id, Handover::Missing)));
        Ok(Places(places))
    }

    /// Step 5 for messages whose answer is in the log.
    async fn settle_answered(
        &self,
        desk: &Desk,
        open: &mut Vec<OpenMessage>,
        places: &Places,
    ) -> Result<(), DeliveryError> {
        while let Some(Found { row, text, calls, stop_reason, pictures }) =
            open.iter().find_map(|message| places.answer(message))
        {
            let is_same = |message: &OpenMessage| {
                places.answer(message).is_some_and(|other| other.row == row)
            };
            // Programs and the page find the reason in the log.
            let for_people = match incomplete_remark(stop_reason) {
                Some(remark) => format!("{text}\n\n{remark}"),
                None => text.to_owned(),
            };
            let mut answered: Vec<OpenMessage> =
                open.iter().filter(|message| is_same(message)).cloned().collect();
            for message in &mut answered {
                message.row.calls = calls.to_vec();
                message.row.is_cut = stop_reason == StopReason::Length;
            }
            let texts = Texts { text, for_people: &for_people, pictures };
            self.answer(&answered, PartKind::Reply, row.as_str(), texts, &|parts| {
                MessageState::Answered { parts }
            })
            .await?;
            desk.settled(&answered);
            open.retain(|message| !is_same(message));
        }
        Ok(())
    }

    /// Takes messages that no run has taken out of the inbox.
    async fn take_back(
        &self,
        desk: &Desk,
        open: &mut Vec<OpenMessage>,
        places: &Places,
    ) -> Result<Vec<OpenMessage>, DeliveryError> {
        let mut taken_back = Vec::new();
        for message in open.iter() {
            let waits = places.of(message) == Some(&Handover::Waiting);
            if waits && desk.session.take_back(message.id.entry()).await? {
                taken_back.push(message.clone());
            }
        }
        open.retain(|message| !taken_back.iter().any(|other| other.id == message.id));
        Ok(taken_back)
    }

    /// Reports messages. Those that could not be reported are open again.
    async fn settle_reported(
        &self,
        desk: &Desk,
        messages: Vec<OpenMessage>,
        report: &Report,
        open: &mut Vec<OpenMessage>,
    ) -> Result<(), DeliveryError> {
        if messages.is_empty() {
            return Ok(());
        }
        let outcome = self.report(messages.clone(), report).await;
        match outcome {
            Ok(()) => desk.settled(&messages),
            Err(_) => open.extend(messages),
        }
        outcome
    }

    /// Reports messages that a full queue dropped before this process could say so. The log has a notice of that for the
    /// model, so they are not handed over again.
    async fn settle_dropped(
        &self,
        desk: &Desk,
        open: &mut Vec<OpenMessage>,
        places: &Places,
    ) -> Result<(), DeliveryError> {
        let is_dropped = |message: &mut OpenMessage| {
            places.of(message) == Some(&Handover::Taken(TakenState::Dropped))
        };
        let dropped: Vec<OpenMessage> = open.extract_if(.., is_dropped).collect();
        self.settle_reported(desk, dropped, &Report::of_a_drop(), open).await
    }

    /// Step 2 for messages that are not in the session yet. A message of a program that brings tools or asks for more than
    /// an answer has a turn of its own: it waits for those before it, and those after it wait for its end.
    async fn hand_over(
        &self,
        desk: &Desk,
        open: &mut Vec<OpenMessage>,
        places: &Places,
    ) -> Result<(), DeliveryError> {
        let is_missing = |message: &OpenMessage| places.of(message) == Some(&Handover::Missing);
        let missing: Vec<OpenMessage> =
            open.iter().filter(|message| is_missing(message)).cloned().collect();
        let mut handed_over = open.iter().filter(|message| !is_missing(message));
        let asked = handed_over.clone().find_map(|message| message.row.asked.clone());
        let mut is_free = handed_over.next().is_none() && desk.session.work().is_none();
        desk.asks(asked);
        for message in missing {
            if desk.asked().is_some() || (message.row.asked.is_some() && !is_free) {
                break;
            }
            desk.asks(message.row.asked.clone());
            is_free = false;
            let content = self.content_of(desk, &message).await?;
            desk.hands_over(message.id.entry());
            let sent = desk.session.send_as(message.id.entry(), content, None).await;
            let (gone, report) = match sent {
                Ok((_, dropped)) => {
                    if desk.session.work().is_none() {
                        // Another process runs the session. The turn that begins here waits for it.
                        desk.session.resume();
                    }
                    (dropped, Report::of_a_drop())
                }
                Err(error) => {
                    let class = error.class.as_str().to_owned();
                    (vec![message.id.entry()], Report { class, message: error.message })
                }
            };
            let gone: HashSet<EntryId> = gone.into_iter().collect();
            let reported = open.extract_if(.., |message| gone.contains(&message.id.entry()));
            let reported: Vec<OpenMessage> = reported.collect();
            self.settle_reported(desk, reported, &report, open).await?;
        }
        Ok(())
    }

    /// What the model is shown of a message.
    async fn content_of(
        &self,
        desk: &Desk,
        message: &OpenMessage,
    ) -> Result<Vec<ContentBlock>, DeliveryError> {
        let Incoming { text, context, images, .. } = &message.row;
        let text = match context {
            Some(context) => format!("{context}\n{text}"),
            None => text.clone(),
        };
        let before = text.len() - message.row.text.len();
        let moved = |part: &Range<usize>| part.start + before..part.end + before;
        let outside = message.row.origin.outside.iter().map(moved).collect();
        let said = Some(TextContent { text, outside, ..TextContent::default() })
            .filter(|said| !said.text.trim().is_empty())
            .map(ContentBlock::Text);
        let mut said = self.with_server_texts(desk, message, said).await;
        if message.row.origin.files.is_empty() {
            let images = images.iter().cloned().map(ContentBlock::Image);
            return Ok(said.into_iter().chain(images).collect());
        }
        let mut files = Vec::new();
        for file in &message.row.origin.files {
            let bytes = self.ledger().file(file).await?;
            let Some(bytes) = bytes else { continue };
            let heard = self.heard(&bytes).await;
            files.push(ShownFile { name: file.name.clone(), bytes, heard });
        }
        let (config, id) = (desk.session.config(), message.id.to_string());
        let named = said.split_off(said.len().min(1));
        let said = said.pop();
        let making = tokio::task::spawn_blocking(move || {
            config.make_working_directory().map_err(|error| error.message)?;
            let refuses = |bytes| config.refuses_file(bytes);
            content(said, files, &id, (config.working_directory(), &refuses))
        });
        let made = making.await.map_err(|error| DeliveryError::Internal(error.to_string()))?;
        let mut blocks = made.map_err(DeliveryError::Internal)?;
        blocks.extend(named);
        blocks.extend(images.iter().cloned().map(ContentBlock::Image));
        Ok(blocks)
    }

    /// What is said in a file: a transcript, or why there is none; `None` if it is no audio or nobody listens.
    async fn heard(&self, bytes: &[u8]) -> Option<Result<String, String>> {
        let transcriber = AudioFormat::of(bytes).and(transcriber(&self.config()))?;
        let heard = transcriber.transcribe(bytes, &CancellationToken::new()).await;
        if let Err(error) = &heard {
            tracing::warn!(%error, "a voice note is not transcribed");
        }
        Some(heard.map_err(|error| error.to_string()))
    }

    /// Step 3 and 4 for messages that no run works on: starts one. An answer that was cut off is not continued.
    async fn go_on(
        &self,
        desk: &Desk,
        open: &mut Vec<OpenMessage>,
        places: &Places,
    ) -> Result<(), DeliveryError> {
        if desk.session.work().is_some() || desk.is_waiting() {
            return Ok(());
        }
        let is_unfinished = |message: &OpenMessage| {
            matches!(
                places.of(message),
                Some(Handover::Waiting | Handover::Taken(TakenState::Open))
            )
        };
        let taken = open.iter().filter(|message| {
            matches!(places.of(message), Some(Handover::Taken(TakenState::Open)))
        });
        desk.note_taken(taken.map(|message| message.id.entry()));
        if open.iter().any(is_unfinished) {
            desk.session.resume();
            return Ok(());
        }
        let why = |message: &OpenMessage| match places.of(message) {
            Some(Handover::Taken(TakenState::Broken { why })) => Some(*why),
            _ => None,
        };
        if let Some(reason) = open.iter().find_map(why) {
            let broken: Vec<OpenMessage> =
                open.extract_if(.., |message| why(message).is_some()).collect();
            let message = format!("the answer {reason}; send the message again");
            let report = Report { class: "interrupted".to_owned(), message };
            self.settle_reported(desk, broken, &report, open).await?;
        }
        Ok(())
    }
}
