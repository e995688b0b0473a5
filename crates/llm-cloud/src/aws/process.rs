//! Credentials that a program prints: `credential_process` of a profile.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::credentials::{Credentials, Document};
use super::no_access;
use myclaw_llm::access::one_line;
use myclaw_llm::access::redact;
use myclaw_llm::{ModelError, Variables};

/// How long the program may take. Some programs ask a remote server.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Most output that is read, in bytes.
const MAX_OUTPUT: u64 = 256 * 1024;

/// Most characters of a failed program's message that are shown.
const SHOWN_ERROR: usize = 200;

/// The variables that such programs need. The rest of the environment may hold keys that they must not get.
const PASSED_ON: [&str; 14] = [
    "PATH",
    "HOME",
    "USERPROFILE",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TMPDIR",
    "TEMP",
    "SYSTEMROOT",
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// Prefixes of further such variables.
const PASSED_ON_PREFIXES: [&str; 3] = ["AWS_", "XDG_", "LC_"];

/// Runs `command`, a setting of the profile `profile`, without a shell, and reads the credentials that it prints.
///
/// # Errors
/// It cannot be run, fails, takes too long or prints something else. Its output is never shown.
pub(super) async fn credentials(
    command: &str,
    profile: &str,
    variables: &Variables,
) -> Result<Credentials, ModelError> {
    let failed = |why: &dyn std::fmt::Display| {
        no_access(format!(
            "the credential_process of the AWS profile {profile} {why}: run it by hand to see more"
        ))
    };
    let words =
        split(command).ok_or_else(|| failed(&"has a quotation mark without its other half"))?;
    let Some((program, arguments)) = words.split_first() else {
        return Err(failed(&"is empty"));
    };
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(variables.iter().filter(|(name, _)| is_passed_on(name)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(&format_args!("cannot be run ({program}: {error})")))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let running = async {
        let (output, errors) = tokio::join!(read(stdout), read(stderr));
        child.wait().await.map(|status| (status, output, errors))
    };
    let (status, output, errors) = tokio::time::timeout(TIME_LIMIT, running)
        .await
        .map_err(|_| failed(&format_args!("took longer than {} s", TIME_LIMIT.as_secs())))?
        .map_err(|error| failed(&format_args!("cannot be waited for ({error})")))?;
    if !status.success() {
        let said = one_line(&redact(&String::from_utf8_lossy(&errors), None), SHOWN_ERROR);
        return Err(failed(&format_args!("failed with {status} ({said})")));
    }
    serde_json::from_slice::<Document>(&output)
        .ok()
        .and_then(Document::into_credentials)
        .ok_or_else(|| {
            failed(&"printed something that is not JSON with AccessKeyId and SecretAccessKey")
        })
}

/// Reads a pipe up to the limit. The rest is not read, so a program that prints more gets an error and ends.
async fn read(pipe: Option<impl tokio::io::AsyncRead + Unpin>) -> Vec<u8> {
    let mut output = Vec::new();
    if let Some(pipe) = pipe {
        // After an error, only what was read before it counts.
        let _ = pipe.take(MAX_OUTPUT).read_to_end(&mut output).await;
    }
    output
}

fn is_passed_on(name: &str) -> bool {
    PASSED_ON.contains(&name) || PASSED_ON_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The words of a command line. Quotation marks and backslashes mean what they mean in a shell; nothing else of a shell
/// is supported. `None` if a quotation mark is not closed.
fn split(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') if cfg!(unix) => {
                word.get_or_insert_default().extend(characters.next());
            }
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests;
