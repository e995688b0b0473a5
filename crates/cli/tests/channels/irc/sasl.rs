//! An account of a network, against InspIRCd with the services of Atheme, which `scripts/test` installs: ngIRCd knows no SASL.
//!
//! `MYCLAW_INSPIRCD` names the directory that its package was unpacked into.

use std::path::Path;

use super::*;
use crate::third_party::installed;

const ATHEME: &str = "/usr/bin/atheme-services";

/// A network with the account `claw`, whose password is [`SECRET`]. It ends with this value.
struct Network {
    _server: RunningChild,
    _services: RunningChild,
    port: u16,
    _home: TempHome,
}

impl Network {
    fn start() -> Option<Self> {
        let package = installed("MYCLAW_INSPIRCD")?;
        if !Path::new(ATHEME).exists() {
            myclaw_testkit::skip_without("Atheme is not installed; scripts/test installs it");
            return None;
        }
        let (home, port, link_port) = (TempHome::new(), free_port(), free_port());
        let server = start_server(&package, &home, port, link_port);
        let services = start_services(&home, link_port);
        let network = Self { _server: server, _services: services, port, _home: home };
        network.register();
        Some(network)
    }

    fn register(&self) {
        let mut claw = Person::connect(self.port, "claw");
        loop {
            claw.send(&format!("PRIVMSG NickServ :REGISTER {SECRET} claw@example.org"));
            // The services may not have joined yet.
            if !claw.wait_for("NickServ").contains(" 401 ") {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
        // In case it was said before the answer of NickServ.
        claw.send("WHOIS claw");
        claw.wait_for(" 330 claw claw claw ");
        claw.send("QUIT");
    }
}

fn start_server(package: &Path, home: &TempHome, port: u16, link_port: u16) -> RunningChild {
    let (modules, place) = (package.join("usr/lib/inspircd/modules"), home.path().display());
    let loaded = [
        "cap",
        "sasl",
        "spanningtree",
        "services_account",
        "ircv3",
        "ircv3_accounttag",
        "ircv3_ctctags",
    ];
    let loaded = loaded.map(|name| format!("<module name=\"{name}\">\n")).concat();
    let services = "services.example.org";
    let file = home.write(
        "inspircd.conf",
        format!(
            "<config format=\"xml\">\n\
             <server name=\"irc.example.org\" description=\"x\" network=\"Example\" id=\"1AA\">\n\
             <admin name=\"a\" nick=\"a\" email=\"a@example.org\">\n\
             <bind address=\"127.0.0.1\" port=\"{port}\" type=\"clients\">\n\
             <bind address=\"127.0.0.1\" port=\"{link_port}\" type=\"servers\">\n\
             <connect allow=\"*\" resolvehostnames=\"no\" localmax=\"100\" globalmax=\"100\">\n\
             {loaded}<uline server=\"{services}\" silent=\"yes\">\n\
             <link name=\"{services}\" ipaddr=\"127.0.0.1\" allowmask=\"127.0.0.1\" port=\"1\" \
              sendpass=\"{SECRET}\" recvpass=\"{SECRET}\">\n\
             <sasl target=\"{services}\" requiressl=\"no\">\n\
             <path configdir=\"{place}\" datadir=\"{place}\" logdir=\"{place}\" runtimedir=\"{place}\" \
              moduledir=\"{}\">\n",
            modules.display()
        ),
    );
    let mut command = Command::new(package.join("usr/sbin/inspircd"));
    command.args(["--runasroot", "--nofork", "--nopid", "--nolog", "--config"]).arg(file);
    let server = RunningChild::spawn(&mut command);
    until("the start of InspIRCd", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    server
}

fn start_services(home: &TempHome, link_port: u16) -> RunningChild {
    let loaded = [
        "protocol/inspircd",
        "backend/opensex",
        "nickserv/main",
        "nickserv/register",
        "saslserv/main",
        "saslserv/plain",
    ];
    let loaded = loaded.map(|name| format!("loadmodule \"modules/{name}\";\n")).concat();
    let service = |kind: &str, nick: &str| {
        format!(
            "{kind} {{ nick = \"{nick}\"; user = \"x\"; host = \"services.example.org\"; real = \"x\"; }};\n"
        )
    };
    let services = service("nickserv", "NickServ") + &service("saslserv", "SaslServ");
    let file = home.write(
        "atheme.conf",
        format!(
            "{loaded}{services}\
             serverinfo {{ name = \"services.example.org\"; desc = \"x\"; numeric = \"00A\"; recontime = 1; \
             netname = \"Example\"; adminname = \"a\"; adminemail = \"a@example.org\"; \
             registeremail = \"a@example.org\"; auth = none; mta = \"/bin/true\"; }};\n\
             uplink \"irc.example.org\" {{ host = \"127.0.0.1\"; port = {link_port}; \
             send_password = \"{SECRET}\"; receive_password = \"{SECRET}\"; }};\n"
        ),
    );
    let place = |name: &str| home.path().join(name);
    let mut command = Command::new(ATHEME);
    command.arg("-n").arg("-c").arg(file).arg("-D").arg(home.path());
    command.arg("-l").arg(place("atheme.log")).arg("-p").arg(place("atheme.pid"));
    RunningChild::spawn(&mut command)
}

#[test]
fn an_account_of_the_network_is_used_and_a_wrong_password_says_so() {
    let Some(network) = Network::start() else { return };
    let bench = Bench::new(echoing());
    let configure = |password: &str| {
        bench.configure(|config| {
            config["channels"] = json!({"irc": {
                "host": "127.0.0.1", "port": network.port, "tls": false, "nick": "clawbot",
                "sasl": {"user": "claw", "password": password}, "dmPolicy": "open",
            }});
        });
    };
    configure(SECRET);
    let mut ann = Person::connect(network.port, "ann");
    let gateway = bench.start();
    works(&gateway);
    ann.send("WHOIS clawbot");
    ann.wait_for(" 330 ann clawbot claw ");
    ann.send("PRIVMSG clawbot :<m1>");
    ann.wait_for("re: <m1>");
    gateway.stop();
    configure("wrong");
    let probed = bench.run(&["channels", "probe"]);
    probed.assert_code(1);
    assert!(
        probed.stdout().contains("refused the login: SASL authentication failed; check `sasl`"),
        "{}",
        probed.stdout()
    );
}
