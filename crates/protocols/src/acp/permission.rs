//! Questions about calls that need an approval, as the protocol's own permission requests.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationContentValue, ElicitationFormMode, ElicitationSchema, ElicitationSessionScope,
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SessionId, StringPropertySchema, ToolCallId, ToolCallUpdate,
};
use futures_util::future::BoxFuture;
use myclaw_agent::approvals::{Question, refusal};
use myclaw_engine::{AlwaysScope, Approval, ApprovalRequest, Approver, WantedWords};

use super::client_sessions::ClientSessions;
use super::requests::Requests;

/// The ids of the options. That of each further scope of "always" has its place behind it, such as `always-1`.
const ONCE: &str = "once";
const ALWAYS: &str = "always";
const NO: &str = "no";
/// Those after which a form asks for words.
const NO_BECAUSE: &str = "no-because";
const INSTEAD: &str = "instead";
/// The field of a form that asks for words.
const WORDS: &str = "answer";
/// What the model reads if the editor has no forms.
const NO_FORMS: &str = "this editor cannot show a form, so the user was not asked";

fn always_id(place: usize) -> String {
    if place == 0 { ALWAYS.to_owned() } else { format!("{ALWAYS}-{place}") }
}

/// Asks the client.
pub(super) struct Permissions {
    pub(super) requests: Arc<Requests>,
    pub(super) sessions: Arc<ClientSessions>,
}

impl Approver for Permissions {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let question = Question::from(request);
            let Some((session, call)) = self.sessions.call_to_approve(request, &question) else {
                return denied("the session is closed");
            };
            if let Some(wants) = &question.wants {
                return self.words(session, call, &question, wants).await;
            }
            let once = PermissionOption::new(ONCE, "Allow once", PermissionOptionKind::AllowOnce);
            let always = |(place, scope): (usize, &AlwaysScope)| {
                let text = format!("Always allow {}", scope.covers());
                PermissionOption::new(always_id(place), text, PermissionOptionKind::AllowAlways)
            };
            let mut options = vec![once];
            options.extend(question.always.iter().enumerate().map(always));
            let has_forms = self.sessions.abilities().forms;
            if let Some((text, _)) = replacement(&question).filter(|_| has_forms) {
                let kind = PermissionOptionKind::AllowOnce;
                options.push(PermissionOption::new(INSTEAD, text, kind));
            }
            options.push(PermissionOption::new(NO, "Reject", PermissionOptionKind::RejectOnce));
            if has_forms {
                let kind = PermissionOptionKind::RejectOnce;
                options.push(PermissionOption::new(NO_BECAUSE, "Reject, and say why", kind));
            }
            let asked = RequestPermissionRequest::new(session.clone(), call.clone(), options);
            let method = CLIENT_METHOD_NAMES.session_request_permission;
            let response: Result<RequestPermissionResponse, String> =
                self.requests.ask(method, asked).await;
            match chosen(&response) {
                Some(NO_BECAUSE) => match self.said(session, call, &question, "Why not").await {
                    Approval::Said { words } => denied(&refusal(Some(&words))),
                    // It is a no in any case.
                    _ => denied(&refusal(None)),
                },
                Some(INSTEAD) => {
                    let label = replacement(&question).map_or("", |(_, label)| label);
                    match self.said(session, call, &question, label).await {
                        Approval::Said { words: command } => Approval::Instead { command },
                        other => other,
                    }
                }
                _ => approval(request, response),
            }
        })
    }
}

/// What an option and its form say that change what a call does; `None` if nothing can stand in its place.
fn replacement(question: &Question) -> Option<(&'static str, &'static str)> {
    if question.is_plan() {
        return Some(("Change the steps", "The steps, one in each line or with `;` between them"));
    }
    question.has_command().then_some(("Run another command", "The command"))
}

/// The id of the option that was chosen.
fn chosen(response: &Result<RequestPermissionResponse, String>) -> Option<&str> {
    match response.as_ref().map(|response| &response.outcome) {
        Ok(RequestPermissionOutcome::Selected(selected)) => Some(&selected.option_id.0),
        _ => None,
    }
}

impl Permissions {
    /// Asks with a form for a text.
    async fn said(
        &self,
        session: SessionId,
        call: ToolCallUpdate,
        question: &Question,
        label: &str,
    ) -> Approval {
        let wants = WantedWords { label: label.to_owned(), choices: Vec::new(), without: None };
        self.words(session, call, question, &wants).await
    }

    /// Asks for words: with a form if the client has some, else with the choices as options.
    async fn words(
        &self,
        session: SessionId,
        call: ToolCallUpdate,
        question: &Question,
        wants: &WantedWords,
    ) -> Approval {
        if self.sessions.abilities().forms {
            let asked = form(session, call.tool_call_id, question, wants);
            let method = CLIENT_METHOD_NAMES.elicitation_create;
            return words(self.requests.ask(method, asked).await);
        }
        if wants.choices.is_empty() {
            return denied(NO_FORMS);
        }
        let choices = wants.choices.iter().enumerate();
        let mut options: Vec<PermissionOption> = choices
            .map(|(place, choice)| {
                let kind = PermissionOptionKind::AllowOnce;
                PermissionOption::new(format!("choice-{place}"), choice.clone(), kind)
            })
            .collect();
        options.push(PermissionOption::new(NO, "Reject", PermissionOptionKind::RejectOnce));
        let asked = RequestPermissionRequest::new(session, call, options);
        let method = CLIENT_METHOD_NAMES.session_request_permission;
        let response: Result<RequestPermissionResponse, String> =
            self.requests.ask(method, asked).await;
        match response.map(|response| response.outcome) {
            Ok(RequestPermissionOutcome::Selected(selected)) => {
                let place = selected.option_id.0.strip_prefix("choice-");
                let choice =
                    place.and_then(|place| wants.choices.get(place.parse::<usize>().ok()?));
                choice.map_or_else(
                    || denied(&refusal(None)),
                    |choice| Approval::Said { words: choice.clone() },
                )
            }
            Ok(_) => Approval::Cancelled,
            Err(why) => denied(&format!("the editor cannot ask: {why}")),
        }
    }
}

/// A form with one field, for the words of an answer.
fn form(
    session: SessionId,
    call: ToolCallId,
    question: &Question,
    wants: &WantedWords,
) -> CreateElicitationRequest {
    let mut field = StringPropertySchema::new().title(wants.label.clone());
    let without = wants.without.as_ref().map(|without| format!("empty for {without}"));
    let choices = (!wants.choices.is_empty()).then(|| wants.choices.join(", "));
    let about: Vec<String> = choices.into_iter().chain(without).collect();
    if !about.is_empty() {
        field = field.description(about.join("; "));
    }
    let schema = ElicitationSchema::new().property(WORDS, field, wants.without.is_none());
    let scope = ElicitationSessionScope::new(session).tool_call_id(call);
    CreateElicitationRequest::new(ElicitationFormMode::new(scope, schema), question.message())
}

/// The meaning of the answer to a form.
fn words(response: Result<CreateElicitationResponse, String>) -> Approval {
    match response.map(|response| response.action) {
        Ok(ElicitationAction::Accept(accepted)) => {
            let content = accepted.content.unwrap_or_default();
            let words = match content.get(WORDS) {
                Some(ElicitationContentValue::String(words)) => words.clone(),
                _ => String::new(),
            };
            Approval::Said { words }
        }
        Ok(ElicitationAction::Decline) => denied(&refusal(None)),
        Ok(_) => Approval::Cancelled,
        Err(why) => denied(&format!("the editor cannot ask: {why}")),
    }
}

/// The meaning of a response. Everything but a clear yes counts as no.
fn approval(
    request: &ApprovalRequest,
    response: Result<RequestPermissionResponse, String>,
) -> Approval {
    match response.map(|response| response.outcome) {
        Ok(RequestPermissionOutcome::Selected(selected)) => match &*selected.option_id.0 {
            ONCE => Approval::Once,
            chosen => {
                let mut scopes = request.always.iter().enumerate();
                let scope = scopes.find(|(place, _)| always_id(*place) == chosen);
                scope.map_or_else(
                    || denied(&refusal(None)),
                    |(_, scope)| Approval::Always(scope.clone()),
                )
            }
        },
        Ok(_) => Approval::Cancelled,
        Err(why) => denied(&format!("the editor cannot ask: {why}")),
    }
}

fn denied(reason: &str) -> Approval {
    Approval::Denied { reason: reason.to_owned() }
}
