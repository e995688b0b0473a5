use std::sync::Mutex;
use std::time::Instant;

use myclaw_exec::EnvironmentPolicy;

use super::*;
use crate::BashTool;
use crate::jobs::{FileJobs, JobEnded, JobListener, JobStore, JobsOptions, MemoryJobs};
use crate::support::testing::{Workspace, text_of};

/// The messages that the agent gets.
#[derive(Default)]
struct Mailbox(Mutex<Vec<JobEnded>>);

impl JobListener for Mailbox {
    fn ended(&self, job: JobEnded) -> BoxFuture<'_, ()> {
        self.0.lock().unwrap().push(job);
        Box::pin(async {})
    }
}

/// As a process that starts now has it.
fn store(workspace: &Workspace) -> FileJobs {
    let base = workspace.base.clone();
    FileJobs::new(workspace.base.join("owners"), move |session| base.join(session))
}

/// The tools of one session in one process.
struct Session {
    bash: BashTool,
    process: ProcessTool,
    jobs: Arc<Jobs>,
    mail: Arc<Mailbox>,
}

impl Session {
    fn new(workspace: &Workspace, name: &str) -> Self {
        Self::yielding_after(workspace, name, None)
    }

    fn yielding_after(workspace: &Workspace, name: &str, yield_after: Option<Duration>) -> Self {
        Self::with_store(Arc::new(store(workspace)), name, yield_after)
    }

    fn with_store(store: Arc<dyn JobStore>, name: &str, yield_after: Option<Duration>) -> Self {
        let mail = Arc::new(Mailbox::default());
        let jobs = Jobs::new(JobsOptions {
            session: name.to_owned(),
            store,
            yield_after,
            listener: Arc::clone(&mail) as Arc<dyn JobListener>,
        });
        let bash = BashTool::with_jobs(Duration::from_secs(60), Arc::clone(&jobs));
        Self { bash, process: ProcessTool::new(Arc::clone(&jobs)), jobs, mail }
    }

    /// Starts a job and gives its id.
    async fn start(&self, workspace: &Workspace, mut arguments: Value) -> String {
        arguments["background"] = json!(true);
        let output = workspace.call(&self.bash, arguments).await.unwrap();
        assert!(!output.is_error, "{output:?}");
        output.details.unwrap()["jobId"].as_str().unwrap().to_owned()
    }

    async fn process(&self, workspace: &Workspace, arguments: Value) -> ToolOutput {
        workspace.call(&self.process, arguments).await.unwrap()
    }

    async fn process_text(&self, workspace: &Workspace, arguments: Value) -> String {
        text_of(&self.process(workspace, arguments).await)
    }

    fn mail(&self) -> Vec<String> {
        self.mail.0.lock().unwrap().iter().map(|job| job.text.clone()).collect()
    }

    async fn next_mail(&self, count: usize) -> Vec<String> {
        eventually("a message comes", || {
            let mail = self.mail();
            (mail.len() >= count).then_some(mail)
        })
        .await
    }
}

async fn eventually<T>(what: &str, condition: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited too long until {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn exists(workspace: &Workspace, name: &str) -> Option<()> {
    workspace.path(name).exists().then_some(())
}

#[tokio::test]
async fn a_background_job_is_shown_and_its_end_reported_once() {
    let workspace = Workspace::new(&[]);
    let session = Session::new(&workspace, "a");
    let command = "until [ -e begin ]; do sleep 0.01; done; echo first
        until [ -e go ]; do sleep 0.01; done; echo last; exit 3";
    let id = session.start(&workspace, json!({"command": command})).await;
    assert_eq!(id, "j1");
    let list = session.process_text(&workspace, json!({"action": "list"})).await;
    assert!(list.starts_with("j1: running for ") && list.contains(" (pid "), "{list}");
    workspace.write("begin", "");
    let poll = json!({"action": "poll", "id": id, "waitMs": 60_000});
    let first = session.process_text(&workspace, poll).await;
    assert!(first.starts_with("first\n[job j1: running for "), "{first}");
    workspace.write("go", "");
    let mail = session.next_mail(1).await;
    assert!(
        mail[0].starts_with(
            "[Message from MyClaw, not from the user: background job j1 is over: exit code 3 after "
        ),
        "{mail:?}"
    );
    assert!(mail[0].ends_with("\n| first\n| last"), "{mail:?}");
    let output = session.process(&workspace, json!({"action": "poll", "id": "j1"})).await;
    assert!(text_of(&output).starts_with("last\n[job j1: exit code 3 after "), "{output:?}");
    assert!(output.is_error);
    assert_eq!(output.details.unwrap()["exitCode"], 3);
    assert_eq!(session.mail().len(), 1);
}

#[tokio::test]
async fn an_end_that_a_poll_reports_causes_no_message() {
    let workspace = Workspace::new(&[]);
    let session = Session::new(&workspace, "a");
    let command = "until [ -e go ]; do sleep 0.01; done";
    let id = session.start(&workspace, json!({"command": command})).await;
    let wait = json!({"action": "poll", "id": id, "waitMs": 60_000});
    let poll = session.process_text(&workspace, wait);
    let go = async { workspace.write("go", "") };
    let (text, ()) = tokio::join!(poll, go);
    assert!(text.starts_with("(no new output)\n[job j1: exit code 0 after "), "{text}");
    assert_eq!(session.mail(), Vec::<String>::new());
}

#[tokio::test]
async fn a_long_command_becomes_a_job_and_keeps_its_output() {
    let workspace = Workspace::new(&[]);
    let session = Session::yielding_after(&workspace, "a", Some(Duration::from_millis(30)));
    let command = "echo one; until [ -e go ]; do sleep 0.01; done; echo two";
    // The first output is there before the yield on any machine only if the call waits for it.
    let output = workspace.call(&session.bash, json!({"command": command})).await.unwrap();
    let text = text_of(&output);
    assert!(text.contains("\n[background job j1: running for ") && !output.is_error, "{text}");
    workspace.write("go", "");
    session.next_mail(1).await;
    let log = session.process_text(&workspace, json!({"action": "log", "id": "j1"})).await;
    assert!(log.starts_with("one\ntwo\n[job j1: exit code 0 after "), "{log}");
    assert!(log.ends_with("; lines 1 to 2]"), "{log}");
    let quick =
        workspace.text(&session.bash, json!({"command": "echo x", "yieldMs": 60_000})).await;
    assert_eq!(quick, "x");
}

#[tokio::test]
async fn an_abort_ends_a_waiting_command_but_no_job() {
    let workspace = Workspace::new(&[]);
    let session = Session::new(&workspace, "a");
    let id = session.start(&workspace, json!({"command": "touch job; sleep 60"})).await;
    let call = workspace.call(&session.bash, json!({"command": "touch call; sleep 60"}));
    let abort = async {
        eventually("both run", || exists(&workspace, "job").and(exists(&workspace, "call"))).await;
        workspace.cancel.cancel();
    };
    let (result, ()) = tokio::join!(call, abort);
    assert!(matches!(result, Err(ToolError::Aborted(_))), "{result:?}");
    assert_eq!(session.jobs.running_count(), 1);
    let killed = session.jobs.kill(&id, Killer::User).await.unwrap();
    assert!(killed.state().starts_with("killed by the user after "), "{}", killed.state());
    assert!(session.next_mail(1).await[0].contains("killed by the user"));
}

#[tokio::test]
async fn other_sessions_neither_see_nor_reach_a_job() {
    let workspace = Workspace::new(&[]);
    let (owner, other) = (Session::new(&workspace, "a"), Session::new(&workspace, "b"));
    let id = owner.start(&workspace, json!({"command": "sleep 60"})).await;
    let list = other.process_text(&workspace, json!({"action": "list"})).await;
    assert!(list.starts_with("no background jobs"), "{list}");
    for action in
        ["poll", "log", "write", "send-keys", "paste", "submit", "kill", "clear", "remove"]
    {
        let call = json!({"action": action, "id": id, "data": "x", "keys": ["enter"]});
        let error = workspace.failure(&other.process, call).await;
        assert!(
            error.starts_with("there is no job \"j1\": this session has no "),
            "{action}: {error}"
        );
    }
    let error = workspace.failure(&owner.process, json!({"action": "poll", "id": "j9"})).await;
    assert!(
        error.starts_with("there is no job \"j9\" in this session; there are: j1 (running for"),
        "{error}"
    );
    assert_eq!(owner.jobs.running_count(), 1);
    owner.jobs.close().await;
}

#[tokio::test]
async fn a_job_reads_what_is_written() {
    let workspace = Workspace::new(&[]);
    let session = Session::new(&workspace, "a");
    let id = session.start(&workspace, json!({"command": "cat; echo bye"})).await;
    let write = json!({"action": "submit", "id": id, "data": "hello", "waitMs": 60_000});
    let text = session.process_text(&workspace, write).await;
    assert!(text.starts_with("hello\n[job j1: running"), "{text}");
    let keys = json!({"action": "send-keys", "id": id, "keys": ["enter"]});
    let error = workspace.failure(&session.process, keys).await;
    assert!(error.starts_with("job j1 has no terminal"), "{error}");
    let end = json!({"action": "write", "id": id, "data": "more", "eof": true, "waitMs": 60_000});
    session.process(&workspace, end).await;
    eventually("it ends", || (session.jobs.running_count() == 0).then_some(())).await;
    let log =
        session.process_text(&workspace, json!({"action": "log", "id": id, "offset": 2})).await;
    assert!(log.starts_with("morebye\n[job j1: exit code 0"), "{log}");
    let late = workspace
        .failure(&session.process, json!({"action": "write", "id": id, "data": "x"}))
        .await;
    assert!(
        late.starts_with("job j1 does not run any more, so it reads nothing: exit code 0"),
        "{late}"
    );
}

#[tokio::test]
async fn a_job_with_a_terminal_gets_keys_and_marked_pastes() {
    let workspace = Workspace::new(&[]);
    let session = Session::new(&workspace, "a");
    let command = "printf '\\033[?2004h'; stty -echo -icanon; echo $TERM; touch ready; head -c 17 | od -c | head -2; sleep 60";
    let id = session.start(&workspace, json!({"command": command, "pty": true})).await;
    eventually("it is ready", || exists(&workspace, "ready")).await;
    let shown = async || session.process_text(&workspace, json!({"action": "log", "id": id})).await;
    let deadline = Instant::now() + Duration::from_secs(60);
    // That pastes are marked is known when what was printed after it is in the log.
    while !shown().await.contains("xterm-256color") && Instant::now() < deadline {}
    session.process(&workspace, json!({"action": "paste", "id": id, "data": "a\nb"})).await;
    session
        .process(&workspace, json!({"action": "send-keys", "id": id, "keys": ["x", "enter"]}))
        .await;
    let text = loop {
        let text = shown().await;
        if text.contains("0000020") || Instant::now() > deadline {
            break text;
        }
    };
    assert!(text.contains("xterm-256color"), "{text}");
    assert!(
        text.contains("033   [   2   0   0   ~   a  \\n   b 033   [   2   0   1   ~   x"),
        "{text}"
    );
    let killed = session.process_text(&workspace, json!({"action": "kill", "id": id})).await;
    assert!(killed.contains("[job j1: killed after "), "{killed}");
    assert_eq!(session.mail(), Vec::<String>::new(), "the result of the kill says it");
}

#[tokio::test]
async fn removing_a_job_ends_its_whole_tree_and_its_files() {
    let workspace = Workspace::new(&[]);
    let session = Session::new(&workspace, "a");
    let command = "(setsid bash -c '(echo $BASHPID > daemon; exec sleep 60) & exit' </dev/null >/dev/null 2>&1 &)
        setsid bash -c 'echo $$ > escaped; sleep 60; true'; true";
    let id = session.start(&workspace, json!({"command": command})).await;
    let pid = |name: &str| -> Option<String> {
        Some(std::fs::read_to_string(workspace.path(name)).ok()?.strip_suffix('\n')?.to_owned())
    };
    let pids = eventually("all run", || Some([pid("daemon")?, pid("escaped")?])).await;
    let still = workspace.failure(&session.process, json!({"action": "clear", "id": id})).await;
    assert!(still.starts_with("job j1 is running for "), "{still}");
    let removed = session.process_text(&workspace, json!({"action": "remove", "id": id})).await;
    assert_eq!(removed, "removed job j1 and its output");
    for pid in pids {
        eventually("it is gone", || (!alive(&pid)).then_some(())).await;
    }
    assert_eq!(std::fs::read_dir(workspace.base.join("a")).unwrap().count(), 0);
    assert_eq!(session.mail(), Vec::<String>::new());
}

fn alive(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn jobs_end_with_their_session_without_messages() {
    let workspace = Workspace::new(&[]);
    let session = Session::new(&workspace, "a");
    session.start(&workspace, json!({"command": "sleep 0.5"})).await;
    session.next_mail(1).await;
    session.start(&workspace, json!({"command": "sleep 60"})).await;
    let ended = session.jobs.close().await;
    assert_eq!(ended.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["j2"]);
    let late =
        workspace.failure(&session.bash, json!({"command": "sleep 60", "background": true})).await;
    assert_eq!(late, "the session is being closed, so no background job can be started");
    assert_eq!(session.mail().len(), 1);
    // A later process knows the jobs by their records.
    let later = Session::new(&workspace, "a");
    let list = later.process_text(&workspace, json!({"action": "list"})).await;
    assert!(
        list.contains("j2: ended after ") && list.contains("because MyClaw closed its session"),
        "{list}"
    );
    let cleared = later.process_text(&workspace, json!({"action": "clear"})).await;
    assert_eq!(cleared, "removed 2 jobs that had ended, and their output");
}

#[tokio::test]
async fn jobs_in_memory_are_listed_ended_and_forgotten() {
    let workspace = Workspace::new(&[]);
    let store: Arc<dyn JobStore> = Arc::new(MemoryJobs::default());
    let session = Session::with_store(Arc::clone(&store), "a", None);
    let id = session.start(&workspace, json!({"command": "echo x; sleep 60"})).await;
    let later = Session::with_store(Arc::clone(&store), "a", None);
    let listed = async || later.process_text(&workspace, json!({"action": "list"})).await;
    assert!(listed().await.contains("j1: running for"), "{}", listed().await);
    let elsewhere = Session::with_store(store, "b", None);
    let none = elsewhere.process_text(&workspace, json!({"action": "list"})).await;
    assert!(!none.contains("j1"), "{none}");
    assert_eq!(session.jobs.kill(&id, Killer::User).await.unwrap().id, id);
    assert!(listed().await.contains("j1: killed by the user after"), "{}", listed().await);
    let cleared = later.process_text(&workspace, json!({"action": "clear"})).await;
    assert_eq!(cleared, "removed 1 job that had ended, and its output");
    assert!(!workspace.base.join("a").exists() && !workspace.base.join("owners").exists());
}

#[tokio::test]
async fn the_number_of_jobs_is_bounded() {
    let workspace = Workspace::new(&[]);
    let session = Session::new(&workspace, "a");
    for _ in 0..16 {
        session.start(&workspace, json!({"command": "sleep 60"})).await;
    }
    let call = json!({"command": "touch ran; sleep 60", "background": true});
    let error = workspace.failure(&session.bash, call).await;
    assert!(error.starts_with("16 background jobs run already in this session"), "{error}");
    // A command that is not asked to go on alone is waited for instead.
    let waited =
        workspace.text(&session.bash, json!({"command": "sleep 0.05; echo x", "yieldMs": 1})).await;
    assert_eq!(waited, "x");
    assert_eq!(session.jobs.close().await.len(), 16);
}

/// What a killed process leaves: a journal whose lock is free, a record without an end, and the processes.
#[tokio::test]
async fn what_a_killed_process_left_is_ended_and_reported_dead() {
    let workspace = Workspace::new(&[]);
    let session = Session::new(&workspace, "a");
    session.start(&workspace, json!({"command": "echo $$ > pid; sleep 60; true"})).await;
    let pid = eventually("it runs", || {
        Some(std::fs::read_to_string(workspace.path("pid")).ok()?.strip_suffix('\n')?.to_owned())
    })
    .await;
    let owners = workspace.base.join("owners");
    let next = store(&workspace);
    assert_eq!(next.end_leftovers().await, [], "its owner lives");
    assert!(alive(&pid));
    let other = Session::new(&workspace, "a");
    let listed = async || other.process_text(&workspace, json!({"action": "list"})).await;
    assert!(listed().await.contains("running for"), "{}", listed().await);
    free_the_lock(&owners);
    // Also for those who look before anybody has ended it.
    assert!(listed().await.contains("dead, exit unknown"), "{}", listed().await);
    let lost = next.end_leftovers().await;
    assert!(!alive(&pid));
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].id.as_str(), lost[0].session.as_str()), ("j1", "a"));
    // Here the job's process is alive after all, and has seen how the job ended.
    assert!(!lost[0].is_running());
    assert_eq!(next.end_leftovers().await, [], "once");
}

/// As the kernel does when the holder is killed.
fn free_the_lock(owners: &std::path::Path) {
    for entry in std::fs::read_dir(owners).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "lock") {
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[tokio::test]
async fn long_output_is_read_by_lines() {
    let workspace = Workspace::new(&[]);
    let session = Session::new(&workspace, "a");
    let id = session.start(&workspace, json!({"command": "seq 1 100000"})).await;
    session.next_mail(1).await;
    let log = async |arguments: Value| {
        let mut call = json!({"action": "log", "id": id});
        call.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        session.process_text(&workspace, call).await
    };
    let from_file = log(json!({"offset": 5, "limit": 2})).await;
    assert!(
        from_file.starts_with("5\n6\n[job j1: ")
            && from_file.ends_with("lines 5 to 6; go on with offset 7]"),
        "{from_file}"
    );
    let last = log(json!({"limit": 1})).await;
    assert!(last.starts_with("100000\n[") && last.ends_with("lines 100000 to 100000]"), "{last}");
    let late = log(json!({"offset": 99_999})).await;
    assert!(late.starts_with("99999\n100000\n["), "{late}");
    let beyond = log(json!({"offset": (1_u64 << 53) - 1, "limit": (1_u64 << 53) - 1})).await;
    assert!(beyond.contains("no output from line 9007199254740991 on]"), "{beyond}");
    let poll = session.process_text(&workspace, json!({"action": "poll", "id": id})).await;
    assert!(poll.starts_with("(no new output)"), "a log counts as seen: {poll}");
}

#[tokio::test]
async fn directory_and_variables_of_a_command() {
    let workspace = Workspace::new(&[("sub/x", "")]);
    let session = Session::new(&workspace, "a");
    let call = json!({"command": "pwd; echo $GREETING $N", "workdir": "sub", "env": {"GREETING": "hi", "N": 3}});
    let text = workspace.text(&session.bash, call).await;
    assert_eq!(text, format!("{}\nhi 3", workspace.path("sub").display()));
    for name in
        ["PATH", "LD_PRELOAD", "BASH_ENV", "BASH_FUNC_ls%%", "MYCLAW_PROCESS_TREE", "A=B", "", "1A"]
    {
        let call = json!({"command": "true", "env": {name: "x"}});
        let error = workspace.failure(&session.bash, call).await;
        assert!(
            error.starts_with(&format!("the variable {name:?} cannot be set by env: ")),
            "{error}"
        );
    }
    let missing =
        workspace.failure(&session.bash, json!({"command": "true", "workdir": "gone"})).await;
    assert!(missing.starts_with("cannot start in directory "), "{missing}");
}

#[tokio::test]
async fn a_job_that_cannot_be_started_is_an_error_at_once() {
    let workspace = Workspace::new(&[]);
    let session = Session::new(&workspace, "a");
    let bash = BashTool::with_jobs(Duration::from_secs(60), Arc::clone(&session.jobs))
        .with_environment(EnvironmentPolicy::empty().with("PATH", workspace.path("empty")));
    let error = workspace.failure(&bash, json!({"command": "true", "background": true})).await;
    assert!(error.starts_with("program bash was not found"), "{error}");
    let without = BashTool::new(Duration::from_secs(60));
    let error = workspace.failure(&without, json!({"command": "true", "background": true})).await;
    assert!(error.contains("`background`: not known here"), "{error}");
}

#[tokio::test]
async fn the_command_of_a_job_is_found_by_its_id_alone() {
    let workspace = Workspace::new(&[]);
    let session = Session::new(&workspace, "a");
    let id = session.start(&workspace, json!({"command": "cat > kept"})).await;
    let jobs = workspace.base.join("a");
    let command = |id: &str| session.jobs.command_of(id).map(|job| job.command);
    for spelling in [id.clone(), format!(" {id}\n")] {
        assert_eq!(command(&spelling).as_deref(), Some("cat > kept"), "{spelling:?}");
    }
    // A record that another id or a path would reach.
    std::fs::copy(jobs.join(format!("{id}.json")), workspace.base.join("j7.json")).unwrap();
    std::fs::copy(jobs.join(format!("{id}.json")), jobs.join("jx.json")).unwrap();
    for other in ["", "j", "j99", "jx", "1", "J1", "../j7", "j1/../../j7", "j1.json", "j1\0", "j-1"]
    {
        assert_eq!(command(other), None, "{other:?}");
    }
    std::fs::write(jobs.join("j5.json"), "{\"id\": \"j5\"").unwrap();
    assert_eq!(command("j5"), None, "a record that was cut short");
    session.jobs.close().await;
    assert_eq!(command(&id).as_deref(), Some("cat > kept"), "after its end");
}
