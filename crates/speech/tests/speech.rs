//! Speech by real programs, and by a scripted server.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::IntoResponse;
use myclaw_speech::{AudioFormat, Endpoint, Speaker, SpeechError, Transcriber, Way};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-very-secret";

fn shell(command: &str) -> Way {
    Way::Command(["sh", "-c", command].map(str::to_owned).to_vec())
}

fn speaker(way: Way) -> Speaker {
    Speaker {
        way,
        voice: None,
        most_chars: 100,
        most_bytes: 1024 * 1024,
        limit: Duration::from_secs(60),
    }
}

fn transcriber(way: Way) -> Transcriber {
    Transcriber {
        way,
        language: Some("de".to_owned()),
        most_bytes: 100_000,
        longest: Duration::from_secs(60),
        limit: Duration::from_secs(60),
    }
}

/// A recording that lasts `seconds`: silence.
fn recording(seconds: usize) -> Vec<u8> {
    let mut bytes = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    bytes.extend(100_u32.to_le_bytes());
    bytes.extend(100_u32.to_le_bytes());
    bytes.extend(b"\x01\0\x08\0data\xff\xff\xff\xff");
    bytes.extend(vec![128; 100 * seconds]);
    bytes
}

async fn speak(way: Way, text: &str) -> Result<Vec<u8>, String> {
    let spoken = speaker(way).speak(text, None, &CancellationToken::new()).await;
    spoken.map(|audio| audio.bytes).map_err(|error| error.to_string())
}

async fn hear(way: Way, audio: &[u8]) -> Result<String, String> {
    let heard = transcriber(way).transcribe(audio, &CancellationToken::new()).await;
    heard.map_err(|error| error.to_string())
}

#[tokio::test]
async fn espeak_speaks() {
    if Command::new("espeak-ng").arg("--version").output().is_err() {
        myclaw_testkit::skip_without(
            "espeak-ng is not installed; scripts/install-third-party installs it",
        );
        return;
    }
    let way = Way::Command(["espeak-ng", "--stdout"].map(str::to_owned).to_vec());
    let speaker = speaker(way);
    let cancel = CancellationToken::new();
    let audio = speaker.speak("The invoices are paid.", None, &cancel).await.unwrap();
    assert_eq!(audio.format, AudioFormat::Wav);
    // More than half a second of speech.
    assert!(audio.bytes.len() > 22_050, "{}", audio.bytes.len());
    let named = shell("espeak-ng --stdout -v \"$MYCLAW_VOICE\"");
    let named = Speaker { voice: Some("de".to_owned()), ..self::speaker(named) };
    let german = named.speak("Die Rechnungen sind bezahlt.", None, &cancel).await.unwrap();
    let french = named.speak("Die Rechnungen sind bezahlt.", Some("fr"), &cancel).await.unwrap();
    assert_ne!(german, french, "the voice has no effect");
}

#[tokio::test]
async fn a_command_gets_the_text_and_the_voice_as_they_are() {
    // It prints what it got behind the head of an audio file.
    let way = shell("printf 'ID3'; cat; printf '|%s' \"$MYCLAW_VOICE\"");
    let text = "-f /etc/passwd $(id) `id` \"quoted\" ; ü";
    let spoken = speaker(way).speak(text, Some("ann"), &CancellationToken::new()).await.unwrap();
    assert_eq!(spoken.bytes, format!("ID3{text}|ann").into_bytes());
    for voice in ["a b", "-x", "a/b", "$(id)"] {
        let refused =
            speaker(shell("printf ID3")).speak("x", Some(voice), &CancellationToken::new()).await;
        assert!(refused.unwrap_err().to_string().contains("a voice is named by"), "{voice}");
    }
}

#[tokio::test]
async fn a_command_that_fails_says_why() {
    let long = "x".repeat(101);
    let cases = [
        (shell("echo 'no such voice' >&2; exit 3"), "x", "ended with code 3: no such voice"),
        (Way::Command(vec!["no-such-speaker".to_owned()]), "x", "no-such-speaker"),
        (Way::Command(Vec::new()), "x", "the command is empty"),
        (shell("true"), "x", "printed nothing"),
        (shell("echo this is no audio"), "x", "no audio that is known here"),
        (shell("kill -9 $$"), "x", "ended by signal 9"),
        (shell("printf ID3; head -c 2000000 /dev/zero; sleep 600"), "x", "more than 1048576 bytes"),
        (shell("printf ID3"), long.as_str(), "101 characters, and at most 100"),
    ];
    for (way, text, words) in cases {
        let error = speak(way, text).await.unwrap_err();
        assert!(error.contains(words), "{words}: {error}");
    }
    let missing = Way::Command(vec!["no-such-speaker".to_owned()]).obstacle().unwrap();
    assert!(missing.contains("no-such-speaker"), "{missing}");
    assert_eq!(shell("anything").obstacle(), None);
}

#[tokio::test]
async fn a_command_that_hangs_is_ended_with_everything_it_started() {
    let directory = tempfile::tempdir().unwrap();
    let pid = directory.path().join("pid");
    let command = format!("sleep 600 & echo $! > {}; wait", pid.display());
    let hanging = Speaker { limit: Duration::from_millis(300), ..speaker(shell(&command)) };
    let error = hanging.speak("x", None, &CancellationToken::new()).await.unwrap_err().to_string();
    assert!(error.contains("was not done after 0.3 s and was ended"), "{error}");
    assert_gone(&pid);

    // The same when the caller gives up.
    std::fs::remove_file(&pid).unwrap();
    let cancel = CancellationToken::new();
    let patient = speaker(shell(&command));
    let speaking = patient.speak("x", None, &cancel);
    let giving_up = async {
        while std::fs::read_to_string(&pid).unwrap_or_default().trim().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(speaking, giving_up);
    assert_eq!(outcome.unwrap_err(), SpeechError::Aborted);
    assert_gone(&pid);
}

fn assert_gone(pid: &Path) {
    let pid = std::fs::read_to_string(pid).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim()));
    let lives = status.is_ok_and(|status| !status.contains("State:\tZ"));
    assert!(!lives, "{pid} lives on");
}

#[tokio::test]
async fn a_command_hears_the_audio_as_a_file_and_on_its_input() {
    let audio = recording(2);
    let way = shell(
        "cmp - \"$MYCLAW_AUDIO_FILE\" && basename \"$MYCLAW_AUDIO_FILE\"; echo \" $MYCLAW_LANGUAGE\"",
    );
    let heard = hear(way, &audio).await.unwrap();
    assert!(heard.contains(".wav") && heard.ends_with("de"), "{heard}");
    for (way, audio, words) in [
        (shell("echo broken >&2; exit 1"), recording(2), "ended with code 1: broken"),
        (shell("echo"), recording(2), "no words were heard"),
        (shell("printf '\\377\\376'"), recording(2), "no text"),
        (shell("echo x"), recording(61), "lasts 61 s, and at most 60 s"),
        (shell("echo x"), [recording(2), vec![0; 100_000]].concat(), "at most 100000"),
        (shell("echo x"), b"a text".to_vec(), "no audio that is known here"),
    ] {
        let error = hear(way, &audio).await.unwrap_err();
        assert!(error.contains(words), "{words}: {error}");
    }
}

/// What a server was asked: the path, the headers and the body.
type Asked = Arc<Mutex<Vec<(String, HeaderMap, Vec<u8>)>>>;

/// A server that gives each request the next answer.
async fn server(answers: Vec<(u16, Vec<u8>)>) -> (Endpoint, Asked) {
    let asked = Asked::default();
    let (log, left) = (Arc::clone(&asked), Arc::new(Mutex::new(answers.into_iter())));
    let answer = move |uri: Uri, headers: HeaderMap, body: Bytes| async move {
        log.lock().unwrap().push((uri.to_string(), headers, body.to_vec()));
        let next = left.lock().unwrap().next();
        match next {
            Some((status, body)) => (StatusCode::from_u16(status).unwrap(), body).into_response(),
            None => std::future::pending().await,
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    let api_key = Some(SecretString::from(KEY));
    (Endpoint { base_url, model: "the-model".to_owned(), api_key }, asked)
}

#[tokio::test]
async fn a_server_speaks_and_hears() {
    let opus = [b"OggS".as_slice(), &[0; 24], b"OpusHead"].concat();
    let text = br#"{"text": " Pay the invoice. "}"#.to_vec();
    let (endpoint, asked) = server(vec![(200, opus.clone()), (200, text)]).await;
    let way = Way::Endpoint(endpoint);
    assert_eq!(speak(way.clone(), "Good morning").await.unwrap(), opus);
    let audio = recording(3);
    assert_eq!(hear(way, &audio).await.unwrap(), "Pay the invoice.");
    let asked = asked.lock().unwrap();
    let [(first, headers, body), (second, _, form)] = asked.as_slice() else {
        panic!("{} requests", asked.len())
    };
    assert_eq!((first.as_str(), second.as_str()), ("/v1/audio/speech", "/v1/audio/transcriptions"));
    assert_eq!(headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(
        String::from_utf8_lossy(body),
        r#"{"model":"the-model","input":"Good morning","voice":"alloy","response_format":"opus"}"#
    );
    let holds = |bytes: &[u8]| form.windows(bytes.len()).any(|window| window == bytes);
    assert!(holds(&audio) && holds(b"name=\"language\"\r\n\r\nde\r\n"));
    assert!(holds(b"name=\"file\"; filename=\"voice.wav\"\r\ncontent-type: audio/wav\r\n"));
}

#[tokio::test]
async fn a_server_that_fails_says_why_without_the_key() {
    let refusal = format!(r#"{{"error": {{"message": "the key {KEY} is wrong"}}}}"#);
    let (endpoint, _) = server(vec![
        (401, refusal.into_bytes()),
        (500, b"<html>".to_vec()),
        (200, vec![b'x'; 2_000_000]),
        (200, b"{}".to_vec()),
    ])
    .await;
    let way = Way::Endpoint(endpoint.clone());
    let refused = speak(way.clone(), "x").await.unwrap_err();
    assert!(refused.ends_with("refused with status 401: the key [redacted] is wrong"), "{refused}");
    let broken = speak(way.clone(), "x").await.unwrap_err();
    assert!(broken.ends_with("refused with status 500"), "{broken}");
    let large = speak(way.clone(), "x").await.unwrap_err();
    assert!(large.contains("sent more than 1048576 bytes"), "{large}");
    let strange = hear(way.clone(), &recording(1)).await.unwrap_err();
    assert!(strange.contains("something else than"), "{strange}");
    // It has no more answers.
    let hurried = Speaker { limit: Duration::from_millis(300), ..speaker(way) };
    let late = hurried.speak("x", None, &CancellationToken::new()).await.unwrap_err().to_string();
    assert!(late.contains("gave no answer within 0.3 s"), "{late}");
    let nowhere = Endpoint { base_url: "http://127.0.0.1:1/v1".to_owned(), ..endpoint };
    let unreachable = speak(Way::Endpoint(nowhere), "x").await.unwrap_err();
    assert!(unreachable.contains("127.0.0.1:1 cannot be reached"), "{unreachable}");
}
