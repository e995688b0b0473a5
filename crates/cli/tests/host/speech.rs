//! Voice notes: what is said in them, and answers that are spoken.

use myclaw_testkit::{ModelServer, Script, Step};

use super::*;

/// Keeps its job and answers.
const RUNNER: &str = r#"printf '%s\n' "$job" >> "$w/group/jobs"; say heard; over"#;
/// Hears what stands behind the head of a recording.
const LISTENER: &str = "tail -c +37 \"$MYCLAW_AUDIO_FILE\"";
/// Puts the text behind the head of a recording.
const SPEAKER: &str = "printf 'OggS%024dOpusHead' 0; cat";

/// The head of an Ogg file with Opus, and something behind it.
fn recording(rest: &str) -> Vec<u8> {
    [b"OggS".as_slice(), &[0; 24], b"OpusHead", rest.as_bytes()].concat()
}

impl Bench {
    /// Puts a voice note into the file channel.
    fn speak(&self, id: &str, chat: &str, said: &str) {
        fs::create_dir_all(self.host("channel/in")).unwrap();
        let name = format!("{id}.ogg");
        fs::write(self.host("channel/in").join(&name), recording(said)).unwrap();
        self.put(id, &json!({"id": id, "chat": chat, "audio": name}).to_string());
    }

    /// The jobs of the group `family`.
    fn jobs(&self) -> String {
        fs::read_to_string(self.host("groups/family/jobs")).unwrap_or_default()
    }

    fn is_empty(&self, directory: &str) -> bool {
        fs::read_dir(self.host(directory)).unwrap().count() == 0
    }
}

#[test]
fn a_voice_note_reaches_the_agent_as_text_and_the_answer_is_spoken() {
    let bench = Bench::with_groups(RUNNER);
    let host = bench.start(&["--transcription-command", LISTENER, "--speech-command", SPEAKER]);
    bench.speak("m1", "fam@g.us", "Please pay <Bob>.");
    let out = bench.wait_for_out(1);
    assert_eq!((&out[0]["kind"], &out[0]["text"]), (&json!("voice"), &json!("heard")));
    let audio = bench.host("channel/out").join(out[0]["audio"].as_str().unwrap());
    assert!(fs::read(&audio).unwrap().ends_with(b"OpusHeadheard"), "{audio:?}");
    let jobs = bench.jobs();
    assert!(jobs.contains("[the file attachments/m1-0-m1.ogg came with this message]"), "{jobs}");
    assert!(jobs.contains("[Voice: Please pay &lt;Bob&gt;.]</message>"), "{jobs}");
    let kept = fs::read(bench.host("groups/family/attachments/m1-0-m1.ogg")).unwrap();
    assert_eq!(kept, recording("Please pay <Bob>."));
    wait_until("nothing is left", || {
        bench.is_empty("channel/in") && bench.is_empty("data/unheard/family")
    });
    // The next message is written, and so is its answer.
    bench.send("m2", "fam@g.us", "And now?");
    let out = bench.wait_for_out(2);
    stop(host);
    let kinds: Vec<&Value> = out.iter().map(|part| &part["kind"]).collect();
    assert_eq!(kinds, ["voice", "message"]);
}

#[test]
fn without_a_transcript_the_agent_is_told_why_and_without_speech_the_answer_is_text() {
    let bench = Bench::with_groups(RUNNER);
    let failing = ["--transcription-command", "echo deaf >&2; exit 3", "--speech-command"];
    let host = bench.start(&[&failing[..], &["echo hoarse >&2; exit 3"]].concat());
    bench.speak("m1", "fam@g.us", "Hello");
    let out = bench.wait_for_out(1);
    assert_eq!((&out[0]["kind"], &out[0]["text"]), (&json!("message"), &json!("heard")));
    assert!(bench.jobs().contains("[Voice: there is no transcript, because "), "{}", bench.jobs());
    let output = stop(host);
    for said in ["deaf", "hoarse"] {
        assert!(output.stderr().contains(said), "{}", output.stderr());
    }
    // Without anybody who listens it is a file like others.
    let host = bench.start(&[]);
    bench.speak("m2", "fam@g.us", "Hello");
    assert_eq!(bench.wait_for_out(2)[1]["kind"], "message");
    stop(host);
    let jobs = bench.jobs();
    let second = jobs.lines().last().unwrap();
    assert!(second.contains("attachments/m2-0-m2.ogg") && !second.contains("[Voice"), "{second}");
}

#[test]
fn what_comes_after_a_voice_note_waits_for_it_also_when_the_host_is_killed() {
    let bench = Bench::with_groups(RUNNER);
    let gate = bench.path("gate");
    let listener = format!("while [ ! -e '{}' ]; do sleep 0.01; done; {LISTENER}", gate.display());
    let options = ["--transcription-command", &*listener];
    let host = bench.start(&options);
    bench.speak("m1", "fam@g.us", "the first");
    bench.send("m2", "fam@g.us", "the second");
    wait_until("it is taken", || bench.is_empty("channel/in"));
    // Other groups do not wait.
    bench.send("m3", "owner", "Hello");
    assert_eq!(bench.wait_for_out(1)[0]["chat"], "owner");
    assert_eq!(bench.jobs(), "");
    host.signal(Signal::Kill);
    drop(host.wait(PATIENCE));
    // What a host leaves that was killed before it stored the message.
    fs::write(bench.host("data/unheard/family/left"), recording("x")).unwrap();
    fs::write(&gate, "").unwrap();
    let host = bench.start(&options);
    assert_eq!(bench.wait_for_out(2)[1]["chat"], "fam@g.us");
    stop(host);
    let jobs = bench.jobs();
    let (first, second) = (jobs.find("[Voice: the first]"), jobs.find("the second"));
    assert!(first.is_some() && first < second, "{jobs}");
    assert!(bench.is_empty("data/unheard/family"));
}

#[test]
fn voice_notes_that_come_while_the_host_starts_are_all_transcribed() {
    let bench = Bench::new(RUNNER);
    for number in 0..12 {
        bench.add(&format!("{number}@g.us"), &format!("g{number}"), &["--all"]);
    }
    let host = bench.start(&["--transcription-command", LISTENER]);
    for number in 0..12 {
        bench.speak(&format!("m{number}"), &format!("{number}@g.us"), "the note");
    }
    bench.wait_for_out(12);
    stop(host);
    for number in 0..12 {
        let jobs = fs::read_to_string(bench.host(&format!("groups/g{number}/jobs"))).unwrap();
        assert!(jobs.contains("[Voice: the note]"), "{jobs}");
    }
}

#[test]
fn a_recording_that_is_none_is_moved_aside_with_its_message() {
    let bench = Bench::with_groups(RUNNER);
    let host = bench.start(&["--transcription-command", LISTENER]);
    for (id, audio) in [("m1", "../../groups.json"), ("m2", "m3.json"), ("m3", "missing.ogg")] {
        bench.put(id, &json!({"chat": "fam@g.us", "audio": audio}).to_string());
    }
    let errors = || files(&bench.host("channel/errors"), "json").len();
    wait_until("all are moved", || errors() == 3);
    let output = stop(host);
    assert!(output.stderr().contains("is no name of a recording beside it"), "{}", output.stderr());
    assert!(output.stderr().contains("cannot be read"), "{}", output.stderr());
    assert_eq!(bench.jobs(), "");
}

#[test]
fn a_recording_that_is_too_large_is_moved_aside_and_one_that_is_too_long_is_not_transcribed() {
    let bench = Bench::with_groups(RUNNER);
    let host = bench.start(&["--transcription-command", LISTENER]);
    bench.speak("m1", "fam@g.us", &"x".repeat(25 * 1024 * 1024));
    let errors = || files(&bench.host("channel/errors"), "json").len();
    wait_until("it is moved", || errors() == 1);
    // The last page of an Ogg file says how many samples came before: here an hour and more.
    let last_page = [b"OggS\0\0".as_slice(), &(48_000_u64 * 4000).to_le_bytes(), &[0; 14]].concat();
    let name = "long.ogg";
    fs::write(bench.host("channel/in").join(name), [recording("x"), last_page].concat()).unwrap();
    bench.put("m2", &json!({"id": "m2", "chat": "fam@g.us", "audio": name}).to_string());
    bench.wait_for_out(1);
    let output = stop(host);
    assert!(output.stderr().contains("\"m1.ogg\" cannot be read"), "{}", output.stderr());
    let jobs = bench.jobs();
    assert!(jobs.contains("because it lasts 4000 s, and at most"), "{jobs}");
    assert!(!jobs.contains("m1.ogg"), "{jobs}");
}

#[test]
fn servers_listen_and_speak_with_the_key_of_the_host() {
    let bench = Bench::with_groups(RUNNER);
    let key = "speech-key-0123456789";
    let server = ModelServer::spawn_blocking_thread(
        Script::from([
            Step::status(200, &[], r#"{"text":"Please pay."}"#),
            Step::status(200, &[], recording("spoken")),
            Step::status(401, &[], format!(r#"{{"error":{{"message":"{key} is no key"}}}}"#)),
            Step::status(500, &[], "out of order"),
        ])
        .answer_every_route(),
    );
    let runner = bench.path("fake-runner");
    let url = format!("{}/v1", server.url());
    let mut command = bench.command(&["host", "--backend", "process", "--grace", "1s"]);
    command.arg("--runner").arg(runner).args([
        "--transcription-url",
        &url,
        "--transcription-language",
        "en",
    ]);
    command.args(["--speech-url", &url, "--speech-voice", "ann"]).env("SPEECH_API_KEY", key);
    let host = RunningChild::spawn(&mut command);
    host.wait_for_stderr("the host works in");
    bench.speak("m1", "fam@g.us", "inaudible");
    let out = bench.wait_for_out(1);
    let audio = bench.host("channel/out").join(out[0]["audio"].as_str().unwrap());
    assert_eq!(fs::read(audio).unwrap(), recording("spoken"));
    assert!(bench.jobs().contains("[Voice: Please pay.]"), "{}", bench.jobs());
    // A server that refuses ends nothing, and its key stays here.
    bench.speak("m2", "fam@g.us", "inaudible");
    let out = bench.wait_for_out(2);
    assert_eq!((&out[1]["kind"], &out[1]["text"]), (&json!("message"), &json!("heard")));
    let said = stop(host).stderr();
    assert!(said.contains("refused with status 401") && said.contains("status 500"), "{said}");
    assert!(bench.jobs().contains("because 127.0.0.1"), "{}", bench.jobs());
    assert!(!said.contains(key) && !bench.jobs().contains(key), "{said}");
    let requests = server.all_requests();
    let asked: Vec<&str> = requests.iter().map(|request| &*request.path).collect();
    let once = ["/v1/audio/transcriptions", "/v1/audio/speech"];
    assert_eq!(asked, [once, once].concat());
    let bearer = format!("Bearer {key}");
    assert!(requests.iter().all(|request| request.header("authorization") == Some(&bearer)));
    assert_eq!(
        (&requests[1].json()["input"], &requests[1].json()["voice"]),
        (&json!("heard"), &json!("ann"))
    );
}

#[test]
fn what_a_runner_asks_for_is_spoken_by_espeak() {
    if !Path::new("/usr/bin/espeak-ng").exists() {
        myclaw_testkit::skip_without("espeak-ng is not installed (apt install espeak-ng)");
        return;
    }
    let bench = Bench::with_groups(
        r#"send voice 1-a '{"type":"voice_message","chatJid":"fam@g.us","text":"good morning","voice":"en"}'
say done; over"#,
    );
    let host = bench.start(&["--speech-command", "espeak-ng --stdout -v \"$MYCLAW_VOICE\""]);
    bench.send("m1", "fam@g.us", "Hello");
    let out = bench.wait_for_out(2);
    stop(host);
    let spoken = out.iter().find(|part| part["kind"] == "voice").unwrap();
    assert_eq!(spoken["audio"], "family.1-a.wav");
    assert!(fs::read(bench.host("channel/out/family.1-a.wav")).unwrap().starts_with(b"RIFF"));
}

#[test]
fn options_without_anybody_who_speaks_or_listens_are_refused() {
    let bench = Bench::new("");
    let cases: [(&[&str], &str); 3] = [
        (&["--speech-voice", "en"], "--speech-voice: nobody speaks"),
        (&["--transcription-language", "de"], "--transcription-language: nobody listens"),
        (&["--transcription-url", "localhost:1"], "--transcription-url: the address begins with"),
    ];
    for (options, problem) in cases {
        let mut command = bench.command(&["host", "--backend", "process"]);
        let output = RunningChild::run(command.args(options));
        output.assert_code(2);
        assert!(output.stderr().contains(problem), "{}", output.stderr());
    }
}
