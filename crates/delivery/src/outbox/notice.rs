//! What people are told of parts that may not have arrived.

use super::Outbox;
use crate::ledger::{UnsentPart, now_ms};
use crate::rows::{Act, Outgoing, PartId, PartKind, PartState, Refers};

impl Outbox {
    /// Notice to the reader of an uncertain part.
    pub(super) fn notice(&self, part: &UnsentPart) -> (PartId, Outgoing) {
        let row = &part.row;
        let said = format!("uncertain {}", part.id.as_str());
        let id = PartId::of(&row.session, &said, &row.route, 0);
        let tells_of = Some(part.id.clone());
        let notice = Outgoing {
            kind: PartKind::Report,
            part: 0,
            parts: 1,
            text: wording(row),
            buttons: self.button(&row.route, SEND_AGAIN, "/again".to_owned()).into_iter().collect(),
            act: None,
            refers: Refers { reply_to: row.refers.reply_to.clone(), tells_of, ..Refers::default() },
            pause_ms: None,
            created_at: now_ms(),
            state: PartState::Queued,
            ..row.clone()
        };
        (id, notice)
    }
}

/// The button of that command below the notice.
const SEND_AGAIN: &str = "Send it again";

/// Notice to a person about a part that may be missing.
fn wording(part: &Outgoing) -> String {
    let what = match (&part.refers.file, &part.act) {
        (Some(file), _) => format!("the file {}", file.name),
        (None, Some(Act::Poll { .. })) => "a poll".to_owned(),
        (None, _) if part.parts > 1 => {
            format!("part {} of {} of an answer", part.part + 1, part.parts)
        }
        (None, _) => "an answer".to_owned(),
    };
    format!(
        "I do not know whether {what} arrived, so it may be missing here. Write /again, or !again, and I send what may be \
         missing."
    )
}
