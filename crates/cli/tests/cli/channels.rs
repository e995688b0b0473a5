//! `myclaw channels add` and `remove`: they change the config file, and nothing else in it.

use myclaw_testkit::{ChildOutput, RunningChild, TempHome};

use crate::{myclaw, run};

const CONFIG: &str = "{
  // The port is free here.
  gateway: { port: 18790, },
  /* who answers */
  agents: { list: [{ id: 'main' }] },
}
";

fn config(home: &TempHome) -> String {
    std::fs::read_to_string(home.config_path()).expect("a config file")
}

fn with_token(home: &TempHome, arguments: &[&str]) -> ChildOutput {
    RunningChild::run(myclaw(home, arguments).env("TELEGRAM_BOT_TOKEN", "1:x"))
}

#[test]
fn a_channel_is_added_and_removed_and_comments_stay() {
    let home = TempHome::new();
    home.write_config_text(CONFIG);
    let add = ["channels", "add", "telegram", "--allow-from", "42"];
    // Without the variable, every other command would fail afterwards.
    let refused = run(&home, &add);
    refused.assert_code(2);
    assert!(refused.stderr().contains("TELEGRAM_BOT_TOKEN is not set"), "{}", refused.stderr());
    let shown = run(&home, &[&add[..], &["--dry-run"]].concat());
    shown.assert_code(0);
    assert!(shown.stdout().contains("channels.telegram") && shown.stdout().contains("@BotFather"));
    assert_eq!(config(&home), CONFIG);
    with_token(&home, &add).assert_code(0);
    let text = config(&home);
    for kept in ["// The port is free here.", "gateway: { port: 18790, },", "/* who answers */"] {
        assert!(text.contains(kept), "{text}");
    }
    assert!(text.contains("${TELEGRAM_BOT_TOKEN}") && !text.contains("1:x"), "{text}");
    let listed = with_token(&home, &["channels", "list"]);
    assert_eq!(listed.stdout().trim(), "telegram  default");
    with_token(&home, &add).assert_code(2);
    let shown = with_token(&home, &["channels", "remove", "telegram", "--dry-run"]);
    assert!(shown.stdout().contains("channels.telegram would be removed"), "{}", shown.stdout());
    assert_eq!(config(&home), text);
    with_token(&home, &["channels", "remove", "telegram"]).assert_code(0);
    let text = config(&home);
    assert!(!text.contains("telegram") && text.contains("// The port is free here."), "{text}");
    with_token(&home, &["channels", "remove", "telegram"]).assert_code(2);
}

#[test]
fn every_secret_of_a_channel_is_asked_for() {
    let home = TempHome::new();
    home.write_config_text(CONFIG);
    let slack = ["channels", "add", "slack", "--allow-from", "U1"];
    let shown = run(&home, &[&slack[..], &["--dry-run"]].concat());
    for name in ["SLACK_APP_TOKEN", "SLACK_BOT_TOKEN", "connections:write"] {
        assert!(shown.stdout().contains(name), "{}", shown.stdout());
    }
    let refused = RunningChild::run(myclaw(&home, &slack).env("SLACK_BOT_TOKEN", "xoxb-1"));
    refused.assert_code(2);
    assert!(refused.stderr().contains("SLACK_APP_TOKEN is not set"), "{}", refused.stderr());
    assert_eq!(config(&home), CONFIG);
    let discord = ["channels", "add", "discord", "--allow-from", "42"];
    for arguments in [&slack[..], &discord[..]] {
        let mut command = myclaw(&home, arguments);
        command.env("SLACK_BOT_TOKEN", "xoxb-1").env("SLACK_APP_TOKEN", "xapp-1");
        RunningChild::run(command.env("DISCORD_BOT_TOKEN", "d1")).assert_code(0);
    }
    let text = config(&home);
    for held in ["${SLACK_BOT_TOKEN}", "${SLACK_APP_TOKEN}", "${DISCORD_BOT_TOKEN}", "U1"] {
        assert!(text.contains(held), "{text}");
    }
    // Each in the place of the other.
    let mut command = myclaw(&home, &["channels", "list"]);
    command.env("SLACK_BOT_TOKEN", "xapp-1").env("SLACK_APP_TOKEN", "xoxb-1");
    let swapped = RunningChild::run(command.env("DISCORD_BOT_TOKEN", "d1"));
    swapped.assert_code(3);
    assert!(swapped.stderr().contains("this is the app's other token"), "{}", swapped.stderr());
    assert!(!swapped.stderr().contains("xapp-1"), "{}", swapped.stderr());
}

#[test]
fn what_cannot_be_added_is_said() {
    let home = TempHome::new();
    home.write_config_text(CONFIG);
    for (arguments, words) in [
        (&["webhook"][..], "--url is missing"),
        (&["matrix"], "--url is missing"),
        (&["email", "--address", "a@b.c"], "--imap is missing: the server where mails are read"),
        (&["irc", "--host", "h", "--nick", "n", "--imap", "h"], "--imap has no meaning for irc"),
        (&["whatsapp"], "--id is missing"),
        (&["signal"], "--id is missing"),
        (&["whatsapp", "--id", "1"], "WHATSAPP_ACCESS_TOKEN is not set"),
        (&["irc", "--nick", "claw"], "--host is missing"),
        (&["xmpp"], "--address is missing"),
        (&["xmpp", "--address", "claw@h"], "XMPP_PASSWORD is not set"),
        (&["socket", "--account", "x"], "leave --account out"),
        (&["socket", "--allow-from", "1"], "--allow-from has no meaning"),
    ] {
        let output = run(&home, &[&["channels", "add"], arguments].concat());
        output.assert_code(2);
        assert!(output.stderr().contains(words), "{}", output.stderr());
    }
    let wrong = run(&home, &["channels", "add", "signal", "--id", "0151"]);
    wrong.assert_code(1);
    assert!(wrong.stderr().contains("such as \"+4915112345678\""), "{}", wrong.stderr());
    run(&home, &["channels", "add", "socket"]).assert_code(0);
    assert!(config(&home).contains("socket: {}"), "{}", config(&home));
}

#[test]
fn a_number_needs_three_secrets_and_further_ones_need_none() {
    let home = TempHome::new();
    home.write_config_text(CONFIG);
    let with_secrets = |arguments: &[&str]| {
        let mut command = myclaw(&home, arguments);
        for name in ["WHATSAPP_ACCESS_TOKEN", "WHATSAPP_APP_SECRET", "WHATSAPP_VERIFY_TOKEN"] {
            command.env(name, "hunter2");
        }
        RunningChild::run(&mut command)
    };
    let shown = run(&home, &["channels", "add", "whatsapp", "--id", "1", "--dry-run"]);
    for name in ["WHATSAPP_ACCESS_TOKEN", "WHATSAPP_APP_SECRET", "WHATSAPP_VERIFY_TOKEN"] {
        assert!(
            shown.stdout().contains(&format!("into the variable {name}")),
            "{}",
            shown.stdout()
        );
    }
    with_secrets(&["channels", "add", "whatsapp", "--id", "1", "--allow-from", "1650"])
        .assert_code(0);
    with_secrets(&["channels", "add", "whatsapp", "--account", "sales", "--id", "2"])
        .assert_code(0);
    let listed = with_secrets(&["channels", "list"]);
    assert_eq!(listed.stdout().lines().count(), 2, "{}", listed.stdout());
    // Each number once.
    let twice = with_secrets(&["channels", "add", "whatsapp", "--account", "b", "--id", "2"]);
    twice.assert_code(1);
    assert!(twice.stderr().contains("has the same number"), "{}", twice.stderr());
    with_secrets(&["channels", "remove", "whatsapp"]).assert_code(2);
    with_secrets(&["channels", "remove", "whatsapp", "sales"]).assert_code(0);
    with_secrets(&["channels", "remove", "whatsapp"]).assert_code(0);
    assert!(!config(&home).contains("hunter2"), "{}", config(&home));
}
