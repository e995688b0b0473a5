//! Calls of the REST API over HTTP.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::{Client, Method, RequestBuilder, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::form::Upload;
use crate::http::{self, Answer, CallError, Refusal};
use crate::pace::Pace;
use crate::ws;

/// Largest answer that is read, in bytes: a hundred messages with their embeds.
const MOST_ANSWER: usize = 8 * 1024 * 1024;
/// Time for a call. A longer wait does not make an answer more likely.
const CALL_TIME: Duration = Duration::from_secs(30);
/// Calls in a second, of all kinds (docs.discord.com, "Rate Limits", "Global Rate Limit").
const GLOBAL_CALLS: usize = 50;
/// The name of that rate.
const GLOBAL: &str = "";
/// Most routes whose buckets are remembered.
const MOST_ROUTES: usize = 10_000;
/// Discord asks each client for its name (docs.discord.com, "Reference", "User Agent").
const USER_AGENT: &str = concat!("DiscordBot (myclaw, ", env!("CARGO_PKG_VERSION"), ")");
/// Where Discord keeps files, and its sockets (docs.discord.com, "Reference" and "Get Gateway").
const OWN_NAMES: [&str; 3] = ["discordapp.com", "discordapp.net", "discord.gg"];

/// A connection to Discord for one bot.
pub(super) struct Api {
    client: Client,
    base: String,
    token: SecretString,
    pace: Pace,
    /// Discord's names of the buckets that routes count for.
    buckets: Mutex<HashMap<String, String>>,
}

/// Why a call failed.
pub(super) type ApiError = CallError<Refused>;

/// What Discord said when it refused a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) status: u16,
    /// Discord's number of the error.
    pub(super) code: u64,
    message: String,
    /// When to try again.
    pub(super) retry_after: Option<Duration>,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "({} {}): {}", self.status, self.code, self.message)
    }
}

impl Refusal for Refused {
    const SERVER: &'static str = "Discord";
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    code: u64,
    message: String,
    retry_after: Option<f64>,
    global: bool,
}

impl Api {
    pub(super) fn new(base: &str, token: SecretString) -> Result<Self, String> {
        let client = http::client(base)?;
        let base = base.trim_end_matches('/').to_owned();
        let pace = Pace::new(GLOBAL_CALLS, Duration::from_secs(1));
        Ok(Self { client, base, token, pace, buckets: Mutex::default() })
    }

    pub(super) fn token(&self) -> &str {
        self.token.expose_secret()
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        self.call(Method::GET, path, None).await
    }

    /// Calls a method. The path may have a query.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, ApiError> {
        let route = route_of(&method, path);
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        self.finish(&route, request, CALL_TIME).await
    }

    /// Sends a message with a file.
    pub(super) async fn upload<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        file: Upload,
    ) -> Result<T, ApiError> {
        let route = route_of(&Method::POST, path);
        // A second for each 100 KB.
        let limit = CALL_TIME + Duration::from_secs(file.bytes.len() as u64 / 100_000);
        let (content_type, bytes) = file.form(&[("payload_json", body.to_string())]);
        let request =
            self.request(Method::POST, path).header("content-type", content_type).body(bytes);
        self.finish(&route, request, limit).await
    }

    /// Downloads a file of at most `most` bytes. The token is not sent.
    pub(super) async fn download(&self, address: &str, most: u64) -> Result<Vec<u8>, ApiError> {
        if !self.is_own(address) {
            return Err(refused("it is at another server than Discord's"));
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let request = self.client.get(address).header("user-agent", USER_AGENT);
        let answer = http::exchange(request, most, CALL_TIME * 2).await?;
        match answer.status {
            200..=299 => Ok(answer.body),
            500.. => Err(ApiError::Unknown(format!("status {}", answer.status))),
            status => Err(refused(&format!("status {status}"))),
        }
    }

    /// Opens the socket at `address`, which Discord has named.
    pub(super) async fn open(&self, address: &str, most: usize) -> Result<ws::Socket, ApiError> {
        let http = ws::http_address(address);
        if !http.is_some_and(|http| self.is_own(&http)) {
            let reason = "the socket is at another server than Discord's; it is not opened";
            return Err(ApiError::NotSent(reason.to_owned()));
        }
        let address = format!("{}/?v=10&encoding=json", address.trim_end_matches('/'));
        ws::connect(&self.client, &address, most).await.map_err(ApiError::NotSent)
    }

    /// Whether a call to this path may be made at once; it counts then.
    pub(super) fn is_free(&self, method: &Method, path: &str) -> bool {
        self.pace.try_now(&self.bucket(&route_of(method, path)), 0)
    }

    /// Whether an address is at the server of `base`, or at another one of Discord if `base` is Discord.
    fn is_own(&self, address: &str) -> bool {
        let (Ok(base), Ok(address)) = (Url::parse(&self.base), Url::parse(address)) else {
            return false;
        };
        let (Some(own), Some(host)) = (base.host_str(), address.host_str()) else { return false };
        let is_below = |name: &str| {
            host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let is_discord = own == "discord.com" && OWN_NAMES.iter().any(|name| is_below(name));
        base.scheme() == address.scheme()
            && base.port_or_known_default() == address.port_or_known_default()
            && (host == own || is_discord)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.base))
            .header("authorization", format!("Bot {}", self.token.expose_secret()))
            .header("user-agent", USER_AGENT)
    }

    async fn finish<T: DeserializeOwned>(
        &self,
        route: &str,
        request: RequestBuilder,
        limit: Duration,
    ) -> Result<T, ApiError> {
        self.pace.wait(&self.bucket(route)).await;
        self.pace.wait(GLOBAL).await;
        let answer = http::exchange(request, MOST_ANSWER, limit).await?;
        self.heed_rates(route, &answer);
        let status = answer.status;
        if (200..300).contains(&status) {
            let body = if answer.body.is_empty() { b"null" } else { answer.body.as_slice() };
            return serde_json::from_slice(body)
                .map_err(|error| ApiError::Unknown(format!("the answer cannot be read: {error}")));
        }
        let Ok(body) = serde_json::from_slice::<Body>(&answer.body) else {
            return Err(match status {
                500.. => ApiError::Unknown(format!("status {status}, and no JSON")),
                _ => ApiError::Refused(Refused {
                    status,
                    message: "the answer is not JSON; is this a Discord server?".to_owned(),
                    retry_after: answer.retry_after(),
                    ..Refused::default()
                }),
            });
        };
        if status >= 500 {
            return Err(ApiError::Unknown(format!("status {status}: {}", body.message)));
        }
        let retry_after = body.retry_after.and_then(seconds).or(answer.retry_after());
        if let Some(time) = retry_after.filter(|_| status == 429) {
            let key = if body.global { GLOBAL.to_owned() } else { self.bucket(route) };
            self.pace.pause(&key, time);
        }
        let Body { code, message, .. } = body;
        Err(ApiError::Refused(Refused { status, code, message, retry_after }))
    }

    /// Notes what the server says about its rates.
    fn heed_rates(&self, route: &str, answer: &Answer) {
        if let Some(bucket) = answer.header("x-ratelimit-bucket") {
            let mut buckets = self.buckets.lock();
            if buckets.len() >= MOST_ROUTES {
                buckets.clear();
            }
            buckets.insert(route.to_owned(), bucket.to_owned());
        }
        let left = answer.header("x-ratelimit-remaining").and_then(|left| left.parse::<u64>().ok());
        let reset = answer.header("x-ratelimit-reset-after").and_then(|time| time.parse().ok());
        if let (Some(0), Some(time)) = (left, reset.and_then(seconds)) {
            self.pace.pause(&self.bucket(route), time);
        }
    }

    /// The rate that a route counts for. The channel in the route has a rate of its own.
    fn bucket(&self, route: &str) -> String {
        let channel = route.split('/').nth(2).unwrap_or_default();
        match self.buckets.lock().get(route) {
            Some(bucket) => format!("{bucket} {channel}"),
            None => route.to_owned(),
        }
    }
}

/// Names a route: the method, and the path with the first id only, such as `POST /channels/1/messages`. Each interaction has
/// addresses of its own, which count for one rate.
fn route_of(method: &Method, path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    if path.starts_with("/interactions/") {
        return format!("{method} /interactions");
    }
    let is_id = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = path.split('/').enumerate().map(|(at, part)| match at > 2 && is_id(part) {
        true => "*",
        false => part,
    });
    format!("{method} {}", parts.collect::<Vec<_>>().join("/"))
}

/// A time in seconds that the server sent; `None` if the number is no time.
fn seconds(time: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(time).ok()
}

fn refused(message: &str) -> ApiError {
    ApiError::Refused(Refused { message: message.to_owned(), ..Refused::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_of_discord_are_asked() {
        let api = |base: &str| Api::new(base, SecretString::from("t")).expect("a client");
        let discord = api("https://discord.com/api/v10");
        for own in
            ["https://cdn.discordapp.com/x", "https://gateway.discord.gg", "https://discord.com/x"]
        {
            assert!(discord.is_own(own), "{own}");
        }
        for other in [
            "http://cdn.discordapp.com/x",
            "https://evildiscord.gg",
            "https://discord.gg.evil.org",
            "https://discord.com@evil.org",
            "https://127.0.0.1/x",
            "x",
        ] {
            assert!(!discord.is_own(other), "{other}");
        }
        let local = api("http://127.0.0.1:1/api/v10");
        assert!(local.is_own("http://127.0.0.1:1/files/x"));
        assert!(
            !local.is_own("http://cdn.discordapp.com/x") && !local.is_own("http://127.0.0.1:2/")
        );
    }

    #[test]
    fn a_route_names_its_channel_and_no_message() {
        let route = |path: &str| route_of(&Method::PATCH, path);
        assert_eq!(route("/channels/12/messages/34"), "PATCH /channels/12/messages/*");
        assert_eq!(route("/channels/12/messages?after=3"), "PATCH /channels/12/messages");
        assert_eq!(route("/users/@me"), "PATCH /users/@me");
        assert_eq!(route("/interactions/12/token/callback"), "PATCH /interactions");
    }
}
