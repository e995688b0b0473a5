//! Every kind of channel as the page changes it, over HTTP: added, tried, repaired and removed, against its own server.

use myclaw_testkit::{DiscordServer, SignalServer, SlackServer, WhatsAppServer};

use super::*;

/// A gateway whose channels are changed.
struct Changes<'a> {
    bench: &'a Bench,
    gateway: Gateway,
    channel: &'static str,
    account: &'static str,
}

impl<'a> Changes<'a> {
    /// A gateway without channels.
    fn of(bench: &'a Bench, channel: &'static str, account: &'static str) -> Self {
        bench.configure(|config| config["channels"] = json!({}));
        Self { bench, gateway: bench.start(), channel, account }
    }

    fn kinds(&self) -> Value {
        self.gateway.client.get("/api/channels/kinds").unwrap().1
    }

    fn ask(&self, change: &str, more: &Value) -> (u16, Value) {
        let version = self.kinds()["version"].clone();
        let mut body =
            json!({"version": version, "channel": self.channel, "account": self.account});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.gateway.client.post(&format!("/api/channels/{change}"), &body).unwrap()
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.bench.home.config_path()).unwrap()
    }

    /// Something that the vendor does not take changes nothing.
    fn refused(&self, change: &str, more: &Value) {
        let before = self.config();
        let (status, answer) = self.ask(change, more);
        assert_eq!((status, &answer["error"]["class"]), (400, &json!("channel")), "{answer}");
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("Nothing was changed"), "{said}");
        assert_eq!(self.config(), before);
    }

    /// A change that the vendor takes. Gives who the vendor says that it is.
    fn taken(&self, change: &str, more: &Value) -> String {
        let (status, answer) = self.ask(change, more);
        assert_eq!((status, &answer["inForce"]), (200, &json!(true)), "{change}: {answer}");
        works(&self.gateway);
        answer["probed"]["found"].as_str().unwrap().to_owned()
    }

    /// What is in the config is tried, repaired with `wrong` and with `right`, and removed.
    fn repaired_and_removed(self, wrong: Option<&Value>, right: &Value, found: &str) {
        let is_it = |said: &str| said.ends_with(found);
        let (status, tried) = self.ask("test", &json!({}));
        assert!(status == 200 && tried["found"].as_str().is_some_and(is_it), "{tried}");
        if let Some(wrong) = wrong {
            self.refused("repair", wrong);
        }
        let said = self.taken("repair", right);
        assert!(is_it(&said), "{said}");
        let (status, removed) = self.ask("remove", &json!({}));
        assert_eq!((status, &removed["inForce"]), (200, &json!(true)), "{removed}");
        self.gateway.channels(|state| state["channels"] == json!([]));
        assert_eq!(self.kinds()["accounts"], json!([]));
        self.gateway.stop();
    }

    /// What `config` says of the channel in the words of the page: values and secrets, and the same with a wrong one.
    fn given(&self, config: &Value) -> (Value, Value) {
        let kinds = self.kinds();
        let kind = kinds["kinds"].as_array().unwrap().iter().find(|it| it["name"] == self.channel);
        let pick = |list: &str| -> Value {
            let keys = kind.unwrap()[list].as_array().unwrap().iter();
            let keys = keys.map(|field| field["key"].as_str().unwrap());
            keys.filter(|key| config[key].is_string())
                .map(|key| (key.to_owned(), config[key].clone()))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let right = json!({"values": pick("fields"), "secrets": pick("secrets")});
        let mut wrong = right.clone();
        match wrong["secrets"].as_object_mut().unwrap().values_mut().next() {
            Some(secret) => *secret = json!("12345:wrong"),
            None => wrong["values"]["account"] = json!("+49111"),
        }
        (right, wrong)
    }
}

/// All of it with a server that vendors' channels are tested with.
fn changed<V: Vendor>() {
    let desk = Desk::<V>::new(answering("fine"));
    let changes = Changes::of(&desk.bench, V::CHANNEL, "");
    let (right, wrong) = changes.given(&desk.server.config());
    changes.refused("add", &wrong);
    let found = changes.taken("add", &right);
    changes.repaired_and_removed(Some(&wrong), &right, &found);
}

#[test]
fn whatsapp_is_added_repaired_and_removed() {
    changed::<WhatsAppServer>();
}

#[test]
fn signal_is_added_repaired_and_removed() {
    changed::<SignalServer>();
}

#[test]
fn slack_is_added_repaired_and_removed() {
    changed::<SlackServer>();
}

#[test]
fn discord_is_added_repaired_and_removed() {
    changed::<DiscordServer>();
}

#[test]
fn telegram_is_added_repaired_and_removed() {
    let bench = Bench::new(answering("fine"));
    let changes = Changes::of(&bench, "telegram", "");
    let config = json!({"botToken": bench.bot.token(), "baseUrl": bench.bot.url()});
    let (right, wrong) = changes.given(&config);
    changes.refused("add", &wrong);
    let found = changes.taken("add", &right);
    changes.repaired_and_removed(Some(&wrong), &right, &found);
}

#[test]
fn matrix_is_added_repaired_and_removed() {
    let Some(synapse) = super::matrix::Synapse::start() else { return };
    let claw = synapse.register("claw");
    let bench = Bench::new(answering("fine"));
    let changes = Changes::of(&bench, "matrix", "");
    let config = json!({"homeserverUrl": synapse.url(), "accessToken": claw.token});
    let (right, wrong) = changes.given(&config);
    changes.refused("add", &wrong);
    let found = changes.taken("add", &right);
    changes.repaired_and_removed(Some(&wrong), &right, &found);
}

/// The servers of these listen where no server of a vendor does, which the page does not ask for, so the first config is a file.
fn repaired_from_a_file(
    bench: &Bench,
    channel: &'static str,
    (wrong, right, found): (&Value, &Value, &str),
) {
    let gateway = bench.start();
    works(&gateway);
    let changes = Changes { bench, gateway, channel, account: "" };
    changes.repaired_and_removed(Some(wrong), right, found);
    // Added again without a server that answers, nothing is written.
    let changes = Changes::of(bench, channel, "");
    let mut more = wrong.clone();
    more["values"]["address"] = json!("claw@localhost");
    more["secrets"] = json!({"password": SECRET});
    match channel {
        "irc" => more = json!({"values": {"host": "127.0.0.9", "nick": "claw"}}),
        "email" => {
            more["values"]["smtp.host"] = json!("127.0.0.9");
            more["values"]["authservId"] = json!("mx.example.org");
        }
        _ => {}
    }
    changes.refused("add", &more);
    changes.gateway.stop();
}

#[test]
fn irc_is_repaired_and_removed() {
    let Some(server) = super::irc::Ngircd::start() else { return };
    let bench = Bench::new(answering("fine"));
    server.configure(&bench, |_| {});
    let host = |host: &str| json!({"values": {"host": host}});
    // The gateway that runs has the nickname already.
    let found = bench.probed("irc").replace("claw", "");
    repaired_from_a_file(&bench, "irc", (&host("127.0.0.9"), &host("127.0.0.1"), &found));
}

#[test]
fn xmpp_is_repaired_and_removed() {
    let Some(server) = super::xmpp::Prosody::start(super::xmpp::Encryption::None) else { return };
    let bench = Bench::new(answering("fine"));
    server.configure(&bench, |_| {});
    let host = |host: &str| json!({"values": {"host": host}});
    let found = bench.probed("xmpp");
    repaired_from_a_file(&bench, "xmpp", (&host("127.0.0.9"), &host("127.0.0.1"), &found));
}

#[test]
fn email_is_repaired_and_removed() {
    let Some(server) = super::email::Mail::start(super::email::Encryption::None) else { return };
    let bench = Bench::new(answering("fine"));
    server.configure(&bench, |_| {});
    let host = |host: &str| json!({"values": {"imap.host": host}});
    let found = bench.probed("email");
    repaired_from_a_file(&bench, "email", (&host("127.0.0.9"), &host("localhost"), &found));
}

#[test]
fn webhooks_and_sockets_have_no_vendor_and_are_removed_too() {
    let bench = Bench::new(answering("fine"));
    for (channel, account, given) in [
        (
            "webhook",
            "mine",
            json!({"values": {"url": format!("{}/answers", bench.bot.url())}, "secrets": {"secret": SECRET}}),
        ),
        ("socket", "", json!({})),
    ] {
        let changes = Changes::of(&bench, channel, account);
        let found = changes.taken("add", &given);
        changes.repaired_and_removed(None, &given, &found);
    }
}

/// The page itself, in a browser.
#[test]
fn the_page_adds_servers_of_ones_own() {
    let variable = |name: &str| std::env::var_os(name);
    let (Some(playwright), Some(axe)) = (variable("MYCLAW_PLAYWRIGHT"), variable("MYCLAW_AXE"))
    else {
        myclaw_testkit::skip_without(
            "MYCLAW_PLAYWRIGHT or MYCLAW_AXE is not set; scripts/test sets them",
        );
        return;
    };
    let (Some(irc), Some(xmpp), Some(mail)) = (
        super::irc::Ngircd::start_open(),
        super::xmpp::Prosody::start(super::xmpp::Encryption::None),
        super::email::Mail::start(super::email::Encryption::None),
    ) else {
        return;
    };
    let bench = Bench::new(answering("fine"));
    bench.configure(|config| config["channels"] = json!({}));
    let gateway = bench.start();
    let text = |port: u16| port.to_string();
    let channels = json!({
        "irc": {
            "values": {"host": "127.0.0.1", "nick": "claw", "port": text(irc.port), "tls": "false"},
            "secrets": {},
            "found": "claw at 127.0.0.1:",
        },
        "xmpp": {
            "values": {
                "address": "claw@localhost", "host": "127.0.0.1", "port": text(xmpp.port), "security": "none",
            },
            "secrets": {"password": SECRET},
            "found": "claw@localhost at 127.0.0.1:",
        },
        "email": {
            "values": {
                "address": "claw@example.org", "user": "claw", "authservId": "mx.example.org",
                "imap.host": "localhost", "imap.port": text(mail.imap_port), "imap.security": "none",
                "smtp.host": "localhost", "smtp.port": text(mail.smtp_port), "smtp.security": "none",
            },
            "secrets": {"password": SECRET},
            "found": "claw@example.org at localhost:",
        },
    });
    let script =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/third-party/web-ui.mjs");
    let mut command = std::process::Command::new("node");
    command.arg(script).arg("own-servers").env("PLAYWRIGHT", playwright).env("AXE", axe);
    command.env("GATEWAY", format!("http://127.0.0.1:{}", bench.port));
    command.env("TOKEN", &gateway.client.token).env("CHANNELS", channels.to_string());
    let output = RunningChild::spawn(&mut command).wait(Duration::from_secs(240));
    output.assert_code(0);
    let config = std::fs::read_to_string(bench.home.config_path()).unwrap();
    assert!(!config.contains(SECRET) && config.contains(&text(irc.port)), "{config}");
    gateway.stop();
}

impl Bench {
    /// What `channels probe` says of the only channel.
    fn probed(&self, channel: &str) -> String {
        let said = self.run(&["channels", "probe", channel]);
        said.assert_code(0);
        let line = said.stdout();
        let (_, found) = line.trim_end().split_once(": ").unwrap();
        found.to_owned()
    }
}
