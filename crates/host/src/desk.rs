//! What runners ask for through files, and whether they may.
//!
//! Who asks is decided by the directory in which a file is, and by nothing in the file: a container sees only the
//! directory of its own group.

use std::io;
use std::path::{Path, PathBuf};

use myclaw_files::{SharedDirectory, from_json};
use serde::Deserialize;
use serde_json::json;

use crate::host::Shared;
use crate::rows::{Context, OutgoingPart, Task, TaskKind, TaskState};
use crate::shared_directory::{FOR_CONTAINER, MAX_JSON_BYTES, json_files, open_or_replace};
use crate::tasks::{first_run, schedule, snapshot};
use crate::{Folder, Group, Groups, HostError, Listens, Outbound, OutboundKind};

/// The directories in which runners put files.
const DIRECTORIES: [&str; 3] = ["messages", "voice", "tasks"];
/// Longest name of a file: it becomes a part of ids.
const MAX_NAME: usize = 120;
/// Longest text or prompt, in bytes.
const MAX_TEXT: usize = 256 * 1024;
/// Most bytes of a voice message.
pub(crate) const MAX_AUDIO: u64 = 25 * 1024 * 1024;
/// The ends of names of voice messages.
pub(crate) const AUDIO_ENDINGS: [&str; 7] = ["ogg", "mp3", "m4a", "wav", "flac", "aac", "amr"];
/// Most tasks of a group.
const MAX_TASKS: usize = 100;
/// Most files that are kept aside; further ones are deleted.
const MAX_ASIDE: usize = 1_000;

/// Looks at the files of runners.
pub(crate) struct RunnerFiles<'a> {
    shared: &'a Shared,
}

/// What a runner asks for. Fields that are not here are ignored; none of them says who asks.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Request {
    Message {
        chat_jid: String,
        text: String,
        /// Whether the runner waits for a reply.
        #[serde(default)]
        is_question: bool,
    },
    VoiceMessage {
        chat_jid: String,
        text: String,
        #[serde(default)]
        voice: Option<String>,
        /// The name of the file next to it that holds the speech, if the runner has made it.
        #[serde(default)]
        audio: Option<String>,
    },
    ScheduleTask {
        prompt: String,
        #[serde(rename = "schedule_type")]
        kind: TaskKind,
        #[serde(rename = "schedule_value")]
        value: String,
        #[serde(rename = "context_mode", default)]
        context: Context,
        #[serde(default)]
        target_jid: Option<String>,
    },
    PauseTask {
        task_id: String,
    },
    ResumeTask {
        task_id: String,
    },
    CancelTask {
        task_id: String,
    },
    RefreshGroups {},
    RegisterGroup {
        jid: String,
        name: String,
        folder: String,
        #[serde(default)]
        trigger: Option<String>,
        #[serde(default)]
        requires_trigger: Option<bool>,
    },
}

/// Why a file has no effect.
enum Refusal {
    /// The runner has no right to it, or it makes no sense.
    Refused(String),
    /// The host cannot continue.
    Failed(HostError),
}

impl<E: Into<HostError>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

fn refused<T>(problem: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Refused(problem.into()))
}

impl<'a> RunnerFiles<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self { shared }
    }

    /// The directories of a group in which files appear. They are made if they are not there.
    pub(crate) fn directories(&self, folder: &Folder) -> Vec<PathBuf> {
        let base = self.shared.options.home.ipc(folder);
        DIRECTORIES
            .iter()
            .filter(|name| self.open(folder, &base, name).is_ok())
            .map(|name| base.join(name))
            .collect()
    }

    /// Does what the files of a group ask for, the oldest first. A group that makes its files unusable harms only itself.
    pub(crate) async fn attend(&self, folder: &Folder) -> Result<(), HostError> {
        let mut unusable = self.shared.unusable.lock().await;
        match self.attend_to_files(folder).await {
            Ok(()) => {
                unusable.remove(folder);
                Ok(())
            }
            Err(Refusal::Failed(error)) => Err(error),
            Err(Refusal::Refused(problem)) => {
                if unusable.insert(folder.clone()) {
                    self.shared
                        .say(&format!("the files of the group {folder} cannot be used: {problem}"));
                }
                Ok(())
            }
        }
    }

    async fn attend_to_files(&self, folder: &Folder) -> Result<(), Refusal> {
        let groups = self.shared.groups();
        let Some(group) = groups.of_folder(folder) else { return Ok(()) };
        let base = self.shared.options.home.ipc(folder);
        let unusable = |error: io::Error| Refusal::Refused(error.to_string());
        for name in DIRECTORIES {
            let directory = self.open(folder, &base, name).map_err(unusable)?;
            for file in json_files(&directory).map_err(unusable)? {
                match self.carry_out(group, &groups, &directory, &file).await {
                    Ok(()) => drop(directory.remove(&file).map_err(unusable)?),
                    Err(Refusal::Failed(error)) => return Err(Refusal::Failed(error)),
                    Err(Refusal::Refused(problem)) => {
                        self.move_aside(folder, &directory, &file).map_err(unusable)?;
                        self.shared.say(&format!(
                            "the file {name}/{file} of the group {folder} has no effect: {problem}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    fn open(&self, folder: &Folder, base: &Path, name: &str) -> io::Result<SharedDirectory> {
        let aside = self.shared.options.home.errors();
        open_or_replace(base, name, (&aside, folder.as_str()))
    }

    fn move_aside(
        &self,
        folder: &Folder,
        directory: &SharedDirectory,
        file: &str,
    ) -> io::Result<()> {
        let errors = self.shared.options.home.errors();
        if std::fs::read_dir(&errors)?.count() >= MAX_ASIDE && directory.remove(file).is_ok() {
            return Ok(());
        }
        let plain: String = file.chars().take(MAX_NAME).map(plain_sign).collect();
        directory.move_to(file, &SharedDirectory::open(&errors)?, format!("{folder}-{plain}"))?;
        Ok(())
    }

    async fn carry_out(
        &self,
        group: &Group,
        groups: &Groups,
        directory: &SharedDirectory,
        file: &str,
    ) -> Result<(), Refusal> {
        if file.len() > MAX_NAME || file.chars().any(|char| plain_sign(char) != char) {
            return refused("its name is too long, or has other signs than letters, digits, . _ -");
        }
        let bytes =
            directory.read(file, MAX_JSON_BYTES).or_else(|error| refused(error.to_string()))?;
        let request = from_json(&bytes).or_else(refused)?;
        // The same file gives the same id, so it has one effect if the host is killed before it is removed.
        // No folder has a dot in its name, so no group can make the id of another one's file.
        let id = format!("{}.{}", group.folder, file.strip_suffix(".json").unwrap_or(file));
        match request {
            Request::Message { chat_jid, text, is_question } => {
                self.send(group, groups, id, (chat_jid, text, OutboundKind::Message)).await?;
                if is_question {
                    let now = self.shared.ledger.next_ms();
                    self.shared.questions.lock().insert(group.folder.clone(), now);
                }
                Ok(())
            }
            Request::VoiceMessage { chat_jid, text, voice, audio } => {
                let audio = match audio {
                    Some(name) => self.take_audio(directory, &name, &id)?,
                    None => None,
                };
                let kind = OutboundKind::Voice { voice, audio };
                self.send(group, groups, id, (chat_jid, text, kind)).await
            }
            Request::ScheduleTask { prompt, kind, value, context, target_jid } => {
                let target = target_jid.unwrap_or_else(|| group.jid.clone());
                let folder = reachable(group, groups, &target)?.folder.clone();
                self.plan(id, task(folder, (prompt, kind, value), context)?).await
            }
            Request::PauseTask { task_id } => self.change(group, &task_id, TaskState::Paused).await,
            Request::ResumeTask { task_id } => {
                self.change(group, &task_id, TaskState::Active).await
            }
            Request::CancelTask { task_id } => {
                self.change(group, &task_id, TaskState::Completed).await
            }
            Request::RefreshGroups {} => {
                only_main(group)?;
                Ok(write_snapshots(self.shared, &group.folder).await?)
            }
            Request::RegisterGroup { jid, name, folder, trigger, requires_trigger } => {
                only_main(group)?;
                let folder = Folder::try_from(folder).or_else(refused)?;
                let listens = match requires_trigger {
                    Some(false) => Listens::All,
                    _ => Listens::Trigger,
                };
                let new = Group { jid, name, folder, trigger, listens, mounts: Vec::new() };
                self.register(groups, new)
            }
        }
    }

    fn register(&self, groups: &Groups, new: Group) -> Result<(), Refusal> {
        // Done before the host was killed: the file is still there.
        if groups.of_folder(&new.folder).is_some_and(|known| known.jid == new.jid) {
            return Ok(());
        }
        Groups::add(&self.shared.options.home, new).or_else(|error| refused(error.to_string()))
    }

    /// Moves the speech of a message to where it goes out, and gives its new name; `None` if there is no such file, so that
    /// the text is sent. A second call finds it there.
    fn take_audio(
        &self,
        directory: &SharedDirectory,
        name: &str,
        id: &str,
    ) -> Result<Option<String>, Refusal> {
        let ending = name.rsplit('.').next().unwrap_or_default();
        let is_usable = name.len() <= MAX_NAME
            && name.chars().all(|char| plain_sign(char) == char)
            && AUDIO_ENDINGS.contains(&ending);
        if !is_usable {
            return refused(format!(
                "its audio must be a file of the type {}",
                AUDIO_ENDINGS.join(", ")
            ));
        }
        let out = self.shared.options.home.channel().join("out");
        let new_name = format!("{id}.{ending}");
        let moved =
            SharedDirectory::open(&out).and_then(|out| directory.move_to(name, &out, &new_name));
        moved.map_err(|error| HostError::io("move a file to", &out, error))?;
        // The container may have put anything there. Now it cannot change what it is any more.
        let path = out.join(&new_name);
        match std::fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() && found.len() <= MAX_AUDIO => Ok(Some(new_name)),
            Ok(found) => {
                let gone = match found.is_dir() {
                    true => std::fs::remove_dir_all(&path),
                    false => std::fs::remove_file(&path),
                };
                gone.map_err(|error| HostError::io("remove", &path, error))?;
                refused(format!("its audio is no regular file of at most {MAX_AUDIO} bytes"))
            }
            Err(_) => Ok(None),
        }
    }

    async fn send(
        &self,
        group: &Group,
        groups: &Groups,
        id: String,
        (chat, text, kind): (String, String, OutboundKind),
    ) -> Result<(), Refusal> {
        let chat = reachable(group, groups, &chat)?.jid.clone();
        if text.trim().is_empty() {
            return refused("its text is empty");
        }
        // Before the part: if the host is killed in between, the file is still there.
        let query = self.shared.queries.lock().get(&group.folder).cloned();
        if let Some(query) = query {
            self.shared.ledger.note_spoke(&query).await?;
        }
        let outbound = Outbound { id, chat, kind, text, about: Vec::new() };
        self.shared.ledger.insert_part(&OutgoingPart { outbound }).await?;
        self.shared.has_parts();
        Ok(())
    }

    async fn plan(&self, id: String, task: Task) -> Result<(), Refusal> {
        if self.shared.ledger.tasks(&task.folder).await?.len() >= MAX_TASKS {
            return refused(format!(
                "the group {} has {MAX_TASKS} tasks; cancel some",
                task.folder
            ));
        }
        self.shared.ledger.insert_task(&id, &task).await?;
        self.shared.wake(&task.folder);
        Ok(write_snapshots(self.shared, &task.folder).await?)
    }

    async fn change(&self, group: &Group, id: &str, state: TaskState) -> Result<(), Refusal> {
        let ledger = &self.shared.ledger;
        let _guard = self.shared.tasks.lock().await;
        let unknown = || Refusal::Refused(format!("the group has no task {id:?}"));
        let is_key = !id.is_empty() && id.len() <= 2 * MAX_NAME;
        let found = if is_key { ledger.task(id).await? } else { None };
        // Whether another group has such a task is not said.
        let task = found
            .filter(|task| group.is_main() || task.row.folder == group.folder)
            .ok_or_else(unknown)?;
        let mut row = Task { state, ..task.row.clone() };
        if state == TaskState::Active {
            row.next_run = first_run(&row.schedule);
        }
        ledger.commit(vec![ledger.changed_task(&task, &row)?]).await?;
        self.shared.wake(&row.folder);
        Ok(write_snapshots(self.shared, &row.folder).await?)
    }
}

/// The group of a chat, if `by` may reach it: the main group reaches all, any other only itself.
fn reachable<'a>(by: &Group, groups: &'a Groups, chat: &str) -> Result<&'a Group, Refusal> {
    match groups.of_chat(chat) {
        Some(group) if by.is_main() || group.folder == by.folder => Ok(group),
        _ if by.is_main() => refused(format!("the chat {chat:?} belongs to no group")),
        _ => refused(format!("the group {} may not reach the chat {chat:?}", by.folder)),
    }
}

/// A new task.
fn task(
    folder: Folder,
    (prompt, kind, value): (String, TaskKind, String),
    context: Context,
) -> Result<Task, Refusal> {
    if prompt.trim().is_empty() || prompt.len() > MAX_TEXT {
        return refused(format!("its prompt must have 1 to {MAX_TEXT} bytes"));
    }
    let schedule = schedule(kind, &value).or_else(refused)?;
    Ok(Task {
        folder,
        prompt,
        kind,
        value,
        next_run: first_run(&schedule),
        schedule,
        context,
        state: TaskState::Active,
        last_run: None,
        last_result: None,
    })
}

fn only_main(group: &Group) -> Result<(), Refusal> {
    if group.is_main() { Ok(()) } else { refused("only the main group may do that") }
}

fn plain_sign(char: char) -> char {
    if char.is_ascii_alphanumeric() || ".-_".contains(char) { char } else { '_' }
}

/// Writes what the agents of a group and of the main group see of tasks and groups.
pub(crate) async fn write_snapshots(shared: &Shared, folder: &Folder) -> Result<(), HostError> {
    let groups = shared.groups();
    let readers = groups.iter().filter(|group| group.folder == *folder || group.is_main());
    for reader in readers {
        let base = shared.options.home.ipc(&reader.folder);
        let tasks = snapshot(&shared.ledger, &groups, &reader.folder).await?;
        let write = |name: &str, content: serde_json::Value| {
            SharedDirectory::open(&base).and_then(|directory| {
                directory.write(name, content.to_string().as_bytes(), FOR_CONTAINER)
            })
        };
        let mut written = write("current_tasks.json", tasks.into());
        if reader.is_main() {
            let known = groups.iter().map(|group| {
                json!({"jid": group.jid, "name": group.name, "folder": group.folder, "isRegistered": true})
            });
            let strangers = shared
                .strangers()
                .into_iter()
                .map(|(jid, name)| json!({"jid": jid, "name": name, "isRegistered": false}));
            let list: Vec<_> = known.chain(strangers).collect();
            written = written.and(write("available_groups.json", list.into()));
        }
        if let Err(error) = written {
            // A container can put a directory there; then its own agent sees an old list.
            shared.say(&format!(
                "the lists for the group {} are not written: {error}",
                reader.folder
            ));
        }
    }
    Ok(())
}
