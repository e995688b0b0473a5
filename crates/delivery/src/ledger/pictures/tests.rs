//! Tests of pictures that are stored apart.

use std::sync::Arc;

use myclaw_store::{MemoryStore, QueueId, Store};

use super::*;
use crate::ledger::{Acceptance, OVER};
use crate::route::Route;
use crate::rows::MessageState;

fn picture(bytes: usize) -> ImageContent {
    ImageContent { data: "A".repeat(bytes), mime_type: "image/png".to_owned() }
}

#[tokio::test]
async fn pictures_are_written_once_and_read_with_their_message() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let ledger = Ledger::new(Arc::clone(&store));
    for (source, sizes) in [("small", vec![100]), ("large", vec![3 * 1024 * 1024, 100])] {
        let images: Vec<ImageContent> = sizes.into_iter().map(picture).collect();
        let route = Route::internal("test");
        let id = MessageId::of(&route, source);
        let new = Incoming::new(route, source.to_owned(), "s".to_owned(), "see".to_owned(), 1);
        let row = Incoming { images: images.clone(), ..new };
        let stored = ledger.store_message(id.clone(), row.clone(), Vec::new(), &[]).await;
        let Ok(Acceptance::New(message)) = stored else { panic!("{stored:?}") };
        assert!(message.row.images == images, "the session gets other pictures");
        let mut open = ledger.open_messages().await.expect("read");
        for message in &mut open {
            *message = ledger.with_pictures(message.clone()).await.expect("read");
        }
        assert!(open.len() == 1 && open[0].row.images == images, "the next start finds others");

        let chunks = || store.scan(QueueId::new("blobs"), None, 100);
        let before = chunks().await.expect("a store that works");
        let answered = |_: &OpenMessage| MessageState::Answered { parts: Vec::new() };
        let settled = ledger.settle(&open, &answered, Vec::new(), Vec::new()).await;
        assert!(settled.expect("a store that works").is_some());
        assert!(
            chunks().await.expect("a store that works") == before,
            "pictures were written again"
        );
        let over = store.scan(QueueId::new(OVER), None, 100).await.expect("a store that works");
        assert!(over.iter().all(|record| record.value.len() < 1024), "a row holds its pictures");
        let known = ledger.store_message(id.clone(), row, Vec::new(), &[]).await;
        let Ok(Acceptance::Known(known)) = known else { panic!("{known:?}") };
        assert!(known.images == images, "the same message again is another one");

        ledger.forget(&id, "forgotten").await.expect("forgotten").expect("a message");
        assert_eq!(chunks().await.expect("a store that works"), [], "pictures stay");
        assert!(ledger.message(&id).await.expect("read").expect("a message").images.is_empty());
    }
}
