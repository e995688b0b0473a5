//! The page, in a real browser.
//!
//! `tests/third-party/web-ui.mjs` drives Chromium, and `web-ui-firefox.mjs` Firefox through what one does in a day. `MYCLAW_PLAYWRIGHT` and `MYCLAW_AXE` name the directories of two
//! installed packages; `scripts/test` installs them and sets the variables. Without them these tests say that they were
//! skipped. `MYCLAW_SCREENSHOTS` names a directory for pictures of what was seen.

use std::path::Path;
use std::process::Command;

use base64::prelude::{BASE64_STANDARD, Engine as _};

use super::*;
use parking_lot::{Mutex, MutexGuard};

/// Longest time of one script in the browser.
const SCRIPT_TIME: Duration = Duration::from_secs(240);

/// Held by the test that uses a browser.
static TURN: Mutex<()> = Mutex::new(());

/// What a hostile page would put into a model's mouth. `{port}` is where the test listens.
const ATTACK: &str = r#"Look:
<script>window.hacked = 1</script>
<img src=x onerror="window.hacked = 2">
<svg onload="window.hacked = 3"></svg>
<iframe src="http://127.0.0.1:{port}/frame"></iframe>
<style>body { background: url(http://127.0.0.1:{port}/style) }</style>
<form action="http://127.0.0.1:{port}/form"><input name="token"><button>Go</button></form>
<a href="javascript:window.hacked = 4">script</a>
<img src="http://127.0.0.1:{port}/raw.png">
<div style="position:fixed;inset:0" class="ask" id="app">cover</div>
<link rel="stylesheet" href="http://127.0.0.1:{port}/sheet.css"><meta http-equiv="refresh" content="0;url=http://127.0.0.1:{port}/meta">

[link](javascript:window.hacked=5) [data](data:text/html,<script>window.hacked=6</script>)
![remote](http://127.0.0.1:{port}/picture.png)

<math><mtext><img src=x onerror="window.hacked = 7"></mtext></math>
The end."#;

/// A drawing that tries to do more than to be seen. `{port}` is where the test listens.
const DRAWING: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20" onload="parent.hacked = 1">
<script>parent.hacked = 2; fetch("http://127.0.0.1:{port}/fetch")</script>
<image width="9" height="9" href="http://127.0.0.1:{port}/inside.png"/><rect width="30" height="20"/></svg>"#;

/// An answer with code.
const CODE: &str = "Like this:\n\n```sh\necho from-a-block # <b>\n```\n\n```unknown\nif 1\n```";

/// Formulas, amounts of money that are none, and some that are wrong or want more than to be seen.
const FORMULAS: &str = r"Inline $E = mc^2$ and \(a_1 + b\); it costs $5 and $10, or $5–$10, in $HOME and $PATH, \$x\$, `$a$`.

$$
\int_0^\infty e^{-x^2}\,dx = \frac{\sqrt{\pi}}{2}
$$

\[ \begin{pmatrix} a & b \\ c & d \end{pmatrix} \]

```math
a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q+r+s+t+u+v+w+x+y+z+a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q+r+s+t+u+v+w+x+y+z
```

Wrong: $\frac{1}{$, $\href{javascript:window.hacked=1}{x}$, $\includegraphics{http://127.0.0.1/x.png}$,
$\def\a{\a\a}\a$, $\style{position:fixed}{x}$. The end.";

/// Two diagrams that can be drawn, one of them an attack, and one with a mistake. `{port}` is where the test listens.
const DIAGRAMS: &str = r#"```mermaid
%%{init: {"securityLevel": "loose", "htmlLabels": true, "fontFamily": "x;background:url(http://127.0.0.1:{port}/font)"}}%%
flowchart LR
  A["<img src=http://127.0.0.1:{port}/label.png onerror=parent.hacked=1>Begin"] -->|yes| B{{Is it?}}
  click A href "javascript:parent.hacked=2"
  click B call alert(1)
  style A fill:#eee
```

```mermaid
sequenceDiagram
  Alice->>Bob: Hello <script>parent.hacked=3</script>
```

```mermaid
this is none
```

"#;

/// Messages that are answered with a text.
const TEXTS: [(&str, &str); 6] = [
    ("please sketch", "```mermaid\nflowchart LR\n  A[Begin] --> B{Is it?}\n```\n\nA sketch."),
    ("please show formulas", FORMULAS),
    ("please show code", CODE),
    ("please send pages", "MEDIA: page.html\nMEDIA: page.pdf"),
    ("please send drawings", "MEDIA: drawing.svg"),
    ("please send files", "Here they are.\nMEDIA: chart.png\nMEDIA: report.txt"),
];

/// Answers messages that ask for a call of a built-in tool.
fn called(last: &str, call: &str) -> Option<Step> {
    let reply = Reply::anthropic();
    if last.contains("please plan") {
        let steps = json!([
            {"text": "look around", "status": "completed"},
            {"text": "dig", "status": "in_progress"},
            {"text": "plant", "status": "pending"},
        ]);
        return Some(reply.tool_call(call, "update_plan", json!({"steps": steps})).step());
    }
    if last.contains("please remind") {
        // The script says when it is due.
        let job = json!({"schedule": {"at": "1h"}, "message": "water the tomatoes"});
        return Some(reply.tool_call(call, "cron", json!({"action": "add", "job": job})).step());
    }
    if last.contains("please write much") {
        let content: String = (1..=60).map(|line| format!("line {line}\n")).collect();
        let arguments = json!({"path": "much.md", "content": content});
        return Some(reply.tool_call(call, "write", arguments).step());
    }
    if last.contains("please run") {
        let arguments = json!({"command": "echo from-the-tool"});
        return Some(reply.text("I look.").tool_call(call, "bash", arguments).step());
    }
    if last.contains("please write") {
        let arguments = json!({"path": "notes.md", "content": "first line\nsecond line\n"});
        return Some(reply.text("I write.").tool_call(call, "write", arguments).step());
    }
    None
}

/// Answers messages that ask for a picture, where the answer waits for the script, and results of calls.
fn painted(last: &str, call: &str, gate: &Gate) -> Option<Step> {
    let reply = Reply::anthropic();
    if last.contains("please paint") {
        return Some(reply.tool_call(call, "image_generate", json!({"prompt": "a door"})).step());
    }
    if last.contains("by painter/p") {
        return Some(reply.tool_call(call, "bash", json!({"command": "echo the-picture"})).step());
    }
    if last.contains("the-picture") {
        return Some(reply.text("A door.").step().hold_after(10, gate));
    }
    last.contains("tool_result").then(|| reply.text("The tool **is done**.").step())
}

/// Answers by what the last message asks for.
fn answer(request: &RecordedRequest, number: usize, stranger: u16, gate: &Gate) -> Step {
    let last = json!(request.messages().last()).to_string();
    let reply = Reply::anthropic();
    let call = format!("call_{number}");
    let slow = Duration::from_millis(60);
    if request.header("x-api-key") == Some("wrong-key") {
        return Step::status(
            401,
            &[],
            r#"{"type":"error","error":{"type":"authentication_error","message":"no"}}"#,
        );
    }
    if last.contains("please run twice")
        || last.contains("tool_result") && last.contains("the-first")
    {
        let which = if last.contains("tool_result") { "the-second" } else { "the-first" };
        let arguments = json!({"command": format!("echo {which}")});
        return reply.tool_call(&call, "bash", arguments).step();
    }
    if let Some(step) = painted(&last, &call, gate) {
        return step;
    }
    if last.contains("[Scheduled message") && last.contains("water the tomatoes") {
        return reply.text("It is time to water.").step();
    }
    if last.contains("please stream") {
        let text = "# A heading\n\nSome *streamed* words with `code`:\n\n```rust\nfn main() {}\n```\n\n\
                    | a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n- two\n\nAnd the last word.";
        let reply = reply.thinking("Let me think about that.", "signed").text(text);
        // The second half of the text comes when the first was seen.
        return reply.in_deltas(40).step().hold_after(3_000, gate);
    }
    if last.contains("please take long") {
        let reply = reply.repeated_text("word ", 5_000);
        return reply.step().event_by_event().pause(slow);
    }
    if let Some(step) = called(&last, &call) {
        return step;
    }
    if let Some((_, text)) = TEXTS.iter().find(|(asked, _)| last.contains(asked)) {
        return reply.text(*text).step();
    }
    if last.contains("please fill in") {
        let question = json!({"message": "How many?", "requestedSchema": {
            "type": "object", "required": ["count"],
            "properties": {"count": {"type": "integer", "minimum": 1, "maximum": 5}},
        }});
        let arguments = json!({"text": question.to_string()});
        return reply.tool_call(&call, "faults__ask", arguments).step();
    }
    if last.contains("please tabulate") {
        let row = "| international | organisation | of | standards | 1234567890 | everywhere |\n";
        return reply.text(format!("{row}|---|---|---|---|---|---|\n{row}\nThat is all.")).step();
    }
    if last.contains("please draw") {
        let edges: String =
            (0..10_000).map(|node| format!("  n{node} --> n{}\n", node + 1)).collect();
        let many: String =
            (0..400).map(|node| format!("  m{node} --> m{}\n", node * 7 % 399)).collect();
        let large =
            format!("```mermaid\nflowchart LR\n{edges}```\n\n```mermaid\nflowchart LR\n{many}```");
        let diagrams = DIAGRAMS.replace("{port}", &stranger.to_string());
        return reply.text(format!("{diagrams}{large}\n\nThat is all.")).step();
    }
    if last.contains("please attack") {
        return reply.text(ATTACK.replace("{port}", &stranger.to_string())).step();
    }
    if last.contains("please fail") && !last.contains("hello again") {
        let body =
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"no such luck"}}"#;
        return Step::status(400, &[], body);
    }
    let files = last.matches("[the file").count();
    if files > 0 {
        return reply.text(format!("I have {files} files.")).step();
    }
    if last.contains("image/png") {
        return reply.text("I see a picture.").step();
    }
    reply.text("Good morning.").step()
}

/// A gateway whose model does what the page's tests ask for, and a stranger that must hear nothing.
struct Page {
    /// One browser at a time: with many at once, a small machine is too slow to show an answer as it arrives.
    _turn: MutexGuard<'static, ()>,
    bench: Bench,
    stranger: TcpListener,
    /// Holds the end of the answer to "please stream".
    gate: Gate,
}

impl Page {
    fn new() -> Self {
        let turn = TURN.lock();
        let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
        stranger.set_nonblocking(true).unwrap();
        let port = stranger.local_addr().unwrap().port();
        let gate = Gate::closed();
        let held = gate.clone();
        let bench = Bench::new(shared(move |request, number| answer(request, number, port, &held)));
        bench.configure(|config| config["tools"] = json!({"ask": ["write"]}));
        Self { _turn: turn, bench, stranger, gate }
    }

    /// Runs a part of the script; false if the browser is not there.
    fn script(&self, scenario: &str, gateway: &Gateway) -> bool {
        self.script_with(scenario, gateway, &[])
    }

    /// The same with variables of its own.
    fn script_with(&self, scenario: &str, gateway: &Gateway, variables: &[(&str, &str)]) -> bool {
        let Some(script) = self.begin(scenario, gateway, variables) else { return false };
        let output = script.wait(SCRIPT_TIME);
        println!("{}", output.stdout());
        output.assert_code(0);
        true
    }

    /// Starts a part of the script; `None` if the browser is not there.
    fn begin_script(&self, scenario: &str, gateway: &Gateway) -> Option<RunningChild> {
        self.begin(scenario, gateway, &[])
    }

    fn begin(
        &self,
        scenario: &str,
        gateway: &Gateway,
        variables: &[(&str, &str)],
    ) -> Option<RunningChild> {
        let package = |name: &str| std::env::var_os(name);
        let (Some(playwright), Some(axe)) = (package("MYCLAW_PLAYWRIGHT"), package("MYCLAW_AXE"))
        else {
            myclaw_testkit::skip_without(
                "MYCLAW_PLAYWRIGHT or MYCLAW_AXE is not set; scripts/test sets them",
            );
            return None;
        };
        // Scenarios that begin so are in a script of their own.
        let name = match scenario.starts_with("firefox") {
            true => "web-ui-firefox.mjs",
            false => "web-ui.mjs",
        };
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/third-party").join(name);
        let mut command = Command::new("node");
        command.arg(script).arg(scenario);
        command.env("PLAYWRIGHT", playwright).env("AXE", axe);
        command.env("GATEWAY", format!("http://127.0.0.1:{}", self.bench.port));
        command.env("TOKEN", &gateway.client.token).env("MODEL", self.bench.model.url());
        command.env("STRANGER", self.stranger.local_addr().unwrap().port().to_string());
        command.envs(variables.iter().copied());
        Some(RunningChild::spawn(&mut command))
    }

    /// Nobody spoke to the stranger.
    fn assert_nothing_left(&self) {
        let error = self.stranger.accept().expect_err("something was sent to another server");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}

#[test]
fn the_page_signs_in_and_shows_a_chat_as_it_happens() {
    let page = Page::new();
    let gateway = page.bench.start();
    if let Some(script) = page.begin_script("chat", &gateway) {
        script.wait_for_stdout("the beginning is seen");
        page.gate.open();
        script.wait(SCRIPT_TIME).assert_code(0);
    }
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_loads_little_before_the_first_message() {
    let page = Page::new();
    let gateway = page.bench.start();
    page.script("budget", &gateway);
    gateway.stop();
}

#[test]
fn the_page_signs_in_with_a_link_once() {
    let page = Page::new();
    let gateway = page.bench.start();
    page.script("link", &gateway);
    gateway.stop();
}

#[test]
fn the_page_shows_each_call_once_when_the_log_is_ahead_of_the_events() {
    let page = Page::new();
    let gateway = page.bench.start();
    page.script("late", &gateway);
    gateway.stop();
}

#[test]
fn the_page_stops_and_steers() {
    let page = Page::new();
    let gateway = page.bench.start();
    page.script("steer", &gateway);
    gateway.stop();
}

#[test]
fn the_page_obeys_commands_and_shows_each_error_once() {
    let page = Page::new();
    let gateway = page.bench.start();
    if page.script("commands", &gateway) {
        let asked: Vec<_> =
            page.bench.model.requests().iter().map(|request| request.body_text()).collect();
        assert_eq!(asked.len(), 5, "{asked:?}");
        for command in ["/new", "/stop", "/status", "/help"] {
            assert!(
                !asked.iter().any(|body| body.contains(&format!("\"{command}\""))),
                "{command}"
            );
        }
    }
    gateway.stop();
}

#[test]
fn the_page_sends_once_what_was_written_while_the_gateway_was_away() {
    let page = Page::new();
    let gateway = page.bench.start();
    let Some(script) = page.begin_script("restart", &gateway) else { return };
    script.wait_for_stdout("stop the gateway");
    gateway.kill();
    script.wait_for_stdout("start the gateway");
    let gateway = page.bench.start();
    script.wait(SCRIPT_TIME).assert_code(0);
    gateway.stop();
    assert_eq!(
        page.bench.said("main"),
        ["hello", "Good morning.", "still there?", "Good morning."]
    );
}

#[test]
fn the_page_asks_for_approvals_also_after_a_restart() {
    let page = Page::new();
    let gateway = page.bench.start();
    let notes = page.bench.home.workspace().join("notes.md");
    if page.script("approvals", &gateway) {
        assert_eq!(std::fs::read_to_string(&notes).unwrap(), "first line\nsecond line\n");
    }
    std::fs::remove_file(&notes).ok();
    if page.script("approval-before-restart", &gateway) {
        gateway.kill();
        let gateway = page.bench.start();
        page.script("approval-after-restart", &gateway);
        assert_eq!(std::fs::read_to_string(&notes).unwrap(), "first line\nsecond line\n");
        gateway.stop();
    }
}

#[test]
fn the_page_renames_forks_exports_and_deletes_sessions() {
    let page = Page::new();
    let gateway = page.bench.start();
    page.script("sessions", &gateway);
    gateway.stop();
}

#[test]
fn the_page_copies_asks_again_and_switches_between_branches() {
    let page = Page::new();
    let gateway = page.bench.start();
    if page.script("branches", &gateway) {
        let hello = ["hello tomatoes", "Good morning."];
        assert_eq!(page.bench.said("garden"), [hello, ["please show code", CODE]].concat());
        let beans = ["hello beans", "Good morning."];
        // A fork has what was said before in common with the other, and not in its own log.
        assert_eq!(page.bench.said("garden-2"), beans);
        assert_eq!(page.bench.said("garden-3"), hello);
    }
    gateway.stop();
}

#[test]
fn the_page_chooses_models_and_shows_plans_and_changes() {
    let page = Page::new();
    page.bench.configure(|config| {
        config["tools"] = json!({"ask": ["write"]});
        config["models"] = json!({"favorites": ["anthropic/claude-opus-4-6"]});
    });
    let gateway = page.bench.start();
    if page.script("work", &gateway) {
        let requests = page.bench.model.requests();
        let models: Vec<String> = requests.iter().map(|one| model_of(one)).collect();
        assert_eq!(models.last().unwrap(), "claude-opus-4-6", "{models:?}");
        assert_ne!(models[0], "claude-opus-4-6");
    }
    gateway.stop();
}

#[test]
fn the_page_pins_archives_and_deletes_many_sessions() {
    let page = Page::new();
    let gateway = page.bench.start();
    for session in ["one", "two", "three", "four"] {
        let id = gateway.client.send(session, session, &format!("hello from {session}")).unwrap();
        gateway.client.outcome(&id).unwrap();
    }
    page.script("archive", &gateway);
    gateway.stop();
}

#[test]
fn the_page_shows_wide_tables_on_a_phone() {
    let page = Page::new();
    let gateway = page.bench.start();
    page.script("tables", &gateway);
    gateway.stop();
}

#[test]
fn the_page_shows_the_files_of_an_answer() {
    let page = Page::new();
    page.bench.home.write_in_workspace("chart.png", include_bytes!("../data/pixel.png"));
    page.bench.home.write_in_workspace("report.txt", "the report\n");
    let port = page.stranger.local_addr().unwrap().port().to_string();
    page.bench.home.write_in_workspace("drawing.svg", DRAWING.replace("{port}", &port));
    let gateway = page.bench.start();
    page.script("files", &gateway);
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_shows_pictures_that_were_made() {
    let page = Page::new();
    let pixel = BASE64_STANDARD.encode(include_bytes!("../data/pixel.png"));
    let made = json!({"data": [{"b64_json": pixel}]}).to_string();
    let made = Step::status(200, &[("content-type", "application/json")], made);
    let painter = ModelServer::spawn_blocking_thread(Script::from([made]).answer_every_route());
    page.bench.unconfined(|config| {
        config["models"]["providers"]["painter"] = json!({
            "baseUrl": painter.url(), "api": "openai-completions", "apiKey": "the-secret-key",
            "models": [{"id": "p", "contextWindow": 200_000}],
        });
        config["agents"]["defaults"]["imageGenerationModel"] = json!("painter/p");
    });
    let gateway = page.bench.start();
    if let Some(script) = page.begin_script("pictures", &gateway) {
        script.wait_for_stdout("the name is seen");
        page.gate.open();
        script.wait(SCRIPT_TIME).assert_code(0);
    }
    gateway.stop();
    page.assert_nothing_left();
}

/// A document that tries to get out. `{port}` is where the test listens, and `{gateway}` where the gateway does.
const DOCUMENT: &str = r#"<!doctype html><style>h1 { color: rgb(1, 2, 3); background: url(http://127.0.0.1:{port}/style) }</style>
<h1>The report</h1><script>
document.querySelector("h1").textContent = "Ran";
try { parent.hacked = 1; parent.document.title = "hacked" } catch {}
try { document.cookie = "hacked=1"; localStorage.hacked = 1; sessionStorage.hacked = 1 } catch {}
try { open("http://127.0.0.1:{port}/open"); top.location = "http://127.0.0.1:{port}/top" } catch {}
fetch("http://127.0.0.1:{port}/fetch"); fetch("http://127.0.0.1:{gateway}/api/sessions"); new WebSocket("ws://127.0.0.1:{port}")
</script>
<img src="http://127.0.0.1:{port}/picture.png"><img src=x onerror="parent.hacked = 2">
<link rel="stylesheet" href="http://127.0.0.1:{port}/sheet.css"><link rel="dns-prefetch preconnect" href="http://127.0.0.1:{port}">
<meta http-equiv="refresh" content="0;url=http://127.0.0.1:{port}/meta"><base href="http://127.0.0.1:{port}/">
<iframe src="http://127.0.0.1:{port}/frame"></iframe><IFRAME/src="http://127.0.0.1:{port}/frame" loading=lazy></iframe><object data="http://127.0.0.1:{port}/object"></object>
<form action="http://127.0.0.1:{port}/form"><button>Send</button></form>
<a href="http://127.0.0.1:{port}/top" target="_top">up</a> <a href="http://127.0.0.1:{port}/new" target="_blank">new</a>
<a href="http://127.0.0.1:{gateway}/">home</a>"#;

/// A PDF that does the same when it is opened.
const PDF: &str = r"%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R/OpenAction 6 0 R/AA<</O 7 0 R>>>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>/AA<</O 6 0 R>>>>endobj
4 0 obj<</Length 40>>stream
BT /F1 40 Tf 20 100 Td (The PDF) Tj ET
endstream endobj
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
6 0 obj<</Type/Action/S/URI/URI(http://127.0.0.1:{port}/uri)/Next 7 0 R>>endobj
7 0 obj<</Type/Action/S/JavaScript/JS(app.launchURL\('http://127.0.0.1:{port}/launch'\); this.submitForm\('http://127.0.0.1:{port}/submit'\);)>>endobj
trailer<</Root 1 0 R>>
";

#[test]
fn the_page_shows_documents_that_can_do_nothing() {
    let page = Page::new();
    let port = page.stranger.local_addr().unwrap().port().to_string();
    for (name, text) in [("page.html", DOCUMENT), ("page.pdf", PDF)] {
        let text = text.replace("{port}", &port);
        let text = text.replace("{gateway}", &page.bench.port.to_string());
        page.bench.home.write_in_workspace(name, text);
    }
    let gateway = page.bench.start();
    page.script("documents", &gateway);
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_draws_formulas_and_leaves_amounts_of_money() {
    let page = Page::new();
    let gateway = page.bench.start();
    page.script("formulas", &gateway);
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_draws_diagrams_in_a_frame_that_reaches_nothing() {
    let page = Page::new();
    let gateway = page.bench.start();
    page.script("diagrams", &gateway);
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_works_on_a_goal_and_rests_while_that_is_looked_at() {
    let page = Page::new();
    page.bench.unconfined(|_| {});
    let gateway = page.bench.start();
    let workspace = page.bench.home.workspace().display().to_string();
    page.script_with("goals", &gateway, &[("WORKSPACE", &workspace)]);
    gateway.stop();
}

#[test]
fn the_page_offers_the_commands_of_the_owner() {
    let page = Page::new();
    let commands = page.bench.home.state_directory().join("commands");
    std::fs::create_dir_all(commands.join("git")).unwrap();
    for (name, text) in [
        ("tidy.md", "---\ndescription: Tidies <b>one</b> directory\n---\nTidy the directory $1."),
        ("git/commit.md", "Commit."),
        ("needy.md", "$ARGUMENTS"),
    ] {
        std::fs::write(commands.join(name), text).unwrap();
    }
    let gateway = page.bench.start();
    if page.script("written-commands", &gateway) {
        let said = page.bench.said("main");
        let asked: Vec<&str> = said.iter().step_by(2).map(String::as_str).collect();
        assert_eq!(
            asked,
            [
                "Tidy the directory src.",
                "Commit.",
                "/home/x is not one",
                " /stop is a word",
                " /new"
            ]
        );
    }
    gateway.stop();
}

#[test]
fn the_page_keeps_prompts_which_are_commands_too() {
    let page = Page::new();
    let gateway = page.bench.start();
    if page.script("prompts", &gateway) {
        let commands = page.bench.home.state_directory().join("commands");
        let written = std::fs::read_to_string(commands.join("text/translate.md")).unwrap();
        assert_eq!(
            written,
            "---\ndescription: \"Translates <b>words</b>: all of them\"\n---\n\nTranslate $1 into German:\n\n$ARGUMENTS\n"
        );
        assert!(!commands.join("greet.md").exists() && !commands.join("../translate.md").exists());
        assert_eq!(page.bench.said("prompts")[0], "Say hello.");
    }
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_sorts_sessions_into_folders() {
    let page = Page::new();
    for name in ["one", "two", "three"] {
        let said = format!("hello from {name}");
        page.bench.myclaw(&["run", "--session", name, &said]).assert_code(0);
    }
    let gateway = page.bench.start();
    page.script("folders", &gateway);
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_shows_reminders_where_they_were_asked_for() {
    let page = Page::new();
    // Sandboxed sessions have no schedule.
    page.bench.configure(|config| {
        config["tools"] = json!({"ask": ["write"]});
        config["agents"]["defaults"]["sandbox"]["mode"] = json!("off");
    });
    let gateway = page.bench.start();
    if page.script("reminders", &gateway) {
        for session in ["main", "attic"] {
            let said = page.bench.said(session);
            let reminders = said.iter().filter(|text| text.contains("[Scheduled message")).count();
            assert_eq!(reminders, 1, "{session}: {said:?}");
        }
    }
    gateway.stop();
}

#[test]
fn the_page_links_a_phone_to_signal() {
    let page = Page::new();
    let daemon = SignalServer::start_without_account();
    let gateway = page.bench.start();
    let url = daemon.url();
    let Some(script) = page.begin("signal-link", &gateway, &[("DAEMON", &url)]) else { return };
    script.wait_for_stdout("scan the first");
    daemon.scan(&daemon.wait_for_address(0), &json!({"error": "The user +49151 already exists"}));
    script.wait_for_stdout("scan the second");
    daemon.scan(&daemon.wait_for_address(1), &json!({"number": daemon.account()}));
    let output = script.wait(SCRIPT_TIME);
    println!("{}", output.stdout());
    output.assert_code(0);
    assert_eq!(daemon.linked_names(), ["MyClaw"]);
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_shows_the_files_of_the_workspace() {
    let page = Page::new();
    let home = &page.bench.home;
    home.write_in_workspace("notes.md", "<b>my</b> notes\n");
    home.write_in_workspace(
        "sub/page.html",
        "<h1>The report</h1><script>parent.hacked = 1</script>",
    );
    let port = page.stranger.local_addr().unwrap().port().to_string();
    home.write_in_workspace("sub/drawing.svg", DRAWING.replace("{port}", &port));
    home.write_in_workspace("sub/page.pdf", "%PDF-1.4\n");
    std::os::unix::fs::symlink("/etc/passwd", home.workspace().join("link")).unwrap();
    let gateway = page.bench.start();
    if page.script("workspace", &gateway) {
        let read = |name: &str| std::fs::read_to_string(home.workspace().join(name)).unwrap();
        assert_eq!(read("sub/new.txt"), "brought");
        assert!(read("sub/page.html").starts_with("<h1>The report"));
    }
    for path in ["link", "../myclaw.json", "/etc/passwd", "sub/../../myclaw.json"] {
        let (status, answer) =
            gateway.client.get(&format!("/api/workspace/file?path={path}")).unwrap();
        assert_eq!(status, 400, "{path}: {answer}");
    }
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_works_in_firefox() {
    let page = Page::new();
    page.bench
        .home
        .write_in_workspace("page.html", "<h1>The report</h1><script>parent.hacked = 1</script>");
    let gateway = page.bench.start();
    page.script("firefox", &gateway);
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_is_walked_through_in_firefox() {
    let page = Page::new();
    page.bench.home.write_in_workspace("drawing.svg", DRAWING.replace("{port}", "9"));
    for name in ["one", "two"] {
        let said = format!("hello from {name}");
        page.bench.myclaw(&["run", "--session", name, &said]).assert_code(0);
    }
    let gateway = page.bench.start();
    if page.script("firefox-walk", &gateway) {
        let facts = page.bench.myclaw(&["memory", "list"]).stdout();
        assert!(!facts.contains("peanuts"), "{facts}");
    }
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_approves_servers_and_fills_in_their_forms() {
    let page = Page::new();
    let (entry, _) = myclaw_testkit::mcp_server(&page.bench.home, "sessions");
    page.bench.configure(|config| {
        config["mcp"]["servers"]["faults"] = entry;
        config["agents"]["defaults"]["sandbox"]["mode"] = json!("off");
    });
    let gateway = page.bench.start();
    if page.script("servers", &gateway) {
        let last = json!(page.bench.model.requests().last().unwrap().messages()).to_string();
        assert!(last.contains("'count': 4}"), "{last}");
    }
    gateway.stop();
}

#[test]
fn the_frame_leads_to_every_page() {
    let page = Page::new();
    let gateway = page.bench.start();
    page.script("frame", &gateway);
    gateway.stop();
}

#[test]
fn the_page_shows_what_was_used() {
    let page = Page::new();
    let gateway = page.bench.start();
    page.script("usage", &gateway);
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_shows_and_corrects_what_is_remembered() {
    let page = Page::new();
    let gateway = page.bench.start();
    page.script("memory", &gateway);
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_plans_and_ends_jobs() {
    let page = Page::new();
    let gateway = page.bench.start();
    page.script("schedules", &gateway);
    gateway.stop();
}

#[test]
fn the_page_shows_channels_and_lets_people_in() {
    let page = Page::new();
    let bot = TelegramServer::start();
    page.bench.configure(|config| {
        config["channels"] = json!({
            "telegram": {"botToken": bot.token(), "baseUrl": bot.url()},
        });
    });
    let gateway = page.bench.start();
    bot.write(7, "hello from a stranger");
    bot.wait_for_text("myclaw pairing approve");
    page.script("channels", &gateway);
    gateway.stop();
}

#[test]
fn the_page_adds_repairs_and_removes_channels() {
    let page = Page::new();
    let bot = TelegramServer::start();
    let directory = page.bench.home.state_directory();
    std::fs::write(directory.join(".env"), "# mine\nOTHER=kept").unwrap();
    let gateway = page.bench.start();
    let url = bot.url();
    if page.script_with("new-channels", &gateway, &[("BOT", &url), ("SECRET", bot.token())]) {
        let config = std::fs::read_to_string(directory.join("myclaw.json")).unwrap();
        assert!(config.contains("\"${TELEGRAM_BOT_TOKEN}\""), "{config}");
        assert!(!config.contains(bot.token()) && !config.contains("mine"), "{config}");
        let variables = std::fs::read_to_string(directory.join(".env")).unwrap();
        let token = format!("TELEGRAM_BOT_TOKEN={}\n", bot.token());
        let secret = "WEBHOOK_SECRET_MINE=\"a secret # with signs\"\n";
        assert_eq!(variables, format!("# mine\nOTHER=kept\n{token}{secret}"));
    }
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_notifies_a_browser_that_is_closed() {
    let page = Page::new();
    let variables = page.bench.home.state_directory().join(".env");
    std::fs::write(variables, "MYCLAW_PUSH_SERVICE=http://127.0.0.1\n").unwrap();
    let gateway = page.bench.start();
    if page.script("notifications", &gateway) {
        let (_, before) = gateway.client.get("/api/push").unwrap();
        assert_eq!(before["browsers"].as_array().unwrap().len(), 1, "{before}");
        // What a browser has subscribed to holds after a kill.
        gateway.kill();
        let gateway = page.bench.start();
        assert_eq!(gateway.client.get("/api/push").unwrap(), (200, before));
        gateway.stop();
    }
    page.assert_nothing_left();
}

#[test]
fn the_page_takes_dictation_and_reads_answers_aloud() {
    let page = Page::new();
    let gateway = page.bench.start();
    // Without anybody who listens and speaks there are no buttons.
    page.script("no-voice", &gateway);
    gateway.stop();
    let directory = page.bench.home.state_directory();
    let (tone, spoken) = (directory.join("tone.wav"), directory.join("spoken.txt"));
    let samples = [0u8; 1_600];
    let head = |bytes: usize| u32::try_from(bytes).unwrap().to_le_bytes();
    let wave = [
        b"RIFF".as_slice(),
        &head(36 + samples.len()),
        b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data",
        &head(samples.len()),
        &samples,
    ];
    std::fs::write(&tone, wave.concat()).unwrap();
    page.bench.configure(|config| {
        // It hears how the file begins, and that something is in it.
        let listen = "head -c 4 \"$MYCLAW_AUDIO_FILE\" | tr '\\n' ' '; test $(wc -c < \"$MYCLAW_AUDIO_FILE\") -gt 100 && echo 'from the microphone'";
        config["transcription"] = json!({"command": listen});
        let speak = format!("cat > '{}'; cat '{}'", spoken.display(), tone.display());
        config["speech"] = json!({"command": speak, "maxChars": 200});
    });
    let gateway = page.bench.start();
    if page.script("voice", &gateway) {
        assert_eq!(std::fs::read_to_string(&spoken).unwrap().trim(), "Good morning.");
    }
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_shows_answers_and_stops_what_runs() {
    let page = Page::new();
    let gateway = page.bench.start();
    let notes = page.bench.home.workspace().join("notes.md");
    let mut command = page.bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    // A turn of another process.
    let other = command.args(["run", "--session", "desk", "please take long"]);
    let other = RunningChild::spawn(other);
    if page.script("running", &gateway) {
        assert_eq!(std::fs::read_to_string(&notes).unwrap(), "first line\nsecond line\n");
        assert_ne!(other.wait(PATIENCE).code(), Some(0));
    }
    gateway.stop();
}

#[test]
fn the_page_lets_devices_in_and_revokes_them() {
    let page = Page::new();
    page.bench.configure(|config| config["gateway"]["allowedHosts"] = json!(["claw.example.org"]));
    let gateway = page.bench.start();
    let mut command = page.bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    let output = command.args(["gateway", "link", "--qr"]).output().unwrap();
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = printed.lines().collect();
    let code = json!(lines[2..]).to_string();
    page.script_with("devices", &gateway, &[("LINK", lines[1]), ("CODE", &code)]);
    gateway.stop();
}

#[test]
fn the_page_shows_agents_and_their_skills() {
    let page = Page::new();
    page.bench.configure(|config| {
        config["agents"] = json!({"list": [
            {"id": "main", "default": true},
            {
                "id": "gardener", "name": "The gardener", "tools": {"profile": "minimal"},
                "identity": {"emoji": "🌱", "theme": "patient and green"},
                "model": {"primary": "anthropic/test-model", "fallbacks": ["anthropic/other"]},
                "subagents": {"allowAgents": ["main"]}, "heartbeat": {"every": "30m"},
            },
        ]});
        config["bindings"] = json!([
            {"agentId": "gardener", "match": {"channel": "telegram", "peer": 42}},
        ]);
    });
    for (name, more) in [
        ("plain", ""),
        ("needy", "metadata: {\"myclaw\": {\"requires\": {\"bins\": [\"no-such-program\"]}}}\n"),
    ] {
        let directory = page.bench.home.state_directory().join("skills").join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let text = format!("---\nname: {name}\ndescription: How to {name}.\n{more}---\nDo it.\n");
        std::fs::write(directory.join("SKILL.md"), text).unwrap();
    }
    let gateway = page.bench.start();
    page.script("agents", &gateway);
    gateway.stop();
}

#[test]
fn the_page_shows_the_log() {
    let page = Page::new();
    page.bench.configure(|config| config["logging"] = json!({"file": true}));
    let gateway = page.bench.start();
    page.script("logs", &gateway);
    gateway.stop();
}

#[test]
fn answers_and_links_make_the_page_run_and_load_nothing() {
    let page = Page::new();
    let gateway = page.bench.start();
    page.script("attacks", &gateway);
    gateway.stop();
    page.assert_nothing_left();
}

#[test]
fn the_page_changes_the_config_and_keeps_its_comments() {
    let page = Page::new();
    let file = page.bench.home.state_directory().join("myclaw.json");
    let url = page.bench.model.url();
    let text = format!(
        "{{\n  // Mine.\n  provider: {{ name: \"anthropic\", model: \"claude-sonnet-4-6\", baseUrl: \"{url}\",\n    \
         authProfiles: [{{ id: \"one\", apiKey: \"sk-ant-in-the-file-0123456789\" }}] }},\n  gateway: {{ port: {} }}, // here\n}}\n",
        page.bench.port
    );
    std::fs::write(&file, text).unwrap();
    let gateway = page.bench.start();
    let Some(script) = page.begin_script("config", &gateway) else { return };
    script.wait_for_stdout("write the file");
    let now = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, now.replacen('{', "{\n  agent: { maxIterations: 9 }, // theirs", 1))
        .unwrap();
    let output = script.wait(SCRIPT_TIME);
    println!("{}", output.stdout());
    output.assert_code(0);
    let now = std::fs::read_to_string(&file).unwrap();
    for kept in [
        "// Mine.",
        "// here",
        "// theirs",
        "sk-ant-in-the-file",
        "gardener",
        "maxRetries: 7",
        "\"debug\"",
    ] {
        assert!(now.contains(kept), "{kept} in {now}");
    }
    gateway.stop();
}

#[test]
fn the_page_sets_up_a_model_on_first_start() {
    let page = Page::new();
    let file = page.bench.home.state_directory().join("myclaw.json");
    std::fs::write(&file, format!("{{ gateway: {{ port: {} }} }} // mine\n", page.bench.port))
        .unwrap();
    let gateway = page.bench.start();
    if page.script("setup", &gateway) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("// mine") && text.contains("claude-sonnet-4-6"), "{text}");
        assert!(!text.contains("right-key"), "{text}");
    }
    gateway.stop();
}
