use std::fs;

use serde_json::Value;

use super::progress::Progress;
use super::*;
use crate::support::testing::{Workspace, text_of};

fn tool() -> BashTool {
    BashTool::new(Duration::from_secs(60))
}

async fn output(workspace: &Workspace, arguments: Value) -> ToolOutput {
    workspace.call(&tool(), arguments).await.unwrap()
}

/// The only file among the side files of a workspace.
fn side_file_of(workspace: &Workspace) -> PathBuf {
    let mut files: Vec<PathBuf> = fs::read_dir(&workspace.context.artifact_directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[tokio::test]
async fn a_command_runs_in_the_working_directory() {
    let workspace = Workspace::new(&[("a.txt", "hello\n")]);
    let result = output(&workspace, json!({"command": "cat a.txt; pwd >&2"})).await;
    assert_eq!(
        text_of(&result),
        format!("hello\n{}", workspace.path("").display()).trim_end_matches('/')
    );
    assert!(!result.is_error);
    assert!(!workspace.context.artifact_directory.exists(), "no side file for short output");
    let details = result.details.unwrap();
    assert_eq!(details["exitCode"], 0);
    assert_eq!(details["truncated"], false);
}

#[tokio::test]
async fn aliases_and_silence() {
    let workspace = Workspace::new(&[]);
    let result = output(&workspace, json!({"cmd": "true", "timeout": "5"})).await;
    assert_eq!((text_of(&result).as_str(), result.is_error), ("(no output)", false));
}

#[tokio::test]
async fn a_failing_command_is_an_error_result_with_its_output() {
    let workspace = Workspace::new(&[]);
    let result = output(&workspace, json!({"command": "echo out; echo err >&2; exit 3"})).await;
    assert_eq!((text_of(&result).as_str(), result.is_error), ("out\nerr\n[exit code 3]", true));
    let killed = output(&workspace, json!({"command": "kill -9 $$"})).await;
    assert_eq!(
        text_of(&killed),
        "(no output)\n[killed by signal 9, perhaps because memory ran out]"
    );
}

#[tokio::test]
async fn of_long_output_the_end_is_kept_and_all_of_it_is_in_a_file() {
    let workspace = Workspace::new(&[]);
    let result = output(&workspace, json!({"command": "seq 1 5000"})).await;
    let text = text_of(&result);
    let file = side_file_of(&workspace);
    assert!(text.starts_with("3001\n3002\n"), "{}", &text[..40]);
    let size = "the last 2000 of 5000 lines are shown, 23893 bytes in all";
    assert!(
        text.ends_with(&format!("\n5000\n[output cut: {size}; full output: {}]", file.display()))
    );
    let all: String = (1..=5000).map(|number| format!("{number}\n")).collect();
    assert_eq!(fs::read_to_string(&file).unwrap(), all);
    assert_eq!(result.details.unwrap()["fullOutputPath"], file.to_str().unwrap());
}

#[tokio::test]
async fn a_result_never_exceeds_its_limit() {
    let mut workspace = Workspace::new(&[]);
    for max_chars in [100, 1000, 3000] {
        workspace.context.max_result_chars = max_chars;
        let result = output(&workspace, json!({"command": "seq 1 5000; exit 1"})).await;
        let text = text_of(&result);
        assert!(text.chars().count() <= max_chars, "{} of {max_chars}", text.chars().count());
        assert!(text.ends_with("[exit code 1]"), "{text}");
    }
}

#[tokio::test]
async fn output_that_cannot_be_saved_is_said() {
    let mut workspace = Workspace::new(&[("file", "")]);
    workspace.context.artifact_directory = workspace.path("file/below");
    let result = output(&workspace, json!({"command": "seq 1 5000"})).await;
    assert!(!result.is_error);
    assert!(
        text_of(&result).contains("but it could not be written: "),
        "{}",
        text_of(&result).lines().last().unwrap()
    );
}

#[tokio::test]
async fn a_timed_out_command_says_what_to_do() {
    let workspace = Workspace::new(&[]);
    let result =
        output(&workspace, json!({"command": "echo started; sleep 60", "timeout": 1})).await;
    let text = text_of(&result);
    assert!(result.is_error);
    assert!(
        text.starts_with(
            "started\n[timed out after 1 s and was ended with everything it had started; "
        ),
        "{text}"
    );
    assert_eq!(result.details.unwrap()["timedOut"], true);
}

#[test]
fn timeouts_are_bounded() {
    let tool = tool();
    for (asked, expected) in
        [(None, 60), (Some(0), 60), (Some(5), 5), (Some(120_000), 3600), (Some(u64::MAX), 3600)]
    {
        assert_eq!(tool.timeout(asked, false), Duration::from_secs(expected));
    }
    assert_eq!(
        BashTool::new(Duration::from_secs(7200)).timeout(Some(5000), false),
        Duration::from_secs(5000)
    );
}

#[tokio::test]
async fn an_aborted_command_keeps_what_it_had_printed() {
    let workspace = Workspace::new(&[]);
    let tool = tool();
    let call = workspace.call(&tool, json!({"command": "echo started; touch ready; sleep 60"}));
    let abort = async {
        while !workspace.path("ready").exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        workspace.cancel.cancel();
    };
    let (result, ()) = tokio::join!(call, abort);
    let expected = "started\n[aborted; ended with everything it had started]";
    assert_eq!(result.unwrap_err(), ToolError::Aborted(expected.into()));
}

#[tokio::test]
async fn progress_is_reported_while_a_command_runs() {
    let workspace = Workspace::new(&[]);
    // Ends only after an update has been seen.
    let tool = tool();
    let call = workspace.call(
        &tool,
        json!({"command": "echo first; until [ -e seen ]; do sleep 0.01; done; echo last"}),
    );
    let watch = async {
        while workspace.updates.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        workspace.write("seen", "");
    };
    let (result, ()) = tokio::join!(call, watch);
    assert_eq!(text_of(&result.unwrap()), "first\nlast");
    assert_eq!(
        workspace.updates.lock().unwrap()[0],
        myclaw_engine::ToolUpdate { text: "first\n".into(), details: None }
    );
}

#[test]
fn progress_waits_for_whole_characters_and_is_bounded() {
    let progress = Progress::default();
    assert_eq!(progress.take(), None);
    progress.push(b"a\xc3");
    assert_eq!(progress.take().unwrap().text, "a");
    assert_eq!(progress.take(), None);
    progress.push(b"\xa4\x1b[0m");
    assert_eq!(progress.take().unwrap().text, "ä");
    progress.push(b"\xff!");
    assert_eq!(progress.take().unwrap().text, "\u{fffd}!");
    for _ in 0..100 {
        progress.push(&[b'x'; 1000]);
    }
    assert_eq!(progress.take().unwrap().text.len(), 4096);
}

#[tokio::test]
async fn no_secret_reaches_a_command() {
    let variables = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("ANTHROPIC_API_KEY", "sk-secret"),
        ("LC_TOKEN", "sk-secret"),
    ];
    let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
    let tool = tool().with_environment(EnvironmentPolicy::filtered(variables, &[]));
    let workspace = Workspace::new(&[]);
    let text = workspace.text(&tool, json!({"command": "env"})).await;
    assert!(
        text.contains("PATH=/usr/local/bin") && text.contains("GIT_TERMINAL_PROMPT=0"),
        "{text}"
    );
    assert!(!text.contains("sk-secret"), "{text}");
}

#[tokio::test]
async fn a_background_process_is_named() {
    let workspace = Workspace::new(&[]);
    let result = output(&workspace, json!({"command": "sleep 60 & echo $! > pid"})).await;
    let pid = fs::read_to_string(workspace.path("pid")).unwrap();
    let expected = format!(
        "(no output)\n[still running in the background: sleep (pid {}); what it prints from now on",
        pid.trim()
    );
    assert!(text_of(&result).starts_with(&expected), "{}", text_of(&result));
    output(&workspace, json!({"command": "kill $(cat pid)"})).await;
}

#[tokio::test]
async fn terminal_codes_are_removed_and_bad_bytes_replaced() {
    let workspace = Workspace::new(&[]);
    let result =
        output(&workspace, json!({"command": "printf '\\033[31mred\\033[0m\\r\\n\\377\\000end'"}))
            .await;
    assert_eq!(text_of(&result), "red\n\u{fffd}\u{fffd}end");
}

#[tokio::test]
async fn without_bash_the_plain_shell_is_used() {
    let workspace = Workspace::new(&[]);
    let directory = workspace.path("bin");
    fs::create_dir(&directory).unwrap();
    std::os::unix::fs::symlink("/bin/sh", directory.join("sh")).unwrap();
    let path = |directory: &std::path::Path| EnvironmentPolicy::empty().with("PATH", directory);
    let result = workspace
        .call(&tool().with_environment(path(&directory)), json!({"command": "echo $0"}))
        .await
        .unwrap();
    assert_eq!(text_of(&result), "sh");
    let nothing = workspace.path("empty");
    let error = workspace
        .call(&tool().with_environment(path(&nothing)), json!({"command": "echo"}))
        .await
        .unwrap_err();
    assert!(error.to_string().starts_with("program bash was not found"), "{error}");
}

#[tokio::test]
async fn what_cannot_run_says_why() {
    let mut workspace = Workspace::new(&[]);
    let tool = tool();
    for command in ["", "  \n"] {
        let empty = workspace.failure(&tool, json!({"command": command})).await;
        assert_eq!(empty, "the command is empty; say what to run");
    }
    let long =
        workspace.failure(&tool, json!({"command": format!(": {}", "x".repeat(200_000))})).await;
    assert_eq!(
        long,
        "the command is too long to be passed to the shell; write it to a file and run that"
    );
    workspace.context.working_directory = workspace.base.join("gone");
    let gone = workspace.failure(&tool, json!({"command": "true"})).await;
    assert!(
        gone.starts_with("cannot start in directory ") && gone.contains("gone: No such file"),
        "{gone}"
    );
}

#[tokio::test]
async fn the_limit_of_results_is_counted_in_characters_and_may_be_large() {
    let mut workspace = Workspace::new(&[]);
    workspace.context.max_result_chars = 70_000;
    let result = output(&workspace, json!({"command": "printf 'é%.0s' $(seq 60000)"})).await;
    assert_eq!(text_of(&result), "é".repeat(60_000));
    let result = output(&workspace, json!({"command": "printf 'é%.0s' $(seq 90000)"})).await;
    assert_eq!(text_of(&result).matches('é').count(), 70_000 - NOTE_CHARS);
}
