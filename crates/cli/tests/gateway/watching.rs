//! Clients that watch sessions: each gets every event once and in order, whoever else watches and however slowly it reads.

use super::socket::{Socket, block_on, follows};
use super::*;

/// What a client has got of a session.
#[derive(Default)]
struct Seen {
    /// The number of its last event.
    number: u64,
    text: String,
    replies: Vec<String>,
}

impl Seen {
    /// Begins to watch. What is said at this moment counts as seen.
    async fn watch(socket: &mut Socket, session: &str) -> Self {
        let watched = socket.ask("w", "watch", json!({"session": session})).await;
        let result = &watched["result"];
        let text = result["live"]["step"]["blocks"]["0"]["text"].as_str().unwrap_or_default();
        Self {
            number: result["sequence"].as_u64().unwrap(),
            text: text.to_owned(),
            ..Self::default()
        }
    }

    /// Takes a frame, which has to be the one that follows.
    fn heed(&mut self, frame: &Value) {
        if frame["type"] != "event" {
            assert_eq!(frame["type"], "response", "{frame}");
            return;
        }
        self.number = follows(self.number, frame);
        if let Some(delta) = frame["event"]["event"]["delta"].as_str() {
            self.text.push_str(delta);
        }
        if frame["event"]["type"] == "reply" {
            self.replies.push(frame["event"]["text"].as_str().unwrap().to_owned());
        }
    }

    /// Reads until there is one reply more.
    async fn read_reply(&mut self, socket: &mut Socket) {
        let before = self.replies.len();
        while self.replies.len() == before {
            self.heed(&socket.next().await);
        }
    }
}

/// Words that show what is missing, doubled or in the wrong place.
fn words(count: usize) -> String {
    (0..count).map(|number| format!("w{number} ")).collect()
}

/// A model that says `answer` in so many deltas. The first answer stops in its middle until the gate is open.
fn speaking(answer: &str, deltas: usize, gate: &Gate) -> Script {
    let (answer, gate) = (answer.to_owned(), gate.clone());
    Script::answer_with(move |_, number| {
        let step = Reply::anthropic().text(answer.clone()).in_deltas(deltas).step();
        match number {
            0 => step.hold_after(answer.len() * 10, &gate),
            _ => step,
        }
    })
}

#[test]
fn each_event_comes_once_and_in_order_while_others_join_and_leave() {
    let (answer, gate) = (words(300), Gate::closed());
    let bench = Bench::new(speaking(&answer, 300, &gate));
    let gateway = bench.start();
    block_on(async {
        let mut only = Socket::open(&gateway.client).await;
        let mut seen = Seen::watch(&mut only, "main").await;
        only.send(&request("one", "send", &json!({"session": "main", "text": "go"}))).await;
        while seen.text.is_empty() {
            seen.heed(&only.next().await);
        }
        // Two more join in the middle of the answer. One of them leaves at once.
        let mut second = Socket::open(&gateway.client).await;
        let mut of_second = Seen::watch(&mut second, "main").await;
        assert!(answer.starts_with(&of_second.text) && of_second.text.len() < answer.len());
        let mut third = Socket::open(&gateway.client).await;
        Seen::watch(&mut third, "main").await;
        drop(third);
        gate.open();
        seen.read_reply(&mut only).await;
        of_second.read_reply(&mut second).await;
        for one in [&seen, &of_second] {
            assert_eq!((&one.text, &one.replies[..]), (&answer, &[answer.clone()][..]));
        }
        // It is alone again.
        drop(second);
        seen.text.clear();
        only.send(&request("two", "send", &json!({"session": "main", "text": "go"}))).await;
        seen.read_reply(&mut only).await;
        assert_eq!(seen.text, answer);
        // It leaves, and comes back when the turn is over.
        only.send(&request("u", "unwatch", &json!({"session": "main"}))).await;
        while only_response(&mut only, &mut seen).await != "u" {}
        let sent = gateway.client.send("main", "three", "go").unwrap();
        assert_eq!(gateway.client.outcome(&sent).unwrap()["reply"], answer.as_str());
        let back = json!({"session": "main", "after": seen.number});
        only.send(&request("w", "watch", &back)).await;
        let first = only.next().await;
        assert_eq!((&first["id"], &first["result"]["resumed"]), (&json!("w"), &json!(true)));
        seen.text.clear();
        seen.read_reply(&mut only).await;
        assert_eq!(seen.text, answer);
        // A client that watches anew is still one client.
        let again = json!({"session": "main", "after": seen.number});
        only.send(&request("w2", "watch", &again)).await;
        while only_response(&mut only, &mut seen).await != "w2" {}
        seen.text.clear();
        only.send(&request("four", "send", &json!({"session": "main", "text": "go"}))).await;
        seen.read_reply(&mut only).await;
        assert_eq!(seen.text, answer);
    });
    gateway.stop();
}

fn request(id: &str, method: &str, params: &Value) -> Value {
    json!({"type": "request", "id": id, "method": method, "params": params})
}

/// Reads a frame; the id of the response that it is, or nothing.
async fn only_response(socket: &mut Socket, seen: &mut Seen) -> String {
    let frame = socket.next().await;
    seen.heed(&frame);
    frame["id"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn deltas_that_come_at_once_are_few_events_which_are_resumed_from_each_delta_on() {
    const DELTAS: usize = 400;
    let (answer, gate) = (words(DELTAS), Gate::closed());
    gate.open();
    let bench = Bench::new(speaking(&answer, DELTAS, &gate));
    let gateway = bench.start();
    block_on(async {
        let mut socket = Socket::open(&gateway.client).await;
        let mut seen = Seen::watch(&mut socket, "main").await;
        let begun = seen.number;
        socket.send(&request("one", "send", &json!({"session": "main", "text": "go"}))).await;
        let mut frames = 0;
        while seen.replies.is_empty() {
            let frame = socket.next().await;
            frames += usize::from(frame["event"]["event"]["delta"].is_string());
            seen.heed(&frame);
        }
        assert_eq!(seen.text, answer);
        assert!(frames < DELTAS / 2, "{frames}");
        // All of these numbers are within the answer, and not all of them begin an event.
        let mut said_before: Option<usize> = None;
        for after in begun + 100..begun + 107 {
            let mut back = Socket::open(&gateway.client).await;
            back.send(&request("w", "watch", &json!({"session": "main", "after": after}))).await;
            assert_eq!(back.next().await["result"]["resumed"], true);
            let mut rest = Seen { number: after, ..Seen::default() };
            rest.read_reply(&mut back).await;
            let said = answer.len() - rest.text.len();
            assert!(said > 0 && answer.ends_with(&rest.text), "{after}: {}", rest.text);
            // Each delta more is as much more of the answer.
            let delta = said_before.replace(said).map(|before| said - before);
            assert!(delta.is_none_or(|bytes| (1..10).contains(&bytes)), "{after}: {delta:?}");
        }
    });
    gateway.stop();
}

#[test]
fn a_client_with_many_requests_misses_no_event_of_the_sessions_that_it_watches() {
    const REQUESTS: usize = 400;
    let answer = words(400);
    let gate = Gate::closed();
    gate.open();
    let bench = Bench::new(speaking(&answer, 400, &gate));
    let gateway = bench.start();
    block_on(async {
        let mut socket = Socket::open(&gateway.client).await;
        let names = ["one", "two", "three"];
        let mut all = Vec::new();
        for name in names {
            all.push(Seen::watch(&mut socket, name).await);
        }
        for name in names {
            socket.send(&request(name, "send", &json!({"session": name, "text": "go"}))).await;
        }
        // The connection is in use again and again when an event comes.
        for number in 0..REQUESTS {
            socket.send(&request(&number.to_string(), "status", &json!({}))).await;
        }
        let mut responses = 0;
        while all.iter().any(|seen| seen.replies.is_empty()) || responses < REQUESTS + names.len() {
            let frame = socket.next().await;
            responses += usize::from(frame["type"] == "response");
            let session = frame["session"].as_str().unwrap_or_default();
            let at = names.iter().position(|name| session.ends_with(&format!(":{name}")));
            all[at.unwrap_or_default()].heed(&frame);
        }
        for seen in &all {
            assert_eq!((&seen.text, seen.replies.len()), (&answer, 1));
        }
    });
    gateway.stop();
}

#[test]
fn an_only_client_that_stops_reading_goes_on_where_it_can_and_keeps_pace_again() {
    const TURNS: usize = 8;
    // All turns but the last are more than a connection holds, and are over before the gateway takes the silent client for
    // gone. The last one is read through a narrow connection in less time than the hub keeps it. Both hold on a busy machine.
    let word = "x".repeat(1_000);
    let numbered =
        |count: usize| -> String { (0..count).map(|number| format!("{word}{number} ")).collect() };
    let (answer, last) = (numbered(500), numbered(60));
    let of_last = last.clone();
    let bench = Bench::new(Script::answer_with(move |request, _| {
        let is_last = json!(request.messages().last()).to_string().contains("the last one");
        let (text, deltas) = if is_last { (&of_last, 60) } else { (&answer, 50) };
        Reply::anthropic().text(text.clone()).in_deltas(deltas).step()
    }));
    let gateway = bench.start();
    block_on(async {
        let mut socket = Socket::narrow(&gateway.client).await;
        let mut seen = Seen::watch(&mut socket, "main").await;
        let first = gateway.client.send("main", "first", "go").unwrap();
        while seen.text.is_empty() {
            seen.heed(&socket.next().await);
        }
        assert_eq!(gateway.client.outcome(&first).unwrap()["state"], "answered");
        for number in 1..TURNS {
            let sent = gateway.client.send("main", &number.to_string(), "go").unwrap();
            assert_eq!(gateway.client.outcome(&sent).unwrap()["state"], "answered");
        }
        let frames = async |seen: &mut Seen, socket: &mut Socket, last: u64| {
            let mut gaps = 0;
            while seen.number < last {
                let frame = socket.next().await;
                match frame["type"] == "gap" {
                    true => (seen.number, gaps) = (frame["sequence"].as_u64().unwrap(), gaps + 1),
                    false => seen.heed(&frame),
                }
            }
            gaps
        };
        let history = gateway.client.get("/api/sessions/main/history?limit=1").unwrap().1;
        let newest = history["sequence"].as_u64().unwrap();
        let gaps = frames(&mut seen, &mut socket, newest).await;
        assert!(gaps > 0, "the connection took everything");
        // From then on it misses nothing.
        seen.text.clear();
        let sent = gateway.client.send("main", "last", "the last one").unwrap();
        seen.read_reply(&mut socket).await;
        assert_eq!(seen.text, last);
        assert_eq!(gateway.client.outcome(&sent).unwrap()["state"], "answered");
    });
    gateway.stop();
}
