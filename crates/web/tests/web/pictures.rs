//! Pictures from services that answer as those of OpenAI, Google and OpenRouter document it.

use std::time::Duration;

use myclaw_web::{
    DownloadOptions, MadePicture, NoPicture, PictureForm, PictureService, PictureShape,
};
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::server::{Reply, Server, page, reply};

async fn make(
    server: &Server,
    form: PictureForm,
    model: &str,
    shape: Option<PictureShape>,
) -> Result<MadePicture, NoPicture> {
    let base_url = server.url("/v1/").parse().unwrap();
    let service = PictureService {
        form,
        base_url,
        model: model.to_owned(),
        api_key: Some(SecretString::from("the-secret-key")),
    };
    service.make("a red door", shape, DownloadOptions::default(), Duration::from_secs(60)).await
}

fn answers(body: Value) -> impl Fn(&str) -> Reply {
    move |_| page("application/json", body.to_string())
}

/// The first line, the headers, and the body of the only request.
fn request(server: &Server) -> (String, Value) {
    let all = server.requests().remove(0);
    let (head, body) = all.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), serde_json::from_str(body).unwrap())
}

#[tokio::test]
async fn each_service_is_asked_and_read_as_its_documents_say() {
    let server = Server::start(answers(json!({
        "data": [{"b64_json": "AAAA"}], "usage": {"input_tokens": 12, "output_tokens": 1056},
    })))
    .await;
    let made = make(&server, PictureForm::Images, "gpt-image-1", Some(PictureShape::Portrait))
        .await
        .unwrap();
    assert_eq!(
        made,
        MadePicture { data: "AAAA".to_owned(), input_tokens: 12, output_tokens: 1056, cost: None }
    );
    let (head, body) = request(&server);
    assert!(head.starts_with("POST /v1/images/generations HTTP"), "{head}");
    assert!(head.contains("authorization: Bearer the-secret-key"), "{head}");
    assert_eq!(
        body,
        json!({"model": "gpt-image-1", "prompt": "a red door", "n": 1, "size": "1024x1536"})
    );

    let server = Server::start(answers(json!({
        "candidates": [{"content": {"parts": [
            {"text": "Here it is."}, {"inlineData": {"mimeType": "image/png", "data": "BBBB"}},
        ]}}],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 1290},
    })))
    .await;
    let made =
        make(&server, PictureForm::Google, "gemini-2.5-flash-image", Some(PictureShape::Landscape))
            .await
            .unwrap();
    assert_eq!(
        made,
        MadePicture { data: "BBBB".to_owned(), input_tokens: 5, output_tokens: 1290, cost: None }
    );
    let (head, body) = request(&server);
    assert!(
        head.starts_with("POST /v1/models/gemini-2.5-flash-image:generateContent HTTP"),
        "{head}"
    );
    assert!(head.contains("x-goog-api-key: the-secret-key"), "{head}");
    assert_eq!(
        body["generationConfig"],
        json!({"responseModalities": ["TEXT", "IMAGE"], "imageConfig": {"aspectRatio": "3:2"}})
    );
    assert_eq!(body["contents"][0]["parts"][0]["text"], "a red door");

    let server = Server::start(answers(json!({
        "choices": [{"message": {"content": "", "images": [{"image_url": {"url": "data:image/png;base64,CCCC"}}]}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "cost": 0.039},
    })))
    .await;
    let made = make(&server, PictureForm::Chat, "google/gemini", None).await.unwrap();
    assert_eq!(
        made,
        MadePicture {
            data: "CCCC".to_owned(),
            input_tokens: 3,
            output_tokens: 4,
            cost: Some(0.039)
        }
    );
    let (head, body) = request(&server);
    assert!(head.starts_with("POST /v1/chat/completions HTTP"), "{head}");
    assert_eq!(body["modalities"], json!(["image", "text"]));
    assert_eq!(body["stream"], false);
}

#[tokio::test]
async fn a_refusal_says_why_without_the_key_and_whether_another_key_helps() {
    for (status, is_about_key) in
        [("401", true), ("402", true), ("429", true), ("400", false), ("500", false)]
    {
        let said = json!({"error": {"message": "no, the-secret-key\u{1b}[31m is not \n allowed"}})
            .to_string();
        let server = Server::start(move |_| reply(&format!("{status} X"), &[], &said)).await;
        let no = make(&server, PictureForm::Images, "gpt-image-1", None).await.unwrap_err();
        assert_eq!(no.is_about_key, is_about_key, "{status}");
        assert!(no.why.starts_with(&format!("it answered {status}")), "{}", no.why);
        assert!(no.why.ends_with("no, ***[31m is not allowed"), "{}", no.why);
    }
    for (form, body, expected) in [
        (PictureForm::Images, json!({"data": []}), "its answer has no picture"),
        (
            PictureForm::Google,
            json!({"promptFeedback": {"blockReason": "SAFETY"}}),
            "but says: SAFETY",
        ),
        (
            PictureForm::Chat,
            json!({"choices": [{"message": {"content": "I cannot."}}]}),
            "but says: I cannot.",
        ),
        (PictureForm::Chat, json!("nonsense"), "its answer has no picture"),
    ] {
        let server = Server::start(answers(body)).await;
        let no = make(&server, form, "m", None).await.unwrap_err();
        assert!(no.why.ends_with(expected) && !no.is_about_key, "{}", no.why);
    }
}
