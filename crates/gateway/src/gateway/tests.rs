//! Two gateways on one store and one state directory, in one process.
//!
//! `MYCLAW_GATEWAY_KILLS` sets the number of kills, `MYCLAW_KILL_SEED` repeats their choices.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use myclaw_agent::Home;
use myclaw_config::Environment;
use myclaw_delivery::DeliveryError;
use myclaw_delivery::delivery::Delivery;
use myclaw_delivery::ledger::{Ledger, OpenMessage};
use myclaw_delivery::message::NewMessage;
use myclaw_delivery::route::{OWNERS_ACCOUNT, Route, WEB};
use myclaw_delivery::rows::{
    Incoming, MessageId, MessageState, Origin, Outgoing, PartId, PartKind, PartState, Refers,
};
use myclaw_delivery::schedule::{Asker, CronRequest};
use myclaw_delivery::sharing::{Sharing, account_of, desk_of};
use myclaw_session::SessionKey;
use myclaw_store::{Claims, MemoryStore, Store};
use myclaw_testkit::{
    ModelServer, Random, RecordedRequest, Reply, Script, TelegramServer, TempHome, WireFormat,
    number_from,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::{Control, Gateway};

/// Kills in a quick run.
const DEFAULT_KILLS: u64 = 12;
/// How long a dead gateway keeps what it had.
const LEASE: Duration = Duration::from_millis(1_200);
/// Longest that anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
/// Sessions that are talked to at the same time, each by one client.
const SESSIONS: u64 = 4;
/// A person who may write to the bot.
const ANN: i64 = 7;

/// What both gateways share.
struct Scene {
    home: TempHome,
    model: ModelServer,
    bot: TelegramServer,
    started: AtomicU64,
}

/// A gateway that runs, on a thread of its own.
struct Node {
    delivery: Weak<Delivery>,
    claims: Arc<Claims>,
    tasks: Handle,
    stop: CancellationToken,
    /// Ends the thread with everything that runs on it.
    end: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Scene {
    fn new() -> Self {
        Self::with(Script::answer_with(|request, number| {
            // Answers take different times, so kills meet all steps.
            echo(request).step().delay(Duration::from_millis((number as u64 * 7) % 60))
        }))
    }

    fn with(script: Script) -> Self {
        let model = ModelServer::spawn_blocking_thread(script);
        let (home, bot) = (TempHome::in_memory(), TelegramServer::start());
        let mut config = TempHome::config_for(model.url(), WireFormat::AnthropicMessages);
        config["agents"] = json!({"defaults": {"sandbox": {"mode": "off"}}});
        config["messages"] = json!({"queue": {"cap": 1_000}});
        config["channels"] = json!({"telegram": {
            "botToken": bot.token(), "baseUrl": bot.url(), "allowFrom": [ANN], "preview": false,
        }});
        home.write_config(&config);
        Self { home, model, bot, started: AtomicU64::new(0) }
    }

    fn start(&self) -> Node {
        let number = self.started.fetch_add(1, Ordering::SeqCst);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let variables = [("MYCLAW_GATEWAY_PORT".to_owned(), port.to_string())];
        let environment = Environment::new(variables, Some(self.home.path().to_owned()), None);
        let paths = environment.paths().unwrap();
        let sharing = Sharing::Shared { holder: format!("gateway {number}"), lease: LEASE };
        let home = Home::new(environment, paths);
        let (stop, (end, ended)) = (CancellationToken::new(), oneshot::channel());
        let (of_node, node) = mpsc::channel();
        let of_serving = stop.clone();
        let thread = thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let make = Box::new(|_: &_| Err("no host".to_owned()));
                let running = Gateway::start_as(home, make, sharing).await.unwrap();
                let delivery = running.delivery();
                let claims = Arc::clone(delivery.ledger().claims());
                of_node.send((Arc::downgrade(&delivery), claims, Handle::current())).unwrap();
                drop(delivery);
                let control = Control {
                    stop: of_serving,
                    reload: Arc::new(Notify::new()),
                    say: Arc::new(|_| ()),
                    on_config: Arc::new(|_, _| ()),
                };
                tokio::select! {
                    // After a graceful end, its thread still answers.
                    _ = async { running.serve(control).await; std::future::pending::<()>().await } => {}
                    _ = ended => {}
                }
            });
        });
        let (delivery, claims, tasks) = node.recv().unwrap();
        Node { delivery, claims, tasks, stop, end, thread }
    }

    fn rows(&self, session: &str) -> Vec<Value> {
        TempHome::read_lines(&self.home.transcript_path(session))
    }
}

impl Node {
    /// Ends everything that the gateway does, wherever it is. What another thread has begun, such as a write of a file, ends by
    /// itself.
    fn kill(self) {
        let _ = self.end.send(());
        self.thread.join().unwrap();
    }

    /// Calls the gateway. There is no answer if it is killed meanwhile.
    fn call<T: Send + 'static, F: Future<Output = T> + Send>(
        &self,
        call: impl FnOnce(Arc<Delivery>) -> F + Send + 'static,
    ) -> mpsc::Receiver<T> {
        let (answer, answered) = mpsc::channel();
        let delivery = Weak::clone(&self.delivery);
        self.tasks.spawn(async move {
            if let Some(delivery) = delivery.upgrade() {
                let _ = answer.send(call(delivery).await);
            }
        });
        answered
    }

    /// Keeps it from doing anything for a while, as a suspended machine does.
    fn pause(&self, time: Duration) {
        self.tasks.spawn(async move { thread::sleep(time) });
    }

    fn send(
        &self,
        session: &str,
        id: &str,
        text: &str,
    ) -> mpsc::Receiver<Result<MessageId, DeliveryError>> {
        let [channel, account] = [WEB, OWNERS_ACCOUNT].map(str::to_owned);
        let new = NewMessage {
            route: Route { channel, account, chat: "owner".to_owned() },
            source_id: id.to_owned(),
            session: session.to_owned(),
            text: text.to_owned(),
            images: Vec::new(),
            asked: None,
        };
        let accept = async move |delivery: Arc<Delivery>| {
            Ok(delivery.accept_from(new, Origin::default(), Vec::new()).await?.id)
        };
        self.call(accept)
    }

    fn sent(&self, session: &str, id: &str, text: &str) -> MessageId {
        self.send(session, id, text).recv().unwrap().unwrap()
    }

    fn outcome(&self, id: &MessageId) -> Incoming {
        let id = id.clone();
        let outcome = async move |delivery: Arc<Delivery>| {
            delivery.outcome(&id, std::future::pending()).await
        };
        let outcome = self.call(outcome).recv_timeout(PATIENCE);
        outcome.expect("a wait that ends").unwrap().expect("a message that is known")
    }

    fn holds_desk(&self, session: &str) -> bool {
        let key = SessionKey::for_cli("main", session);
        self.claims.holds(&desk_of(key.as_str()))
    }

    fn holds_bot(&self) -> bool {
        self.claims.holds(&account_of("telegram", "default"))
    }
}

/// What was said to the model since its last answer.
fn news(request: &RecordedRequest) -> String {
    let messages = request.messages();
    let since = messages.iter().rposition(|message| message["role"] == "assistant");
    json!(&messages[since.map_or(0, |at| at + 1)..]).to_string()
}

/// Answers all words of the form `<m1>` since the last answer.
fn echo(request: &RecordedRequest) -> Reply {
    let marks: Vec<String> = news(request)
        .split('<')
        .filter_map(|rest| rest.split_once('>'))
        .map(|(word, _)| word)
        .filter(|word| word.starts_with('m') && word[1..].parse::<u64>().is_ok())
        .map(|word| format!("<{word}>"))
        .collect();
    Reply::anthropic().text(format!("re: {}", marks.join(" ")))
}

fn until(what: &str, is: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < end, "{what} did not happen");
        thread::sleep(Duration::from_millis(10));
    }
}

fn count(rows: &[Value], role: &str, mark: &str) -> usize {
    let holds = |row: &&Value| {
        row["role"] == role && row["content"].as_str().unwrap_or_default().contains(mark)
    };
    rows.iter().filter(holds).count()
}

#[test]
fn a_second_gateway_takes_nothing_that_is_held_and_everything_that_becomes_free() {
    let scene = Scene::new();
    let first = scene.start();
    let id = first.sent("main", "1", "<m1>");
    first.outcome(&id);
    until("the bot", || first.holds_bot());
    let second = scene.start();
    // It accepts a message for a session of the first one, which answers; who waits here is told.
    let id = second.sent("main", "2", "<m2>");
    assert!(matches!(second.outcome(&id).state, MessageState::Answered { .. }));
    assert!(first.holds_desk("main") && !second.holds_desk("main"));
    scene.bot.write(ANN, "<m3>");
    scene.bot.wait_for_text("m3");
    assert!(first.holds_bot() && !second.holds_bot());
    // Another session is its own.
    let id = second.sent("other", "4", "<m4>");
    second.outcome(&id);
    assert!(second.holds_desk("other") && !first.holds_desk("other"));
    // A graceful end gives everything back at once.
    first.stop.cancel();
    until("the bot at the second gateway", || second.holds_bot());
    first.kill();
    let third = scene.start();
    second.kill();
    let id = third.sent("other", "5", "<m5>");
    assert!(matches!(third.outcome(&id).state, MessageState::Answered { .. }));
    assert!(third.holds_desk("other"));
    until("the bot at the third gateway", || third.holds_bot());
    scene.bot.write(ANN, "<m6>");
    scene.bot.wait_for_text("m6");
    for mark in ["m3", "m6"] {
        let sent = scene.bot.sent();
        assert_eq!(sent.iter().filter(|sent| sent.text().contains(mark)).count(), 1, "{mark}");
    }
    third.kill();
}

#[test]
fn a_gateway_that_was_paused_finds_that_another_one_has_its_sessions() {
    let scene = Scene::new();
    let (first, second) = (scene.start(), scene.start());
    // A machine that stands still for a lease takes the session from its holder.
    let has_it =
        |node: &Node, since: Instant| node.holds_desk("main") || since.elapsed() > LEASE / 2;
    let begun = Instant::now();
    let id = first.sent("main", "1", "<m1>");
    first.outcome(&id);
    // Either may have been quicker to take it.
    let (first, second) = if second.holds_desk("main") { (second, first) } else { (first, second) };
    assert!(has_it(&first, begun));
    first.pause(LEASE * 3);
    let begun = Instant::now();
    let id = second.sent("main", "2", "<m2>");
    assert!(matches!(second.outcome(&id).state, MessageState::Answered { .. }));
    assert!(has_it(&second, begun));
    until("the end of the pause", || !first.holds_desk("main"));
    // It works with the other one again.
    let begun = Instant::now();
    let id = first.sent("main", "3", "<m3>");
    assert!(matches!(first.outcome(&id).state, MessageState::Answered { .. }));
    assert!(has_it(&second, begun));
    let rows = scene.rows("main");
    for mark in ["<m1>", "<m2>", "<m3>"] {
        assert_eq!((count(&rows, "user", mark), count(&rows, "assistant", mark)), (1, 1), "{mark}");
    }
    first.kill();
    second.kill();
}

#[test]
fn a_sub_agent_and_a_job_of_a_dead_gateway_are_finished_by_the_other_one() {
    let scene = Scene::with(Script::answer_with(|request, number| {
        let text = news(request);
        if text.contains("begin <m1>") {
            let order = json!({"task": "work on <m1>"});
            let call = format!("call_{number}");
            return Reply::anthropic().tool_call(call, "sessions_spawn", order).step();
        }
        // These are cut off.
        let is_long = text.contains("[Task ") || text.contains("[Scheduled message ");
        let pause = if is_long { Duration::from_millis(1_000) } else { Duration::ZERO };
        echo(request).step().delay(pause)
    }));
    let first = scene.start();
    let id = first.sent("main", "1", "begin <m1>");
    first.outcome(&id);
    let add = |delivery: Arc<Delivery>| async move {
        let schedule = json!({"kind": "every", "everyMs": 86_400_000_u64});
        let job = json!({
            "name": "tidy", "message": "do <m2>", "schedule": schedule, "target": "isolated",
        });
        let request = |value| serde_json::from_value::<CronRequest>(value).unwrap();
        for value in [json!({"action": "add", "job": job}), json!({"action": "run", "id": "tidy"})]
        {
            delivery.cron(request(value), Asker::Owner).await.unwrap();
        }
    };
    first.call(add).recv().unwrap();
    let asked = |words: &str| {
        let requests = scene.model.requests();
        requests.iter().filter(|request| news(request).contains(words)).count()
    };
    until("both", || asked("[Task ") > 0 && asked("[Scheduled message ") > 0);
    first.kill();
    let second = scene.start();
    // Its former holder had begun both, so they are continued, and each result comes once.
    let runs = || {
        let runs = |delivery: Arc<Delivery>| async move {
            let value = json!({"action": "runs", "id": "tidy"});
            let request = serde_json::from_value(value).unwrap();
            delivery.cron(request, Asker::Owner).await.unwrap().to_string()
        };
        second.call(runs).recv().unwrap()
    };
    until("the end of the job", || runs().contains(r#""outcome":"answered""#));
    until("the result of the sub-agent", || {
        count(&scene.rows("main"), "user", "[The sub-agent ") > 0 && asked("[The sub-agent ") > 0
    });
    let known =
        second.call(async |delivery: Arc<Delivery>| delivery.children().running(|_| true).len());
    assert_eq!(known.recv().unwrap(), 0, "a sub-agent that has ended runs");
    assert_eq!(count(&scene.rows("main"), "user", "[The sub-agent "), 1);
    assert_eq!(runs().matches(r#""outcome":"answered""#).count(), 1, "{}", runs());
    second.kill();
}

#[tokio::test]
async fn what_a_gateway_stores_for_a_session_or_an_account_that_it_lost_is_refused() {
    let now = Arc::new(AtomicU64::new(1_000_000));
    let clock = Arc::clone(&now);
    let clock = Arc::new(move || clock.load(Ordering::SeqCst));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(clock));
    let [late, next] = ["late", "next"].map(|name| {
        let claims = Claims::shared(Arc::clone(&store), name.to_owned(), Duration::from_secs(60));
        Ledger::of(claims)
    });
    let (desk, account) = (desk_of("s"), account_of("telegram", "default"));
    let claimed = [late.claims().acquire(&desk).await, late.claims().acquire(&account).await];
    assert!(claimed.iter().all(|claimed| claimed.as_ref().is_ok_and(Option::is_some)));
    let route = Route { channel: "telegram".to_owned(), ..Route::internal("test") };
    let row = Incoming::new(route.clone(), "1".to_owned(), "s".to_owned(), "hello".to_owned(), 1);
    let id = MessageId::of(&route, "1");
    late.store_message(id, row, Vec::new(), &[]).await.unwrap();
    let open = late.open_messages().await.unwrap();
    let part = Outgoing {
        route,
        session: "s".to_owned(),
        answers: vec![open[0].id.clone()],
        kind: PartKind::Reply,
        part: 0,
        parts: 1,
        text: "hello".to_owned(),
        buttons: Vec::new(),
        act: None,
        refers: Refers::default(),
        pause_ms: None,
        created_at: 1,
        state: PartState::Queued,
    };
    let part_id = PartId::of("s", "said", &part.route, 0);
    let mut unsent = late.say(vec![(part_id, part)]).await.unwrap();
    // The lease ends, and the other one takes both before the first one notices.
    now.fetch_add(61_000, Ordering::SeqCst);
    let next_desk = next.claims().acquire(&desk).await.unwrap().unwrap();
    let next_account = next.claims().acquire(&account).await.unwrap().unwrap();
    let answered = |_: &OpenMessage| MessageState::Answered { parts: Vec::new() };
    let refused = late.settle(&open, &answered, Vec::new(), Vec::new()).await;
    assert!(matches!(&refused, Err(DeliveryError::Lost(session)) if session == "s"), "{refused:?}");
    unsent[0].row.state = PartState::Sending { attempt: 1 };
    assert_eq!(late.mark(&unsent[0], Some(&account)).await.unwrap(), None);
    assert!(!late.claims().holds(&desk), "a refused write is no sign that the session is lost");
    assert_eq!(next.unsent_parts().await.unwrap()[0].row.state, PartState::Queued);
    // Nothing has changed, so the other one can do both.
    assert!(next.mark(&unsent[0], Some(&account)).await.unwrap().is_some());
    let settled = next.settle(&open, &answered, Vec::new(), Vec::new()).await;
    assert!(settled.unwrap().is_some());
    drop((next_desk, next_account));
}

/// What was acknowledged, by session: the number and the id of each message.
type Promised = Mutex<HashMap<String, Vec<(u64, MessageId)>>>;

/// Two gateways of which one may be away, those who write to them, and what they were promised.
struct Load<'s> {
    scene: &'s Scene,
    nodes: [Mutex<Option<Node>>; 2],
    promised: Promised,
    is_over: AtomicBool,
    next: AtomicU64,
}

impl Load<'_> {
    fn number(&self) -> Option<u64> {
        (!self.is_over.load(Ordering::SeqCst)).then(|| self.next.fetch_add(1, Ordering::SeqCst))
    }

    /// Sends messages one after the other, each under its id until it is acknowledged, here or there.
    fn talk(&self, session: &str) {
        while let Some(number) = self.number() {
            let (id, text) = (format!("id-{number}"), format!("<m{number}>"));
            let message = (number..).find_map(|attempt| {
                let node = &self.nodes[(attempt % 2) as usize];
                let sending = node.lock().as_ref().map(|node| node.send(session, &id, &text));
                let message = sending.and_then(|sending| sending.recv().ok()?.ok());
                if message.is_none() {
                    thread::sleep(Duration::from_millis(5));
                }
                message
            });
            let mut promised = self.promised.lock();
            promised.entry(session.to_owned()).or_default().push((number, message.unwrap()));
            drop(promised);
            thread::sleep(Duration::from_millis(20 + number % 60));
        }
    }

    /// Writes to the bot. Gives the numbers of the messages.
    fn write(&self) -> Vec<u64> {
        let mut written = Vec::new();
        while let Some(number) = self.number() {
            self.scene.bot.write(ANN, &format!("<m{number}>"));
            written.push(number);
            thread::sleep(Duration::from_millis(400));
        }
        written
    }

    /// Kills one of the gateways and starts it again; each fourth time it is only paused, and meets the other one when it wakes.
    fn disturb(&self, kill: u64, random: &mut Random) {
        let node = &self.nodes[random.below(2) as usize];
        if kill % 4 == 3 {
            return node.lock().as_ref().unwrap().pause(LEASE + LEASE / 2);
        }
        let killed = node.lock().take().unwrap();
        killed.kill();
        random.pause(Duration::from_millis(300));
        *node.lock() = Some(self.scene.start());
    }
}

#[test]
fn two_gateways_that_are_killed_at_random_answer_each_message_once() {
    let kills = number_from("MYCLAW_GATEWAY_KILLS").unwrap_or(DEFAULT_KILLS);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_129);
    let mut random = Random::new(seed);
    let scene = Scene::new();
    let load = Load {
        scene: &scene,
        nodes: [0, 1].map(|_| Mutex::new(Some(scene.start()))),
        promised: Mutex::default(),
        is_over: AtomicBool::new(false),
        next: AtomicU64::new(0),
    };
    let written = thread::scope(|scope| {
        for session in 0..SESSIONS {
            let load = &load;
            scope.spawn(move || load.talk(&format!("s{session}")));
        }
        let writing = scope.spawn(|| load.write());
        for kill in 0..kills {
            random.pause(Duration::from_millis(700));
            load.disturb(kill, &mut random);
            eprint!("\rseed {seed}, kill {}", kill + 1);
        }
        eprintln!();
        load.is_over.store(true, Ordering::SeqCst);
        writing.join().unwrap()
    });
    let (nodes, promised) = (load.nodes.map(|node| node.into_inner().unwrap()), load.promised);
    let promised = promised.into_inner();
    let all = || promised.values().flatten();
    for (number, id) in all() {
        // Either one knows.
        let state = nodes[(number % 2) as usize].outcome(id).state;
        let is_answered = matches!(state, MessageState::Answered { .. });
        assert!(is_answered, "seed {seed}: <m{number}>: {state:?}");
    }
    for (session, messages) in &promised {
        let rows = scene.rows(session);
        for (number, _) in messages {
            let mark = format!("<m{number}>");
            let found = (count(&rows, "user", &mark), count(&rows, "assistant", &mark));
            assert_eq!(found, (1, 1), "seed {seed}: rows with {mark} in {session}");
        }
    }
    let sent = check_bot(seed, &scene, &nodes[0], &written);
    let (total, calls) = (all().count(), scene.model.requests().len());
    assert!(total as u64 > kills, "only {total} messages met {kills} kills");
    eprintln!("{total} messages, {sent} of {} of the bot, {calls} model calls", written.len());
    nodes.into_iter().for_each(Node::kill);
}

/// Each message to the bot is answered once, or reported: a part whose sending was interrupted may have arrived. Gives how many
/// were answered.
fn check_bot(seed: u64, scene: &Scene, node: &Node, written: &[u64]) -> usize {
    let times = |number: &u64| {
        let sent = scene.bot.sent();
        let marks = [format!("<m{number}>"), format!("&lt;m{number}&gt;")];
        let is_it = |text: &str| marks.iter().any(|mark| text.contains(mark));
        sent.iter().filter(|sent| is_it(sent.text())).count()
    };
    let is_reported = |number: &u64| {
        let texts = node.call(async |delivery: Arc<Delivery>| {
            let trouble = delivery.ledger().trouble().await;
            trouble.unwrap().into_iter().map(|part| part.row.text).collect::<String>()
        });
        texts.recv().unwrap().contains(&format!("<m{number}>"))
    };
    until("every answer of the bot", || {
        written.iter().all(|number| times(number) > 0 || is_reported(number))
    });
    for number in written {
        assert!(times(number) <= 1, "seed {seed}: <m{number}> was sent {} times", times(number));
    }
    let answered = written.iter().filter(|number| times(number) == 1).count();
    assert!(answered * 2 > written.len(), "only {answered} of {} were sent", written.len());
    answered
}
