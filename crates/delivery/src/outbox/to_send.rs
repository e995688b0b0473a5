//! Parts in the words of channels.

use std::io;
use std::sync::Arc;

use myclaw_channels::{FileContent, Part, PartFile, PartKind as Author, Target};
use myclaw_session::{Blobs, NamedBlob};

use crate::ledger::UnsentPart;
use crate::rows::{MessageId, PartKind};

/// The copy of a file.
#[derive(Debug)]
struct Copied(Arc<dyn Blobs>, NamedBlob);

impl FileContent for Copied {
    fn size(&self) -> io::Result<u64> {
        self.0.open(&self.1).map(|open| open.bytes).map_err(io::Error::other)
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        self.0.open(&self.1).map_err(io::Error::other)?.read_all()
    }

    fn describe(&self) -> String {
        self.0.describe(&self.1)
    }
}

/// A part in the words of channels.
pub(super) fn to_send(part: &UnsentPart, files: &Arc<dyn Blobs>, is_repeat: bool) -> Part {
    let row = &part.row;
    let is_picture = |name: &str| {
        let end = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        ["png", "jpg", "jpeg", "webp"].contains(&end.as_str())
    };
    Part {
        id: part.id.as_str().to_owned(),
        target: Target::from_text(&row.route.chat),
        session: row.session.clone(),
        answers: row.answers.iter().map(MessageId::to_string).collect(),
        kind: match row.kind {
            PartKind::Reply => Author::Reply,
            PartKind::Report => Author::Report,
        },
        created_at: row.created_at,
        number: row.part,
        count: row.parts,
        text: row.text.clone(),
        buttons: row.buttons.clone(),
        file: row.refers.file.as_ref().map(|file| PartFile {
            content: Arc::new(Copied(Arc::clone(files), file.blob.clone())),
            is_picture: is_picture(&file.name),
            name: file.name.clone(),
        }),
        reply_to: row.refers.reply_to.clone(),
        replaces: row.refers.replaces.clone(),
        is_repeat,
    }
}
