//! The owner's command for the status line.

use std::time::Duration;

use myclaw_agent::Home;
use myclaw_exec::{ChildSpec, ErrorOutput, Exit, OutputLimits, run};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The prompt waits for it.
const LIMIT: Duration = Duration::from_secs(1);
/// Most bytes of its first line.
const MAX_BYTES: usize = 1_000;

/// The first line that the command prints. It reads the facts as JSON, and starts in the state directory: a project could have
/// programs of its own in its directory.
///
/// # Errors
/// It fails, prints nothing or takes too long; what to say of it.
pub(crate) async fn printed(command: &str, home: &Home, facts: &Value) -> Result<String, String> {
    let spec = ChildSpec {
        args: vec!["-c".into(), command.into()],
        input: format!("{facts}\n").into_bytes(),
        timeout: Some(LIMIT),
        output: OutputLimits {
            keep_tail_bytes: MAX_BYTES,
            keep_tail_chars: MAX_BYTES,
            keep_tail_lines: 1,
            side_file: None,
        },
        errors: ErrorOutput::Apart,
        ..ChildSpec::new("sh", home.paths.state_dir())
    };
    let mut begin = Vec::new();
    let mut take = |bytes: &[u8]| {
        let room = MAX_BYTES.saturating_sub(begin.len());
        begin.extend(bytes.iter().take(room));
    };
    let ended = run(spec, &CancellationToken::new(), &mut take).await;
    let text = String::from_utf8_lossy(&begin);
    let first = text.lines().next().unwrap_or_default().trim();
    let problem = match ended {
        Ok(finished) => match finished.exit {
            Exit::Code(0) if !first.is_empty() => return Ok(first.to_owned()),
            Exit::Code(0) => "it printed nothing".to_owned(),
            Exit::Code(code) => format!("exit code {code} {}", finished.errors.tail.trim()),
            Exit::TimedOut => format!("it took longer than {} s", LIMIT.as_secs()),
            Exit::Signal(signal) => format!("signal {signal}"),
            Exit::Aborted => "it was ended".to_owned(),
        },
        Err(error) => error.to_string(),
    };
    Err(format!(
        "terminal.statusCommand shows nothing: {}; the usual line is shown instead",
        problem.trim_end()
    ))
}
