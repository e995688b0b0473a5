//! One reading of a call: whatever a model sends, the call is refused, or the tool does what its subject says.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use myclaw_engine::{PreparedCall, TargetAccess, Tool, ToolInvocation};
use myclaw_exec::{ChildSpec, Here, Link, OutputPiece, Runner, Running};
use myclaw_llm::joined_text;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::testing::Workspace;
use crate::{CommandPlace, ToolOptions, builtin_tools};

/// What ran: the command, its directory, and its variables.
type Ran = (String, PathBuf, BTreeMap<String, String>);

/// Runs commands, and records them.
#[derive(Default)]
struct Recorder(Mutex<Vec<Ran>>);

impl Runner for Recorder {
    fn run<'a>(
        &'a self,
        mut spec: ChildSpec,
        link: Link,
        cancel: &'a CancellationToken,
        on_output: &'a mut (dyn FnMut(OutputPiece<'_>) + Send),
    ) -> Running<'a> {
        let text = |text: &std::ffi::OsStr| text.to_str().unwrap().to_owned();
        let environment =
            spec.environment.iter().map(|(name, value)| (text(name), text(value))).collect();
        let ran = (text(&spec.args[1]), spec.directory.clone(), environment);
        self.0.lock().unwrap().push(ran);
        // A sandbox has variables of its own.
        let path = std::env::var_os("PATH").unwrap_or_default();
        spec.environment = spec.environment.with("PATH", path);
        Here.run(spec, link, cancel, on_output)
    }
}

/// Choices that a seed repeats (xorshift64).
struct Choices(u64);

impl Choices {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.next(list.len())]
    }
}

const PATHS: [&str; 10] =
    ["a", "sub/b", "link", "sub/../a", "./sub", "../outside", "linked/b", ".", "new/c", "@a"];
const COMMANDS: [&str; 4] = ["true", "echo a", "pwd; echo b >&2", "test -f a"];

/// A value for the argument of that name, often of the wrong kind.
fn value(name: &str, choices: &mut Choices) -> Value {
    if choices.next(12) == 0 {
        return choices
            .of(&[json!(null), json!(7), json!(["a"]), json!({"x": "y"}), json!(true)])
            .clone();
    }
    match name {
        "path" | "workdir" => json!(choices.of(&PATHS)),
        "command" => json!(choices.of(&COMMANDS)),
        "env" => choices
            .of(&[json!({"A": "1"}), json!({"B": 2, "A": "x"}), json!({}), json!({"PATH": "."})])
            .clone(),
        "pattern" => json!(choices.of(&["*", "../*", "TOKEN", "sub/*", "~/x*"])),
        "content" | "newText" => json!(choices.of(&["one", "two\n"])),
        "oldText" => json!(choices.of(&["TOKEN", "nothing"])),
        "patch" => {
            let (from, to) = (choices.of(&PATHS), choices.of(&PATHS));
            json!(choices.of(&[
                format!("*** Begin Patch\n*** Add File: {to}\n+x\n*** End Patch"),
                format!("*** Begin Patch\n*** Delete File: {from}\n*** End Patch"),
                format!("--- a/{from}\n+++ b/{to}\n@@ -1 +1 @@\n-TOKEN-a\n+two\n"),
                format!("diff --git a/{from} b/{to}\nrename from {from}\nrename to {to}\n"),
            ]))
        }
        "timeout" | "limit" | "startLine" | "endLine" | "context" => json!(choices.next(3)),
        _ => json!(choices.of(&["true", "x"])),
    }
}

/// The text of a call: names of the schema, other names, unknown names, and names that come twice.
fn arguments(tool: &dyn Tool, choices: &mut Choices) -> String {
    let own: Vec<&str> = tool.schema().parameters["properties"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let required = tool.schema().parameters["required"].as_array().cloned().unwrap_or_default();
    let mut names: Vec<String> =
        required.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    for _ in 0..choices.next(4) {
        names.push((*choices.of(&own)).to_owned());
    }
    let aliases = tool.aliases().arguments;
    if choices.next(3) == 0 {
        names.push(choices.of(aliases).0.to_owned());
    }
    if choices.next(6) == 0 {
        names.push(
            (*choices.of(&["command", "path", "directory", "Path", "command ", "x"])).to_owned(),
        );
    }
    let fields: Vec<String> = names
        .iter()
        .map(|name| {
            let own =
                aliases.iter().find(|(alias, _)| alias == name).map_or(name.as_str(), |it| it.1);
            let value = value(own, choices);
            // Under another name, where there is one.
            let others: Vec<&str> =
                aliases.iter().filter(|(_, to)| to == name).map(|(alias, _)| *alias).collect();
            let name = match others.is_empty() || choices.next(3) > 0 {
                true => name.as_str(),
                false => *choices.of(&others),
            };
            format!("{}: {value}", json!(name))
        })
        .collect();
    format!("{{{}}}", fields.join(", "))
}

/// A working directory next to another one, with links between them. Each file holds a word that names it.
fn workspace() -> Workspace {
    let workspace =
        Workspace::new(&[("a", "TOKEN-a\n"), ("sub/b", "TOKEN-b\n"), ("@x", "TOKEN-x\n")]);
    fs::write(workspace.base.join("outside"), "TOKEN-outside\n").unwrap();
    symlink("../outside", workspace.path("link")).unwrap();
    symlink("sub", workspace.path("linked")).unwrap();
    workspace
}

/// Every file of the place with its content.
fn files(workspace: &Workspace) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![workspace.base.clone()];
    while let Some(at) = waiting.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.starts_with(workspace.base.join("artifacts")) || path.is_symlink() {
                continue;
            }
            match path.is_dir() {
                true => waiting.push(path),
                false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
            }
        }
    }
    found
}

/// Makes a call and compares what it did with its subject.
async fn check(workspace: &Workspace, tool: &dyn Tool, recorder: &Recorder, text: &str) -> bool {
    let given: Map<String, Value> = serde_json::from_str(text).unwrap();
    let Ok(call) = PreparedCall::new(tool, "call_1", given.clone(), &workspace.context) else {
        return false;
    };
    let before = files(workspace);
    let (context, cancel) = (&workspace.context, workspace.cancel.clone());
    let invocation = ToolInvocation { call: &call, on_update: &|_| {}, context, cancel };
    let outcome = tool.execute(invocation).await;
    let judged: Vec<Ran> = call
        .subject
        .commands()
        .map(|it| (it.command.clone(), it.directory.clone(), it.environment.clone()))
        .collect();
    let ran = std::mem::take(&mut *recorder.0.lock().unwrap());
    assert!(ran.is_empty() || ran == judged, "{text}: {ran:?} {judged:?}");
    let after = files(workspace);
    let may_change = |path: &PathBuf| {
        let changes = [TargetAccess::Write, TargetAccess::Delete];
        call.subject.targets().any(|it| it.path == *path && changes.contains(&it.access))
    };
    for path in
        before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path))
    {
        assert!(may_change(path), "{text}: {path:?} {:?}", call.subject);
    }
    let shown = outcome.map(|output| joined_text(&output.content, "\n")).unwrap_or_default();
    for (path, content) in &before {
        let word = String::from_utf8_lossy(content).trim().to_owned();
        let may_read = call.subject.targets().any(|it| path.starts_with(&it.path));
        assert!(
            may_read || call.subject.commands().next().is_some() || !shown.contains(&word),
            "{text}: {path:?} {:?} {shown}",
            call.subject
        );
    }
    // Everything that was given is shown.
    let facts =
        call.subject.facts.iter().map(|fact| fact.text.as_str()).collect::<Vec<_>>().join("\n");
    for name in ["command", "content", "pattern", "newText"] {
        if let Some(text) = call.arguments[name].as_str() {
            assert!(facts.contains(text), "{text}: {facts}");
        }
    }
    true
}

/// The tools of a session in the workspace, whose commands are recorded.
fn tools(workspace: &Workspace, recorder: &Arc<Recorder>) -> Vec<Arc<dyn Tool>> {
    builtin_tools(ToolOptions {
        command_timeout: Duration::from_secs(60),
        jobs: None,
        commands: CommandPlace::Sandbox {
            runner: Arc::clone(recorder) as Arc<dyn Runner>,
            workspace: workspace.context.working_directory.clone(),
            artifacts: workspace.context.artifact_directory.clone(),
        },
        memory: None,
    })
}

#[tokio::test]
async fn a_call_does_what_its_subject_says_or_is_refused() {
    /// Enough that each tool makes some hundred calls.
    const ROUNDS: usize = 300;
    let recorder = Arc::new(Recorder::default());
    let mut choices = Choices(0x5eed_0fca_1100);
    let mut made = BTreeMap::new();
    for _ in 0..ROUNDS {
        for at in 0.. {
            let workspace = workspace();
            let tools = tools(&workspace, &recorder);
            let Some(tool) = tools.get(at) else { break };
            let text = arguments(&**tool, &mut choices);
            let is_made = check(&workspace, &**tool, &recorder, &text).await;
            *made.entry(tool.schema().name.clone()).or_insert(0) += usize::from(is_made);
        }
    }
    assert!(made.values().all(|count| *count > ROUNDS / 10), "{made:?}");
}

#[tokio::test]
async fn the_table_of_declarations_says_what_the_tools_say() {
    let workspace = workspace();
    for tool in tools(&workspace, &Arc::default()) {
        let known = crate::DECLARATIONS.iter().find(|(name, _)| *name == tool.schema().name);
        assert_eq!(known.map(|known| known.1), Some(tool.declaration()), "{}", tool.schema().name);
    }
}

#[tokio::test]
async fn a_link_that_changes_after_the_judgement_leads_nowhere() {
    for (name, arguments) in [
        ("read", json!({"path": "link"})),
        ("ls", json!({"path": "linked"})),
        ("write", json!({"path": "link", "content": "x"})),
        ("edit", json!({"path": "link", "oldText": "TOKEN", "newText": "x"})),
        ("grep", json!({"path": "linked", "pattern": "TOKEN"})),
        ("find", json!({"path": "linked", "pattern": "*"})),
        (
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Update File: inner\n@@\n-TOKEN-a\n+x\n*** End Patch"}),
        ),
        ("bash", json!({"command": "pwd", "workdir": "linked"})),
    ] {
        let workspace = workspace();
        symlink("a", workspace.path("inner")).unwrap();
        workspace.write("other/b", "TOKEN-a\n");
        workspace.write("a2", "TOKEN-a\n");
        let tools = tools(&workspace, &Arc::default());
        let tool = tools.iter().find(|tool| tool.schema().name == name).unwrap();
        let given = arguments.as_object().unwrap().clone();
        let call = PreparedCall::new(&**tool, "call_1", given, &workspace.context).unwrap();
        for (link, to) in [("link", "sub/b"), ("linked", "other"), ("inner", "a2")] {
            fs::remove_file(workspace.path(link)).unwrap();
            symlink(to, workspace.path(link)).unwrap();
        }
        let before = files(&workspace);
        let (context, cancel) = (&workspace.context, workspace.cancel.clone());
        let invocation = ToolInvocation { call: &call, on_update: &|_| {}, context, cancel };
        let outcome = tool.execute(invocation).await;
        assert_eq!(files(&workspace), before, "{name}");
        match name {
            // It runs where it was judged.
            "bash" => {
                let text = joined_text(&outcome.unwrap().content, "");
                assert_eq!(text, workspace.path("sub").display().to_string());
            }
            _ => {
                let error = outcome.unwrap_err().to_string();
                assert!(
                    error.contains("led somewhere else when the call was checked"),
                    "{name}: {error}"
                );
            }
        }
    }
}
