//! Calls that need an approval: asked once, answered in every way, and refused by runs that cannot ask.

use std::sync::{Arc, Mutex};

use crate::common::{Bench, EchoTool, run_agent};
use futures_util::future::BoxFuture;
use myclaw_engine::{
    AlwaysScope, Approval, ApprovalRequest, ApprovalTerms, Approver, CallArguments, CallSubject,
    Hook, HookError, MAX_SHOWN_BYTES, PendingToolCall, PreparedCall, RunError, RunResult,
    ScopeKind, ShownFact, Tool, ToolCallVerdict, ToolContext, ToolError, ToolInvocation,
    ToolOutput,
};
use myclaw_llm::ToolSchema;
use myclaw_testkit::{Reply, WireFormat};
use serde_json::json;

/// Asks about each call, and changes its arguments first.
struct AskingHook;

/// Asks about each call.
struct Doorkeeper;

impl Hook for Doorkeeper {
    fn name(&self) -> &str {
        "policy"
    }

    fn tool_call<'a>(
        &'a self,
        _: &'a mut PendingToolCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        Box::pin(async { Ok(ToolCallVerdict::Ask { reason: "it speaks".to_owned() }) })
    }
}

impl Hook for AskingHook {
    fn name(&self) -> &str {
        "policy"
    }

    fn tool_call<'a>(
        &'a self,
        call: &'a mut PendingToolCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        call.arguments.insert("text".to_owned(), json!("checked"));
        Box::pin(async { Ok(ToolCallVerdict::Ask { reason: "it speaks".to_owned() }) })
    }
}

/// Gives the same answer to every question, or never answers.
struct Clerk {
    answer: Option<fn(&ApprovalRequest) -> Approval>,
    seen: Mutex<Vec<ApprovalRequest>>,
}

impl Approver for Clerk {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        self.seen.lock().unwrap().push(request.clone());
        match &self.answer {
            Some(answer) => Box::pin(async { answer(request) }),
            None => Box::pin(std::future::pending()),
        }
    }
}

fn always(request: &ApprovalRequest) -> Approval {
    request.always(None).unwrap_or(Approval::Once)
}

fn once(_: &ApprovalRequest) -> Approval {
    Approval::Once
}

fn clerk(answer: Option<fn(&ApprovalRequest) -> Approval>) -> Arc<Clerk> {
    Arc::new(Clerk { answer, seen: Mutex::default() })
}

/// Two equal calls, then an answer.
async fn bench() -> Bench {
    let call = |id| Reply::anthropic().tool_call(id, "echo", json!({"text": "hi"}));
    let script = [call("call_1"), call("call_2"), Reply::anthropic().text("Done.")];
    Bench::new(WireFormat::AnthropicMessages, script).await
}

/// Runs a turn; also returns how many calls were made.
async fn run(bench: &Bench, approver: Option<Arc<Clerk>>) -> (Result<RunResult, RunError>, u64) {
    let tool = EchoTool::new("echo");
    let runs = Arc::clone(&tool.runs);
    let mut params = bench.params("go");
    params.tools = vec![Arc::new(tool)];
    params.hooks = vec![Arc::new(AskingHook)];
    params.approver = approver.map(|clerk| clerk as Arc<dyn Approver>);
    let outcome = run_agent(params).await;
    (outcome, runs.load(std::sync::atomic::Ordering::SeqCst))
}

#[tokio::test]
async fn an_approved_call_is_made_and_asked_about_once_or_always() {
    type Answer = fn(&ApprovalRequest) -> Approval;
    let answers: [(Answer, usize); 2] = [(once, 2), (always, 1)];
    for (answer, asked) in answers {
        let (bench, clerk) = (bench().await, clerk(Some(answer)));
        let (outcome, runs) = run(&bench, Some(Arc::clone(&clerk))).await;
        assert_eq!((outcome.unwrap().reply.as_str(), runs), ("Done.", 2));
        let seen = clerk.seen.lock().unwrap();
        assert_eq!(seen.len(), asked);
        assert_eq!(seen[0].reason, "policy: it speaks");
        assert_eq!(seen[0].call.arguments["text"], "checked", "what is approved is what runs");
        assert_eq!(bench.events_named("approval_requested").len(), asked);
        assert_eq!(bench.events_named("approval_resolved").len(), asked);
    }
}

#[tokio::test]
async fn always_covers_the_same_call_and_no_other() {
    let call = |id, tool, text| Reply::anthropic().tool_call(id, tool, json!({"text": text}));
    let script = [
        call("call_1", "echo", "hi"),
        call("call_2", "echo", "bye"),
        call("call_3", "shout", "hi"),
        call("call_4", "echo", "hi"),
        Reply::anthropic().text("Done."),
    ];
    let bench = Bench::new(WireFormat::AnthropicMessages, script).await;
    let clerk = clerk(Some(always));
    let mut params = bench.params("go");
    params.tools = vec![Arc::new(EchoTool::new("echo")), Arc::new(EchoTool::new("shout"))];
    params.hooks = vec![Arc::new(Doorkeeper)];
    params.approver = Some(Arc::clone(&clerk) as Arc<dyn Approver>);
    run_agent(params).await.unwrap();
    let seen = clerk.seen.lock().unwrap();
    let asked: Vec<&str> = seen.iter().map(|request| request.call.tool_call_id.as_str()).collect();
    assert_eq!(asked, ["call_1", "call_2", "call_3"]);
}

#[tokio::test]
async fn a_denied_call_is_not_made_and_the_model_reads_why() {
    let bench = bench().await;
    let (outcome, runs) =
        run(&bench, Some(clerk(Some(|_| Approval::Denied { reason: "not today".to_owned() }))))
            .await;
    assert_eq!((outcome.unwrap().reply.as_str(), runs), ("Done.", 0));
    let text = &bench.events_named("tool_end")[0]["text"];
    assert_eq!(text, "Not run: the approval for this call was denied: not today");
}

#[tokio::test]
async fn without_an_approver_the_call_is_refused() {
    let bench = bench().await;
    let (outcome, runs) = run(&bench, None).await;
    assert_eq!((outcome.unwrap().reply.as_str(), runs), ("Done.", 0));
    let text = bench.rows()[2]["content"].as_str().unwrap().to_owned();
    assert!(text.contains("needs an approval, and this run cannot ask anybody"), "{text}");
}

#[tokio::test]
async fn an_aborted_run_stops_waiting() {
    let bench = bench().await;
    let clerk = clerk(None);
    let mut params = bench.params("go");
    params.hooks = vec![Arc::new(AskingHook)];
    params.approver = Some(Arc::clone(&clerk) as Arc<dyn Approver>);
    let cancel = params.cancel.clone();
    let running = tokio::spawn(run_agent(params));
    while clerk.seen.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert!(matches!(running.await.unwrap(), Err(RunError::Aborted)));
    assert_eq!(bench.rows()[2]["content"], "Not run: the user aborted before this call started.");
}

/// A tool that gives back what a file held when its call was read.
struct Reader {
    schema: ToolSchema,
    file: std::path::PathBuf,
}

impl Reader {
    fn new(file: &std::path::Path) -> Self {
        let schema = EchoTool::new("echo").schema().clone();
        Self { schema, file: file.to_owned() }
    }
}

impl Tool for Reader {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let content = std::fs::read_to_string(&self.file).unwrap();
        Ok(CallSubject::of(arguments).first(&[], vec![ShownFact::text("file", content)]))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let read = invocation.call.subject.facts[0].text.clone();
        Box::pin(async move { Ok(ToolOutput::text(read)) })
    }
}

/// Approves, and changes a file before each of its first answers.
struct Meddler {
    file: std::path::PathBuf,
    contents: Mutex<Vec<String>>,
    seen: Mutex<Vec<ApprovalRequest>>,
    /// "Always" is for the file, whatever it holds.
    covers_file: bool,
}

impl Approver for Meddler {
    fn terms<'a>(
        &'a self,
        call: &'a PreparedCall,
        reason: &'a str,
    ) -> BoxFuture<'a, ApprovalTerms> {
        let mut terms = ApprovalTerms::of_call(call, reason);
        if self.covers_file {
            terms.always = vec![AlwaysScope::new(ScopeKind::Path, "the file", "file")];
        }
        Box::pin(async { terms })
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        self.seen.lock().unwrap().push(request.clone());
        if let Some(content) = self.contents.lock().unwrap().pop() {
            std::fs::write(&self.file, content).unwrap();
        }
        Box::pin(async { always(request) })
    }
}

/// Asks about a call of [`Reader`] while the file changes to each of these contents.
async fn meddle(contents: &[&str]) -> (Vec<ApprovalRequest>, String) {
    meddle_with(contents, false).await
}

async fn meddle_with(contents: &[&str], covers_file: bool) -> (Vec<ApprovalRequest>, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "one\ntwo\n").unwrap();
    let contents = contents.iter().rev().map(|content| (*content).to_owned()).collect();
    let meddler = Arc::new(Meddler {
        file: file.clone(),
        contents: Mutex::new(contents),
        seen: Mutex::default(),
        covers_file,
    });
    let call = Reply::anthropic().tool_call("call_1", "echo", json!({"text": "hi"}));
    let script = [call, Reply::anthropic().text("Done.")];
    let bench = Bench::new(WireFormat::AnthropicMessages, script).await;
    let mut params = bench.params("go");
    params.tools = vec![Arc::new(Reader::new(&file))];
    params.hooks = vec![Arc::new(Doorkeeper)];
    params.approver = Some(Arc::clone(&meddler) as Arc<dyn Approver>);
    run_agent(params).await.unwrap();
    let result = bench.rows()[2]["content"].as_str().unwrap().to_owned();
    let seen = std::mem::take(&mut *meddler.seen.lock().unwrap());
    (seen, result)
}

#[tokio::test]
async fn what_changed_while_the_question_waited_is_asked_about_with_the_difference() {
    let (seen, result) = meddle(&["one\nthree\n"]).await;
    let changes: Vec<Vec<ShownFact>> = seen.iter().map(|request| request.changes.clone()).collect();
    assert_eq!(changes, [vec![], vec![ShownFact::diff("changed: file", "-two\n+three\n")]]);
    assert_eq!(seen[1].shown[0].text, "one\nthree\n");
    assert_eq!(result, "one\nthree\n", "what was approved last is what runs");
}

/// Says that all calls are for one command, whose scripts the text of a call stands for, and answers one after another.
struct OneCommand {
    answers: Mutex<Vec<&'static str>>,
    asked: Mutex<Vec<String>>,
    /// The command of a call with this text.
    command: fn(&str) -> Option<String>,
}

impl Approver for OneCommand {
    fn terms<'a>(
        &'a self,
        call: &'a PreparedCall,
        reason: &'a str,
    ) -> BoxFuture<'a, ApprovalTerms> {
        let command_id = (self.command)(call.arguments["text"].as_str().unwrap());
        let terms = ApprovalTerms { command_id, ..ApprovalTerms::of_call(call, reason) };
        Box::pin(async { terms })
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        let text = request.call.arguments["text"].as_str().unwrap();
        self.asked.lock().unwrap().push(text.to_owned());
        let answer = match self.answers.lock().unwrap().remove(0) {
            "no" => Approval::Denied { reason: "no".to_owned() },
            "once" => Approval::Once,
            _ => always(request),
        };
        Box::pin(async { answer })
    }
}

/// A "no" to a script that was changed holds for what the same command was approved to run before, too.
#[tokio::test]
async fn a_no_withdraws_an_always_for_the_same_command_in_this_run() {
    let same: fn(&str) -> Option<String> = |_| Some("./t.sh".to_owned());
    let own: fn(&str) -> Option<String> = |text| Some(text.to_owned());
    let none: fn(&str) -> Option<String> = |_| None;
    for (command, answers, asked) in [
        (same, ["always", "no", "once"], vec!["one", "two", "one"]),
        (same, ["always", "once", "once"], vec!["one", "two"]),
        (own, ["always", "no", "once"], vec!["one", "two"]),
        (none, ["always", "no", "once"], vec!["one", "two"]),
    ] {
        let call = |id, text| Reply::anthropic().tool_call(id, "echo", json!({"text": text}));
        let script = [
            call("call_1", "one"),
            call("call_2", "two"),
            call("call_3", "one"),
            Reply::anthropic().text("Done."),
        ];
        let bench = Bench::new(WireFormat::AnthropicMessages, script).await;
        let approver = Arc::new(OneCommand {
            answers: Mutex::new(answers.to_vec()),
            asked: Mutex::default(),
            command,
        });
        let mut params = bench.params("go");
        params.hooks = vec![Arc::new(Doorkeeper)];
        params.approver = Some(Arc::clone(&approver) as Arc<dyn Approver>);
        run_agent(params).await.unwrap();
        assert_eq!(*approver.asked.lock().unwrap(), asked, "{answers:?}");
    }
}

/// "Always" for a file covers every content, but it was given to the one that was shown.
#[tokio::test]
async fn what_changed_is_asked_about_although_always_covers_the_file() {
    let (seen, result) = meddle_with(&["one\nthree\n"], true).await;
    assert_eq!(seen.len(), 2, "a change while the question waited is not shown");
    assert_eq!(seen[0].always, seen[1].always);
    assert_eq!(seen[1].changes, [ShownFact::diff("changed: file", "-two\n+three\n")]);
    assert_eq!(result, "one\nthree\n");
}

#[tokio::test]
async fn a_call_that_changes_after_each_answer_is_not_made() {
    let (seen, result) = meddle(&["1", "2", "3", "4", "5", "6"]).await;
    assert_eq!(seen.len(), 5);
    assert!(result.starts_with("Not run: what this call depends on changed"), "{result}");
}

/// A question that shows a lot.
struct Talkative(EchoTool, usize);

impl Tool for Talkative {
    fn schema(&self) -> &ToolSchema {
        self.0.schema()
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let cut = ShownFact { is_whole: false, ..ShownFact::text("more", "x".repeat(self.1)) };
        Ok(CallSubject::of(arguments).first(&[], vec![cut]))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.0.execute(invocation)
    }
}

#[tokio::test]
async fn what_is_not_shown_whole_cannot_be_approved_for_good_and_what_is_too_long_not_at_all() {
    for (bytes, asked, made) in [(10, 2, 2), (MAX_SHOWN_BYTES, 0, 0)] {
        let bench = bench().await;
        let echo = EchoTool::new("echo");
        let runs = Arc::clone(&echo.runs);
        let foreign: fn(&ApprovalRequest) -> Approval = |_| {
            // A scope that the question does not offer.
            Approval::Always(AlwaysScope::new(ScopeKind::Call, "everything", "id"))
        };
        let clerk = clerk(Some(foreign));
        let mut params = bench.params("go");
        params.tools = vec![Arc::new(Talkative(echo, bytes))];
        params.hooks = vec![Arc::new(Doorkeeper)];
        params.approver = Some(Arc::clone(&clerk) as Arc<dyn Approver>);
        run_agent(params).await.unwrap();
        let seen = clerk.seen.lock().unwrap();
        assert!(seen.iter().all(|request| request.always.is_empty()));
        assert_eq!((seen.len(), runs.load(std::sync::atomic::Ordering::SeqCst)), (asked, made));
        let first = bench.rows()[2]["content"].as_str().unwrap().to_owned();
        assert_eq!(first.contains("its question would show"), made == 0, "{first}");
    }
}

/// Records the calls as they are judged.
#[derive(Default)]
struct Judge(Mutex<Vec<PreparedCall>>);

impl Hook for Judge {
    fn name(&self) -> &str {
        "policy"
    }

    fn judge<'a>(
        &'a self,
        call: &'a PreparedCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        self.0.lock().unwrap().push(call.clone());
        Box::pin(async { Ok(ToolCallVerdict::Allow) })
    }
}

#[tokio::test]
async fn a_call_is_judged_after_all_hooks_have_changed_it() {
    let bench = bench().await;
    let judge = Arc::new(Judge::default());
    let mut params = bench.params("go");
    // The judge comes first, and a later hook changes the arguments.
    params.hooks = vec![Arc::clone(&judge) as Arc<dyn Hook>, Arc::new(AskingHook)];
    params.approver = Some(clerk(Some(once)));
    run_agent(params).await.unwrap();
    let judged = judge.0.lock().unwrap();
    assert_eq!(judged.len(), 2);
    assert!(judged.iter().all(|call| call.arguments["text"] == "checked"));
    assert!(judged.iter().all(|call| call.subject.facts == [ShownFact::text("text", "checked")]));
}
