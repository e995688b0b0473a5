//! The chats of the chaos test: Telegram, Discord and Slack, on whose accounts one node at a time listens and sends.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use myclaw_testkit::{DiscordServer, SlackServer, TelegramServer};
use parking_lot::Mutex;

use super::chaos::{Clients, Rows};
use super::*;

/// Between two messages of one chat.
const PAUSE: Duration = Duration::from_millis(900);
/// The people who write.
const ANN: i64 = 42;
const KIM: &str = "42";
const EVE: &str = "UEVE";

/// Where a message comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vendor {
    Telegram,
    Discord,
    Slack,
}

/// The vendors, and what people wrote there.
pub(crate) struct Chats {
    telegram: TelegramServer,
    discord: DiscordServer,
    slack: SlackServer,
    written: Mutex<Vec<(Vendor, u64)>>,
}

impl Chats {
    pub(crate) fn start() -> Self {
        let (telegram, discord) = (TelegramServer::start(), DiscordServer::start());
        Self { telegram, discord, slack: SlackServer::start(), written: Mutex::default() }
    }

    /// The channels of each node.
    pub(crate) fn config(&self) -> Value {
        let Self { telegram, discord, slack, .. } = self;
        json!({
            "telegram": {
                "botToken": telegram.token(), "baseUrl": telegram.url(), "allowFrom": [ANN], "preview": false,
            },
            "discord": {
                "botToken": discord.token(), "baseUrl": discord.url(), "allowFrom": [KIM], "preview": false,
            },
            "slack": {
                "appToken": slack.app_token(), "botToken": slack.bot_token(), "baseUrl": slack.url(), "allowFrom": [EVE],
            },
        })
    }

    /// Writes to one vendor after the other.
    pub(crate) fn write(&self, clients: &Clients) {
        let vendors = [Vendor::Telegram, Vendor::Discord, Vendor::Slack];
        for vendor in vendors.into_iter().cycle() {
            thread::sleep(PAUSE / 3);
            while clients.is_quiet.load(Ordering::SeqCst) && !clients.is_over.load(Ordering::SeqCst)
            {
                thread::sleep(Duration::from_millis(5));
            }
            if clients.is_over.load(Ordering::SeqCst) {
                return;
            }
            let number = clients.number();
            let text = format!("<m{number}>");
            match vendor {
                Vendor::Telegram => drop(self.telegram.write(ANN, &text)),
                Vendor::Discord => drop(self.discord.write(KIM, &text)),
                Vendor::Slack => drop(self.slack.write(EVE, &format!("&lt;m{number}&gt;"))),
            }
            self.written.lock().push((vendor, number));
        }
    }

    /// What this vendor got.
    fn sent(&self, vendor: Vendor) -> Vec<String> {
        let texts: Vec<String> = match vendor {
            Vendor::Telegram => {
                self.telegram.sent().iter().map(|sent| sent.text().to_owned()).collect()
            }
            Vendor::Discord => {
                self.discord.sent().iter().map(|sent| sent.text().to_owned()).collect()
            }
            Vendor::Slack => self.slack.sent().iter().map(|sent| sent.text().to_owned()).collect(),
        };
        texts.iter().map(|text| text.replace("&lt;", "<").replace("&gt;", ">")).collect()
    }

    /// Waits until each message is answered in its chat once, or its reader was told that the answer may be missing. Returns
    /// what is not so.
    pub(crate) fn settle(&self, machine: &Machine, settled: Duration) -> Vec<String> {
        let begun = Instant::now();
        let written = self.written.lock().clone();
        let times = |vendor: Vendor, number: u64| {
            let mark = format!("<m{number}>");
            self.sent(vendor).iter().filter(|text| text.contains(&mark)).count()
        };
        let missing = || -> Vec<(Vendor, u64)> {
            let uncertain = undelivered(machine);
            let is_missing = |(vendor, number): &&(Vendor, u64)| {
                times(*vendor, *number) == 0 && !uncertain.contains(&format!("<m{number}>"))
            };
            written.iter().filter(is_missing).copied().collect()
        };
        while begun.elapsed() < settled && !missing().is_empty() {
            thread::sleep(Duration::from_millis(200));
        }
        let missing = missing().into_iter();
        let mut problems: Vec<String> = missing
            .map(|(vendor, number)| format!("<m{number}> has no answer at {vendor:?}"))
            .collect();
        for (vendor, number) in &written {
            let times = times(*vendor, *number);
            if times > 1 {
                problems.push(format!("the answer to <m{number}> is {times} times at {vendor:?}"));
            }
        }
        problems.extend(self.discord.mistakes().into_iter().chain(self.slack.mistakes()));
        eprintln!("{} messages of chats, not sure: {}", written.len(), undelivered(machine).len());
        problems
    }

    /// What is not in the logs once.
    pub(crate) fn wrong_rows(&self, rows: &Rows) -> Vec<String> {
        let written = self.written.lock().clone();
        written.into_iter().flat_map(|(_, number)| rows.wrong(number)).collect()
    }
}

/// The texts that may not have been delivered, as one.
fn undelivered(machine: &Machine) -> String {
    let (mut all, mut path) = (String::new(), "/api/channels".to_owned());
    loop {
        let Ok((200, state)) = machine.client().get(&path) else { return all };
        let parts = state["undelivered"].as_array().unwrap();
        let Some(last) = parts.last() else { return all };
        path = format!("/api/channels?before={}", last["part"].as_str().unwrap());
        parts.iter().for_each(|part| all.push_str(part["text"].as_str().unwrap()));
    }
}
