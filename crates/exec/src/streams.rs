//! A child's standard input, output and error while it runs.

use std::future::pending;
use std::io::{self, ErrorKind, PipeReader, PipeWriter};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout_at;

use crate::attach::{Attachment, Link, Piece};
use crate::capture::{Capture, CapturedOutput};
use crate::image::ChildStreams;
use crate::pipes::{self, Receiver, Sender};
use crate::terminal::{Side, Terminal};
use crate::{ChildSpec, ErrorOutput, ExecError, OutputLimits};

/// Bytes read at a time: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;
/// How long to wait for output of processes that a program left running, after the program itself has ended. The
/// program's own output is in the pipe by then.
const DRAIN_GRACE: Duration = Duration::from_millis(100);

/// This process's ends of the pipes.
pub(crate) struct Streams<'a> {
    input: Input,
    output: Output,
    errors: Output,
    on_output: &'a mut (dyn FnMut(&[u8]) + Send),
}

/// The child's ends. They are to be dropped once it has been started.
pub(crate) enum ChildEnds {
    Pipes {
        /// `None` for an empty standard input.
        input: Option<PipeReader>,
        output: PipeWriter,
        /// `None` if the errors go to the output.
        errors: Option<PipeWriter>,
    },
    Terminal(Terminal),
}

impl ChildEnds {
    /// In the form that the system takes.
    pub(crate) fn streams(&self) -> ChildStreams<'_> {
        match self {
            Self::Pipes { input, output, errors } => ChildStreams::Open {
                input: input.as_ref(),
                output,
                errors: errors.as_ref().unwrap_or(output),
            },
            Self::Terminal(terminal) => ChildStreams::Terminal(&terminal.path),
        }
    }
}

/// An event on one of the streams.
pub(crate) enum Progress {
    /// This many bytes are in the buffer of the output.
    Output(usize),
    /// This many bytes are in the buffer of the errors.
    Errors(usize),
    /// Some of the input was taken, or no process will read the rest.
    Input,
}

impl<'a> Streams<'a> {
    /// Takes the input out of `spec`.
    pub(crate) fn open(
        spec: &mut ChildSpec,
        link: &mut Link,
        on_output: &'a mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<(Self, ChildEnds), ExecError> {
        let bytes = std::mem::take(&mut spec.input);
        let capture = Capture::new(spec.output.clone()).linked(Arc::clone(&link.shared));
        let no_errors = Output::closed(spec.output.clone());
        if let Attachment::Terminal(size) = link.attachment {
            let terminal = Terminal::open(size).map_err(ExecError::Terminal)?;
            let keyboard = terminal.handle().map_err(ExecError::Terminal)?;
            let screen = terminal.handle().map_err(ExecError::Terminal)?;
            let input = Input::of_terminal(bytes, keyboard, link.input.take());
            let streams = Self {
                input: input.map_err(ExecError::Terminal)?,
                output: Output::of_terminal(screen, capture).map_err(ExecError::Terminal)?,
                errors: no_errors,
                on_output,
            };
            return Ok((streams, ChildEnds::Terminal(terminal)));
        }
        let (input, input_end) = Input::open(bytes, link.input.take()).map_err(ExecError::Pipe)?;
        let (output, output_end) = Output::open(capture).map_err(ExecError::Pipe)?;
        let (errors, errors_end) = match spec.errors {
            ErrorOutput::WithOutput => (no_errors, None),
            ErrorOutput::Apart => {
                // Standard error does not go into the side file.
                let limits = OutputLimits { side_file: None, ..spec.output.clone() };
                let (errors, end) = Output::open(Capture::new(limits)).map_err(ExecError::Pipe)?;
                (errors, Some(end))
            }
        };
        let ends = ChildEnds::Pipes { input: input_end, output: output_end, errors: errors_end };
        Ok((Self { input, output, errors, on_output }, ends))
    }

    /// Whether any process can still write to the output or to the errors.
    pub(crate) fn may_print(&self) -> bool {
        self.output.is_open() || self.errors.is_open()
    }

    /// Waits for something to happen, forever if nothing can. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Progress {
        tokio::select! {
            biased;
            length = self.output.read(), if self.output.is_open() => Progress::Output(length),
            length = self.errors.read(), if self.errors.is_open() => Progress::Errors(length),
            () = self.input.write(), if self.input.is_open() => Progress::Input,
            () = pending() => Progress::Input,
        }
    }

    /// Keeps what has arrived. Must not be dropped before its end.
    pub(crate) async fn take(&mut self, progress: Progress) {
        match progress {
            Progress::Output(length) => {
                (self.on_output)(self.output.piece(length));
                self.output.take(length).await;
            }
            Progress::Errors(length) => self.errors.take(length).await,
            Progress::Input => {}
        }
    }

    /// Takes what is still in the pipes; returns at their end, or a little later if somebody holds one open.
    pub(crate) async fn drain(&mut self) {
        self.input.close();
        let deadline = tokio::time::Instant::now() + DRAIN_GRACE;
        while self.may_print() {
            let Ok(progress) = timeout_at(deadline, self.next()).await else { return };
            self.take(progress).await;
        }
    }

    /// Keeps reading for processes that were left running: without a reader, their next line would kill them.
    pub(crate) fn leave_to_themselves(&mut self) {
        self.output.leave_to_itself();
        self.errors.leave_to_itself();
    }

    /// What was printed: output, and errors if they are kept apart.
    pub(crate) async fn finish(self) -> (CapturedOutput, CapturedOutput) {
        (self.output.capture.finish().await, self.errors.capture.finish().await)
    }
}

/// The writing end of a child's standard input.
struct Input {
    /// `None` once everything is written and no more comes, or no process can read it any more.
    sender: Option<Sender>,
    bytes: Vec<u8>,
    written: usize,
    /// Further input; `None` if there is none.
    more: Option<mpsc::Receiver<Piece>>,
}

impl Input {
    fn open(
        bytes: Vec<u8>,
        more: Option<mpsc::Receiver<Piece>>,
    ) -> io::Result<(Self, Option<PipeReader>)> {
        if bytes.is_empty() && more.is_none() {
            return Ok((Self { sender: None, bytes, written: 0, more }, None));
        }
        let (reader, writer) = io::pipe()?;
        let sender = pipes::sender(writer)?;
        Ok((Self { sender: Some(sender), bytes, written: 0, more }, Some(reader)))
    }

    fn of_terminal(
        bytes: Vec<u8>,
        keyboard: Side,
        more: Option<mpsc::Receiver<Piece>>,
    ) -> io::Result<Self> {
        let sender = pipes::keyboard(keyboard)?;
        Ok(Self { sender: Some(sender), bytes, written: 0, more })
    }

    fn is_open(&self) -> bool {
        self.sender.is_some()
    }

    fn close(&mut self) {
        self.sender = None;
        // The writer gets an error, because nobody reads.
        self.more = None;
    }

    /// Writes as much as fits into the pipe now, or waits for more to write. May be dropped and called again.
    async fn write(&mut self) {
        if self.written == self.bytes.len() {
            self.next_piece().await;
            return;
        }
        let Some(sender) = &self.sender else { return };
        let wrote = match sender.writable().await {
            Ok(()) => sender.try_write(&self.bytes[self.written..]),
            Err(error) => Err(error),
        };
        match wrote {
            Ok(length) => self.written += length,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // A program need not read its input.
            Err(_) => self.close(),
        }
        if self.written == self.bytes.len() && self.more.is_none() {
            self.close();
        }
    }

    /// Waits for the next piece, or closes the input after the last one.
    async fn next_piece(&mut self) {
        let piece = match &mut self.more {
            Some(more) => more.recv().await,
            None => None,
        };
        match piece {
            Some(Piece::Bytes(bytes)) => (self.bytes, self.written) = (bytes, 0),
            Some(Piece::End) | None => self.close(),
        }
    }
}

/// The reading end of a child's standard output or standard error.
struct Output {
    /// `None` once no process can write any more.
    receiver: Option<Receiver>,
    buffer: Vec<u8>,
    capture: Capture,
}

impl Output {
    fn open(capture: Capture) -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        let receiver = pipes::receiver(reader)?;
        Ok((Self::reading(receiver, capture), writer))
    }

    /// The kernel reports an error, not the end, when the last process has closed a terminal; it counts as the end.
    fn of_terminal(screen: Side, capture: Capture) -> io::Result<Self> {
        Ok(Self::reading(pipes::screen(screen)?, capture))
    }

    fn reading(receiver: Receiver, capture: Capture) -> Self {
        Self { receiver: Some(receiver), buffer: vec![0; READ_BYTES], capture }
    }

    /// No process writes to it.
    fn closed(limits: OutputLimits) -> Self {
        Self { receiver: None, buffer: Vec::new(), capture: Capture::new(limits) }
    }

    fn is_open(&self) -> bool {
        self.receiver.is_some()
    }

    /// Waits for output and returns how many bytes of it are in the buffer. May be dropped and called again.
    async fn read(&mut self) -> usize {
        loop {
            let Some(receiver) = &self.receiver else { return 0 };
            let read = match receiver.readable().await {
                Ok(()) => receiver.try_read(&mut self.buffer),
                Err(error) => Err(error),
            };
            match read {
                Ok(length) if length > 0 => return length,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                // The end, or an error after which nothing more can come.
                Ok(_) | Err(_) => self.receiver = None,
            }
        }
    }

    fn piece(&self, length: usize) -> &[u8] {
        &self.buffer[..length]
    }

    async fn take(&mut self, length: usize) {
        self.capture.push(&self.buffer[..length]).await;
    }

    fn leave_to_itself(&mut self) {
        let Some(receiver) = self.receiver.take() else { return };
        tokio::spawn(async move {
            let mut buffer = vec![0; READ_BYTES];
            while receiver.readable().await.is_ok() {
                match receiver.try_read(&mut buffer) {
                    Ok(0) => return,
                    Err(error)
                        if !matches!(
                            error.kind(),
                            ErrorKind::WouldBlock | ErrorKind::Interrupted
                        ) =>
                    {
                        return;
                    }
                    Ok(_) | Err(_) => {}
                }
            }
        });
    }
}
