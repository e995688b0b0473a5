//! Installed copies with the state of each released version: an update, the way back, and the end.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::*;
use crate::states::{STATES, allow_what_waits, assert_waited_once, frozen};

/// Updates that are killed.
const DEFAULT_KILLS: u64 = 10;
/// Longest life of an update that is killed.
const LONGEST_LIFE: Duration = Duration::from_millis(4_000);

/// Where answers go. It refuses them until it is opened.
struct Receiver {
    server: ModelServer,
    is_open: Arc<AtomicBool>,
    taken: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    fn closed() -> Self {
        let (is_open, taken) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (opened, takes) = (Arc::clone(&is_open), Arc::clone(&taken));
        let script = Script::answer_with(move |request, _| {
            if !opened.load(Ordering::SeqCst) {
                return Step::status(503, &[], "{}");
            }
            takes.lock().push(request.body_text());
            Step::status(200, &[], "{}")
        });
        let script = script.accept_invalid_requests();
        Self { server: ModelServer::spawn_blocking_thread(script), is_open, taken }
    }

    fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }

    /// What it has taken.
    fn taken(&self) -> Vec<String> {
        self.taken.lock().clone()
    }
}

/// The state of a version, from which answers go to the receiver.
fn released(version: &str, receiver: &Receiver) -> Bench {
    let (home, port) = frozen(version, &receiver.server);
    Bench { home, model: ModelServer::spawn_blocking_thread(echoing()), port }
}

impl Place {
    /// Sets the model server in the place of the planner, which is the model of a released state.
    fn answers_with_echoes(&self) {
        let home = &self.bench.home;
        let found = fs::read_to_string(home.config_path()).unwrap();
        let found: Value = serde_json::from_str(&found).unwrap();
        self.bench.configure(|config| {
            for key in ["tools", "channels"] {
                config[key] = found[key].clone();
            }
        });
    }

    /// What a command of the installed program prints that succeeds.
    fn printed(&self, arguments: &[&str]) -> String {
        let output = RunningChild::run(&mut self.command(arguments));
        output.assert_code(0);
        output.stdout()
    }

    /// Nothing of a released state is lost, and its answer was sent once.
    fn assert_goes_on(&self, receiver: &Receiver) {
        let taken = receiver.taken();
        assert!(taken.len() == 1 && taken[0].contains("undelivered-0001"), "{taken:?}");
        assert_waited_once(&self.bench.home);
        let jobs = self.printed(&["cron", "list"]);
        assert!(jobs.contains("far") && jobs.contains("yearly"), "{jobs}");
        assert!(self.printed(&["sessions", "show", "trip"]).contains("buy tickets"));
    }
}

#[test]
fn every_released_state_is_installed_updated_rolled_back_restored_and_removed() {
    if !can_install() {
        return;
    }
    let releases = TempHome::new();
    let [old, new] = ["old", "new"].map(|name| releases.path().join(name));
    for version in STATES {
        let receiver = Receiver::closed();
        let mut place = Place::of(released(version, &receiver));
        for (release, version) in [(&new, newer()), (&old, VERSION.to_owned())] {
            release.clone_into(&mut place.release);
            if !release.exists() {
                place.publish(&version, &program(&version));
            }
        }
        place.script(&["--from", old.to_str().unwrap()]).assert_code(0);
        let gateway = place.start();
        let updated = place.update(&["--from", new.to_str().unwrap()]);
        updated.assert_code(0);
        let runs = format!("the gateway runs MyClaw {}", newer());
        assert!(updated.stdout().contains(&runs), "{}", updated.stdout());
        assert_eq!(receiver.taken(), [""; 0]);
        receiver.open();
        until("the undelivered answer", || !receiver.taken().is_empty());
        let outcome = allow_what_waits(&gateway.client);
        assert!(outcome["reply"].as_str().unwrap().contains("approved"), "{version}: {outcome}");
        let file = place.bench.home.path().join("claw.backup");
        place.printed(&["backup", "--with-keys", file.to_str().unwrap()]);
        place.update(&["--rollback"]).assert_code(0);
        assert_eq!(place.status()["version"], VERSION);
        let read = ["run", "-q", "--session", "trip", "read trip.md"];
        assert!(place.printed(&read).contains("buy tickets"));
        gateway.stop();
        place.assert_goes_on(&receiver);

        // Had the newer version raised a format, this one could not go on without the backup.
        let path = place.bench.home.state_directory().join("formats.json");
        let mut written: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        written["program"] = json!(newer());
        written["formats"]["store"] = json!(99);
        fs::write(&path, written.to_string()).unwrap();
        let refused = RunningChild::run(&mut place.command(&read));
        assert_ne!(refused.code(), Some(0));
        assert!(refused.stderr().contains("nothing was changed"), "{}", refused.stderr());
        assert_eq!(refused.stderr().lines().count(), 1, "{}", refused.stderr());
        place.printed(&["restore", "--replace", file.to_str().unwrap()]);
        assert!(place.printed(&read).contains("buy tickets"));
        place.start().stop();
        place.assert_goes_on(&receiver);

        place.printed(&["uninstall", "--yes", "--workspace"]);
        place.script(&["--uninstall"]).assert_code(0);
        fs::remove_file(file).unwrap();
        // The place for temporary files that this test has given to the script.
        fs::remove_dir(place.bench.home.path().join("work")).unwrap();
        assert_eq!(names_in(place.bench.home.path()), [""; 0], "{version}");
    }
}

#[test]
fn an_update_of_a_released_state_that_is_killed_loses_nothing() {
    if !can_install() {
        return;
    }
    let kills = number_from("MYCLAW_GATEWAY_KILLS").unwrap_or(DEFAULT_KILLS).min(50);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_130);
    let mut random = Random::new(seed);
    let receiver = Receiver::closed();
    let place = Place::of(released("0.1", &receiver));
    place.put_copy();
    place.answers_with_echoes();
    place.publish(&newer(), &program(&newer()));
    let gateway = place.start();
    let client = &gateway.client;
    let versions = [VERSION.to_owned(), newer()];
    let says = |number: u64| {
        // It may begin anew at this moment, and then takes the message a moment later.
        let (id, text) = (format!("message-{number}"), format!("<m{number}>"));
        let is_answered =
            |id: String| client.outcome(&id).is_ok_and(|outcome| outcome["state"] == "answered");
        until("the message", || client.send("main", &id, &text).is_ok_and(is_answered));
    };
    for kill in 0..kills {
        let goes_back = place.version() != VERSION;
        let arguments: &[&str] = if goes_back { &["update", "--rollback"] } else { &["update"] };
        let child = RunningChild::spawn(&mut place.command(arguments));
        random.pause(LONGEST_LIFE);
        child.signal(Signal::Kill);
        child.wait(PATIENCE);
        let found = place.version();
        assert!(versions.contains(&found), "seed {seed}, kill {kill}: {found}");
        says(kill);
        let state = place.status();
        assert_eq!(state["processId"], gateway.child.id(), "seed {seed}, kill {kill}");
        eprint!("\rseed {seed}, kill {}", kill + 1);
    }
    eprintln!();
    receiver.open();
    // What was killed is completed by the next command.
    if place.version() != VERSION {
        place.update(&["--rollback"]).assert_code(0);
    }
    place.update(&[]).assert_code(0);
    assert_eq!((place.version(), &place.status()["version"]), (newer(), &json!(newer())));
    says(kills);
    place.update(&["--rollback"]).assert_code(0);
    assert_eq!(place.status()["version"], VERSION);
    says(kills + 1);
    let said = place.bench.said("main");
    for number in 0..kills + 2 {
        let count = |text: String| said.iter().filter(|said| **said == text).count();
        let found = (count(format!("<m{number}>")), count(format!("re: <m{number}>")));
        assert_eq!(found, (1, 1), "seed {seed}: message {number}: {said:?}");
    }
    let doctor = RunningChild::run(&mut place.command(&["doctor"]));
    assert!(
        doctor.stdout().contains(&format!("MyClaw {} did before", newer())),
        "{}",
        doctor.stdout()
    );
    until("the undelivered answer", || !receiver.taken().is_empty());
    assert_eq!(allow_what_waits(client)["state"], "answered");
    gateway.stop();
    place.assert_goes_on(&receiver);
}
