//! The ways in which the server of a model fails, and what each reader learns of it. All front-ends are tried with all of
//! them.

use myclaw_testkit::{Gate, Reply, Script, Step};
use serde_json::{Value, json};

/// The key of the model. No reader may see it, although a server repeats it.
pub(super) const KEY: &str = "sk-ant-api03-of-the-owner-0123456789";

pub(super) struct Failure {
    pub(super) name: &'static str,
    /// What the server does, or where it would be.
    pub(super) server: Server,
    pub(super) class: &'static str,
    /// What people in chats and on the page read.
    pub(super) chat: &'static str,
    /// What the owner reads.
    pub(super) owner: &'static str,
}

pub(super) enum Server {
    Does(Step),
    IsAt(&'static str),
}

impl Failure {
    pub(super) fn script(&self) -> Script {
        match &self.server {
            Server::Does(step) => Script::repeat(step.clone()),
            Server::IsAt(_) => Script::repeat(Reply::anthropic().text("never")),
        }
    }

    /// Changes a config so that it fails at once.
    pub(super) fn configure(&self, config: &mut Value) {
        config["agent"] = json!({"maxRetries": 0});
        config["models"]["timeouts"] = json!({"firstEventSeconds": 1});
        config["provider"]["authProfiles"][0]["apiKey"] = json!(KEY);
        if let Server::IsAt(address) = self.server {
            config["provider"]["baseUrl"] = json!(address);
        }
    }

    /// Checks that a text for others than the owner names nothing of the owner's.
    pub(super) fn assert_is_for_others(&self, text: &str) {
        for secret in [KEY, "http://", " at 127.0.0.1", "127.0.0.1:1", "nowhere.invalid", "--model"]
        {
            assert!(!text.contains(secret), "{}: {secret} in {text}", self.name);
        }
    }
}

/// All of them.
pub(super) fn failures() -> Vec<Failure> {
    let away =
        "The model does not answer at the moment. What you wrote is kept; ask again in a while.";
    let busy = "The model has too much to do at the moment. What you wrote is kept; ask again in some minutes.";
    let used_up =
        "I cannot answer: the account for the model is used up. Tell the owner of this agent.";
    let refused = "I cannot answer: the model does not let me in. Tell the owner of this agent.";
    let too_long = "This conversation has become too long for the model. Write /new, or !new, to begin a new one.";
    let error = |kind: &str, message: &str| {
        json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
    };
    let slow_down = || error("rate_limit_error", "slow down");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n";
    let answer = || Reply::anthropic().text("one two three four five six").in_deltas(6).step();
    let row = |name, step, class, chat, owner| Failure {
        name,
        server: Server::Does(step),
        class,
        chat,
        owner,
    };
    let at = |name, address, owner| Failure {
        name,
        server: Server::IsAt(address),
        class: "network",
        chat: away,
        owner,
    };
    vec![
        at("connection refused", "http://127.0.0.1:1", "127.0.0.1:1"),
        at("unknown host", "http://nowhere.invalid", "nowhere.invalid"),
        row(
            "refused key",
            Step::status(
                401,
                &[],
                error("authentication_error", &format!("invalid x-api-key: {KEY}")),
            ),
            "auth",
            refused,
            "401",
        ),
        row(
            "empty account",
            Step::status(402, &[], error("billing_error", "no credit")),
            "billing",
            used_up,
            "no credit",
        ),
        row(
            "too many requests",
            Step::status(429, &[], slow_down()),
            "rate_limit",
            busy,
            "slow down",
        ),
        row(
            "too many requests, with a time",
            Step::status(429, &[("retry-after", "1")], slow_down()),
            "rate_limit",
            busy,
            "slow down",
        ),
        row(
            "failed server",
            Step::status(500, &[], error("api_error", "Internal server error")),
            "server_error",
            away,
            "Internal server error",
        ),
        row("unavailable", Step::status(503, &[], ""), "server_error", away, "503"),
        row(
            "overloaded",
            Step::status(529, &[], error("overloaded_error", "Overloaded")),
            "server_error",
            away,
            "Overloaded",
        ),
        row("cut stream", answer().cut_after(600), "network", away, "cut off"),
        row("time-out", answer().hold_after(0, &Gate::closed()), "timeout", away, "1 s"),
        row(
            "too long",
            Step::status(
                400,
                &[],
                error("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
            ),
            "context_overflow",
            too_long,
            "too long",
        ),
        row(
            "malformed body",
            Step::raw(format!("{head}{{\"content")).then_close(),
            "server_error",
            away,
            "cannot be read",
        ),
        row("closed connection", Step::raw("").then_close(), "network", away, "connection"),
    ]
}
