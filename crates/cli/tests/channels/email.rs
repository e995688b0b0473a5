//! E-mail, against Dovecot and aiosmtpd.
//!
//! `MYCLAW_AIOSMTPD_PYTHON` names a Python that has aiosmtpd; `scripts/test` installs it and Dovecot.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use myclaw_testkit::{SPEAKER_MARKS, number_from};

use super::chaos::kill_while;
use super::third_party::installed;
use super::*;

/// Kills in a quick run.
const DEFAULT_KILLS: u64 = 6;
/// People who write at the same time. Of one person, only some messages wait.
const PEOPLE: u64 = 20;
/// The server that checks senders.
const CHECKER: &str = "mx.example.org";

/// How the servers encrypt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Encryption {
    None,
    StartTls,
    /// From the first byte. The SMTP server knows no login but LOGIN.
    Tls,
}

/// Both servers, and their directory; they end with this value.
pub(super) struct Mail {
    dovecot: RunningChild,
    _smtp: RunningChild,
    pub(super) imap_port: u16,
    pub(super) smtp_port: u16,
    encryption: Encryption,
    directory: tempfile::TempDir,
    next: AtomicU64,
}

impl Drop for Mail {
    fn drop(&mut self) {
        // Its own processes end with it.
        self.dovecot.signal(Signal::Terminate);
    }
}

fn dovecot() -> Option<PathBuf> {
    let places = ["/usr/sbin/dovecot", "/usr/local/sbin/dovecot", "/opt/homebrew/sbin/dovecot"];
    let found = places.map(PathBuf::from).into_iter().find(|place| place.exists());
    if found.is_none() {
        myclaw_testkit::skip_without("Dovecot is not installed; scripts/test installs it");
    }
    found
}

/// A directory that the user of the mailboxes can use, whoever that is.
fn open_directory(path: &Path) {
    fs::create_dir_all(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
}

fn words(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn wait_for_port(port: u16) {
    let end = Instant::now() + PATIENCE;
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < end, "nobody listens on {port}");
        thread::sleep(Duration::from_millis(20));
    }
}

impl Mail {
    pub(super) fn start(encryption: Encryption) -> Option<Self> {
        let (dovecot, python) = (dovecot()?, installed("MYCLAW_AIOSMTPD_PYTHON")?);
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        open_directory(root);
        for path in ["mail/claw/cur", "mail/claw/new", "mail/claw/tmp", "home", "sent"] {
            open_directory(&root.join(path));
        }
        ["mail", "mail/claw"].iter().for_each(|path| open_directory(&root.join(path)));
        if encryption != Encryption::None {
            make_certificate(root);
        }
        let (imap_port, smtp_port) = (free_port(), free_port());
        fs::write(root.join("dovecot.conf"), dovecot_config(root, imap_port, encryption)).unwrap();
        let dovecot = start_dovecot(&dovecot, root);
        let mut options = json!({
            "port": smtp_port, "directory": root.join("sent"), "user": "claw", "password": SECRET,
        });
        if encryption != Encryption::None {
            options["fromTheStart"] = json!(encryption == Encryption::Tls);
            options["cert"] = json!(root.join("server.pem"));
            options["key"] = json!(root.join("server.key"));
        }
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/third-party/smtp-server.py");
        let mut command = Command::new(python);
        let smtp = RunningChild::spawn_piped(command.arg(script).arg(options.to_string()));
        smtp.wait_for_stdout("ready");
        wait_for_port(imap_port);
        let next = AtomicU64::new(0);
        Some(Self { dovecot, _smtp: smtp, imap_port, smtp_port, encryption, directory, next })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Puts a mail into the mailbox, as a server does that received it.
    fn deliver(&self, mail: &str) {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        let name = format!("{}.{number}.test", 1_700_000_000 + number);
        let before = self.path(&format!("mail/claw/tmp/{name}"));
        fs::write(&before, mail).unwrap();
        fs::set_permissions(&before, fs::Permissions::from_mode(0o666)).unwrap();
        fs::rename(before, self.path(&format!("mail/claw/new/{name}"))).unwrap();
    }

    /// A mail of `ann` that the server found to be true.
    fn write(&self, id: &str, text: &str) {
        self.deliver(&mail("ann@example.org", id, &format!("Subject: Hi {id}\r\n"), text));
    }

    /// The mails that the program has sent, in their order.
    fn sent(&self) -> Vec<Value> {
        let read =
            |number: usize| fs::read_to_string(self.path(&format!("sent/{number}.json"))).ok();
        (1..).map_while(read).map(|text| serde_json::from_str(&text).unwrap()).collect()
    }

    /// The first mail that `is_it`, once it is there.
    fn wait_for(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let sent = self.sent();
            if let Some(found) = sent.iter().find(|mail| is_it(mail)) {
                return found.clone();
            }
            assert!(Instant::now() < end, "{what} did not come: {sent:#?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_for_text(&self, words: &str) -> Value {
        self.wait_for(words, |mail| mail["plain"].as_str().unwrap_or_default().contains(words))
    }

    pub(super) fn configure(&self, bench: &Bench, change: impl FnOnce(&mut Value)) {
        let security = match self.encryption {
            Encryption::None => "none",
            Encryption::StartTls => "starttls",
            Encryption::Tls => "tls",
        };
        let server = |port| json!({"host": "localhost", "port": port, "security": security});
        bench.configure(|config| {
            config["channels"] = json!({"email": {
                "address": "claw@example.org", "displayName": "Claw", "user": "claw", "password": SECRET,
                "imap": server(self.imap_port), "smtp": server(self.smtp_port), "authservId": CHECKER,
                "allowFrom": [
                    "ann@example.org", "later@example.org", "never@example.org", "drop@example.org",
                ],
            }});
            change(&mut config["channels"]["email"]);
        });
    }
}

fn start_dovecot(dovecot: &Path, root: &Path) -> RunningChild {
    RunningChild::spawn(Command::new(dovecot).arg("-F").arg("-c").arg(root.join("dovecot.conf")))
}

/// As root, Dovecot needs another user for mailboxes; as another user, it can be no other. A wrong password does not make
/// it slow, as it would be by default.
fn dovecot_config(root: &Path, port: u16, encryption: Encryption) -> String {
    let place = root.display();
    let is_root = words("id", &["-u"]) == "0";
    let (user, group) = (words("id", &["-un"]), words("id", &["-gn"]));
    let (mail_user, services) = match is_root {
        true => ("uid=nobody gid=nogroup".to_owned(), String::new()),
        false => (
            format!("uid={user} gid={group}"),
            format!(
                "default_internal_user = {user}\ndefault_internal_group = {group}\ndefault_login_user = {user}\n\
                 service anvil {{\n  chroot =\n}}\nservice imap-login {{\n  chroot =\n}}\n"
            ),
        ),
    };
    let ssl = match encryption {
        Encryption::None => "ssl = no\n".to_owned(),
        Encryption::StartTls | Encryption::Tls => format!(
            "ssl = required\nssl_cert = <{place}/server.pem\nssl_key = <{place}/server.key\n"
        ),
    };
    let (port, tls_port) = if encryption == Encryption::Tls { (0, port) } else { (port, 0) };
    format!(
        "base_dir = {place}/run\nstate_dir = {place}/state\nlog_path = {place}/log\nprotocols = imap\n\
         listen = 127.0.0.1\ndisable_plaintext_auth = no\nfirst_valid_uid = 1\nfirst_valid_gid = 1\n\
         mail_location = maildir:{place}/mail/%u\n{services}{ssl}\
         auth_failure_delay = 0\nservice anvil {{\n  unix_listener anvil-auth-penalty {{\n    mode = 0\n  }}\n}}\n\
         passdb {{\n  driver = static\n  args = password={SECRET}\n}}\n\
         userdb {{\n  driver = static\n  args = {mail_user} home={place}/home/%u\n}}\n\
         service imap-login {{\n  inet_listener imap {{\n    port = {port}\n  }}\n\
           inet_listener imaps {{\n    port = {tls_port}\n    ssl = yes\n  }}\n}}\n"
    )
}

/// An authority `ca.pem`, and a certificate `server.pem` of it for localhost.
pub(super) fn make_certificate(root: &Path) {
    let openssl = |line: &str| {
        let mut command = Command::new("openssl");
        let made = command.args(line.split(' ')).current_dir(root).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30";
    openssl(&format!("req -x509 {key} -subj /CN=ca -keyout ca.key -out ca.pem"));
    openssl(&format!("req {key} -subj /CN=localhost -keyout server.key -out server.csr"));
    fs::write(root.join("names"), "subjectAltName=DNS:localhost").unwrap();
    openssl(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile names -out server.pem",
    );
}

/// A mail that the server of the account found to be true.
fn mail(from: &str, id: &str, headers: &str, text: &str) -> String {
    format!(
        "Return-Path: <{from}>\r\nAuthentication-Results: {CHECKER}; dmarc=pass header.from=example.org\r\n\
         Received: from there by here\r\nFrom: {from}\r\nTo: claw@example.org\r\nMessage-ID: <{id}@example.org>\r\n\
         {headers}\r\n{text}\r\n"
    )
}

/// A text of any characters within a header.
fn encoded(text: &str) -> String {
    let bytes: String = text.bytes().map(|byte| format!("={byte:02X}")).collect();
    format!("=?utf-8?q?{bytes}?=")
}

#[test]
fn neither_a_subject_nor_the_name_of_a_sender_imitates_a_speaker() {
    let Some(servers) = Mail::start(Encryption::None) else { return };
    let bench = Bench::new(echoing());
    servers.configure(&bench, |_| {});
    let gateway = bench.start();
    works(&gateway);
    let one_line = SPEAKER_MARKS.iter().filter(|mark| !mark.contains('\n')).step_by(4);
    let mut read = Vec::new();
    for (number, mark) in one_line.enumerate() {
        let (subject, name) = match number % 2 {
            0 => (format!("{mark} do it]"), "Ann".to_owned()),
            _ => ("Hi".to_owned(), format!("{mark} do it]")),
        };
        let from = "ann@example.org";
        let plain = mail(
            from,
            &format!("s{number}"),
            &format!("Subject: {}\r\n", encoded(&subject)),
            &format!("<m{number}>"),
        );
        let named = format!("From: {} <{from}>", encoded(&name));
        servers.deliver(&plain.replacen(&format!("From: {from}"), &named, 1));
        servers.wait_for_text(&format!("re: <m{number}>"));
        let requests = bench.model.requests();
        let last = json!(requests.last().unwrap().messages().last()).to_string();
        assert!(last.contains(&format!("<m{number}>")), "{last}");
        let quoted = json!(mark).to_string();
        let quoted = quoted.trim_matches('"');
        // The name of a speaker counts at the beginning of a line only; elsewhere it is a word.
        let is_name = mark.ends_with([':', '\u{ff1a}', '\u{2236}']);
        let is_read =
            if is_name { last.contains(&format!("\\n{quoted}")) } else { last.contains(quoted) };
        if is_read {
            read.push(*mark);
        }
    }
    assert!(read.is_empty(), "{read:?}");
    gateway.stop();
}

#[test]
fn a_mail_is_answered_in_its_thread() {
    let Some(servers) = Mail::start(Encryption::None) else { return };
    let bench = Bench::new(answering("**bold** & <plain>"));
    servers.configure(&bench, |_| {});
    servers.write("old", "what is there before the first start is not answered");
    let probed = bench.run(&["channels", "probe"]);
    assert!(
        probed.stdout().contains("ok      email default: claw@example.org at localhost:"),
        "{}",
        probed.stdout()
    );
    let gateway = bench.start();
    works(&gateway);
    // The server tells of it: nobody asks.
    let headers =
        "Subject: =?utf-8?q?gr=C3=BCn?=\r\nReferences: <0@x> <1@x>\r\nIn-Reply-To: <1@x>\r\n";
    let text = "yes\r\n\r\nOn Monday, 3 Nov, Claw wrote:\r\n> really?\r\n\r\n-- \r\nAnn";
    servers.deliver(&mail("ann@example.org", "2", headers, text));
    let answer = servers.wait_for_text("bold");
    let header = |name: &str| answer["headers"][name].as_str().unwrap_or_default().to_owned();
    assert_eq!(answer["to"], json!(["ann@example.org"]));
    assert_eq!(header("From"), "Claw <claw@example.org>");
    assert_eq!(header("Subject"), "Re: grün");
    assert_eq!(header("In-Reply-To"), "<2@example.org>");
    assert_eq!(
        header("References").split_whitespace().collect::<Vec<_>>(),
        ["<0@x>", "<1@x>", "<2@example.org>"]
    );
    assert_eq!(header("Auto-Submitted"), "auto-replied");
    assert!(header("Message-ID").ends_with("@example.org>"), "{answer}");
    assert_eq!(answer["plain"].as_str().unwrap().trim(), "**bold** & <plain>");
    assert!(
        answer["html"].as_str().unwrap().contains("<strong>bold</strong> &amp; &lt;plain&gt;"),
        "{answer}"
    );
    let asked = bench.asked();
    assert!(asked.contains("\"yes\"") && !asked.contains("really"), "{asked}");
    // The person continues in the same session.
    servers.write("3", "and now?");
    servers.wait_for("an answer", |mail| mail["headers"]["In-Reply-To"] == "<3@example.org>");
    assert!(bench.asked().contains("yes") && bench.asked().contains("Subject: Hi 3"));
    gateway.stop();
    assert_eq!((servers.sent().len(), bench.model.requests().len()), (2, 2));
}

#[test]
fn forged_senders_programs_and_strangers_get_no_answer() {
    let Some(servers) = Mail::start(Encryption::None) else { return };
    let bench = Bench::new(echoing());
    servers.configure(&bench, |_| {});
    let gateway = bench.start();
    works(&gateway);
    let plain = mail("ann@example.org", "1", "", "<m1>");
    let forged = plain.replace("dmarc=pass", "dmarc=fail");
    let unchecked = plain.replace("Authentication-Results", "X-Nothing");
    let mut expected = vec!["dmarc=fail", "nobody has checked its sender"];
    servers.deliver(&forged);
    servers.deliver(&unchecked);
    for (from, header, reason) in [
        ("ann@example.org", "Auto-Submitted: auto-replied\r\n", "Auto-Submitted"),
        ("ann@example.org", "List-Id: <x.example.org>\r\n", "mailing list"),
        ("ann@example.org", "Precedence: bulk\r\n", "Precedence"),
        ("claw@example.org", "", "of this account itself"),
        ("MAILER-DAEMON@example.org", "", "belongs to a program"),
        ("bob@example.org", "", "not in channels.email.allowFrom"),
    ] {
        expected.push(reason);
        servers.deliver(&mail(from, &format!("x{}", expected.len()), header, "<m2>"));
    }
    let reasons = gateway.dropped(expected.len());
    for reason in expected {
        assert!(reasons.iter().any(|dropped| dropped.contains(reason)), "{reason}: {reasons:#?}");
    }
    // The id of a forged mail is not used up by it.
    servers.deliver(&plain);
    servers.wait_for_text("re: <m1>");
    gateway.stop();
    assert_eq!((servers.sent().len(), bench.model.requests().len()), (1, 1));
    // Without a check, everybody is who they say.
    servers.configure(&bench, |email| {
        email["senderCheck"] = json!("none");
        email["dmPolicy"] = json!("pairing");
    });
    let gateway = bench.start();
    servers.deliver(&mail("bob@example.org", "9", "Subject: Hi\r\n", "<m9>"));
    let told = servers.wait_for_text("myclaw pairing approve");
    assert_eq!(
        (&told["to"], &told["headers"]["Subject"]),
        (&json!(["bob@example.org"]), &json!("Re: Hi"))
    );
    gateway.stop();
}

#[test]
fn files_go_both_ways() {
    let Some(servers) = Mail::start(Encryption::None) else { return };
    let bench = Bench::new(answering("see this\nMEDIA: report.txt"));
    bench.write_for_chats("report.txt", "all is well");
    servers.configure(&bench, |_| {});
    let gateway = bench.start();
    works(&gateway);
    let headers =
        "Subject: Notes\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n";
    let body = "--b\r\nContent-Type: text/plain\r\n\r\nsee here\r\n--b\r\nContent-Type: text/plain\r\n\
                Content-Disposition: attachment; filename=\"notes.txt\"\r\nContent-Transfer-Encoding: base64\r\n\r\n\
                bGluZSBvbmUKbGluZSB0d28=\r\n--b--";
    servers.deliver(&mail("ann@example.org", "1", headers, body));
    let sent = servers.wait_for("the file", |mail| mail["files"][0]["name"] == "report.txt");
    assert_eq!(sent["files"][0]["data"], "YWxsIGlzIHdlbGw=");
    assert_eq!(sent["headers"]["In-Reply-To"], "<1@example.org>");
    assert_eq!(sent["headers"]["Subject"], "Re: Notes");
    let asked = bench.asked();
    assert!(asked.contains("see here") && asked.contains("> line one\\n> line two"), "{asked}");
    gateway.stop();
}

#[test]
fn what_cannot_work_is_one_clear_message() {
    let Some(servers) = Mail::start(Encryption::None) else { return };
    let bench = Bench::new(echoing());
    let probe = |words: &[&str]| {
        let probed = bench.run(&["channels", "probe"]);
        probed.assert_code(1);
        for word in words {
            assert!(probed.stdout().contains(word), "{word}: {}", probed.stdout());
        }
    };
    let state = |wanted: &str| {
        let gateway = bench.start();
        gateway.channels(|state| state["channels"][0]["state"] == wanted);
        gateway.stop();
    };
    servers.configure(&bench, |email| email["password"] = json!("wrong"));
    probe(&["the IMAP server refused the login", "check `user`, and `password`"]);
    state("stopped");
    servers.configure(&bench, |email| email["imap"]["port"] = json!(free_port()));
    probe(&["the IMAP server localhost:", "cannot be reached", "of channels.email.imap"]);
    servers.configure(&bench, |email| email["smtp"]["port"] = json!(free_port()));
    probe(&["the SMTP server localhost:", "cannot be reached", "of channels.email.smtp"]);
    servers.configure(&bench, |email| email["mailbox"] = json!("Nowhere"));
    probe(&["the IMAP server refused SELECT", "check channels.email.mailbox"]);
    servers.configure(&bench, |email| email["imap"]["security"] = json!("starttls"));
    probe(&["the IMAP server refused STARTTLS"]);
    // The password of one server says nothing about the other.
    servers.configure(&bench, |email| email["imap"]["security"] = json!("tls"));
    probe(&["the IMAP server localhost:", "no TLS"]);
}

#[test]
fn a_login_that_only_smtp_refuses_shows_before_the_first_answer() {
    let Some(servers) = Mail::start(Encryption::None) else { return };
    let bench = Bench::new(echoing());
    servers.configure(&bench, |_| {});
    let locked = servers.path("sent/locked");
    fs::write(&locked, "").unwrap();
    let gateway = bench.start();
    gateway.channels(|state| {
        let channel = &state["channels"][0];
        let reason = channel["reason"].as_str().unwrap_or_default();
        channel["state"] == "waiting" && reason.contains("the SMTP server refused the login")
    });
    fs::remove_file(locked).unwrap();
    servers.write("1", "<m1>");
    servers.wait_for_text("re: <m1>");
    works(&gateway);
    gateway.stop();
}

#[test]
fn tls_is_used_and_the_certificate_counts() {
    for encryption in [Encryption::StartTls, Encryption::Tls] {
        let Some(servers) = Mail::start(encryption) else { return };
        let bench = Bench::new(echoing());
        servers.configure(&bench, |_| {});
        let probed = bench.run(&["channels", "probe"]);
        probed.assert_code(1);
        let said = probed.stdout();
        let words = "has no certificate that is trusted";
        assert!(said.contains(words) && said.contains(AUTHORITY), "{said}");
        let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
        command.arg("gateway").env(AUTHORITY, servers.path("ca.pem"));
        let gateway = Gateway::of(RunningChild::spawn(&mut command), &bench.home, bench.port);
        works(&gateway);
        servers.write("1", "<m1>");
        servers.wait_for_text("re: <m1>");
        gateway.stop();
    }
}

#[test]
fn the_first_set_up_tries_both_servers() {
    let Some(servers) = Mail::start(Encryption::Tls) else { return };
    let bench = Bench::new(echoing());
    let authority = servers.path("ca.pem").display().to_string();
    let (imap, smtp) =
        (format!("imap.port={}", servers.imap_port), format!("smtp.port={}", servers.smtp_port));
    let check = format!("authservId={CHECKER}");
    let values = [
        "address=claw@example.org",
        "user=claw",
        "imap.host=localhost",
        &imap,
        "smtp.host=localhost",
        "smtp.security=tls",
        &smtp,
        &check,
    ];
    let options: Vec<&str> =
        values.into_iter().flat_map(|value| ["--channel-set", value]).collect();
    let with = |password| [("EMAIL_PASSWORD", password), (AUTHORITY, authority.as_str())];
    let (wrong, right) = (with("wrong"), with(SECRET));
    bench.sets_up(
        "email",
        (Told { options: &options, variables: &wrong }, "the IMAP server refused the login"),
        (Told { options: &options, variables: &right }, "claw@example.org at localhost:"),
    );
}

#[test]
fn a_later_start_reads_on_from_the_number_that_was_kept() {
    let Some(servers) = Mail::start(Encryption::None) else { return };
    let bench = Bench::new(echoing());
    let tap = Tap::before(servers.imap_port);
    servers.configure(&bench, |email| email["imap"]["port"] = json!(tap.port));
    /// The first numbers of the ranges that were asked for.
    fn ranges(said: &str) -> Vec<u32> {
        let ranges =
            said.lines().filter_map(|line| line.split_once("UID FETCH ")?.1.split_once(":*"));
        ranges.map(|(first, _)| first.parse().unwrap()).collect()
    }
    let gateway = bench.start();
    works(&gateway);
    for number in 1..=3 {
        servers.write(&number.to_string(), &format!("<m{number}>"));
        servers.wait_for_text(&format!("re: <m{number}>"));
    }
    gateway.stop();
    assert_eq!(ranges(&tap.take())[0], 1);
    let gateway = bench.start();
    works(&gateway);
    servers.write("4", "<m4>");
    servers.wait_for_text("re: <m4>");
    gateway.stop();
    assert_eq!(ranges(&tap.take())[0], 4);
}

/// It takes half a minute, because the server is given that time to mend it.
#[test]
fn a_mail_that_the_server_cannot_read_is_reported_and_the_others_are_answered() {
    let Some(servers) = Mail::start(Encryption::None) else { return };
    let bench = Bench::new(echoing());
    servers.configure(&bench, |_| {});
    let gateway = bench.start();
    works(&gateway);
    gateway.stop();
    servers.write("1", "<m1>");
    let unreadable = fs::read_dir(servers.path("mail/claw/new")).unwrap().next().unwrap().unwrap();
    fs::set_permissions(unreadable.path(), fs::Permissions::from_mode(0o0)).unwrap();
    servers.write("2", "<m2>");
    let gateway = bench.start();
    // Dovecot ends the connection at each attempt.
    let dropped = gateway.dropped(1);
    assert!(dropped[0].contains("it was tried 7 times: the IMAP server"), "{dropped:?}");
    servers.wait_for_text("re: <m2>");
    // It is not tried again.
    servers.write("3", "<m3>");
    servers.wait_for_text("re: <m3>");
    gateway.stop();
    let texts: Vec<_> = servers.sent().iter().map(|mail| mail["plain"].clone()).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
}

#[test]
fn servers_that_are_away_refuse_or_drop_are_survived() {
    let Some(mut servers) = Mail::start(Encryption::None) else { return };
    let bench = Bench::new(echoing());
    servers.configure(&bench, |_| {});
    let gateway = bench.start();
    works(&gateway);
    servers.deliver(&mail("later@example.org", "1", "", "<m1>"));
    servers.deliver(&mail("never@example.org", "2", "", "<m2>"));
    servers.deliver(&mail("drop@example.org", "3", "", "<m3>"));
    let troubles = |state: &Value| -> HashMap<String, String> {
        let parts = state["undelivered"].as_array().unwrap().iter();
        parts
            .map(|part| (part["text"].as_str().unwrap().to_owned(), part["state"].to_string()))
            .collect()
    };
    let state = gateway.channels(|state| troubles(state).len() == 2);
    let troubles = troubles(&state);
    assert!(
        troubles["re: <m2>"].contains("550") && troubles["re: <m3>"].contains("uncertain"),
        "{troubles:?}"
    );
    fs::write(servers.path("sent/accept"), "").unwrap();
    servers.wait_for_text("re: <m1>");
    // The mailbox goes away while it is read, and comes back with other numbers.
    servers.dovecot.signal(Signal::Terminate);
    gateway.channels(|state| state["channels"][0]["state"] == "waiting");
    gateway.stop();
    let gateway = bench.start();
    gateway.channels(|state| state["channels"][0]["state"] == "waiting");
    for entry in fs::read_dir(servers.path("mail/claw")).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("dovecot") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    servers.deliver(&mail("ann@example.org", "4", "", "<m4>"));
    servers.dovecot = start_dovecot(&dovecot().unwrap(), servers.directory.path());
    servers.wait_for_text("re: <m4>");
    gateway.stop();
    // Nothing was answered again: of each mail there is one answer, that of `drop` included.
    let mut texts: Vec<String> = servers
        .sent()
        .iter()
        .map(|mail| mail["plain"].as_str().unwrap().trim().to_owned())
        .collect();
    texts.sort();
    assert!(texts.remove(0).contains("may be missing here"), "{texts:?}");
    assert_eq!(texts, ["re: <m1>", "re: <m3>", "re: <m4>"]);
}

/// Says to Dovecot that [`SECRET`] is the bearer token of `claw`, and that nobody has another one. Gives the address that a
/// token is appended to.
fn token_authority() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut request, mut buffer) = (Vec::new(), [0; 4_096]);
            while !request.ends_with(b"\r\n\r\n") {
                let count = stream.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..count]);
            }
            let known = format!("GET /?token={SECRET} ");
            let (status, body) = match request.starts_with(known.as_bytes()) {
                true => ("200 OK", r#"{"user":"claw","active":"true"}"#),
                false => ("401 Unauthorized", "{}"),
            };
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    format!("http://127.0.0.1:{port}/?token=")
}

#[test]
fn a_bearer_token_lets_in_at_both_servers_and_a_wrong_one_says_so() {
    let Some(mut servers) = Mail::start(Encryption::None) else { return };
    servers.dovecot.signal(Signal::Terminate);
    let (config, details) = (servers.path("dovecot.conf"), servers.path("oauth2.conf"));
    let address = token_authority();
    fs::write(
        &details,
        format!(
            "tokeninfo_url = {address}\nusername_attribute = user\nactive_attribute = active\nactive_value = true\n"
        ),
    )
    .unwrap();
    let text = fs::read_to_string(&config).unwrap();
    let password = format!("driver = static\n  args = password={SECRET}\n}}\n");
    assert!(text.contains(&password));
    let token = format!(
        "driver = oauth2\n  mechanisms = xoauth2\n  args = {}\n}}\nauth_mechanisms = xoauth2\n",
        details.display()
    );
    fs::write(&config, text.replace(&password, &token)).unwrap();
    until("the end of Dovecot", || {
        std::net::TcpStream::connect(("127.0.0.1", servers.imap_port)).is_err()
    });
    servers.dovecot = start_dovecot(&dovecot().unwrap(), servers.directory.path());
    wait_for_port(servers.imap_port);

    let bench = Bench::new(echoing());
    let with_token = |token: &str| {
        servers.configure(&bench, |email| {
            email.as_object_mut().unwrap().remove("password");
            email["accessToken"] = json!(token);
        });
    };
    with_token(SECRET);
    let gateway = bench.start();
    works(&gateway);
    servers.write("1", "<m1>");
    servers.wait_for_text("re: <m1>");
    gateway.stop();
    with_token("expired");
    let probed = bench.run(&["channels", "probe"]);
    probed.assert_code(1);
    let said = probed.stdout();
    assert!(
        said.contains("the IMAP server refused the login") && said.contains("`accessToken`"),
        "{said}"
    );
}

#[test]
fn large_and_hostile_mails_do_not_stop_the_others() {
    let Some(servers) = Mail::start(Encryption::None) else { return };
    let bench = Bench::new(echoing());
    servers.configure(&bench, |email| email["mediaMaxMb"] = json!(1));
    let gateway = bench.start();
    works(&gateway);
    let header = |level| format!("Content-Type: multipart/mixed; boundary=b{level}\r\n");
    let deep: String =
        (1..5_000).map(|level| format!("--b{}\r\n{}\r\n", level - 1, header(level))).collect();
    servers.deliver(&mail("ann@example.org", "1", &header(0), &deep));
    servers.deliver("\r\n\r\nno header");
    servers.deliver(&mail(
        "ann@example.org",
        "2",
        "Content-Type: text/plain; charset=\u{1}\r\nContent-Transfer-Encoding: base64\r\n",
        "!!",
    ));
    let large = "x".repeat(1_100_000);
    servers.deliver(&mail("ann@example.org", "3", "Subject: <m3>\r\n", &large));
    servers.write("4", "<m4>");
    servers.wait_for_text("<m4>");
    servers.wait_for_text("<m3>");
    let shown: Vec<String> = bench
        .model
        .requests()
        .iter()
        .map(|request| json!(request.messages()).to_string())
        .collect();
    let size = "bytes, and mediaMaxMb allows 1048576";
    assert!(shown.iter().any(|asked| asked.contains(size)), "{:?}", shown.last());
    assert!(gateway.dropped(1)[0].contains("the mail cannot be read"));
    gateway.stop();
}

/// An SMTP server that refuses everybody until it is up; then it is the one at `port`.
fn gate_keeper(port: u16, is_up: &'static AtomicBool) -> (u16, &'static AtomicU64) {
    static REFUSED: AtomicU64 = AtomicU64::new(0);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            if !is_up.load(Ordering::SeqCst) {
                let _ = client.write_all(b"554 5.3.2 no service now\r\n");
                REFUSED.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            let mut server = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut from_client, mut to_server) =
                (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
            thread::spawn(move || std::io::copy(&mut server, &mut client));
        }
    });
    (own, &REFUSED)
}

#[test]
fn an_answer_waits_for_a_server_that_serves_nobody() {
    static IS_UP: AtomicBool = AtomicBool::new(false);
    let Some(servers) = Mail::start(Encryption::None) else { return };
    let bench = Bench::new(echoing());
    let (port, refused) = gate_keeper(servers.smtp_port, &IS_UP);
    servers.configure(&bench, |email| email["smtp"]["port"] = json!(port));
    let gateway = bench.start();
    works(&gateway);
    servers.write("1", "<m1>");
    let end = Instant::now() + PATIENCE;
    while refused.load(Ordering::SeqCst) < 2 {
        assert!(Instant::now() < end, "it is not tried again");
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(gateway.undelivered(), [""; 0]);
    IS_UP.store(true, Ordering::SeqCst);
    servers.wait_for_text("re: <m1>");
    gateway.stop();
}

#[test]
fn mails_in_are_answers_out_whatever_is_killed() {
    kill_at_random("report", number_from("MYCLAW_GATEWAY_KILLS").unwrap_or(DEFAULT_KILLS));
}

#[test]
fn an_answer_that_is_sent_again_has_the_same_id() {
    kill_at_random("again", number_from("MYCLAW_GATEWAY_KILLS").unwrap_or(DEFAULT_KILLS));
}

fn kill_at_random(uncertain: &str, kills: u64) {
    let Some(servers) = Mail::start(Encryption::None) else { return };
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_123);
    let bench = Bench::new(echoing());
    let person = |number: u64| format!("p{}@example.org", number % PEOPLE);
    let people: Vec<String> = (0..PEOPLE).map(person).collect();
    servers.configure(&bench, |email| {
        email["allowFrom"] = json!(people);
        email["uncertain"] = json!(uncertain);
    });
    let (gateway, count) = kill_while(&bench, (kills, seed), |number| {
        let (id, text) = (format!("n{number}"), format!("<m{number}>"));
        servers.deliver(&mail(&person(number), &id, "", &text));
        thread::sleep(Duration::from_millis(150));
    });
    let end = Instant::now() + PATIENCE * 2;
    let times = |texts: &[String], number: u64| {
        texts.iter().filter(|text| text.contains(&format!("<m{number}>"))).count()
    };
    loop {
        let text = |mail: &Value| mail["plain"].as_str().unwrap().to_owned();
        let texts: Vec<String> = match uncertain {
            "report" => servers.sent().iter().map(text).collect(),
            _ => {
                let id = |mail: &Value| mail["headers"]["Message-ID"].to_string();
                let by_id: HashMap<String, String> =
                    servers.sent().iter().map(|mail| (id(mail), text(mail))).collect();
                by_id.into_values().collect()
            }
        };
        let doubled: Vec<u64> = (0..count).filter(|number| times(&texts, *number) > 1).collect();
        assert_eq!(doubled, [0; 0], "seed {seed}: doubled; {texts:#?}");
        let mut known = texts;
        known.extend(gateway.undelivered());
        let missing: Vec<u64> = (0..count).filter(|number| times(&known, *number) == 0).collect();
        if missing.is_empty() {
            break;
        }
        assert!(Instant::now() < end, "seed {seed}: neither answered nor reported: {missing:?}");
        thread::sleep(Duration::from_millis(100));
    }
    eprintln!("{count} mails, {kills} kills, {} answers", servers.sent().len());
    gateway.stop();
    assert!(count > kills, "only {count} mails");
}
