//! `myclaw mcp login` and `logout`.

use std::io::{self, IsTerminal as _};
use std::process::{Command, Stdio};
use std::thread;

use myclaw_agent::mcp::ConfiguredServer;
use tokio::sync::oneshot;

use myclaw_front::exit::CliError;
use myclaw_front::print::{Printer, note};
use myclaw_front::runtime;
use myclaw_front::terminal::escaped;

pub(super) fn log_in(server: &ConfiguredServer, scope: Option<String>) -> Result<(), CliError> {
    let issuer = runtime::block_on(async {
        let begun = server.begin_login(scope).await?;
        note(format_args!(
            "open this page in a browser:\n\n    {}\n\nwaiting for its answer. If the browser runs on another machine, paste the \
             address of the page that it ends at; Ctrl-C gives up",
            escaped(begun.address.as_str())
        ));
        open_browser(begun.address.as_str());
        server.finish_login(begun, pasted()).await
    })??;
    let mut printer = Printer::stdout();
    printer.safe_lines([format!("logged in at {issuer}")])?;
    if server.approved()?.is_none() {
        printer.line(format_args!(
            "its tools are not approved yet: `myclaw mcp approve {}`",
            server.name
        ))?;
    }
    printer.finish()
}

/// A line of standard input with text; never without one.
pub(in crate::commands) async fn pasted() -> Option<String> {
    let (sender, line) = oneshot::channel();
    // A read that nobody ends must not keep the program from ending.
    thread::spawn(move || {
        let lines = io::stdin().lines().map_while(Result::ok);
        if let Some(line) = lines.map(|line| line.trim().to_owned()).find(|line| !line.is_empty()) {
            let _ = sender.send(line);
        }
    });
    line.await.ok()
}

/// Opens the page, where somebody sits in front of this machine. The address is printed in any case.
pub(in crate::commands) fn open_browser(address: &str) {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_screen = cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    if !has_screen || is_set("SSH_CONNECTION") || !io::stderr().is_terminal() {
        return;
    }
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Whoever has no such program opens the page.
    drop(command.spawn());
}

pub(super) fn log_out(server: &ConfiguredServer) -> Result<(), CliError> {
    let was_there = server.log_out()?;
    let mut printer = Printer::stdout();
    match was_there {
        true => printer.line(format_args!(
            "the login at {} is forgotten here; the server may still know it",
            server.name
        ))?,
        false => printer.line(format_args!("there is no login at {}", server.name))?,
    }
    printer.finish()
}
