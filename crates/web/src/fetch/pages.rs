//! The pages that were fetched last, so that reading on in a long one does not download it again.

use std::collections::VecDeque;
use std::sync::Arc;

use super::content::Page;
use parking_lot::Mutex;

/// How many are kept. A model seldom reads more pages in turn.
const MAX_PAGES: usize = 4;

/// The pages, each with the URL that was asked for.
#[derive(Debug, Default)]
pub(super) struct Pages(Mutex<VecDeque<(String, Arc<Page>)>>);

impl Pages {
    pub(super) fn get(&self, url: &str) -> Option<Arc<Page>> {
        let pages = self.0.lock();
        pages.iter().find(|(kept, _)| kept == url).map(|(_, page)| Arc::clone(page))
    }

    pub(super) fn keep(&self, url: &str, page: Arc<Page>) {
        let mut pages = self.0.lock();
        pages.retain(|(kept, _)| kept != url);
        pages.truncate(MAX_PAGES - 1);
        pages.push_front((url.to_owned(), page));
    }
}
