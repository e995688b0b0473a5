//! `!COMMAND` and `!!COMMAND`: commands of the user, run where the tools work.

use std::io::IsTerminal;
use std::process::Stdio;
use std::time::{Duration, Instant};

use myclaw_agent::RAN_COMMAND;
use myclaw_exec::{end_child, output_pipe};
use myclaw_files::portable::ExitStatusExt;
use myclaw_llm::TextContent;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::command::{Audience, ShellLine};
use super::{Chat, View};
use myclaw_front::exit::CliError;
use myclaw_front::terminal::{Escaper, format_elapsed};

/// Bytes of the output that the model reads: its end.
const MOST_BYTES: usize = 30_000;
/// The longest wait for the last output of a command that has been ended.
const LAST_OUTPUT: Duration = Duration::from_millis(200);
/// Bytes that a pipe holds at most when a command has ended, as Linux makes pipes.
const MOST_LAST_BYTES: usize = 64 * 1024;

impl Chat {
    /// Runs a command, and shows it to the model if it is meant to see it.
    ///
    /// # Errors
    /// Standard output is closed, or the message for the model cannot be written.
    pub(super) async fn shell(&mut self, line: &ShellLine) -> Result<(), CliError> {
        if !std::io::stdin().is_terminal() {
            // What another program passes on may be written by anybody.
            return self.say(
                "`!` runs a command only if standard input is a terminal; a space before it makes it a message",
            );
        }
        let config = self.session.config();
        // The first turn would make it. If it cannot be made, the command says so.
        let _ = config.make_working_directory();
        let began = Instant::now();
        let ran = match line.audience {
            Audience::User if matches!(self.view, View::Terminal) => {
                self.on_terminal(&line.command).await
            }
            _ => {
                let cancel = self.closed.child_token();
                let _armed = self.interrupts.arm(cancel.clone());
                self.captured(&line.command, &cancel).await
            }
        };
        let (ending, output) = match ran {
            Ok(ran) => ran,
            Err(error) => return self.say(&format!("the command could not be run: {error}")),
        };
        self.say(&format!("{ending}, {}", format_elapsed(began.elapsed())))?;
        if line.audience == Audience::UserAndModel {
            let directory = self.session.config().working_directory().display().to_string();
            let own = format!("{RAN_COMMAND}{directory}: {ending}]\n$ {}\n", line.command);
            let content = TextContent::followed_by_outside(own, output.trim_end());
            if let Err(error) = self.session.tell_model(content).await {
                return self.say(&format!("the model does not see it: {}", error.message));
            }
        }
        Ok(())
    }

    fn command(&self, command: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).kill_on_drop(true);
        shell.current_dir(self.session.config().working_directory());
        if !matches!(self.view, View::Terminal) {
            // Standard input holds the next messages.
            shell.stdin(Stdio::null());
        }
        shell
    }

    /// Lends the terminal to a command. Ctrl-C is the command's own: an interpreter or a pager continues after it.
    async fn on_terminal(&self, command: &str) -> std::io::Result<(String, String)> {
        let mut child = self.command(command).spawn()?;
        loop {
            let cancel = self.closed.child_token();
            let _armed = self.interrupts.arm(cancel.clone());
            let is_over = tokio::select! {
                biased;
                status = child.wait() => {
                    status?;
                    true
                }
                () = cancel.cancelled() => self.closed.is_cancelled() || self.interrupts.is_ending(),
            };
            if is_over {
                return Ok((wait(&mut child, &cancel).await?, String::new()));
            }
        }
    }

    /// Runs a command, and shows and keeps what it prints.
    pub(super) async fn captured(
        &self,
        command: &str,
        cancel: &CancellationToken,
    ) -> std::io::Result<(String, String)> {
        let (mut reader, writer) = output_pipe()?;
        let mut shell = self.command(command);
        shell.stdout(writer.try_clone()?).stderr(writer);
        let mut child = shell.spawn()?;
        // Its ends of the pipe would keep the pipe open.
        drop(shell);
        let mut kept = Vec::new();
        let mut buffer = vec![0; 8 * 1024];
        let mut screen = Screen::default();
        let ending = {
            let waiting = wait(&mut child, cancel);
            tokio::pin!(waiting);
            loop {
                tokio::select! {
                    count = reader.read(&mut buffer) => match count? {
                        0 => break waiting.await?,
                        count => self.print(&buffer[..count], &mut kept, &mut screen)?,
                    },
                    ending = &mut waiting => break ending?,
                }
            }
        };
        // What the command left in the background may hold the pipe open, and may print forever.
        let deadline = tokio::time::Instant::now() + LAST_OUTPUT;
        let mut rest = MOST_LAST_BYTES;
        while rest > 0
            && let Ok(Ok(count @ 1..)) =
                tokio::time::timeout_at(deadline, reader.read(&mut buffer)).await
        {
            rest = rest.saturating_sub(count);
            self.print(&buffer[..count], &mut kept, &mut screen)?;
        }
        let mut output = String::from_utf8_lossy(&kept).into_owned();
        if screen.cut {
            output.insert_str(0, "… the beginning is left out\n");
        }
        if !output.is_empty() && !output.ends_with('\n') {
            self.show("\n")?;
        }
        Ok((ending, output))
    }

    /// Shows a piece of output, and keeps the end of all.
    fn print(&self, piece: &[u8], kept: &mut Vec<u8>, screen: &mut Screen) -> std::io::Result<()> {
        kept.extend_from_slice(piece);
        let surplus = kept.len().saturating_sub(MOST_BYTES);
        if surplus > 0 {
            kept.drain(..surplus);
            screen.cut = true;
        }
        screen.partial.extend_from_slice(piece);
        let whole = match std::str::from_utf8(&screen.partial) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => screen.partial.len(),
        };
        let rest = screen.partial.split_off(whole);
        let text = String::from_utf8_lossy(&screen.partial).into_owned();
        screen.partial = rest;
        let mut safe = Vec::with_capacity(text.len());
        screen.escaper.push(&text, &mut safe);
        self.show(&String::from_utf8(safe).unwrap_or_default())
    }

    fn show(&self, text: &str) -> std::io::Result<()> {
        match &self.view {
            View::Terminal => {
                use std::io::Write;
                let mut stdout = std::io::stdout().lock();
                stdout.write_all(text.as_bytes())?;
                stdout.flush()
            }
            View::Plain(output) => {
                output.push_text(text);
                output.flush();
                Ok(())
            }
        }
    }
}

/// The state of what is shown.
#[derive(Default)]
struct Screen {
    escaper: Escaper,
    /// Bytes of a character that is not whole yet.
    partial: Vec<u8>,
    /// Whether the beginning is not kept any more.
    cut: bool,
}

/// Waits for the end of a command. Ctrl-C on a terminal reaches the command itself too.
async fn wait(child: &mut Child, cancel: &CancellationToken) -> std::io::Result<String> {
    let status = tokio::select! {
        biased;
        status = child.wait() => status?,
        () = cancel.cancelled() => {
            match tokio::time::timeout(LAST_OUTPUT, child.wait()).await {
                Ok(status) => status?,
                Err(_) => {
                    // Not the shell alone: in `a; b` it waits for another process.
                    if let Some(pid) = child.id() {
                        end_child(pid).await;
                    }
                    child.wait().await?
                }
            }
        }
    };
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    })
}
