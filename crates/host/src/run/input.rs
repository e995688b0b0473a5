//! The files by which the host speaks to a runner.

use std::io;

use myclaw_files::SharedDirectory;
use tokio::time::Instant;

use super::batch::{gather, is_spoken, keys, prompt_of};
use super::{Phase, Run};
use crate::host::Shared;
use crate::rows::{Query, RunTask};
use crate::shared_directory::{FOR_CONTAINER, json_files, open_or_replace};
use crate::{Group, HostError};

/// The file by which the host ends a run.
const CLOSE: &str = "_close";
/// Bytes of an input file: runners leave out longer ones.
const MAX_INPUT: usize = 1_000_000;

impl Run<'_> {
    /// Puts messages that have come after that time into a file for the runner.
    pub(super) async fn pass_on(&mut self, since: u64) -> Result<(), HostError> {
        let Some(run) = &self.state.row.run else { return Ok(()) };
        let mut known: Vec<String> = run.passed.iter().map(|(id, _)| id.clone()).collect();
        if let RunTask::Messages { ids } = &run.work {
            known.extend_from_slice(ids);
        }
        let mut batch = gather(self.shared, self.group, &known).await?;
        batch.retain(|message| message.order() >= since);
        if batch.is_empty() {
            return Ok(());
        }
        let file = format!("{}-{}.json", self.shared.ledger.next_ms(), &short_id());
        let content = serde_json::json!({"type": "message", "text": prompt_of(&batch)}).to_string();
        if content.len() > MAX_INPUT {
            // The next run gets them through its standard input, which takes more.
            if self.is_idle() {
                self.close();
            }
            return Ok(());
        }
        let written = input(self.shared, self.group)
            .and_then(|input| input.write(&file, content.as_bytes(), FOR_CONTAINER));
        if let Err(error) = written {
            // They wait for the next run.
            self.log.line(&format!("messages cannot be passed on: {error}"));
            return Ok(());
        }
        self.is_voice |= is_spoken(&batch);
        if let Some(run) = &mut self.state.row.run {
            run.passed.extend(keys(&batch).into_iter().map(|id| (id, file.clone())));
            if run.query == Query::Over {
                run.query = Query::Silent;
                self.works();
            }
        }
        if self.task.is_some() {
            self.shared.questions.lock().remove(&self.group.folder);
        }
        self.has_spoken_since = false;
        self.last_block = Instant::now();
        self.log.line(&format!("{} messages passed on", batch.len()));
        self.shared.ledger.save_state(self.state, Vec::new()).await
    }

    /// Tells the runner to end. One that cannot be told is stopped after the same time.
    pub(super) fn close(&mut self) {
        self.phase = Phase::Closing(Instant::now());
        match input(self.shared, self.group)
            .and_then(|input| input.write(CLOSE, b"", FOR_CONTAINER))
        {
            Ok(()) => self.log.line("told to end"),
            Err(error) => self.log.line(&format!("it cannot be told to end: {error}")),
        }
    }
}

fn short_id() -> String {
    uuid::Uuid::new_v4().simple().to_string().chars().take(8).collect()
}

pub(super) fn input(shared: &Shared, group: &Group) -> io::Result<SharedDirectory> {
    let home = &shared.options.home;
    let aside = (&*home.errors(), group.folder.as_str());
    open_or_replace(&home.ipc(&group.folder), "input", aside)
}

/// Removes the input of an earlier run. Its messages wait in the store.
pub(super) fn clear_input(shared: &Shared, group: &Group) -> io::Result<()> {
    let input = input(shared, group)?;
    loop {
        let names = json_files(&input)?;
        if names.is_empty() {
            return clear(shared, group, &input, CLOSE);
        }
        for name in names {
            clear(shared, group, &input, &name)?;
        }
    }
}

/// Removes a file of the input. What cannot be removed, such as a directory, is moved aside.
fn clear(shared: &Shared, group: &Group, input: &SharedDirectory, name: &str) -> io::Result<()> {
    input.remove(name).or_else(|_| {
        let aside = format!("{}-input-{}", group.folder, short_id());
        input.move_to(name, &SharedDirectory::open(&shared.options.home.errors())?, aside)
    })?;
    Ok(())
}
