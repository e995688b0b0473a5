//! Voice notes in both directions.

use super::message::calling_tool;
use super::*;

/// The head of an Ogg file with Opus, and something behind it.
fn opus(rest: &str) -> Vec<u8> {
    [b"OggS".as_slice(), &[0; 24], b"OpusHead", rest.as_bytes()].concat()
}

fn deliver_voice(bench: &Bench, bytes: &[u8]) {
    let file = bench.bot.keep_file(bytes);
    let voice =
        json!({"file_id": file, "duration": 2, "mime_type": "audio/ogg", "file_size": bytes.len()});
    bench.bot.deliver(ANN, &json!({"id": ANN, "type": "private"}), &json!({"voice": voice}));
}

#[test]
fn a_voice_note_reaches_the_model_as_its_transcript_and_as_a_file() {
    let bench = Bench::new(answering("understood"));
    bench.configure(|config| {
        // It hears what stands behind the head of the file.
        let command = "tail -c +37 \"$MYCLAW_AUDIO_FILE\"; echo; echo ']the end'";
        config["transcription"] = json!({"command": command, "language": "en"});
    });
    let gateway = bench.start();
    let note = opus("Please pay the invoice.");
    deliver_voice(&bench, &note);
    bench.bot.wait_for_text("understood");
    let asked = bench.asked();
    let mark = "[transcript of the voice note \\\"voice.ogg\\\", which is attachments/";
    assert!(asked.contains(mark), "{asked}");
    // Nothing that was said can look like a line of this program.
    assert!(asked.contains("]\\n> Please pay the invoice.\\n> ]the end"), "{asked}");
    let kept = strangers::workspace_of(&bench, ANN).join("attachments");
    let kept = std::fs::read_dir(kept).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read(kept).unwrap(), note);
    gateway.stop();
}

#[test]
fn a_voice_note_without_a_transcript_is_a_file_and_the_model_is_told_why() {
    let bench = Bench::new(answering("understood"));
    bench.configure(|config| {
        config["transcription"] = json!({"command": ["no-such-listener"]});
    });
    let gateway = bench.start();
    deliver_voice(&bench, &opus("x"));
    bench.bot.wait_for_text("understood");
    let asked = bench.asked();
    assert!(asked.contains("[the voice note \\\"voice.ogg\\\" is attachments/"), "{asked}");
    assert!(asked.contains("there is no transcript: the command `no-such-listener`"), "{asked}");
    let doctor = bench.run(&["doctor"]);
    assert!(doctor.stdout().contains("transcription.command: "), "{}", doctor.stdout());

    // Without anybody who listens it is a file like others.
    bench.configure(|_| {});
    gateway.stop();
    let gateway = bench.start();
    deliver_voice(&bench, &opus("y"));
    bench.bot.wait_for("the second answer", |sent| (sent.len() == 2).then_some(()));
    assert!(bench.asked().contains("[the file \\\"voice.ogg\\\" is attachments/"));
    gateway.stop();
}

#[test]
fn send_voice_sends_a_voice_note_or_the_text_with_the_reason() {
    let bench = Bench::new(calling_tool(
        "send_voice",
        &[r#"{"text": "Good morning", "voice": "ann"}"#, r#"{"text": "fail"}"#, r#"{"text": " "}"#],
    ));
    bench.configure(|config| {
        let command = "read -r text; [ \"$text\" != fail ] || { echo 'no voice today' >&2; exit 1; }; \
                       printf 'OggS%024dOpusHead%s by %s' 0 \"$text\" \"$MYCLAW_VOICE\"";
        config["speech"] = json!({"command": command, "voice": "bob"});
    });
    let gateway = bench.start();
    bench.bot.write(ANN, "hello");
    bench.bot.wait_for_text("done");
    let results = bench.results();
    assert_eq!((&results[0]["status"], &results[0]["spoken"]), (&json!("sent"), &json!(true)));
    assert_eq!((&results[1]["status"], &results[1]["spoken"]), (&json!("sent"), &json!(false)));
    let note = results[1]["note"].as_str().unwrap();
    assert!(note.contains("could not be spoken") && note.contains("no voice today"), "{note}");
    assert!(results[2].to_string().contains("the text is empty"), "{}", results[2]);
    let sent = bench.bot.sent();
    assert_eq!(sent.len(), 3, "{sent:#?}");
    let form = sent[0].params["multipart"].as_str().unwrap();
    assert!(form.contains("name=\"voice\"; filename=\"voice.ogg\""), "{form}");
    assert!(form.contains("Good morning by ann"), "{form}");
    assert_eq!((sent[1].text(), sent[2].text()), ("fail", "done"));
    assert!(bench.bot.calls().iter().any(|(method, _)| method == "sendVoice"));
    // The copies are gone once their parts are over.
    let copies = bench.home.state_directory().join("gateway/outgoing");
    until("the removal of the copies", || std::fs::read_dir(&copies).unwrap().count() == 0);
    gateway.stop();
}

#[test]
fn a_voice_note_that_the_channel_refuses_is_sent_as_text() {
    let bench = Bench::new(calling_tool("send_voice", &[r#"{"text": "Good morning"}"#]));
    bench.configure(|config| {
        config["speech"] = json!({"command": "printf 'OggS%024dOpusHead' 0"});
    });
    let gateway = bench.start();
    let refusal = "Forbidden: voice messages are not allowed";
    bench.bot.fail_next("sendVoice", TelegramFault::Refuse(403, refusal));
    bench.bot.write(ANN, "hello");
    bench.bot.wait_for_text("done");
    let results = bench.results();
    assert_eq!(results[0]["spoken"], false, "{results:#?}");
    assert!(results[0]["note"].as_str().unwrap().contains(refusal), "{results:#?}");
    let texts: Vec<String> = bench.bot.sent().iter().map(|sent| sent.text().to_owned()).collect();
    assert_eq!(texts, ["Good morning", "done"]);
    gateway.stop();
}

#[test]
fn without_somebody_who_speaks_there_is_no_such_tool() {
    let bench = Bench::new(answering("fine"));
    let gateway = bench.start();
    bench.bot.write(ANN, "hello");
    bench.bot.wait_for_text("fine");
    let tools = bench.model.requests()[0].json()["tools"].to_string();
    assert!(tools.contains("\"message\"") && !tools.contains("send_voice"), "{tools}");
    gateway.stop();
}
