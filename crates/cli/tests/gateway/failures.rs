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
            let (name, owner) = (self.name, self.owner);
            assert!(!text.contains(secret), "{name}: {secret}, and not only {owner:?}, in {text}");
        }
    }
}

const AWAY: &str =
    "The model does not answer at the moment. What you wrote is kept; ask again in a while.";
const BUSY: &str = "The model has too much to do at the moment. What you wrote is kept; ask again in some minutes.";
const USED_UP: &str =
    "I cannot answer: the account for the model is used up. Tell the owner of this agent.";
const REFUSED: &str =
    "I cannot answer: the model does not let me in. Tell the owner of this agent.";
const TOO_LONG: &str =
    "This conversation has become too long for the model. Write /new, or !new, to begin a new one.";

const FAILED: &str = "I cannot answer, because something does not work here. The owner of this agent finds the reason in the log.";

/// All of them.
pub(super) fn failures() -> Vec<Failure> {
    [unreached(), refusals(), broken()].into_iter().flatten().collect()
}

type Said = (&'static str, &'static str, &'static str);

fn failure(name: &'static str, server: Server, (class, chat, owner): Said) -> Failure {
    Failure { name, server, class, chat, owner }
}

/// There is no server.
fn unreached() -> Vec<Failure> {
    let at = |name, address, owner| failure(name, Server::IsAt(address), ("network", AWAY, owner));
    vec![
        at("connection refused", "http://127.0.0.1:1", "127.0.0.1:1"),
        at("unknown host", "http://nowhere.invalid", "nowhere.invalid"),
    ]
}

/// The server says what is wrong.
fn refusals() -> Vec<Failure> {
    let error = |status, headers: &[(&str, &str)], kind: &str, message: &str| {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        Server::Does(Step::status(status, headers, body.to_string()))
    };
    let refused_key = format!("invalid x-api-key: {KEY}");
    let too_many = |headers: &[(&str, &str)]| error(429, headers, "rate_limit_error", "slow down");
    let busy = ("rate_limit", BUSY, "slow down");
    let too_long = "prompt is too long: 9 tokens > 8 maximum";
    vec![
        failure(
            "refused key",
            error(401, &[], "authentication_error", &refused_key),
            ("auth", REFUSED, "401"),
        ),
        failure(
            "empty account",
            error(402, &[], "billing_error", "no credit"),
            ("billing", USED_UP, "no credit"),
        ),
        failure("too many requests", too_many(&[]), busy),
        failure("too many requests, with a time", too_many(&[("retry-after", "1")]), busy),
        failure(
            "failed server",
            error(500, &[], "api_error", "Internal server error"),
            ("server_error", AWAY, "Internal server error"),
        ),
        failure(
            "unavailable",
            Server::Does(Step::status(503, &[], "")),
            ("server_error", AWAY, "503"),
        ),
        failure(
            "overloaded",
            error(529, &[], "overloaded_error", "Overloaded"),
            ("server_error", AWAY, "Overloaded"),
        ),
        failure(
            "too long",
            error(400, &[], "invalid_request_error", too_long),
            ("context_overflow", TOO_LONG, "too long"),
        ),
    ]
}

/// The answer does not come, or not whole.
fn broken() -> Vec<Failure> {
    let answer = || Reply::anthropic().text("one two three four five six").in_deltas(6).step();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n";
    let malformed = Step::raw(format!("{head}{{\"content")).then_close();
    let silent = answer().hold_after(0, &Gate::closed());
    let closed = Step::raw("").then_close();
    let call = "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call>";
    let written = Reply::anthropic().text(call).step();
    vec![
        failure("cut stream", Server::Does(answer().cut_after(600)), ("network", AWAY, "cut off")),
        failure("time-out", Server::Does(silent), ("timeout", AWAY, "1 s")),
        failure(
            "malformed body",
            Server::Does(malformed),
            ("server_error", AWAY, "cannot be read"),
        ),
        failure("closed connection", Server::Does(closed), ("network", AWAY, "connection")),
        failure("call as text", Server::Does(written), ("unknown", FAILED, "needs a tool parser")),
    ]
}
