//! A load that does not change: does the memory?

use std::path::Path;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::Fallible;
use crate::figures::Table;
use crate::messages::send;
use crate::model::Model;
use crate::server::GatewayHome;
use crate::wire::{Http, Socket};

/// Sessions that get messages, in turn.
const SESSIONS: u64 = 200;
/// Pause between two messages.
const PAUSE: Duration = Duration::from_millis(50);
/// Sessions that stream, each with a client that watches.
const STREAMS: u64 = 20;
/// Answers of a stream in one session; then it continues in a new one. A request holds the whole conversation, so without an
/// end of it the load would grow.
const ROUNDS: u64 = 30;
/// After this time the memory is compared with that at the end.
const WARM: u64 = 5;

/// Measures for `minutes`.
pub(crate) async fn measure(table: &mut Table, myclaw: &Path, minutes: u64) -> Fallible<()> {
    let model = Model::start().await?;
    let home = GatewayHome::new(&model, |_| {})?;
    let gateway = home.start(myclaw);
    let mut tasks = JoinSet::new();
    let address = gateway.address.clone();
    tasks.spawn(async move {
        let mut http = Http::open(&address).await?;
        for number in 0_u64.. {
            send(&mut http, &format!("s{}", number % SESSIONS), number, "say").await?;
            tokio::time::sleep(PAUSE).await;
        }
        Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    });
    for stream in 0..STREAMS {
        let address = gateway.address.clone();
        tasks.spawn(async move {
            let mut socket = Socket::open(&address).await?;
            let mut watched = None;
            for round in 0_u64.. {
                // Not all begin a session at the same time.
                let session = format!("t{stream}-{}", (round + stream) / ROUNDS);
                if watched.as_ref() != Some(&session) {
                    let id = round;
                    socket.send(&format!(
                        r#"{{"type":"request","id":"{id}","method":"watch","params":{{"session":"{session}"}}}}"#
                    )).await?;
                    watched = Some(session.clone());
                }
                let number = 1_000_000_000 + stream * 1_000_000 + round;
                // Anew for each message: the gateway closes a connection on which nothing is asked for long.
                let mut http = Http::open(&address).await?;
                send(&mut http, &session, number, "stream 100 10").await?;
                while !socket.next().await?.contains(r#""type":"reply""#) {}
            }
            Ok(())
        });
    }
    let (mut warm, mut now) = (0.0, 0.0);
    let warm_after = if minutes > WARM { WARM } else { 1 };
    for minute in 1..=minutes {
        tokio::time::sleep(Duration::from_secs(60)).await;
        now = gateway.memory();
        eprintln!("minute {minute}: {now:.1} MB");
        if minute == warm_after {
            warm = now;
        }
        if let Some(ended) = tasks.try_join_next() {
            ended??;
        }
    }
    tasks.shutdown().await;
    gateway.stop();
    let ratio = now / warm;
    table.add(
        &format!("steady load: memory after {warm_after} and {minutes} minutes"),
        format!("{warm:.1} and {now:.1} MB, {ratio:.2} ×"),
        None,
        "≤ 1.1 ×",
        Some(ratio <= 1.1),
    );
    Ok(())
}
