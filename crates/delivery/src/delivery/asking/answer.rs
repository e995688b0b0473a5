//! Answers that the owner gives in chats.

use std::time::Duration;

use myclaw_agent::approvals::{WrittenAnswer, read_answer};
use myclaw_channels::Target;
use myclaw_engine::ScopeKind;

use super::{ASKED, CODE_LETTERS, LETTERS, MESSAGES, message_key};
use crate::DeliveryError;
use crate::delivery::Delivery;
use crate::questions::{Answer, AnswerError, FullAnswer, Question};
use crate::route::Route;
use crate::rows::{Outgoing, PartId};

/// How long an answer waits until the messages of the questions in its chat are sent.
const CONFIRMATION: Duration = Duration::from_secs(3);

const NO_ANSWER: &str = "I took this for an answer to the question and did not understand it. Answer yes, always, or no and \
                         why. What is meant for the agent, write without referring to the question.";
const UNSEEN: &str = "Not all of this question was shown yet, so it cannot be approved.";
const WANTS_WORDS: &str = "This question wants an answer in words:";
const NOT_OFFERED: &str = "This question does not offer that. It can be approved once, with";

/// What somebody wants who answers a question in a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChatAnswer {
    /// An answer, to the question with this code.
    Given(String, FullAnswer),
    /// The next page of the question with this code.
    Page(String),
    /// Something that cannot be used; what is said about it.
    Unclear(&'static str),
}

/// What became of an answer.
enum Given {
    Answered(Result<Box<(Question, Answer)>, AnswerError>),
    /// Not all of the question was shown.
    Unseen,
}

impl ChatAnswer {
    /// Reads what stands behind `/` in a message.
    pub(crate) fn of_command(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let (code, more) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
        let (code, more) = (code.to_lowercase(), more.trim());
        let given = |answer, scope, reason: Option<&str>| {
            let reason = reason.filter(|reason| !reason.is_empty()).map(str::to_owned);
            Some(Self::Given(code.clone(), FullAnswer { answer, scope, reason, words: None }))
        };
        let written = |answer| Some(Self::Given(code.clone(), FullAnswer::from(answer)));
        let missing = Some(Self::Unclear(
            "Write the code of the question, which is in its message: /approve CODE, /always CODE, or /deny CODE and why.",
        ));
        let is_code = code.len() == CODE_LETTERS && code.bytes().all(|it| LETTERS.contains(&it));
        match word.to_ascii_lowercase().as_str() {
            // Words that people also begin a message to the agent with.
            "always" | "question" | "answer" if !code.is_empty() && !is_code => None,
            "cancel" if !is_code => None,
            "approve" | "always" | "deny" | "question" | "answer" if code.is_empty() => missing,
            // The second words are those of OpenClaw.
            "approve" => match more.to_ascii_lowercase().as_str() {
                "" | "once" | "allow-once" => given(Answer::Once, None, None),
                "always" | "allow-always" => given(Answer::Always, None, None),
                "deny" | "no" => given(Answer::No, None, None),
                _ => Some(Self::Unclear("Behind the code may stand once, always or deny.")),
            },
            "always" => match more.to_ascii_lowercase().as_str() {
                "" => given(Answer::Always, None, None),
                "directory" => given(Answer::Always, Some(ScopeKind::Directory), None),
                _ => Some(Self::Unclear("Behind the code may stand directory.")),
            },
            "deny" => given(Answer::No, None, Some(more)),
            "answer" if more.is_empty() => Some(Self::Unclear(
                "Write the answer behind the code, or - for no words: /answer CODE and the answer.",
            )),
            "answer" => written(WrittenAnswer::Said(match more {
                "-" => String::new(),
                words => words.to_owned(),
            })),
            "cancel" => written(WrittenAnswer::Cancel),
            "question" => Some(Self::Page(code.clone())),
            _ => None,
        }
    }

    fn of_words(code: String, answer: Option<WrittenAnswer>) -> Self {
        match answer {
            Some(answer) => Self::Given(code, answer.into()),
            None => Self::Unclear(NO_ANSWER),
        }
    }
}

impl Delivery {
    /// The answer that a message gives by referring to a message of a question; `None` if it refers to another one.
    pub(crate) async fn answer_to_message(
        &self,
        route: &Route,
        message: &str,
        text: &str,
    ) -> Result<Option<ChatAnswer>, DeliveryError> {
        let chat = Target::from_text(&route.chat).chat;
        let is_there = |other: &Route| {
            (&other.channel, &other.account) == (&route.channel, &route.account)
                && Target::from_text(&other.chat).chat == chat
        };
        let mut candidates = Vec::new();
        for (code, asked) in self.approvals.asked.open.lock().iter() {
            for place in asked.places.iter().filter(|place| is_there(&place.route)) {
                let id = &asked.id;
                let sent = place.sent.iter();
                candidates.extend(sent.map(|sent| (code.clone(), id.clone(), sent.part.clone())));
            }
        }
        // A reader can be faster than the confirmation that the message was sent.
        let ids: Vec<PartId> = candidates.iter().map(|(_, _, part)| part.clone()).collect();
        self.outbox.settled(&ids, tokio::time::sleep(CONFIRMATION)).await?;
        for (code, id, part) in candidates {
            if self.id_of(&part).await?.as_deref() == Some(message) {
                let question = self.approvals.questions.find(&id);
                let answer = question
                    .map_or_else(|| read_answer(text), |question| question.shown().read(text));
                return Ok(Some(ChatAnswer::of_words(code, answer)));
            }
        }
        let over = MESSAGES.get(self.ledger().store(), &message_key(route, message)).await?;
        // Other words about a question that is over are for the agent.
        let Some(answer) = read_answer(text) else { return Ok(None) };
        Ok(over.map(|code| ChatAnswer::of_words(code.row, Some(answer))))
    }

    /// Does what the owner wants who wrote in a chat. Gives what is said, and the parts of a page. `by` names the owner.
    pub(crate) async fn heed_answer(
        &self,
        answer: ChatAnswer,
        (route, by, said): (&Route, String, &str),
    ) -> Result<(String, Vec<Outgoing>), DeliveryError> {
        match answer {
            ChatAnswer::Unclear(why) => Ok((why.to_owned(), Vec::new())),
            ChatAnswer::Given(code, given) => {
                Ok((self.give(&code, given, route, by).await?, Vec::new()))
            }
            ChatAnswer::Page(code) => self.page(&code, route, said).await,
        }
    }

    async fn give(
        &self,
        code: &str,
        given: FullAnswer,
        route: &Route,
        by: String,
    ) -> Result<String, DeliveryError> {
        if let Some(said) =
            self.answer_in_chat_here(code, given.clone(), (route, by.clone())).await?
        {
            return Ok(said);
        }
        match self.answer_in_chat_elsewhere(code, &given, (route, &by)).await {
            Some(said) => Ok(said),
            None => self.no_question(code).await,
        }
    }

    /// What is said to an answer to the question with this code; `None` if this process does not ask it.
    pub async fn answer_in_chat_here(
        &self,
        code: &str,
        given: FullAnswer,
        (route, by): (&Route, String),
    ) -> Result<Option<String>, DeliveryError> {
        let answered = match self.give_now(code, given, route, &by) {
            Given::Answered(answered) => answered,
            Given::Unseen => {
                return Ok(Some(format!("{UNSEEN} /question {code} shows the next page.")));
            }
        };
        let said = match answered {
            Ok(answered) => {
                let (question, kind) = *answered;
                self.approvals.answered.note(&question, kind, &by).await?;
                match kind {
                    Answer::Once => "Approved: the call is made once.",
                    Answer::Always => {
                        "Approved: the call is made, and what this covers is not asked about again."
                    }
                    Answer::No => "Denied: the call is not made.",
                    Answer::Words => "Answered.",
                    Answer::Cancel => "Closed without an answer.",
                    Answer::Instead => "Changed: these steps are the plan.",
                }
                .to_owned()
            }
            Err(AnswerError::NotOffered) => {
                let wants_words =
                    self.question_of(code).is_some_and(|it| it.shown().wants.is_some());
                match wants_words {
                    true => {
                        format!("{WANTS_WORDS} /answer {code} and the answer, or /deny {code}.")
                    }
                    false => format!("{NOT_OFFERED} /approve {code}, or denied."),
                }
            }
            Err(AnswerError::NoQuestion) => return Ok(None),
        };
        Ok(Some(said))
    }

    fn give_now(&self, code: &str, given: FullAnswer, route: &Route, by: &str) -> Given {
        let mut open = self.approvals.asked.open.lock();
        let Some(asked) = open.get_mut(code) else {
            return Given::Answered(Err(AnswerError::NoQuestion));
        };
        let is_shown = asked.places.iter().any(|place| place.shown == place.pages.len());
        let asked_now = self.approvals.questions.find(&asked.id);
        let given = asked_now.map_or(given.clone(), |question| given.to(question.shown()));
        if !matches!(given.answer, Answer::No | Answer::Cancel) && !is_shown {
            return Given::Unseen;
        }
        // Under the lock: the end of the question finds where it was answered.
        let answered = self.approvals.questions.answer(&asked.id, given, by.to_owned());
        if answered.is_ok() {
            asked.answered_in = Some(route.clone());
        }
        Given::Answered(answered.map(Box::new))
    }

    /// What is said about an answer to a question that does not wait.
    async fn no_question(&self, code: &str) -> Result<String, DeliveryError> {
        let known = ASKED.get(self.ledger().store(), code).await?;
        Ok(match known.map(|known| known.row.outcome) {
            Some(Some(outcome)) => {
                format!(
                    "The question `{code}` was over already: {outcome} Your answer changes nothing."
                )
            }
            // It has just been answered.
            Some(None) => format!("The question `{code}` is over. Your answer changes nothing."),
            None => {
                let shown: String =
                    code.chars().filter(char::is_ascii_alphanumeric).take(16).collect();
                format!("There is no question `{shown}`. The code is in the message that asks.")
            }
        })
    }

    /// The open question with this code.
    fn question_of(&self, code: &str) -> Option<Question> {
        let id = self.approvals.asked.open.lock().get(code).map(|asked| asked.id.clone());
        self.approvals.questions.find(&id?)
    }

    /// The next page of a question. `said` names the message that wants it.
    async fn page(
        &self,
        code: &str,
        route: &Route,
        said: &str,
    ) -> Result<(String, Vec<Outgoing>), DeliveryError> {
        let Some(question) = self.question_of(code) else {
            return Ok((self.no_question(code).await?, Vec::new()));
        };
        let mut open = self.approvals.asked.open.lock();
        let place = open
            .get_mut(code)
            .and_then(|asked| asked.places.iter_mut().find(|place| place.route == *route));
        let Some(place) = place else {
            return Ok((
                "The pages of this question are shown in the chat that it came in.".to_owned(),
                Vec::new(),
            ));
        };
        let parts = self.next_page(code, &question, place, said);
        let said = if parts.is_empty() { "All of this question was shown." } else { "" };
        Ok((said.to_owned(), parts.into_iter().map(|(_, part)| part).collect()))
    }
}
