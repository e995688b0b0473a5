//! A gateway that knows many sessions, and one that only waits.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::Fallible;
use crate::figures::{Figures, Table};
use crate::messages::send;
use crate::model::Model;
use crate::server::GatewayHome;
use crate::wire::Http;

/// Connections that fill the sessions.
const FILLERS: u64 = 16;
/// Starts that are timed.
const STARTS: usize = 7;
/// Pause after a start, before memory is looked at.
const SETTLE: Duration = Duration::from_secs(3);
/// Requests of each kind for the list of sessions.
const REQUESTS: usize = 50;
/// How long an idle gateway is watched.
const IDLE: Duration = Duration::from_secs(60);

/// Measures starts with `sessions` sessions, and idling with `jobs` jobs.
pub(crate) async fn measure(
    table: &mut Table,
    myclaw: &Path,
    sessions: u64,
    jobs: u64,
) -> Fallible<()> {
    let model = Model::start().await?;
    let home = GatewayHome::new(&model, |_| {})?;
    fill(&home, myclaw, sessions).await?;
    let (mut ready, mut memory) = (Figures::default(), Figures::default());
    for _ in 0..STARTS {
        let begun = Instant::now();
        let gateway = home.start(myclaw);
        let mut http = Http::open(&gateway.address).await?;
        let (status, _) = http.ask("GET", "/ready", "", "").await?;
        if status != 200 {
            return Err(format!("/ready answered {status}").into());
        }
        ready.add(begun.elapsed().as_secs_f64() * 1e3);
        tokio::time::sleep(SETTLE).await;
        memory.add(gateway.memory());
        gateway.stop();
    }
    let (median, most) = (ready.quantile(0.5), memory.most());
    let shown = format!("{median:.0} ms (most {:.0})", ready.most());
    table.add(
        &format!("{sessions} known sessions: ready after"),
        shown,
        None,
        "< 200 ms",
        Some(median < 200.0),
    );
    table.add(
        &format!("{sessions} known sessions: memory"),
        format!("{most:.1} MB"),
        None,
        "< 40 MB",
        Some(most < 40.0),
    );
    list(table, &home, myclaw, sessions).await?;
    idle(table, myclaw, &model, jobs).await
}

/// Lists and searches the sessions.
async fn list(table: &mut Table, home: &GatewayHome, myclaw: &Path, sessions: u64) -> Fallible<()> {
    let gateway = home.start(myclaw);
    let mut http = Http::open(&gateway.address).await?;
    // Only the last message has this number.
    let search = format!("/api/sessions?search=m{}%20say", sessions - 1);
    let kinds = [
        ("the first list", "/api/sessions", 1, None),
        ("a list", "/api/sessions", REQUESTS, None),
        ("the first search", &search, 1, Some(1)),
        ("a search that finds one", &search, REQUESTS, Some(1)),
        ("a search that finds none", "/api/sessions?search=cormorant", REQUESTS, Some(0)),
        ("a search that finds all", "/api/sessions?search=say", REQUESTS / 10, None),
    ];
    for (name, path, requests, found) in kinds {
        let (mut times, cpu) = (Figures::default(), gateway.cpu());
        for _ in 0..requests {
            let begun = Instant::now();
            let (status, answer) = http.ask("GET", path, "", "").await?;
            times.add(begun.elapsed().as_secs_f64() * 1e3);
            let answer: Value = serde_json::from_slice(&answer)?;
            let total = answer["total"].as_u64();
            if status != 200 || total.is_none() || found.is_some_and(|found| total != Some(found)) {
                return Err(format!("{path} answered {status}: {answer}").into());
            }
        }
        let cpu = (gateway.cpu() - cpu) * 1e3 / requests as f64;
        let (median, most) = (times.quantile(0.5), times.most());
        table.add(
            &format!("{sessions} known sessions: {name}, median / most / processor time"),
            format!("{median:.1} / {most:.1} / {cpu:.1} ms"),
            None,
            "< 30 ms",
            Some(median < 30.0 && cpu < 30.0),
        );
    }
    let memory = gateway.memory();
    table.add(
        &format!("{sessions} known sessions: memory after these searches"),
        format!("{memory:.1} MB"),
        None,
        "< 60 MB",
        Some(memory < 60.0),
    );
    gateway.stop();
    Ok(())
}

/// Gives each session one message and its answer.
async fn fill(home: &GatewayHome, myclaw: &Path, sessions: u64) -> Fallible<()> {
    let gateway = home.start(myclaw);
    let mut fillers = JoinSet::new();
    for first in 0..FILLERS {
        let address = gateway.address.clone();
        fillers.spawn(async move {
            let mut http = Http::open(&address).await?;
            for number in (first..sessions).step_by(FILLERS as usize) {
                let id = send(&mut http, &format!("s{number}"), number, "say").await?;
                let path = format!("/api/messages/{id}?wait=60");
                let (_, answer) = http.ask("GET", &path, "", "").await?;
                let answer: Value = serde_json::from_slice(&answer)?;
                if answer["state"] != "answered" {
                    return Err(format!("a message was not answered: {answer}").into());
                }
            }
            Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
        });
    }
    while let Some(ended) = fillers.join_next().await {
        ended??;
    }
    gateway.stop();
    Ok(())
}

async fn idle(table: &mut Table, myclaw: &Path, model: &Arc<Model>, jobs: u64) -> Fallible<()> {
    let home = GatewayHome::new(model, |_| {})?;
    let gateway = home.start(myclaw);
    let mut http = Http::open(&gateway.address).await?;
    for number in 0..jobs {
        let schedule = json!({"kind": "cron", "expr": format!("{} 4 1 1 *", number % 60)});
        let job = json!({"name": format!("job {number}"), "schedule": schedule, "message": "Look around."});
        let body = json!({"action": "add", "job": job}).to_string();
        let (status, answer) = http.ask("POST", "/api/cron", "", &body).await?;
        if status != 200 {
            let answer = String::from_utf8_lossy(&answer).into_owned();
            return Err(format!("a job was answered with {status}: {answer}").into());
        }
    }
    drop(http);
    gateway.stop();
    let gateway = home.start(myclaw);
    tokio::time::sleep(SETTLE).await;
    let cpu = gateway.cpu();
    tokio::time::sleep(IDLE).await;
    let share = (gateway.cpu() - cpu) / IDLE.as_secs_f64() * 100.0;
    let memory = gateway.memory();
    gateway.stop();
    let name = |what: &str| format!("idle with {jobs} jobs: {what}");
    table.add(&name("processor time"), format!("{share:.3} %"), None, "< 0.1 %", Some(share < 0.1));
    let is_met = memory < 25.0;
    table.add(&name("memory"), format!("{memory:.1} MB"), None, "< 25 MB", Some(is_met));
    Ok(())
}
