//! The messages of a question: what it shows, page by page, and how it is answered.

use myclaw_channels::Button;
use myclaw_engine::ScopeKind;

use super::{AskedPlace, SentMessage};
use crate::delivery::Delivery;
use crate::questions::Question;
use crate::route::Route;
use crate::rows::{Outgoing, PartId, PartKind};

/// Bytes of a question that are sent at once. More is shown when the owner asks for it, because a chat takes only so many
/// messages in a minute.
const PAGE_BYTES: usize = 12_000;
/// More choices than this are written and not pressed.
const MOST_BUTTONS: usize = 8;
/// Most bytes of the command of a button in Telegram (`callback_data` of its Bot API), which has the least room.
const MOST_BUTTON_BYTES: usize = 64;

impl Delivery {
    /// The messages of a question in a chat, in groups that are sent at once. The last message says how it is answered.
    pub(super) fn pages(&self, code: &str, question: &Question, route: &Route) -> Vec<Vec<String>> {
        let mut pages: Vec<Vec<String>> = Vec::new();
        let mut bytes = 0;
        for message in self.outbox.split(route, &question.shown().message()) {
            bytes += message.len();
            match pages.last_mut() {
                Some(page) if bytes <= PAGE_BYTES => page.push(message),
                _ => {
                    bytes = message.len();
                    pages.push(vec![message]);
                }
            }
        }
        let count = pages.len();
        for (number, page) in pages.iter_mut().enumerate() {
            let end = match number + 1 == count {
                true => self.how_to_answer(code, question, route),
                false => format!(
                    "This is page {} of {count} of the question `{code}`. It can be approved when all of it was shown: \
                     /question {code} shows the next page. To say no, write /deny {code}.",
                    number + 1
                ),
            };
            let last = page.last().map_or_else(|| end.clone(), |last| format!("{last}\n\n{end}"));
            match self.outbox.split(route, &last).len() {
                0 | 1 => {
                    page.pop();
                    page.push(last);
                }
                _ => page.push(end),
            }
        }
        pages
    }

    fn how_to_answer(&self, code: &str, question: &Question, route: &Route) -> String {
        let seconds = question.limit().1 / 1_000;
        let mut text = format!("Answer the question `{code}` within {seconds} s:\n\n");
        let wants = question.shown().wants.as_ref();
        if let Some(wants) = wants {
            text.push_str(&format!("- /answer {code} … – your words\n"));
            if let Some(without) = &wants.without {
                text.push_str(&format!("- /answer {code} - – {}\n", without.replace('`', "'")));
            }
            text.push_str(&format!("- /cancel {code} – closes the question\n"));
        } else {
            text.push_str(&format!("- /approve {code} – once\n"));
        }
        for (number, (kind, covers)) in question.shown().scopes().enumerate() {
            let more = if number > 0 && kind == ScopeKind::Directory { " directory" } else { "" };
            text.push_str(&format!("- /always {code}{more} – always for {covers}\n"));
        }
        text.push_str(&format!("- /deny {code} – no; a reason may follow\n\n"));
        text.push_str(match self.config().tools.approvals.has_owner(&route.channel) {
            true if wants.is_some() => {
                "Or answer this very message with your words. Only the owner's answer counts. Where / is for commands of the \
                 app, write !answer and so on."
            }
            true => {
                "Or answer this very message with yes, or with no and why. Only the owner's answer counts. Where / is for \
                 commands of the app, write !approve and so on."
            }
            false => {
                "Nobody can answer it here, because tools.approvals.owners names nobody of this channel. The owner answers \
                 in the web chat, or in a terminal with myclaw attach."
            }
        });
        text
    }

    /// The parts of the next page of a question in a chat. `said` is their idempotency key.
    pub(super) fn next_page(
        &self,
        code: &str,
        question: &Question,
        place: &mut AskedPlace,
        said: &str,
    ) -> Vec<(PartId, Outgoing)> {
        let Some(page) = place.pages.get(place.shown) else { return Vec::new() };
        place.shown += 1;
        let count = page.len();
        let buttons = match place.shown == place.pages.len() {
            true => self.answer_buttons(code, question, &place.route),
            false => [("Next page", "question"), ("No", "deny")]
                .into_iter()
                .filter_map(|(text, word)| {
                    self.outbox.button(&place.route, text, format!("/{word} {code}"))
                })
                .collect(),
        };
        let mut parts = Vec::with_capacity(count);
        for (number, text) in page.iter().enumerate() {
            let content = (text.clone(), None);
            let (id, mut part) =
                self.part_of(&place.route, "", said, PartKind::Report, (number, count), content);
            if number + 1 == count {
                part.buttons.clone_from(&buttons);
            }
            let has_buttons = !part.buttons.is_empty();
            let text = has_buttons.then(|| text.clone());
            place.sent.push(SentMessage { part: id.clone(), text });
            parts.push((id, part));
        }
        parts
    }

    fn answer_buttons(&self, code: &str, question: &Question, route: &Route) -> Vec<Button> {
        if !self.config().tools.approvals.has_owner(&route.channel) {
            return Vec::new();
        }
        let mut wanted = match &question.shown().wants {
            Some(wants) => {
                let choices = wants.choices.iter();
                let pressed =
                    |choice: &String| (choice.clone(), format!("/answer {code} {choice}"));
                let wanted: Vec<_> = choices.map(pressed).collect();
                let fits = |(_, command): &(_, String)| command.len() <= MOST_BUTTON_BYTES;
                let all_fit = wanted.len() <= MOST_BUTTONS && wanted.iter().all(fits);
                if all_fit { wanted } else { Vec::new() }
            }
            None => vec![("Once".to_owned(), format!("/approve {code}"))],
        };
        for (number, (kind, _)) in question.shown().scopes().enumerate() {
            wanted.push(match kind {
                ScopeKind::Directory if number > 0 => {
                    ("Always in this directory".to_owned(), format!("/always {code} directory"))
                }
                _ => ("Always".to_owned(), format!("/always {code}")),
            });
        }
        wanted.push(("No".to_owned(), format!("/deny {code}")));
        let buttons = wanted.into_iter();
        buttons.filter_map(|(text, command)| self.outbox.button(route, &text, command)).collect()
    }
}
