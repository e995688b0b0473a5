//! A channel of this program's own in a gateway: lines of standard input are messages, answers are lines of standard output.
//! `echo "Say hello" | cargo run --example channel`. It ends when all lines are answered.
//!
//! A message is on disk before it counts as received, and each is answered once, also if the program is killed meanwhile.

use std::process::{ExitCode, Termination};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use myclaw_agent::{BoxFuture, CancellationToken, Home, helper_main};
use myclaw_channels::{
    Account, AfterInterruption, Arrival, Capabilities, Channel, Chat, Intake, Part, SendFailure,
    Sender, State,
};
use myclaw_gateway::{Control, Gateway, MakeHost};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::sync::Notify;

const NAME: &str = "lines";

fn main() -> ExitCode {
    // In sandboxed sessions this program is its own helper process.
    if let Some(end) = helper_main() {
        return end.report();
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let stop = CancellationToken::new();
    let channel = Arc::new(Lines {
        account: Account::new(NAME, "default"),
        waiting: AtomicUsize::new(1),
        stop: stop.clone(),
    });
    let no_host: MakeHost = Box::new(|_| Err("this program has no containers".to_owned()));
    let gateway = Gateway::start(Home::find()?, no_host).await?.with_channel(channel);
    let control = Control {
        stop,
        reload: Arc::new(Notify::new()),
        say: Arc::new(|line: &str| eprintln!("{line}")),
        on_config: Arc::new(|_, _| {}),
    };
    gateway.serve(control).await;
    Ok(())
}

struct Lines {
    account: Account,
    /// Lines that have no answer yet, and one for standard input while it is open.
    waiting: AtomicUsize,
    stop: CancellationToken,
}

impl Lines {
    fn done(&self) {
        if self.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.stop.cancel();
        }
    }
}

impl Channel for Lines {
    fn account(&self) -> &Account {
        &self.account
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            // A line that was printed twice does no harm, and a missing one would.
            after_interruption: AfterInterruption::SendMarked,
            most_file_bytes: None,
            actions: &[],
        }
    }

    fn run(self: Arc<Self>, intake: Arc<dyn Intake>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.account.set(State::Working);
            let mut lines = BufReader::new(tokio::io::stdin()).lines();
            // Of two runs of this program, no two messages are the same.
            let run = std::process::id();
            for number in 0.. {
                let Ok(Some(text)) = lines.next_line().await else { break };
                self.waiting.fetch_add(1, Ordering::SeqCst);
                let arrival = Arrival {
                    channel: NAME.to_owned(),
                    account: "default".to_owned(),
                    chat: Chat { id: "terminal".to_owned(), ..Chat::default() },
                    sender: Sender { id: "me".to_owned(), ..Sender::default() },
                    source_id: format!("{run}-{number}"),
                    text,
                    mentions_me: true,
                    ..Arrival::default()
                };
                if let Err(refusal) = intake.take(arrival).await {
                    eprintln!("not taken: {refusal:?}");
                    self.done();
                }
            }
            self.done();
            // A channel that returns has given up.
            std::future::pending().await
        })
    }

    fn send<'a>(&'a self, part: &'a Part) -> BoxFuture<'a, Result<String, SendFailure>> {
        Box::pin(async move {
            println!("{}", part.text);
            if part.number + 1 == part.count {
                self.done();
            }
            Ok(part.id.clone())
        })
    }
}
