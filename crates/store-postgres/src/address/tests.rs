use tokio_postgres::config::SslMode;

use super::Address;

#[test]
fn connections_that_leave_the_machine_are_encrypted_unless_somebody_says_otherwise() {
    let cases = [
        ("postgresql://me@db.example.org/x", SslMode::Require),
        ("postgres://me@db.example.org:6000,localhost/x", SslMode::Require),
        ("postgresql://me@db.example.org/x?sslmode=disable", SslMode::Disable),
        ("postgresql://me@localhost/x", SslMode::Disable),
        ("postgresql://me@[::1]:5433/x?connect_timeout=3", SslMode::Disable),
        ("postgresql://me@%2Frun%2Fpostgresql/x", SslMode::Disable),
        ("postgresql://me@localhost/x?sslmode=require", SslMode::Require),
        // The name is only what the certificate is for.
        ("postgresql://me@localhost/x?hostaddr=192.0.2.1", SslMode::Require),
    ];
    for (url, mode) in cases {
        let address = Address::parse(url).unwrap();
        assert!(address.configs.iter().all(|config| config.get_ssl_mode() == mode), "{url}");
    }
}

#[test]
fn the_server_is_named_without_user_and_password() {
    let url = "postgresql://me:secret@one.example.org,two.example.org:6000/x?sslmode=disable";
    let address = Address::parse(url).unwrap();
    assert_eq!(address.server(), "one.example.org:5432,two.example.org:6000/x");
    assert_eq!(format!("{address:?}"), r#"Address("one.example.org:5432,two.example.org:6000/x")"#);
}

#[test]
fn each_host_is_asked_alone_unless_parameters_name_them() {
    let hosts = |url: &str| -> Vec<(usize, Vec<u16>)> {
        let configs = Address::parse(url).unwrap().configs;
        configs.iter().map(|it| (it.get_hosts().len(), it.get_ports().to_vec())).collect()
    };
    let url = "postgresql://me:a%40b@127.0.0.1:6000,localhost,[::1]:6001/x?connect_timeout=3";
    assert_eq!(hosts(url), [(1, vec![6000]), (1, vec![5432]), (1, vec![6001])]);
    assert_eq!(hosts("postgresql://me@/x?host=localhost,127.0.0.1").len(), 1);
}

#[test]
fn an_address_that_cannot_be_used_says_why() {
    let cases = [
        ("mysql://me@localhost/x", "must begin with postgresql://"),
        ("postgresql:///x", "names no host"),
        ("postgresql://me:secret@localhost:port/x", "cannot be read"),
        ("postgresql://me:secret@localhost/x?unknown=1", "unknown"),
        ("postgresql://me:a@secret@localhost/x", "as %40"),
        ("postgresql://me:a@one,secret@localhost/x", "as %40"),
        ("postgresql://me:secret@localhost/a%00b", "control character"),
        ("postgresql://me:secret%0A@localhost/x", "control character"),
        ("postgresql://me:secret@local%1bhost/x", "control character"),
        ("postgresql://me:secret@localhost/x?sslmode=prefer", "use sslmode=verify-full"),
        ("postgresql://me:secret@localhost/x?sslrootcert=/nowhere/ca.pem", "/nowhere/ca.pem"),
    ];
    for (url, wanted) in cases {
        let said = Address::parse(url).err().unwrap();
        assert!(said.contains(wanted) && !said.contains("secret"), "{url} gave: {said}");
    }
}
