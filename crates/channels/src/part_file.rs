//! Files that channels send.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::send_failure::SendFailure;

/// The content of a file to send. It does not change. All calls block.
pub trait FileContent: fmt::Debug + Send + Sync {
    /// How many bytes it has.
    ///
    /// # Errors
    /// It cannot be read.
    fn size(&self) -> io::Result<u64>;

    /// All of it.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self) -> io::Result<Vec<u8>>;

    /// Where it is, for programs on this machine that can read it there.
    fn describe(&self) -> String;
}

/// A file to send.
#[derive(Debug, Clone)]
pub struct PartFile {
    /// What it holds.
    pub content: Arc<dyn FileContent>,
    /// Its name for the receiver.
    pub name: String,
    /// Whether it is shown as a picture.
    pub is_picture: bool,
}

impl PartFile {
    pub(crate) async fn read(&self) -> Result<Vec<u8>, SendFailure> {
        self.with_content(|content| content.read()).await
    }

    /// Its size in bytes.
    pub(crate) async fn size(&self) -> Result<u64, SendFailure> {
        self.with_content(|content| content.size()).await
    }

    async fn with_content<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn FileContent) -> io::Result<T> + Send + 'static,
    ) -> Result<T, SendFailure> {
        let content = Arc::clone(&self.content);
        let done = tokio::task::spawn_blocking(move || work(&*content)).await;
        done.unwrap_or_else(|error| Err(error.into())).map_err(|error| SendFailure::Never {
            reason: format!("the file cannot be read: {error}"),
        })
    }
}
