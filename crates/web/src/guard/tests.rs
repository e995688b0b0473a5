use std::collections::HashMap;
use std::io;
use std::sync::Mutex;

use futures_util::future::BoxFuture;

use super::*;

/// A name server in which each name has a list of answers; the last one is repeated.
#[derive(Default)]
struct Names(Mutex<HashMap<String, Vec<Vec<IpAddr>>>>);

impl Names {
    fn with(names: &[(&str, &[&[&str]])]) -> Arc<Self> {
        let parse = |text: &&str| text.parse().unwrap();
        let answers = |answers: &[&[&str]]| {
            answers.iter().map(|answer| answer.iter().map(parse).collect()).collect()
        };
        let names = names.iter().map(|(name, list)| ((*name).to_owned(), answers(list)));
        Arc::new(Self(Mutex::new(names.collect())))
    }
}

impl Lookup for Names {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let mut names = self.0.lock().unwrap();
            let answers = names
                .get_mut(name.trim_end_matches('.'))
                .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such name"))?;
            Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
        })
    }
}

fn names() -> Arc<Names> {
    Names::with(&[
        ("public.example", &[&["93.184.215.14"]]),
        ("both.example", &[&["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"]]),
        ("localhost", &[&["127.0.0.1", "::1"]]),
        ("sub.localhost", &[&["127.0.0.1"]]),
        ("loopback.example", &[&["127.0.0.1"]]),
        ("mixed.example", &[&["93.184.215.14", "10.0.0.1"]]),
        ("mapped.example", &[&["::ffff:127.0.0.1"]]),
        ("wiki.corp.example", &[&["10.1.2.3"]]),
        ("metadata.google.internal", &[&["169.254.169.254"]]),
        ("xn--lcalhost-n3a.example", &[&["192.168.0.1"]]),
        ("wire.example", &[&["168.63.129.16"]]),
        ("nothing.example", &[&[]]),
        ("rebinding.example", &[&["93.184.215.14"], &["127.0.0.1"]]),
    ])
}

fn guard(private_networks: PrivateNetworks, allowed: &[&str]) -> AddressGuard {
    let allowed_hosts = allowed.iter().map(|text| text.parse().unwrap()).collect();
    AddressGuard::with_lookup(
        AddressRules { private_networks, allowed_hosts, ..AddressRules::default() },
        names(),
    )
}

/// The addresses that a request to `url` would connect to.
async fn reach(guard: &AddressGuard, url: &str) -> Result<Vec<SocketAddr>, Refusal> {
    let url = guard.check_url(url)?;
    guard.addresses(&url.host().unwrap(), url.port_or_known_default().unwrap()).await
}

/// One word for the outcome.
async fn verdict(guard: &AddressGuard, url: &str) -> String {
    match reach(guard, url).await {
        Ok(_) => "reached".to_owned(),
        Err(Refusal::NotPublic { kind, .. }) => format!("{kind:?}"),
        Err(Refusal::Unusable { .. }) => "unusable".to_owned(),
        Err(Refusal::Port { .. }) => "port".to_owned(),
        Err(Refusal::NotFound { .. }) => "not found".to_owned(),
    }
}

/// Spellings of addresses that must not be reached, each with the outcome.
const SPELLINGS: &[(&str, &str)] = &[
    // this machine, as IPv4
    ("http://127.0.0.1/", "Loopback"),
    ("http://127.0.0.1:8080/", "Loopback"),
    ("http://127.1/", "Loopback"),
    ("http://127.0.1/", "Loopback"),
    ("http://127.255.255.254/", "Loopback"),
    ("http://2130706433/", "Loopback"),
    ("http://0x7f000001/", "Loopback"),
    ("http://0x7f.0.0.1/", "Loopback"),
    ("http://0x7f.1/", "Loopback"),
    ("http://0X7F.0x0.0x0.0x1/", "Loopback"),
    ("http://017700000001/", "Loopback"),
    ("http://0177.0.0.1/", "Loopback"),
    ("http://0177.0.0.01/", "Loopback"),
    ("http://00000177.1/", "Loopback"),
    ("http://127.0.0.1./", "Loopback"),
    ("http://127.1./", "Loopback"),
    ("http://①②⑦.⓪.⓪.①/", "Loopback"),
    ("http://127。0。0。1/", "Loopback"),
    ("http://%31%32%37.0.0.1/", "Loopback"),
    ("http://１２７.0.0.1/", "Loopback"),
    ("http://0/", "Unspecified"),
    ("http://0.0.0.0/", "Unspecified"),
    ("http://0x0/", "Unspecified"),
    ("http://0.1.2.3/", "Unspecified"),
    // this machine, as IPv6
    ("http://[::1]/", "Loopback"),
    ("http://[0:0:0:0:0:0:0:1]/", "Loopback"),
    ("http://[0000::0001]:80/", "Loopback"),
    ("http://[::]/", "Unspecified"),
    ("http://[::ffff:127.0.0.1]/", "Loopback"),
    ("http://[::ffff:7f00:1]/", "Loopback"),
    ("http://[0:0:0:0:0:ffff:7f00:0001]/", "Loopback"),
    ("http://[::127.0.0.1]/", "Loopback"),
    ("http://[::ffff:0:127.0.0.1]/", "Loopback"),
    ("http://[64:ff9b::127.0.0.1]/", "Loopback"),
    ("http://[64:ff9b:1::1]/", "Private"),
    ("http://[2002:7f00:1::]/", "Loopback"),
    ("http://[2001:0:7f00:1::]/", "Reserved"),
    ("http://[2606:4700::5efe:127.0.0.1]/", "Loopback"),
    ("http://[2606:4700::200:5efe:10.0.0.1]/", "Private"),
    // this machine, by name
    ("http://localhost/", "Loopback"),
    ("http://LOCALHOST/", "Loopback"),
    ("http://localhost./", "Loopback"),
    ("http://ｌｏｃａｌｈｏｓｔ/", "Loopback"),
    ("http://loc%61lhost/", "Loopback"),
    ("http://lo\tcal\nhost/", "Loopback"),
    ("http://sub.localhost/", "Loopback"),
    ("http://loopback.example/", "Loopback"),
    ("http://mapped.example/", "Loopback"),
    ("http://mixed.example/", "Private"),
    ("http://xn--lcalhost-n3a.example/", "Private"),
    ("http:localhost", "Loopback"),
    ("http:\\\\127.0.0.1\\", "Loopback"),
    ("http:///127.0.0.1/", "Loopback"),
    // user names that look like hosts
    ("http://public.example@127.0.0.1/", "Loopback"),
    ("http://public.example:80@127.0.0.1/", "Loopback"),
    ("http://public.example%2f@127.0.0.1/", "Loopback"),
    ("http://127.0.0.1\\@public.example/", "Loopback"),
    ("http://127.0.0.1#@public.example/", "Loopback"),
    ("http://127.0.0.1?@public.example/", "Loopback"),
    // private and shared networks
    ("http://10.0.0.1/", "Private"),
    ("http://012.0.0.1/", "Private"),
    ("http://172.16.0.1/", "Private"),
    ("http://172.31.255.255/", "Private"),
    ("http://192.168.1.1/", "Private"),
    ("http://3232235777/", "Private"),
    ("http://192.168.257/", "Private"),
    ("http://100.64.0.1/", "Shared"),
    ("http://[fd12:3456::1]/", "Private"),
    ("http://[fec0::1]/", "Private"),
    ("http://[::ffff:10.0.0.1]/", "Private"),
    // the local link and the metadata services
    ("http://169.254.1.1/", "LinkLocal"),
    ("http://[fe80::1]/", "LinkLocal"),
    ("http://169.254.169.254/latest/meta-data/", "Metadata"),
    ("http://2852039166/", "Metadata"),
    ("http://0xa9fea9fe/", "Metadata"),
    ("http://0251.0376.0251.0376/", "Metadata"),
    ("http://[::ffff:a9fe:a9fe]/", "Metadata"),
    ("http://[64:ff9b::a9fe:a9fe]/", "Metadata"),
    ("http://[fd00:ec2::254]/", "Metadata"),
    ("http://100.100.100.200/", "Metadata"),
    ("http://metadata.google.internal/", "Metadata"),
    ("http://METADATA.google.internal./computeMetadata/v1/", "Metadata"),
    ("http://168.63.129.16/machine", "Metadata"),
    ("http://168.63.129.16:32526/", "Metadata"),
    ("http://2822734096/", "Metadata"),
    ("http://0xa83f8110/", "Metadata"),
    ("http://0250.077.0201.020/", "Metadata"),
    ("http://168.4161808/", "Metadata"),
    ("http://[::ffff:168.63.129.16]/", "Metadata"),
    ("http://[::ffff:0:168.63.129.16]/", "Metadata"),
    ("http://[::168.63.129.16]/", "Metadata"),
    ("http://[64:ff9b::a83f:8110]/", "Metadata"),
    ("http://[2002:a83f:8110::1]/", "Metadata"),
    ("http://[2606:4700::5efe:168.63.129.16]/", "Metadata"),
    ("http://wire.example/", "Metadata"),
    ("http://169.254.170.2/v2/credentials", "Metadata"),
    ("http://169.254.170.23/v1/credentials", "Metadata"),
    ("http://[64:ff9b::169.254.170.2]/", "Metadata"),
    ("http://169.254.0.23/", "Metadata"),
    ("http://169.254.42.42/", "Metadata"),
    ("http://192.0.0.192/", "Metadata"),
    ("http://[::ffff:100.100.100.200]/", "Metadata"),
    ("http://[2002:6464:64c8::]/", "Metadata"),
    ("http://[fd00:ec2::23]/", "Metadata"),
    ("http://[fd20:ce::254]/", "Metadata"),
    ("http://[fd20:00ce:0:0:0:0:0:0254]/", "Metadata"),
    ("http://[fd00:c1::a9fe:a9fe]/", "Metadata"),
    ("http://[fd00:a9fe:a9fe::1]/", "Metadata"),
    // a local network's NAT64, in each place that an IPv4 address may have
    ("http://[64:ff9b:1::169.254.169.254]/", "Metadata"),
    ("http://[64:ff9b:1:a9fe:a9:fe00::]/", "Metadata"),
    ("http://[64:ff9b:1:a9:fe:a9fe::]/", "Metadata"),
    ("http://[64:ff9b:1:0:a9:fea9:fe00:0]/", "Metadata"),
    ("http://[64:ff9b:1::127.0.0.1]/", "Loopback"),
    ("http://[64:ff9b:1::169.254.1.1]/", "LinkLocal"),
    ("http://[64:ff9b:1::10.0.0.1]/", "Private"),
    ("http://[64:ff9b:1:8:8:808::]/", "Private"),
    // a link-local address that carries another one
    ("http://[fe80::5efe:10.0.0.1]/", "LinkLocal"),
    ("http://[febf::5efe:8.8.8.8]/", "LinkLocal"),
    // the ends of the carriers' network, and tunnels
    ("http://100.127.255.255/", "Shared"),
    ("http://[::ffff:100.64.0.1]/", "Shared"),
    ("http://[2002:6440:1::]/", "Shared"),
    ("http://[2001::1]/", "Reserved"),
    ("http://[2001:0:ffff:ffff:ffff:ffff:5601:5601]/", "Reserved"),
    ("http://[2002:a00:1::]/", "Private"),
    ("http://[2002:c0a8:101:1::1]/", "Private"),
    // what is no single machine, or set aside
    ("http://224.0.0.1/", "Multicast"),
    ("http://[ff02::1]/", "Multicast"),
    ("http://255.255.255.255/", "Reserved"),
    ("http://240.0.0.1/", "Reserved"),
    ("http://192.0.2.1/", "Reserved"),
    ("http://198.18.0.1/", "Reserved"),
    ("http://[2001:db8::1]/", "Reserved"),
    ("http://[5f00::1]/", "Reserved"),
    // no valid address at all
    ("http://[fe80::1%25eth0]/", "unusable"),
    ("http://[fe80::1%eth0]/", "unusable"),
    ("http://127.0.0.1.5/", "unusable"),
    ("http://127.0.0.0x100/", "unusable"),
    ("http://4294967297/", "unusable"),
    ("http://[::1/", "unusable"),
    ("http://exa mple/", "unusable"),
    ("http:///", "unusable"),
    ("127.0.0.1", "unusable"),
    ("//127.0.0.1/", "unusable"),
    ("", "unusable"),
    ("file:///etc/passwd", "unusable"),
    ("ftp://public.example/", "unusable"),
    ("gopher://127.0.0.1:70/", "unusable"),
    ("javascript:alert(1)", "unusable"),
    ("data:text/html,hi", "unusable"),
    ("unix:/var/run/docker.sock", "unusable"),
    // ports of other services
    ("http://public.example:25/", "port"),
    ("https://public.example:22/", "port"),
    ("http://93.184.215.14:6667/", "port"),
    // names without an address
    ("http://missing.example/", "not found"),
    ("http://nothing.example/", "not found"),
];

#[tokio::test]
async fn every_spelling_of_an_inner_address_is_refused() {
    let guard = guard(PrivateNetworks::Refused, &[]);
    let mut wrong = Vec::new();
    for &(url, expected) in SPELLINGS {
        let actual = verdict(&guard, url).await;
        if actual != expected {
            wrong.push(format!("{url:?}: {actual}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn public_addresses_are_reached_by_the_addresses_that_were_checked() {
    let guard = guard(PrivateNetworks::Refused, &[]);
    let v6 = "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:8443";
    assert_eq!(
        reach(&guard, " https://both.example:8443/page?q=1#part ").await,
        Ok(vec!["93.184.215.14:8443".parse().unwrap(), v6.parse().unwrap()])
    );
    for url in [
        "http://public.example/",
        "https://PUBLIC.example./",
        "http://user:word@public.example/",
        "http://8.8.8.8/",
        "http://134744072/",
        "http://[2606:4700::1]/",
        "http://[64:ff9b::8.8.8.8]/",
        "http://172.15.255.255/",
        "http://172.32.0.1/",
        "http://100.128.0.1/",
    ] {
        assert_eq!(verdict(&guard, url).await, "reached", "{url}");
    }
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_checked_again() {
    let guard = guard(PrivateNetworks::Refused, &[]);
    assert_eq!(verdict(&guard, "http://rebinding.example/").await, "reached");
    assert_eq!(verdict(&guard, "http://rebinding.example/").await, "Loopback");
}

#[tokio::test]
async fn private_networks_can_be_permitted_but_not_the_local_link() {
    let guard = guard(PrivateNetworks::Allowed, &[]);
    for url in
        ["http://127.0.0.1/", "http://mixed.example/", "http://[fd12::1]/", "http://100.64.0.1/"]
    {
        assert_eq!(verdict(&guard, url).await, "reached", "{url}");
    }
    assert_eq!(verdict(&guard, "http://metadata.google.internal/").await, "Metadata");
    for url in [
        "http://100.100.100.200/",
        "http://168.63.129.16/",
        "http://169.254.170.2/",
        "http://[fd00:ec2::254]/",
        "http://[fd20:ce::254]/",
        "http://[64:ff9b:1::169.254.169.254]/",
        "http://[2002:a83f:8110::1]/",
    ] {
        assert_eq!(verdict(&guard, url).await, "Metadata", "{url}");
    }
    assert_eq!(verdict(&guard, "http://169.254.1.1/").await, "LinkLocal");
    assert_eq!(verdict(&guard, "http://0.0.0.0/").await, "Unspecified");
    assert_eq!(verdict(&guard, "http://127.0.0.1:6379/").await, "reached");
    assert_eq!(verdict(&guard, "http://127.0.0.1:22/").await, "port");
}

#[tokio::test]
async fn a_listed_host_is_permitted_and_no_other() {
    let guard = guard(
        PrivateNetworks::Refused,
        &[
            "Localhost:8080",
            "*.corp.example",
            "10.2.0.0/16",
            "[::1]",
            "public.example:22",
            "0x7f.9",
        ],
    );
    let cases = [
        ("http://localhost:8080/", "reached"),
        ("http://localhost.:8080/", "reached"),
        ("http://localhost/", "Loopback"),
        // The entry names the host, not its address.
        ("http://127.0.0.1:8080/", "Loopback"),
        ("http://sub.localhost:8080/", "Loopback"),
        ("http://wiki.corp.example/", "reached"),
        ("http://loopback.example/", "Loopback"),
        ("http://10.2.3.4/", "reached"),
        ("http://[::ffff:10.2.3.4]/", "reached"),
        ("http://10.3.0.1/", "Private"),
        ("http://[::1]:9000/", "reached"),
        ("http://127.0.0.9/", "reached"),
        ("http://public.example:22/", "reached"),
        ("http://wiki.corp.example:22/", "port"),
    ];
    for (url, expected) in cases {
        assert_eq!(verdict(&guard, url).await, expected, "{url}");
    }
}

#[test]
fn an_entry_that_names_no_host_is_an_error() {
    for text in [
        "",
        "*",
        "*.*.example",
        "http://wiki.example",
        "a/b",
        "host:",
        "host:0",
        "host:x",
        "10.0.0.0/33",
        "*.10.0.0.1",
        "user@host",
    ] {
        let error = text.parse::<AllowedHost>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("{text:?} is not a host; write")), "{error}");
    }
}

#[tokio::test]
async fn a_refusal_names_the_way_out_and_no_password() {
    let guard = guard(PrivateNetworks::Refused, &[]);
    assert_eq!(
        reach(&guard, "http://user:secret@localhost:8080/").await.unwrap_err().to_string(),
        "localhost is an address of this machine (127.0.0.1), which web tools do not connect to; use a public \
         address. The owner can permit it with \"localhost\" in tools.web.fetch.allowHosts of the config"
    );
    assert_eq!(
        guard.check_url("ftp://user:secret@host/x").unwrap_err().to_string(),
        "\"ftp://host/x\" cannot be used: its scheme is \"ftp\", and only http and https are permitted. Give a full \
         address such as https://example.com/page"
    );
    for text in [
        "http://user:secret@ho st/",
        // Not encoded as it should be.
        "http://user:se@secret@ho st/",
        "http://secret@ho st",
        "user:secret@host",
    ] {
        let unusable = guard.check_url(text).unwrap_err().to_string();
        assert!(!unusable.contains("secret") && unusable.contains("ho"), "{unusable}");
    }
    // What is not before the host is no password.
    let shown = guard.check_url("ftp://host/a@b?c=@d").unwrap_err().to_string();
    assert!(shown.starts_with("\"ftp://host/a@b?c=@d\" cannot be used"), "{shown}");
    let long = format!("http://public.example/{}", "a".repeat(MAX_URL_BYTES));
    assert!(guard.check_url(&long).unwrap_err().to_string().len() < 500);
}
