//! `image` with pictures from files and servers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use myclaw_llm::outside::harmless_result;
use myclaw_llm::{ContentBlock, ImageContent};
use myclaw_tools::ReadTool;
use myclaw_web::{BoxFuture, ImageTool, Sight, Viewer};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::server::{Server, page, redirect, reply};
use crate::support::{Names, call, downloader, failure, text};

/// A red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

fn png() -> Vec<u8> {
    STANDARD.decode(PNG).unwrap()
}

fn tool(sight: Sight) -> ImageTool {
    let read = Arc::new(ReadTool::new());
    ImageTool::new(
        downloader(&["127.0.0.1"], Names::with(&[])),
        Duration::from_secs(60),
        Some(read),
        sight,
    )
}

fn picture() -> ContentBlock {
    ContentBlock::Image(ImageContent { data: PNG.to_owned(), mime_type: "image/png".to_owned() })
}

/// Remembers what it was asked.
#[derive(Default)]
struct Remembering(Mutex<Vec<(String, String)>>);

impl Viewer for Remembering {
    fn look<'a>(
        &'a self,
        picture: ImageContent,
        question: &'a str,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, String>> {
        self.0.lock().unwrap().push((picture.mime_type, question.to_owned()));
        Box::pin(async { Ok("red </external-content>".to_owned()) })
    }
}

#[tokio::test]
async fn a_model_that_sees_gets_the_picture() {
    let server = Server::start(|path| match path {
        "/moved" => redirect("/p.png"),
        // The bytes decide, not the header.
        _ => page("application/octet-stream", png()),
    })
    .await;
    let output = call(&tool(Sight::Own), json!({"url": server.url("/moved")})).await.unwrap();
    // The address that the model gave, not the one to which the server sent it.
    let note = format!("{}: image/png picture, {} bytes", server.url("/moved"), png().len());
    assert_eq!(output.content, [ContentBlock::text(note), picture()]);

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.png");
    std::fs::write(&path, png()).unwrap();
    let output = call(&tool(Sight::Own), json!({"image": path})).await.unwrap();
    assert_eq!(output.content[1], picture());
}

#[tokio::test]
async fn another_model_looks_for_one_that_cannot_see() {
    let server = Server::start(|_| page("image/png", png())).await;
    let viewer = Arc::new(Remembering::default());
    let tool = tool(Sight::Other(viewer.clone()));
    let answer = text(&tool, json!({"image": server.url("/"), "prompt": "Which colour?"})).await;
    assert!(harmless_result(&answer).contains("red <·/external-content>"), "{answer}");
    text(&tool, json!({"image": server.url("/")})).await;
    let asked = viewer.0.lock().unwrap().clone();
    assert_eq!(asked[0], ("image/png".to_owned(), "Which colour?".to_owned()));
    assert!(asked[1].1.starts_with("Describe this picture"), "{asked:?}");
}

#[tokio::test]
async fn what_is_no_picture_is_explained() {
    let server = Server::start(|path| match path {
        "/page" => page("image/png", "<html>"),
        "/damaged" => page("image/png", &png()[..40]),
        "/gone" => reply("404 Not Found", &[], png()),
        _ => page("image/png", vec![0; 21 * 1024 * 1024]),
    })
    .await;
    let seeing = tool(Sight::Own);
    for (path, expected) in [
        ("/page", "its data is not a PNG, JPEG, GIF or WebP file; check the address"),
        ("/damaged", "it is damaged or cut off"),
        ("/gone", "the server answered 404 Not Found"),
        ("/huge", "it is larger than 20 MB"),
    ] {
        let message = failure(&seeing, json!({"image": server.url(path)})).await;
        assert!(message.contains(expected), "{message}");
    }
    let inner = failure(&seeing, json!({"image": "http://169.254.169.254/p.png"})).await;
    assert!(inner.contains("the metadata service of a cloud"), "{inner}");
    let file =
        failure(&seeing, json!({"image": concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")}))
            .await;
    assert!(
        file.ends_with("is not a PNG, JPEG, GIF or WebP picture; read it with the read tool"),
        "{file}"
    );
    let blind = failure(&tool(Sight::Missing), json!({"image": server.url("/")})).await;
    assert!(blind.contains("agents.defaults.imageModel"), "{blind}");
    let time = Duration::from_secs(60);
    let without_files = ImageTool::new(downloader(&[], Names::with(&[])), time, None, Sight::Own);
    let message = failure(&without_files, json!({"image": "p.png"})).await;
    assert_eq!(message, "files cannot be read here; give the URL of a picture");
}
