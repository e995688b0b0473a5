//! Windows: starting a program with the standard library.

use std::ffi::CStr;
use std::io;
use std::process::{Child, Command, Stdio};

use myclaw_files::portable::process::Pid;
use myclaw_files::portable::usual_path;

use crate::image::{ChildStreams, Image};

/// A program that was started.
pub(crate) type Started = Child;

/// The id of a program.
pub(crate) fn id_of(started: &Started) -> Pid {
    Pid::of_child(started)
}

/// Starts a program.
///
/// # Errors
/// An I/O error, also if the program cannot be executed or the directory cannot be entered.
pub(crate) fn spawn(image: &Image<'_>) -> io::Result<Started> {
    let (input, output, errors) = match image.streams {
        ChildStreams::Open { input, output, errors } => (input, output, errors),
        ChildStreams::Terminal(name) => {
            let why = format!("Windows has no terminal {}", text(name));
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
    };
    let mut command = Command::new(&*text(image.program));
    command.args(image.arguments.iter().skip(1).map(|argument| text(argument).into_owned()));
    command.env_clear().current_dir(usual_path(text(image.directory).into_owned().into()));
    for variable in image.environment {
        if let Some((name, value)) = text(variable).split_once('=') {
            command.env(name, value);
        }
    }
    command.stdin(match input {
        Some(input) => Stdio::from(input.try_clone()?),
        None => Stdio::null(),
    });
    command.stdout(output.try_clone()?).stderr(errors.try_clone()?);
    command.spawn()
}

fn text(text: &CStr) -> std::borrow::Cow<'_, str> {
    text.to_string_lossy()
}
