//! Replaces the `myclaw` program in tests: started with a hidden argument, it confines itself or tries to escape.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(std::ffi::OsStr::to_str) {
        #[cfg(target_os = "linux")]
        Some("__sandbox-exec") => myclaw_sandbox::enter_and_exec(arguments),
        #[cfg(target_os = "linux")]
        Some("__escape") => myclaw_sandbox::escapes::attempt(arguments),
        #[cfg(target_os = "linux")]
        Some("table") => table(),
        _ => {
            eprintln!("this program is for tests");
            ExitCode::FAILURE
        }
    }
}

/// Prints the table of attempts for the user that runs this program.
#[cfg(target_os = "linux")]
fn table() -> ExitCode {
    let table = || -> Result<String, Box<dyn std::error::Error>> {
        let program = std::env::current_exe()?;
        let sandbox = myclaw_sandbox::Sandbox::new(&program, ["__sandbox-exec".into()]);
        let level = match std::env::args().nth(2).as_deref() {
            Some("bubblewrap") => myclaw_sandbox::Level::Bubblewrap,
            _ => myclaw_sandbox::Level::Landlock,
        };
        let rows =
            myclaw_sandbox::escapes::try_all(&sandbox, &program, &["__escape".into()], level)?;
        Ok(rows.iter().map(|row| format!("{row}\n")).collect())
    };
    match table() {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
