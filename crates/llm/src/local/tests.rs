use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::*;

const LIST: &str = r#"{"object":"list","data":[{"id":"alpha","object":"model"},{"id":"beta"}]}"#;

fn with_length(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A server on a port of its own that reads one request and writes `pieces`, then closes. Gives the request.
async fn serve(pieces: Vec<Vec<u8>>) -> (SocketAddr, oneshot::Receiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("bind");
    let address = listener.local_addr().expect("address");
    let (send, receive) = oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("accept");
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n")
            && stream.read(&mut byte).await.is_ok_and(|count| count == 1)
        {
            request.push(byte[0]);
        }
        let _ = send.send(String::from_utf8_lossy(&request).into_owned());
        for piece in pieces {
            if stream.write_all(&piece).await.is_err() {
                return;
            }
            let _ = stream.flush().await;
            tokio::task::yield_now().await;
        }
    });
    (address, receive)
}

/// A port at which nothing listens.
async fn closed_port() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("bind");
    listener.local_addr().expect("address")
}

fn probe(candidates: &[(&str, SocketAddr)]) -> LocalProbe {
    LocalProbe {
        candidates: candidates
            .iter()
            .map(|(provider, address)| LocalCandidate {
                provider: (*provider).to_owned(),
                address: *address,
            })
            .collect(),
        connect_limit: Duration::from_secs(10),
        answer_limit: Duration::from_secs(10),
    }
}

fn server(provider: &str, address: SocketAddr, models: &[&str]) -> LocalServer {
    LocalServer {
        provider: provider.to_owned(),
        base_url: format!("http://{address}/v1"),
        models: models.iter().map(|id| (*id).to_owned()).collect(),
        facts: LocalFacts::default(),
    }
}

/// What a server with this answer is found to be.
async fn finding_for(answer: impl Into<Vec<u8>>) -> LocalFinding {
    let (address, _) = serve(vec![answer.into()]).await;
    let mut findings = survey_local(&probe(&[("llamacpp", address)])).await;
    findings.remove(0).1
}

#[tokio::test]
async fn a_server_is_found_and_asked_properly() {
    let (address, request) = serve(vec![with_length(LIST).into_bytes()]).await;
    let found = discover_local(&probe(&[("llamacpp", address)])).await;
    assert_eq!(found, Some(server("llamacpp", address, &["alpha", "beta"])));
    assert_eq!(
        request.await.expect("a request"),
        format!(
            "GET /v1/models HTTP/1.1\r\nHost: {address}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
        )
    );
}

#[tokio::test]
async fn every_framing_is_read_byte_by_byte() {
    let (first, second) = LIST.split_at(20);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n{:x}\r\n{first}\r\n{:X};ext=1\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    );
    let until_closed = format!("HTTP/1.0 200 OK\nServer: x\n\n{LIST}");
    for answer in [with_length(LIST), chunked, until_closed] {
        let (address, _) = serve(answer.bytes().map(|byte| vec![byte]).collect()).await;
        let found = discover_local(&probe(&[("lmstudio", address)])).await;
        assert_eq!(found, Some(server("lmstudio", address, &["alpha", "beta"])), "{answer}");
    }
}

#[tokio::test]
async fn nothing_listening_is_distinguished_from_something_else() {
    let closed = closed_port().await;
    let probe = probe(&[("ollama", closed)]);
    assert_eq!(
        survey_local(&probe).await,
        vec![(probe.candidates[0].clone(), LocalFinding::NothingListens)]
    );
    assert_eq!(discover_local(&probe).await, None);
}

#[tokio::test]
async fn something_else_is_not_taken_for_a_model_server() {
    let answers: Vec<Vec<u8>> = vec![
        with_length("<!doctype html><html></html>").into_bytes(),
        with_length("{\"status\":\"ok\"}").into_bytes(),
        with_length("{\"data\":[{\"name\":\"x\"}]}").into_bytes(),
        with_length("[]").into_bytes(),
        format!("HTTP/1.1 404 Not Found\r\nContent-Length: {}\r\n\r\n{LIST}", LIST.len())
            .into_bytes(),
        format!("HTTP/1.1 401 Unauthorized\r\n\r\n{LIST}").into_bytes(),
        b"SSH-2.0-OpenSSH_9.6\r\n".to_vec(),
        b"\x00\xff\xfe garbage without a line end".to_vec(),
        b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n".to_vec(),
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n".to_vec(),
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"data\":[".to_vec(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n".to_vec(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}{}\r\n0\r\n\r\n".to_vec(),
        [b"HTTP/1.1 200 OK\r\n".to_vec(), b"X: y\r\n".repeat(10_000)].concat(),
        [b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b' '; 2 * 1024 * 1024]].concat(),
        Vec::new(),
    ];
    for answer in answers {
        let shown = String::from_utf8_lossy(&answer[..answer.len().min(80)]).into_owned();
        assert_eq!(finding_for(answer).await, LocalFinding::NotAModelServer, "{shown}");
    }
}

#[tokio::test]
async fn a_silent_port_costs_the_time_limit_and_no_more() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("bind");
    let silent = listener.local_addr().expect("address");
    let (working, _) = serve(vec![with_length(LIST).into_bytes()]).await;
    let mut probe = probe(&[("llamacpp", silent), ("lmstudio", working)]);
    probe.answer_limit = Duration::from_millis(200);
    assert_eq!(discover_local(&probe).await, Some(server("lmstudio", working, &["alpha", "beta"])));
}

#[tokio::test]
async fn the_first_candidate_wins_even_if_later_ones_stay_silent() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("bind");
    let silent = listener.local_addr().expect("address");
    let (working, _) = serve(vec![with_length(LIST).into_bytes()]).await;
    // The silent candidate has a limit of an hour: the test ends only because nobody waits for it.
    let mut probe = probe(&[("ollama", working), ("llamacpp", silent)]);
    probe.answer_limit = Duration::from_secs(3600);
    assert_eq!(discover_local(&probe).await, Some(server("ollama", working, &["alpha", "beta"])));
}

#[tokio::test]
async fn a_server_without_a_chat_model_is_reported_as_such() {
    assert_eq!(finding_for(with_length(r#"{"data":[]}"#)).await, LocalFinding::NoModels);
    let embedding = r#"{"data":[{"id":"text-embedding-nomic-embed-text-v1.5"}]}"#;
    assert_eq!(finding_for(with_length(embedding)).await, LocalFinding::NoModels);
    let hostile = r#"{"data":[{"id":"\u001b[31mred"},{"id":""}]}"#;
    assert_eq!(finding_for(with_length(hostile)).await, LocalFinding::NoModels);
}

#[tokio::test]
async fn ollama_prefers_models_that_call_tools() {
    let list = r#"{"object":"list","data":[{"id":"phi:latest"},{"id":"acme/tiny-chat:1b"},
        {"id":"nomic-embed-text:latest"},{"id":"qwen2.5:7b"},{"id":"someone/llama3.2:3b"}]}"#;
    let (ollama, _) = serve(vec![with_length(list).into_bytes()]).await;
    let found = discover_local(&probe(&[("ollama", ollama)])).await;
    let expected = ["qwen2.5:7b", "someone/llama3.2:3b", "acme/tiny-chat:1b", "phi:latest"];
    assert_eq!(found, Some(server("ollama", ollama, &expected)));
    let model = found.and_then(|server| server.preferred_model()).expect("a model");
    assert_eq!((model.provider.as_str(), model.id.as_str()), ("ollama", "qwen2.5:7b"));
    assert_eq!(model.base_url, format!("http://{ollama}/v1"));

    let (other, _) = serve(vec![with_length(list).into_bytes()]).await;
    let found = discover_local(&probe(&[("lmstudio", other)])).await;
    let expected = ["phi:latest", "acme/tiny-chat:1b", "qwen2.5:7b", "someone/llama3.2:3b"];
    assert_eq!(found, Some(server("lmstudio", other, &expected)));
}

#[test]
fn the_default_probe_names_the_usual_ports() {
    let candidates = LocalProbe::default().candidates;
    let addresses: Vec<(String, String)> = candidates
        .into_iter()
        .map(|candidate| (candidate.provider, candidate.address.to_string()))
        .collect();
    let expected = [
        ("ollama", "127.0.0.1:11434"),
        ("llamacpp", "127.0.0.1:8080"),
        ("lmstudio", "127.0.0.1:1234"),
    ];
    assert_eq!(
        addresses,
        expected.map(|(provider, address)| (provider.to_owned(), address.to_owned()))
    );
    for (provider, address) in expected {
        let info = crate::provider_info(provider).expect("a known provider");
        assert_eq!(info.base_url, format!("http://{address}/v1"), "discovery and catalog agree");
    }
}
