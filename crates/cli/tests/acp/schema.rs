//! Whether what the program writes is what the protocol's own types say.

use std::collections::HashMap;

use agent_client_protocol_schema::v1::{
    AuthenticateResponse, CloseSessionResponse, CreateElicitationRequest, DeleteSessionResponse,
    Error, InitializeResponse, JsonRpcMessage, ListSessionsResponse, LoadSessionResponse,
    NewSessionResponse, Notification, PromptResponse, ReadTextFileRequest, Request,
    RequestPermissionRequest, Response, ResumeSessionResponse, SessionNotification,
    SetSessionConfigOptionResponse, SetSessionModeResponse, WriteTextFileRequest,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Checks every line of `output`. `methods` are those of the requests, by their ids.
pub(crate) fn check(output: &str, methods: &HashMap<String, String>) {
    for line in output.lines() {
        let message: Value = serde_json::from_str(line).expect("a line of JSON");
        if message["method"] == "session/request_permission" {
            round_trip::<Request<RequestPermissionRequest>>(&message);
            continue;
        }
        if message["method"] == "elicitation/create" {
            round_trip::<Request<CreateElicitationRequest>>(&message);
            continue;
        }
        if message["method"] == "fs/read_text_file" {
            round_trip::<Request<ReadTextFileRequest>>(&message);
            continue;
        }
        if message["method"] == "fs/write_text_file" {
            round_trip::<Request<WriteTextFileRequest>>(&message);
            continue;
        }
        if message.get("method").is_some() {
            assert_eq!(message["method"], "session/update", "{line}");
            round_trip::<Notification<SessionNotification>>(&message);
            continue;
        }
        if message.get("error").is_some() {
            round_trip::<Response<Value, Error>>(&message);
            continue;
        }
        let method = methods.get(&message["id"].to_string());
        match method.map(String::as_str).expect("an answer to a request") {
            "initialize" => round_trip::<Response<InitializeResponse>>(&message),
            "authenticate" => round_trip::<Response<AuthenticateResponse>>(&message),
            "session/new" => round_trip::<Response<NewSessionResponse>>(&message),
            "session/load" => round_trip::<Response<LoadSessionResponse>>(&message),
            "session/resume" => round_trip::<Response<ResumeSessionResponse>>(&message),
            "session/list" => round_trip::<Response<ListSessionsResponse>>(&message),
            "session/close" => round_trip::<Response<CloseSessionResponse>>(&message),
            "session/delete" => round_trip::<Response<DeleteSessionResponse>>(&message),
            "session/set_mode" => round_trip::<Response<SetSessionModeResponse>>(&message),
            "session/prompt" => round_trip::<Response<PromptResponse>>(&message),
            "session/set_config_option" => {
                round_trip::<Response<SetSessionConfigOptionResponse>>(&message);
            }
            method => panic!("an answer to {method}: {line}"),
        }
    }
}

/// Reads `message` as its type and writes it again: the types pass over what they do not know, so only that shows
/// whether all of it was understood.
fn round_trip<T: DeserializeOwned + Serialize>(message: &Value) {
    let read: JsonRpcMessage<T> = serde_json::from_value(message.clone())
        .unwrap_or_else(|error| panic!("{error}: {message}"));
    assert_eq!(serde_json::to_value(read).unwrap(), *message);
}
