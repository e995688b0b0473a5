use rustls::server::ResolvesServerCertUsingSni;

use super::*;

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 7));

fn config() -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ServerConfig::builder_with_provider(provider);
    let versions = versions.with_safe_default_protocol_versions().unwrap();
    let resolver = Arc::new(ResolvesServerCertUsingSni::new());
    Arc::new(versions.with_no_client_auth().with_cert_resolver(resolver))
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_does_not_end_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    for said in [&b""[..], &[HANDSHAKE_RECORD], b"GET / HTTP/1.1\r\n"] {
        let (stream, _) = listener.accept().await.unwrap();
        client.write_all(said).await.unwrap();
        let handshakes = Handshakes::default();
        assert!(handshakes.shake(stream, (CLIENT, 1), config()).await.is_none(), "{said:?}");
        assert!(handshakes.0.lock().is_empty());
        client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    }
}

#[test]
fn one_client_cannot_take_the_places_of_others() {
    let handshakes = Handshakes::default();
    let begun: Vec<_> =
        (0..MOST_OF_ONE_CLIENT).map(|_| handshakes.begin(CLIENT, MOST_OF_ONE_CLIENT)).collect();
    assert!(begun.iter().all(Option::is_some));
    assert!(handshakes.begin(CLIENT, MOST_OF_ONE_CLIENT).is_none());
    let other: IpAddr = "203.0.113.8".parse().unwrap();
    assert!(handshakes.begin(other, MOST_OF_ONE_CLIENT).is_some());
    drop(begun);
    assert!(handshakes.begin(CLIENT, MOST_OF_ONE_CLIENT).is_some());
    assert!(handshakes.0.lock().is_empty());
}

#[test]
fn all_clients_together_have_a_limit() {
    let handshakes = Handshakes::default();
    let client = |number: usize| IpAddr::from(u32::try_from(number).unwrap().to_be_bytes());
    let begun: Vec<_> =
        (0..MOST_HANDSHAKES).map(|number| handshakes.begin(client(number), 1)).collect();
    assert!(begun.iter().all(Option::is_some));
    assert!(handshakes.begin(client(MOST_HANDSHAKES), 1).is_none());
    assert_eq!(handshakes.0.lock().len(), MOST_HANDSHAKES);
}
