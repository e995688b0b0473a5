//! No way leads from the browser to an address that is not permitted.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::json;
use tokio::net::UdpSocket;

use crate::support::{Page, Session, Site, agent_browser};

/// A page that tries to reach a private server in all ways that a page has.
fn page_of_attempts(inner: u16, udp_port: u16) -> String {
    format!(
        "<title>Outside</title>
         <iframe src='http://127.0.0.1:{inner}/frame'></iframe><iframe src='http://inner.test:{inner}/name'></iframe>
         <img src='http://[::1]:{inner}/six'><img src='http://localhost:{inner}/image'>
         <script>
         const tries = [
           fetch('http://127.0.0.1:{inner}/fetch', {{mode: 'no-cors'}}),
           fetch('http://2130706433:{inner}/number', {{mode: 'no-cors'}}),
           fetch('http://169.254.169.254:{inner}/metadata', {{mode: 'no-cors'}}),
           fetch('https://127.0.0.1:{inner}/tls', {{mode: 'no-cors'}}),
           new Promise(done => {{ const socket = new WebSocket('ws://127.0.0.1:{inner}/socket'); socket.onerror = done; }}),
           new Promise(done => {{ const worker = new Worker(URL.createObjectURL(new Blob([
             `fetch('http://127.0.0.1:{inner}/worker', {{mode: 'no-cors'}}).catch(() => postMessage(0)).then(() => postMessage(1))`])));
             worker.onmessage = done; }}),
         ];
         navigator.sendBeacon('http://127.0.0.1:{inner}/beacon', 'x');
         const peer = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{udp_port}'}}]}});
         peer.createDataChannel('x');
         const gathered = new Promise(done => {{ peer.onicegatheringstatechange = () => peer.iceGatheringState == 'complete' && done(); }});
         peer.createOffer().then(offer => peer.setLocalDescription(offer));
         // A try that is never answered has been made all the same.
         const late = new Promise(done => setTimeout(done, 3000));
         Promise.race([late, Promise.allSettled([...tries, gathered])]).then(() => {{ document.title = 'All tried'; document.body.append('All tried'); }});
         </script>"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_frames_scripts_and_rebinding_do_not_reach_private_addresses() {
    let Some(program) = agent_browser() else { return };
    let secret = Site::start(|_| vec![("/", Page::Html("<h1>the secret</h1>".to_owned()))]).await;
    let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (inner, udp_port) = (secret.port, udp.local_addr().unwrap().port());
    let page = page_of_attempts(inner, udp_port);
    let site = Site::start(move |port| {
        vec![
            ("/", Page::Html(page)),
            ("/redirect", Page::Redirect(format!("http://127.0.0.1:{inner}/redirected"))),
            ("/chain", Page::Redirect(format!("http://app.test:{port}/redirect"))),
            ("/link", Page::Html(format!("<a href='http://127.0.0.1:{inner}/linked'>Go</a>"))),
        ]
    })
    .await;
    let permitted = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));
    let other = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let app = format!("app.test:{}", site.port);
    // `rebind.test` leads to a permitted address when it is looked up for the first time, and elsewhere from then on.
    let own = format!("127.0.0.1:{}", site.port);
    let session =
        Session::with_names(&program, &[&app, &own], &[("rebind.test", &[permitted, other])]);

    for url in [
        format!("http://127.0.0.1:{inner}/"),
        format!("http://inner.test:{inner}/"),
        "file:///etc/hostname".to_owned(),
        "chrome://version".to_owned(),
        "view-source:file:///etc/hostname".to_owned(),
        "javascript:alert(1)".to_owned(),
        "data:text/html,x".to_owned(),
    ] {
        session.failure(json!({"action": "open", "url": url})).await;
    }
    let not_started = session.failure(json!({"action": "snapshot"})).await;
    assert!(not_started.contains("no page"), "{not_started}");

    session.text(json!({"action": "open", "url": site.url("app.test", "/")})).await;
    let tried = session.until(json!({"action": "snapshot"}), "All tried").await;
    assert!(!tried.contains("the secret"), "{tried}");
    for path in ["/redirect", "/chain"] {
        let opened = session
            .call(json!({"action": "open", "url": site.url("app.test", path)}))
            .await
            .unwrap();
        let text = crate::support::text_of(&opened);
        assert!(text.contains("Refused a connection: 127.0.0.1"), "{text}");
    }
    session.text(json!({"action": "open", "url": site.url("app.test", "/link")})).await;
    let go = session.element("Go").await;
    let _ = session.call(json!({"action": "click", "ref": go})).await;
    let _ = session.call(json!({"action": "open", "url": site.url("rebind.test", "/link")})).await;
    let rebound =
        session.call(json!({"action": "open", "url": site.url("rebind.test", "/link")})).await;
    assert!(rebound.is_err(), "{rebound:?}");
    session.text(json!({"action": "open", "url": site.url("app.test", "/link")})).await;
    for script in [
        format!(
            "fetch('http://127.0.0.1:{inner}/evaluated', {{mode: 'no-cors'}}).then(() => 'reached', () => 'failed')"
        ),
        "window.open('file:///etc/hostname') === null ? 'failed' : 'opened'".to_owned(),
        "location.href = 'file:///etc/hostname'".to_owned(),
    ] {
        let _ = session.call(json!({"action": "evaluate", "script": script})).await;
    }
    let tabs = session.text(json!({"action": "tabs"})).await;
    assert!(!tabs.contains("file:"), "{tabs}");
    let snapshot = session.call(json!({"action": "snapshot"})).await.unwrap();
    assert!(
        !crate::support::text_of(&snapshot)
            .contains(std::fs::read_to_string("/etc/hostname").unwrap().trim())
    );

    assert_eq!(secret.requests(), [""; 0]);
    let mut packet = [0; 100];
    assert!(udp.try_recv(&mut packet).is_err(), "WebRTC sent a packet around the proxy");
    session.slot.close().await;
}
