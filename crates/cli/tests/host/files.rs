//! The files of runners: what they may ask for, and who they are.

use super::*;

/// A runner that puts files for the host, and answers.
fn asking(requests: &str) -> String {
    format!("{requests}\nsay asked; over")
}

fn asides(bench: &Bench) -> Vec<String> {
    let names = files(&bench.host("data/errors"), "json");
    names.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_message_leaves_while_the_runner_works() {
    let bench = Bench::with_groups(
        r#"send messages 1-a '{"type":"message","chatJid":"fam@g.us","text":"progress","groupFolder":"family"}'
send voice 2-b '{"type":"voice_message","chatJid":"fam@g.us","text":"spoken","voice":"Ryan"}'
await "$w/group/go"; say "done"; over"#,
    );
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    let out = bench.wait_for_out(2);
    let found = |text: &str| out.iter().find(|part| part["text"] == text).unwrap().clone();
    assert_eq!(found("progress")["kind"], "message");
    assert_eq!(
        found("spoken"),
        json!({"id": "family.2-b", "chat": "fam@g.us", "kind": "voice", "voice": "Ryan", "text": "spoken"})
    );
    fs::write(bench.host("groups/family/go"), "").unwrap();
    bench.wait_for_out(3);
    assert!(files(&bench.host("data/ipc/family/messages"), "json").is_empty());
    stop(host);
}

#[test]
fn who_asks_is_decided_by_the_directory() {
    let forged = asking(
        r#"send messages 1-a '{"type":"message","chatJid":"owner","text":"forged","groupFolder":"main"}'
send tasks 2-b '{"type":"schedule_task","prompt":"x","schedule_type":"once","schedule_value":"2020-01-01T00:00:00","targetJid":"owner","createdBy":"main"}'
send tasks 3-c '{"type":"register_group","jid":"new","name":"New","folder":"new"}'
send tasks 4-d '{"type":"refresh_groups","groupFolder":"main"}'"#,
    );
    let bench = Bench::with_groups(&forged);
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    wait_until("all are refused", || asides(&bench).len() == 4);
    bench.wait_for_out(1);
    // The same requests from the main group are carried out.
    bench.send("m2", "owner", "Hello");
    wait_until("the group is there", || {
        fs::read_to_string(bench.host("groups.json")).unwrap().contains("\"new\"")
    });
    bench.wait_for_out(3);
    let output = stop(host);
    let chats: Vec<Value> = bench.out().iter().map(|part| part["chat"].clone()).collect();
    assert!(chats.iter().filter(|chat| *chat == "fam@g.us").count() == 1, "{chats:?}");
    assert!(bench.out().iter().any(|part| part["text"] == "forged"), "main may write to all");
    assert!(
        output.stderr().contains("the group family may not reach the chat \"owner\""),
        "{}",
        output.stderr()
    );
    assert!(bench.host("data/ipc/main/available_groups.json").exists());
    assert!(!bench.host("data/ipc/family/available_groups.json").exists());
}

#[test]
fn what_is_no_request_is_moved_aside() {
    let bench = Bench::with_groups(&asking(
        r#"send messages 1-broken '{'
send messages 2-unknown '{"type":"format_disk"}'
send messages 3-empty '{"type":"message","chatJid":"fam@g.us","text":""}'
send tasks 4-cron '{"type":"schedule_task","prompt":"x","schedule_type":"cron","schedule_value":"99 * * * *"}'
send tasks 5-absent '{"type":"cancel_task","taskId":"nothing"}'
ln -s /etc/hostname "$w/ipc/messages/6-link.json"
mkfifo "$w/ipc/messages/7-pipe.json"
mkdir "$w/ipc/messages/8-directory.json"
head -c 2000000 /dev/zero > "$w/ipc/messages/9-large.json""#,
    ));
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    wait_until("all are moved", || asides(&bench).len() == 9);
    bench.wait_for_out(1);
    assert!(files(&bench.host("data/ipc/family/messages"), "json").is_empty());
    stop(host);
    assert_eq!(bench.out().len(), 1);
}

#[test]
fn a_directory_that_was_replaced_by_a_link_leads_nowhere() {
    let bench = Bench::with_groups(
        r#"rm -r "$w/ipc/messages" "$w/ipc/input"; ln -s ../main/messages "$w/ipc/messages"
ln -s ../../../groups/main "$w/ipc/input"; ln -s ../../../stolen.json "$w/ipc/current_tasks.json.new"
mv -T "$w/ipc/current_tasks.json.new" "$w/ipc/current_tasks.json"; say linked; over"#,
    );
    fs::create_dir_all(bench.host("data/ipc/main/messages")).unwrap();
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    bench.wait_for_out(1);
    bench.send("m2", "fam@g.us", "Hello");
    wait_until("the link is moved", || {
        bench.host("data/ipc/family/messages").symlink_metadata().is_ok_and(|found| found.is_dir())
    });
    stop(host);
    assert!(!bench.host("stolen.json").exists());
    let entries = fs::read_dir(bench.host("groups/main")).unwrap().count();
    assert_eq!(entries, 0, "nothing was written into another group");
}

#[test]
fn only_what_the_allowlist_allows_is_mounted() {
    let bench = Bench::new(r#"ls "$w/extra" > "$w/group/seen"; say fine; over"#);
    for directory in ["open/wiki", "secret/.ssh"] {
        fs::create_dir_all(bench.path(directory)).unwrap();
    }
    std::os::unix::fs::symlink(bench.path("secret"), bench.path("open/link")).unwrap();
    let list = bench.path("allowlist.json");
    let root = bench.path("open");
    fs::write(
        &list,
        json!({"allowedRoots": [{"path": root}], "nonMainReadOnly": true}).to_string(),
    )
    .unwrap();
    let mount = |path: &str| bench.path(path).to_str().unwrap().to_owned();
    let (wiki, link, keys) = (mount("open/wiki"), mount("open/link"), mount("secret/.ssh"));
    bench.add("c", "g", &["--all", "--mount", &wiki, "--mount", &link, "--mount", &keys]);
    let host = bench.start(&["--allowlist", list.to_str().unwrap()]);
    bench.send("m1", "c", "Hello");
    bench.wait_for_out(1);
    let output = stop(host);
    assert_eq!(fs::read_to_string(bench.host("groups/g/seen")).unwrap(), "wiki\n");
    let said = output.stderr();
    assert!(said.contains("open/link is not mounted: it leads to"), "{said}");
    assert!(said.contains("secret/.ssh is not mounted: its path holds \".ssh\""), "{said}");
}

#[test]
fn speech_that_a_runner_has_made_goes_out_beside_its_text() {
    let bench = Bench::with_groups(&asking(
        r#"printf OggS > "$w/ipc/voice/1-a.ogg"; ln -s /etc/passwd "$w/ipc/voice/2-b.ogg"; mkdir "$w/ipc/voice/3-c.ogg"
send voice 1-a '{"type":"voice_message","chatJid":"fam@g.us","text":"spoken","audio":"1-a.ogg"}'
send voice 2-b '{"type":"voice_message","chatJid":"fam@g.us","text":"a link","audio":"2-b.ogg"}'
send voice 3-c '{"type":"voice_message","chatJid":"fam@g.us","text":"a directory","audio":"3-c.ogg"}'
send voice 4-d '{"type":"voice_message","chatJid":"fam@g.us","text":"elsewhere","audio":"../tasks/x.ogg"}'
send voice 5-e '{"type":"voice_message","chatJid":"fam@g.us","text":"missing","audio":"5-e.ogg"}'"#,
    ));
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    wait_until("the others are refused", || asides(&bench).len() == 3);
    let out = bench.wait_for_out(3);
    let found = |text: &str| out.iter().find(|part| part["text"] == text).unwrap().clone();
    assert_eq!(found("spoken")["audio"], "family.1-a.ogg");
    let audio = bench.host("channel/out/family.1-a.ogg");
    assert_eq!(fs::read_to_string(audio).unwrap(), "OggS");
    // Without the file the text is what there is.
    assert_eq!(found("missing").get("audio"), None);
    assert!(!bench.host("channel/out/family.2-b.ogg").is_symlink());
    assert!(!bench.host("channel/out/family.3-c.ogg").exists());
    stop(host);
}
