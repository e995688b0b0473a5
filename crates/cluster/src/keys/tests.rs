use std::sync::atomic::AtomicUsize;

use myclaw_auth::{
    AuthProfile, CooldownRules, CredentialType, Failure, FailureReason, KeyResolver, NewLogin,
    RenewLogin, Renewal, RenewalAnswer, RenewedLogin, StoredProfile,
};
use myclaw_store::Partition;
use myclaw_store_postgres::{Address, Options, PostgresSessions};
use myclaw_testkit::PostgresServer;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::*;

const RULES: CooldownRules = CooldownRules {
    first: Duration::from_secs(60),
    factor: 5,
    longest: Duration::from_secs(3_600),
    billing_first: Duration::from_secs(60),
    billing_longest: Duration::from_secs(3_600),
    forget_after: Duration::from_secs(3_600),
};

fn seal(keys: &[u8]) -> Seal {
    let digits =
        keys.iter().map(|key| sealing_key(&format!("{key:02x}").repeat(KEY_BYTES)).unwrap());
    Seal(digits.collect())
}

/// The keys as a machine of its own knows them.
fn machine(server: &PostgresServer, name: &str, keys: &[u8]) -> RecordedKeys {
    let address = Address::parse(&server.url("postgres")).unwrap();
    let (options, scratch) = (Options::default(), std::env::temp_dir().join("none"));
    let sessions = PostgresSessions::open(address.clone(), &options, &Partition::MAIN, scratch);
    let records = Blocking::open(Arc::new(sessions.unwrap()), address, options).unwrap();
    RecordedKeys::new(Arc::new(records), seal(keys), name)
}

fn profile(key: &str) -> StoredProfile {
    StoredProfile::with_key("p", CredentialType::ApiKey, SecretString::from(key))
}

fn profiles(keys: &RecordedKeys) -> Result<Vec<AuthProfile>, String> {
    let file = keys.of("agent/main").load().map_err(|error| error.to_string())?;
    Ok(file.profiles_of("p"))
}

fn stored(keys: &RecordedKeys, name: &str) -> String {
    let found = keys.records.wait(|store| KEYS.get(store, name));
    found.unwrap().unwrap().row.sealed
}

#[test]
fn only_machines_with_the_key_read_what_others_keep() {
    let Some(server) = PostgresServer::start("fsync = off") else { return };
    let one = machine(&server, "one", &[1]);
    let store = one.of("agent/main");
    assert!(!store.exists());
    store.change(|file| file.put("p:a", profile("a very secret key"))).unwrap();
    assert!(store.exists() && !one.of("agent/other").exists());
    let bytes = BASE64.decode(stored(&one, "agent/main")).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("secret"));

    assert_eq!(profiles(&machine(&server, "two", &[1])).unwrap().len(), 1);
    let stranger = machine(&server, "three", &[2]);
    let error = profiles(&stranger).unwrap_err();
    assert!(
        error.contains("encrypted with another MYCLAW_STORE_KEY; give this machine"),
        "{error}"
    );
    // It does not replace them either.
    let refused = stranger.of("agent/main").change(|file| file.put("p:b", profile("other")));
    assert!(refused.unwrap_err().to_string().contains("another MYCLAW_STORE_KEY"));
    assert_eq!(profiles(&one).unwrap().len(), 1);

    // The record of one agent is not that of another.
    let moved = Sealed { sealed: stored(&one, "agent/main") };
    one.records.wait(|store| KEYS.insert(store, "agent/other", &moved, None)).unwrap();
    assert!(one.of("agent/other").load().is_err());
}

#[test]
fn a_new_key_takes_the_place_of_the_old_one_at_the_next_change() {
    let Some(server) = PostgresServer::start("fsync = off") else { return };
    let old = machine(&server, "one", &[1]);
    old.of("agent/main").change(|file| file.put("p:a", profile("key"))).unwrap();
    let both = machine(&server, "two", &[2, 1]);
    assert_eq!(profiles(&both).unwrap().len(), 1);
    assert_eq!(profiles(&old).unwrap().len(), 1, "reading changes nothing");
    both.of("agent/main").change(|_| ()).unwrap();
    assert!(profiles(&old).is_err());
    assert_eq!(profiles(&machine(&server, "three", &[2])).unwrap().len(), 1);
}

#[test]
fn cooldowns_are_shared_and_none_is_lost() {
    let Some(server) = PostgresServer::start("fsync = off") else { return };
    let machines = [machine(&server, "one", &[1]), machine(&server, "two", &[1])];
    let failure =
        Failure { model: "m", reason: FailureReason::Auth, retry_after: None, at_ms: 1_000 };
    thread::scope(|scope| {
        for machine in &machines {
            scope.spawn(|| {
                for _ in 0..10 {
                    let fail = |file: &mut AuthFile| file.record_failure("p:a", &failure, &RULES);
                    machine.of("agent/main").record(fail).unwrap();
                }
            });
        }
    });
    let file = machines[1].of("agent/main").load().unwrap();
    let usage = file.usage("p", "a").unwrap();
    assert_eq!(usage.error_count, 20);
    assert!(usage.cooldown("m", 2_000).is_some());
}

#[test]
fn the_use_of_the_only_key_is_not_written_each_time() {
    let Some(server) = PostgresServer::start("fsync = off") else { return };
    let keys = machine(&server, "one", &[1]);
    let store = keys.of("agent/main");
    store.change(|file| file.put("p:a", profile("key"))).unwrap();
    let mut seen = Vec::new();
    for (at, names) in [(100_000, 1), (130_000, 1), (170_000, 1), (171_000, 2), (172_000, 2)] {
        if names == 2 {
            store.change(|file| file.put("p:b", profile("other"))).unwrap();
        }
        store.record(|file| file.record_success("p:a", "m", at)).unwrap();
        seen.push(store.load().unwrap().usage("p", "a").unwrap().last_used.unwrap());
    }
    assert_eq!(seen, [100_000, 100_000, 170_000, 171_000, 172_000]);
}

/// A server that gives a new token each time, after a while.
#[derive(Debug, Default)]
struct Slow(AtomicUsize);

impl RenewLogin for Slow {
    fn renew<'a>(&'a self, _: &'a Renewal) -> RenewalAnswer<'a> {
        Box::pin(async {
            let number = self.0.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok(RenewedLogin {
                access: SecretString::from(format!("token {number}")),
                refresh: Some(SecretString::from(format!("refresh {number}"))),
                expires_in: Some(Duration::from_secs(3_600)),
            })
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_machine_renews_a_login_and_the_others_use_its_token() {
    let Some(server) = PostgresServer::start("fsync = off") else { return };
    let machines = ["one", "two", "three"].map(|name| machine(&server, name, &[1]));
    let login = NewLogin {
        access: SecretString::from("old"),
        expires: Some(1),
        issuer: "https://example.org".to_owned(),
        granted: None,
        renewal: Renewal {
            token_url: "https://example.org/token".to_owned(),
            client_id: "client".to_owned(),
            client_secret: None,
            secret_in_header: false,
            scope: None,
            resource: None,
            refresh_token: SecretString::from("refresh"),
        },
    };
    let put = |file: &mut AuthFile| {
        file.put("p:a", StoredProfile::with_login("p", login.clone()));
    };
    machines[0].of("agent/main").change(put).unwrap();
    let slow = Arc::new(Slow::default());
    let asked = machines.iter().map(|machine| {
        let profile = profiles(machine).unwrap().remove(0);
        let resolver = KeyResolver::new([("A", "b")]).with_renewer(Arc::<Slow>::clone(&slow));
        async move { resolver.resolve(&profile, 1_000_000, &CancellationToken::new()).await }
    });
    for asked in asked.map(tokio::spawn).collect::<Vec<_>>() {
        assert_eq!(asked.await.unwrap().unwrap().unwrap().expose_secret(), "token 0");
    }
    assert_eq!(slow.0.load(Ordering::SeqCst), 1);
    // The right was given back: a claim that only ran out would cost 45 seconds.
    let begun = Instant::now();
    drop(machines[2].one("agent/main").hold_logins().await.unwrap());
    drop(machines[0].one("agent/main").hold_logins().await.unwrap());
    assert!(begun.elapsed() < Duration::from_secs(10));
}
