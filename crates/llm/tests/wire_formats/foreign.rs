//! A server that speaks another format than the config says: the error must name the mistake.

use myclaw_llm::wire::Decoder;
use myclaw_llm::{Api, ErrorClass};

use crate::formats::{FORMATS, Framing};
use crate::support::*;

const OLLAMA_LINES: &str = "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"done\":false}\n\
     {\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true}\n";

/// The class and the message of the failure when a server of format `api` answers so.
async fn failure(api: Api, steps: Vec<Step>) -> (ErrorClass, String) {
    let server = Server::start([steps]).await;
    let outcome = call(&provider(), &model(api, &server.url())).await;
    let error = outcome.error();
    (error.class, error.message.replace(&format!("127.0.0.1:{}", server.port), "HOST"))
}

fn complaint(api: Api) -> (ErrorClass, String) {
    let name = serde_json::to_value(api).unwrap();
    let name = name.as_str().unwrap();
    let message =
        format!("testing at HOST: the server does not speak {name}: check `api` and the base URL");
    (ErrorClass::Unknown, message)
}

#[tokio::test]
async fn a_stream_of_another_format() {
    for server in FORMATS {
        for client in FORMATS {
            // Amazon's framing is its own.
            if server.api == client.api || server.framing == Framing::Binary {
                continue;
            }
            for body in server.streams {
                let found = failure(client.api, stream(body)).await;
                assert_eq!(found, complaint(client.api), "{:?}", server.api);
            }
        }
    }
}

#[tokio::test]
async fn a_document_of_another_format() {
    let json = "application/json";
    for server in FORMATS {
        for client in FORMATS.into_iter().filter(|client| client.api != server.api) {
            let body = (server.document)().to_string();
            let found = failure(client.api, answer("200 OK", json, &body)).await;
            assert_eq!(found, complaint(client.api), "{:?}", server.api);
        }
    }
}

#[tokio::test]
async fn documents_of_no_format() {
    for client in FORMATS {
        for body in ["{}", r#"{"status":"ok"}"#, r#"{"data":[]}"#, OLLAMA_LINES] {
            let found = failure(client.api, answer("200 OK", "application/json", body)).await;
            assert_eq!(found, complaint(client.api), "{body}");
        }
    }
}

/// What says that it is an error is one, in any format.
#[tokio::test]
async fn an_error_of_another_shape_is_reported() {
    for client in FORMATS {
        for (body, reported) in [
            (r#"{"error":"no such model"}"#, "no such model"),
            (r#"{"message":"no such model"}"#, "no such model"),
            (r#"{"detail":"no such model"}"#, "no such model"),
            (r#"{"error":{"code":"over_capacity"}}"#, "over_capacity"),
        ] {
            let (_, message) =
                failure(client.api, answer("200 OK", "application/json", body)).await;
            assert!(message.contains(reported) && !message.contains("speak"), "{message}");
        }
    }
}

/// A stream of the right format that is cut before it says anything may be whole the next time.
#[tokio::test]
async fn signs_of_life_tell_the_format() {
    for (api, body) in [
        (Api::AnthropicMessages, "event: ping\ndata: {\"type\":\"ping\"}\n\n"),
        (Api::OpenaiCompletions, "data: {\"choices\":[]}\n\n"),
        (Api::OpenaiResponses, "data: {\"type\":\"response.queued\"}\n\n"),
        (Api::GoogleGenerativeAi, "data: {\"responseId\":\"x\"}\n\n"),
    ] {
        let (class, message) = failure(api, stream(body)).await;
        assert_eq!(class, ErrorClass::Timeout, "{message}");
    }
}

/// Half a document is a cut answer, whatever its format.
#[test]
fn half_a_document_is_no_other_format() {
    for client in FORMATS {
        let model = model(client.api, "http://localhost");
        let body = (client.document)().to_string();
        let mut decoder = Decoder::new(&model, &[], 1).unwrap();
        let error = decoder.feed_whole(&body[..body.len() / 2], &mut |_| {}).unwrap_err();
        assert_eq!(error.class, ErrorClass::Timeout, "{error}");
    }
}
