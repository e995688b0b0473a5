//! The container of a run, from its start until nothing of it is left.

use myclaw_exec::{Finished, Handle, Link, end_traced};
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

use super::Run;
use super::input::clear_input;
use crate::HostError;
use crate::backend::BackendError;
use crate::output::BlockParser;

impl Run<'_> {
    /// Runs the container until it has ended and its blocks are stored.
    pub(super) async fn execute(
        &mut self,
        name: String,
        payload: Vec<u8>,
        link: Link,
        handle: &Handle,
    ) -> Result<Result<Finished, BackendError>, HostError> {
        if let Err(error) = clear_input(self.shared, self.group) {
            let problem = format!("the input of the runner cannot be cleared: {error}");
            return Ok(Err(BackendError::Unusable(problem)));
        }
        // It ends with the container.
        let model = match self.shared.model_socket(&self.group.folder) {
            Ok(model) => model,
            Err(error) => return Ok(Err(BackendError::Unusable(error.to_string()))),
        };
        let options = &self.shared.options;
        let mut launch = self.launch(name, payload);
        launch.model = model.as_ref().map(|_| options.home.model(&self.group.folder));
        let (sender, blocks) = unbounded_channel();
        let mut parser = BlockParser::new(options.limits.block);
        let stop = CancellationToken::new();
        let (finished, blocks) = {
            let mut on_output = |chunk: &[u8]| {
                // The receiver lives as long as the run.
                parser.feed(chunk, &mut |parsed| drop(sender.send(parsed)));
            };
            let running = options.backend.run(launch, link, &stop, &mut on_output);
            self.attend(running, blocks, &stop).await?
        };
        parser.finish(&mut |parsed| drop(sender.send(parsed)));
        drop(sender);
        self.take_rest(blocks).await?;
        // What the runner has started and left behind.
        end_traced(&handle.trace()).await;
        Ok(finished)
    }
}
