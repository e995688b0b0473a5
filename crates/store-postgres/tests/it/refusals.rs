//! What is wrong with a database or its address is said in one message.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use myclaw_store::RecordId;
use myclaw_store_postgres::{Address, Options, PostgresStore};
use myclaw_testkit::PostgresServer;

use crate::server::{block_on, connect, database, open, server};

/// The error of opening a store, without a long wait.
async fn refusal(url: &str) -> String {
    let options = Options { patience: Duration::from_millis(300), ..Options::default() };
    let address = match Address::parse(url) {
        Ok(address) => address,
        Err(why) => return why,
    };
    PostgresStore::open(address, options).await.unwrap_err().to_string()
}

#[test]
fn a_database_that_cannot_be_used_is_named_with_what_to_do() {
    let Some(server) = server() else { return };
    block_on(async {
        let url = database(server).await;
        let place = url.split_once('@').unwrap().1.to_owned();
        let cases = [
            (
                url.replace("secret", "wrong"),
                "refuses the login",
                "check the user and the password",
            ),
            (
                url.replace("myclaw:secret@", "nobody@"),
                "asks for a password",
                "add it to the address",
            ),
            (format!("{url}x"), "does not exist", "create it with createdb"),
            (url.replace(&format!(":{}/", server.port()), ":1/"), "refused", "check that it runs"),
            (format!("{url}?sslmode=verify-full"), "does not encrypt connections", "set ssl = on"),
        ];
        for (url, problem, advice) in cases {
            let said = refusal(&url).await;
            assert!(said.contains(problem) && said.contains(advice), "{url} gave: {said}");
            assert!(said.starts_with("the database 127.0.0.1:"), "{said}");
            assert!(!said.contains("secret") && !said.contains("wrong"), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }

        let admin = connect(&url).await;
        let name = place.rsplit_once('/').unwrap().1;
        let read_only = format!("ALTER DATABASE {name} SET default_transaction_read_only = ");
        admin.batch_execute(&format!("{read_only} on")).await.unwrap();
        let said = refusal(&url).await;
        assert!(said.contains("takes no writes"), "{said}");
        admin.batch_execute("SELECT 1").await.unwrap();
    });
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let Some(server) = server() else { return };
    block_on(async {
        let url = database(server).await;
        open(&url).await;
        let admin = connect(&url).await;
        admin.batch_execute("UPDATE myclaw.format SET number = 1000").await.unwrap();
        let said = refusal(&url).await;
        let known = crate::migrations::STEPS.len();
        let wanted = format!(
            "was written by a newer version of this program (format 1000; this version knows {known}); update myclaw, \
            or use another database"
        );
        assert!(said.ends_with(&wanted), "{said}");
        let row = admin.query_one("SELECT number FROM myclaw.format", &[]).await.unwrap();
        assert_eq!(row.get::<_, i32>(0), 1000);
    });
}

#[test]
fn many_that_open_an_empty_database_at_once_create_its_tables_once() {
    let Some(server) = server() else { return };
    block_on(async {
        let url = database(server).await;
        let all = (0..6).map(|_| {
            let url = url.clone();
            tokio::spawn(async move { open(&url).await.get(RecordId::new("a", "b")).await })
        });
        for opened in all.collect::<Vec<_>>() {
            assert_eq!(opened.await.unwrap().unwrap(), None);
        }
    });
}

#[test]
fn a_user_without_rights_is_refused_and_one_that_owns_the_schema_is_not() {
    let Some(server) = server() else { return };
    block_on(async {
        let url = database(server).await;
        let admin = connect(&url).await;
        let role = url.rsplit_once('/').unwrap().1.to_owned();
        admin.batch_execute(&format!("CREATE ROLE {role} LOGIN PASSWORD 'other'")).await.unwrap();
        let other = url.replace("myclaw:secret", &format!("{role}:other"));
        let said = refusal(&other).await;
        assert!(said.contains("needs the right to create a schema"), "{said}");
        let give = format!("CREATE SCHEMA myclaw AUTHORIZATION {role}");
        admin.batch_execute(&give).await.unwrap();
        open(&other).await;
    });
}

#[test]
fn a_certificate_is_verified() {
    let Some(server) = PostgresServer::start("fsync = off") else { return };
    let data = server.directory().join("data");
    make_certificates(server.directory(), &data);
    server.kill();
    fs::write(data.join("postgresql.auto.conf"), "ssl = on\n").unwrap();
    server.launch();
    block_on(async {
        let url = database(&server).await.replace("127.0.0.1", "localhost");
        let roots =
            |name: &str| format!("{url}?sslrootcert={}", server.directory().join(name).display());
        // Named authority, right name.
        let options = Options::default();
        let store = PostgresStore::open(Address::parse(&roots("ca.pem")).unwrap(), options);
        store.await.unwrap();
        for (url, why) in [
            (roots("other.pem"), "another authority"),
            (format!("{url}?sslmode=verify-full"), "the authorities of the system"),
            (roots("ca.pem").replace("localhost", "127.0.0.1"), "another name"),
        ] {
            let said = refusal(&url).await;
            assert!(said.contains("cannot prove who it is"), "{why}: {said}");
        }
        let directory = server.directory();
        fs::copy(directory.join("old.crt"), data.join("server.crt")).unwrap();
        server.kill();
        server.launch();
        let said = refusal(&roots("ca.pem")).await;
        assert!(said.contains("cannot prove who it is") && said.contains("expired"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        let said = refusal(&roots("missing.pem")).await;
        assert!(said.contains("missing.pem") && said.contains("name a PEM file"), "{said}");
        let said = refusal(&roots("empty.pem")).await;
        assert!(said.contains("it holds none"), "{said}");
    });
}

/// An authority `ca.pem` and its certificate for localhost, which the server takes; another authority `other.pem`.
fn make_certificates(root: &Path, data: &Path) {
    let openssl = |line: &str| {
        let mut command = Command::new("openssl");
        let made = command.args(line.split(' ')).current_dir(root).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    for name in ["ca", "other"] {
        openssl(&format!(
            "req -x509 {key} -days 30 -subj /CN={name} -keyout {name}.key -out {name}.pem"
        ));
    }
    openssl(&format!("req {key} -subj /CN=localhost -keyout server.key -out server.csr"));
    fs::write(root.join("names"), "subjectAltName=DNS:localhost").unwrap();
    fs::write(root.join("empty.pem"), "").unwrap();
    openssl(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile names -out server.crt",
    );
    // It ends in the second in which it is made.
    openssl(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 0 -extfile names -out old.crt",
    );
    for name in ["server.key", "server.crt"] {
        fs::copy(root.join(name), data.join(name)).unwrap();
    }
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(data.join("server.key"), mode).unwrap();
}

/// Nothing is created next to them.
#[test]
fn tables_of_another_program_are_left_alone() {
    let Some(server) = server() else { return };
    block_on(async {
        for tables in [
            "CREATE TABLE myclaw.session (name text)",
            "CREATE TABLE myclaw.format (name text)",
            "CREATE TABLE myclaw.format (number text)",
            "CREATE TABLE myclaw.format (number integer)",
        ] {
            let url = database(server).await;
            let client = connect(&url).await;
            client.batch_execute(&format!("CREATE SCHEMA myclaw; {tables}")).await.unwrap();
            let said = refusal(&url).await;
            assert!(said.contains("not of this program; use another database"), "{said}");
            let count = "SELECT count(*) FROM pg_tables WHERE schemaname = 'myclaw'";
            assert_eq!(client.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 1, "{tables}");
            // A tenant has a schema of its own.
            let options = Options { creates_tenant: true, ..Options::default() };
            let address = Address::parse(&url).unwrap().of_tenant("anna").unwrap();
            PostgresStore::open(address, options).await.unwrap();
        }
    });
}

/// A step that cannot be made, here because somebody has made its table by hand, changes nothing of what is there.
#[test]
fn a_migration_that_fails_leaves_the_tables_as_they_were() {
    let Some(server) = server() else { return };
    block_on(async {
        let url = database(server).await;
        let client = connect(&url).await;
        for step in &crate::migrations::STEPS[..6] {
            client.batch_execute(step).await.unwrap();
        }
        client.batch_execute("UPDATE myclaw.format SET number = 6").await.unwrap();
        let tables =
            "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'myclaw'";
        let before: i64 = client.query_one(tables, &[]).await.unwrap().get(0);
        // A later step meets it, when those before are made.
        client.batch_execute("CREATE TABLE myclaw.sealable (by_hand text)").await.unwrap();
        let said = refusal(&url).await;
        assert!(said.contains("already exists") && said.contains("update"), "{said}");
        let after: i64 = client.query_one(tables, &[]).await.unwrap().get(0);
        assert_eq!(after, before + 1);
        let format = "SELECT number FROM myclaw.format";
        assert_eq!(client.query_one(format, &[]).await.unwrap().get::<_, i32>(0), 6);
        client.batch_execute("DROP TABLE myclaw.sealable").await.unwrap();
        open(&url).await;
        let newest = i32::try_from(crate::migrations::STEPS.len()).unwrap();
        assert_eq!(client.query_one(format, &[]).await.unwrap().get::<_, i32>(0), newest);
    });
}
