//! Roles that are assumed: by a profile with the keys of another, and with the web identity of a pod.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

use super::*;

/// The token service's answer: keys that end at `end`.
fn keys(id: &str, end: &str) -> Vec<Step> {
    let body = format!(
        "<R xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><X><Credentials><AccessKeyId>{id}</AccessKeyId><SecretAccessKey>secret-of-{id}</SecretAccessKey><SessionToken>token-of-{id}</SessionToken><Expiration>{end}</Expiration></Credentials></X></R>"
    );
    answer("200 OK", "text/xml", &body)
}

fn refusal(status: &str, code: &str, message: &str) -> Vec<Step> {
    let body = format!(
        "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
    );
    answer(status, "text/xml", &body)
}

/// The fields of a form, as `name=value`, without the ones that are always the same.
fn form(request: &Recorded) -> Vec<String> {
    let pairs = url::form_urlencoded::parse(request.text.as_bytes());
    let text = pairs.map(|(name, value)| format!("{name}={value}"));
    text.filter(|pair| pair != "Version=2011-06-15").collect()
}

/// The key that signed a request to the token service, and its region; `None` if nothing did.
fn asker(request: &Recorded) -> Option<(String, String)> {
    assert!(request.head.starts_with("POST / HTTP/1.1"), "{}", request.head);
    assert_eq!(request.header("content-type"), Some("application/x-www-form-urlencoded"));
    let authorization = request.header("authorization")?;
    let credential = authorization.split("Credential=").nth(1).unwrap();
    let parts: Vec<&str> = credential.split([',', '/']).collect();
    assert_eq!((parts[3], parts[4]), ("sts", "aws4_request"));
    Some((parts[0].to_owned(), parts[2].to_owned()))
}

const CONFIG: &str = "\
[default]\n\
region = eu-west-1\n\
role_arn = arn:aws:iam::1:role/outer\n\
source_profile = middle\n\
role_session_name = me@work\n\
external_id = ex-1\n\
duration_seconds = 900\n\
[profile middle]\n\
role_arn = arn:aws:iam::1:role/inner\n\
role_session_name = me\n\
source_profile = base\n\
[profile own]\n\
region = eu-west-1\n\
role_arn = arn:aws:iam::1:role/own\n\
role_session_name = me\n\
source_profile = own\n\
aws_access_key_id = AKIDOWN\n\
aws_secret_access_key = s\n\
[profile circle]\n\
region = eu-west-1\n\
role_arn = arn:aws:iam::1:role/a\n\
source_profile = circle2\n\
[profile circle2]\n\
role_arn = arn:aws:iam::1:role/b\n\
source_profile = circle\n\
[profile environment]\n\
region = eu-west-1\n\
role_arn = arn:aws:iam::1:role/env\n\
credential_source = EcsContainer\n\
[profile nobody]\n\
role_arn = arn:aws:iam::1:role/x\n\
[profile gone]\n\
role_arn = arn:aws:iam::1:role/x\n\
source_profile = no-such\n\
[profile keyless]\n\
role_arn = arn:aws:iam::1:role/x\n\
source_profile = empty\n\
[profile empty]\n\
region = x\n\
[profile mfa]\n\
role_arn = arn:aws:iam::1:role/x\n\
source_profile = base\n\
mfa_serial = arn:aws:iam::1:mfa/me\n";

const KEYS: &str = "[base]\naws_access_key_id = AKIDBASE\naws_secret_access_key = base-secret\n";

fn aws_home() -> TempDir {
    home(&[("config", CONFIG), ("credentials", KEYS)])
}

#[tokio::test]
async fn a_profile_assumes_a_role_with_the_keys_of_another() {
    let server = Server::start([
        keys("ASIAINNER", LATER),
        keys("ASIAOUTER", LATER),
        stream(ANSWER),
        stream(ANSWER),
    ])
    .await;
    let home = aws_home();
    let provider =
        provider_with(&[("HOME", text(home.path())), ("AWS_ENDPOINT_URL_STS", &server.url())]);
    let model = model(Api::BedrockConverse, &server.url());
    for _ in 0..2 {
        call_with_key(&provider, &model, None).await.message();
    }
    let requests = server.requests();
    let of = |id: &str| Some((id.to_owned(), "eu-west-1".to_owned()));
    assert_eq!((asker(&requests[0]), asker(&requests[1])), (of("AKIDBASE"), of("ASIAINNER")));
    assert_eq!(requests[1].header("x-amz-security-token"), Some("token-of-ASIAINNER"));
    assert_eq!(
        form(&requests[0]),
        ["Action=AssumeRole", "RoleArn=arn:aws:iam::1:role/inner", "RoleSessionName=me"]
    );
    assert_eq!(
        form(&requests[1]),
        [
            "Action=AssumeRole",
            "RoleArn=arn:aws:iam::1:role/outer",
            "RoleSessionName=me@work",
            "DurationSeconds=900",
            "ExternalId=ex-1",
        ]
    );
    // The keys last, so the second call asks nobody.
    for request in &requests[2..] {
        assert_eq!(
            signer(request),
            signed_by("ASIAOUTER", "eu-west-1", Some("token-of-ASIAOUTER"))
        );
    }
    assert_eq!(requests.len(), 4);
}

#[tokio::test]
async fn a_role_may_be_assumed_with_the_profile_s_own_keys_or_those_of_a_container() {
    let container = r#"{"AccessKeyId":"ASIABOX","SecretAccessKey":"s","Token":"t"}"#;
    for (profile, first, asked_by) in
        [("own", None, "AKIDOWN"), ("environment", Some(json_answer(container)), "ASIABOX")]
    {
        let skipped = usize::from(first.is_some());
        let steps = first.into_iter().chain([keys("ASIAROLE", LATER), stream(ANSWER)]);
        let server = Server::start(steps).await;
        let home = aws_home();
        let provider = provider_with(&[
            ("HOME", text(home.path())),
            ("AWS_PROFILE", profile),
            ("AWS_ENDPOINT_URL_STS", &server.url()),
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &server.url()),
        ]);
        let model = model(Api::BedrockConverse, &server.url());
        call_with_key(&provider, &model, None).await.message();
        let requests = server.requests();
        assert_eq!(asker(&requests[skipped]).unwrap().0, asked_by);
        assert_eq!(signer(&requests[skipped + 1]).0, "ASIAROLE");
    }
}

#[tokio::test]
async fn a_pod_has_a_web_identity_which_is_read_anew() {
    let soon = Timestamp::try_from(SystemTime::now() + Duration::from_secs(30)).unwrap();
    let server = Server::start([
        keys("ASIAPOD1", &soon.to_string()),
        stream(ANSWER),
        keys("ASIAPOD2", LATER),
        stream(ANSWER),
    ])
    .await;
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("token");
    let provider = provider_with(&[
        ("HOME", text(directory.path())),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", text(&file)),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/pod"),
        ("AWS_ROLE_SESSION_NAME", "pod-7"),
        ("AWS_ENDPOINT_URL_STS", &server.url()),
    ]);
    let model = model(Api::BedrockConverse, &server.url());
    for token in ["first-identity", "second-identity"] {
        std::fs::write(&file, format!("{token}\n")).unwrap();
        call_with_key(&provider, &model, None).await.message();
    }
    let requests = server.requests();
    for (number, token) in [(0, "first-identity"), (2, "second-identity")] {
        assert_eq!(asker(&requests[number]), None, "the token says it all");
        assert_eq!(
            form(&requests[number]),
            [
                "Action=AssumeRoleWithWebIdentity".to_owned(),
                "RoleArn=arn:aws:iam::1:role/pod".to_owned(),
                "RoleSessionName=pod-7".to_owned(),
                format!("WebIdentityToken={token}"),
            ]
        );
    }
    assert_eq!(
        (signer(&requests[1]).0.as_str(), signer(&requests[3]).0.as_str()),
        ("ASIAPOD1", "ASIAPOD2")
    );
}

#[tokio::test]
async fn a_wrong_clock_is_set_right_by_the_server_s() {
    let hour = Timestamp::try_from(SystemTime::now() + Duration::from_secs(3600)).unwrap();
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&hour).unwrap();
    let mut refused = refusal("403 Forbidden", "SignatureDoesNotMatch", "Signature expired");
    let Step::Send(bytes) = &mut refused[0] else { panic!() };
    let text_of = String::from_utf8(bytes.clone()).unwrap();
    *bytes = text_of.replacen("\r\n", &format!("\r\ndate: {date}\r\n"), 1).into_bytes();
    let server = Server::start([refused, keys("ASIAROLE", LATER), stream(ANSWER)]).await;
    let home = aws_home();
    let provider = provider_with(&[
        ("HOME", text(home.path())),
        ("AWS_PROFILE", "own"),
        ("AWS_ENDPOINT_URL_STS", &server.url()),
    ]);
    let model = model(Api::BedrockConverse, &server.url());
    call_with_key(&provider, &model, None).await.message();
    let requests = server.requests();
    let expected = hour.strftime("%Y%m%dT%H%M%SZ").to_string();
    assert_eq!(requests[1].header("x-amz-date"), Some(expected.as_str()));
}

#[tokio::test]
async fn what_stands_in_the_way_of_a_role_is_said() {
    let home = aws_home();
    let at = |profile: &'static str, sts: &str| {
        let variables = [
            ("HOME", text(home.path()).to_owned()),
            ("AWS_REGION", "eu-west-1".to_owned()),
            ("AWS_PROFILE", profile.to_owned()),
            ("AWS_ENDPOINT_URL_STS", sts.to_owned()),
            ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
        ];
        async move {
            let pairs: Vec<(&str, &str)> =
                variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
            error_with(&pairs).await
        }
    };
    for (profile, words) in [
        ("circle", "assumes more than 5 roles"),
        ("environment", "takes its credentials from EcsContainer, and there are none"),
        ("nobody", "must say from whom: set one of source_profile"),
        ("gone", "names the source_profile no-such, which does not exist"),
        ("keyless", "the AWS profile empty, from which a role is assumed, has no credentials"),
        ("mfa", "a code of an MFA device"),
    ] {
        let (class, message) = at(profile, "http://127.0.0.1:9").await;
        assert_eq!(class, ErrorClass::Auth, "{message}");
        assert!(message.contains(words), "{profile}: {message}");
    }
    let denied = "User: arn:aws:iam::1:user/me is not authorized to perform: sts:AssumeRole";
    for (step, class, words) in [
        (
            refusal("403 Forbidden", "AccessDenied", denied),
            ErrorClass::Auth,
            "answered 403 (AccessDenied): User: arn:aws:iam::1:user/me is not authorized to perform: sts:AssumeRole when the AWS role arn:aws:iam::1:role/own was to be assumed; see that the role's trust policy",
        ),
        (
            refusal("403 Forbidden", "InvalidClientTokenId", "The security token is invalid."),
            ErrorClass::Auth,
            "check the secret key that the role is assumed with",
        ),
        (answer("503 Busy", "text/plain", "busy"), ErrorClass::Timeout, "answered 503 when"),
        (answer("200 OK", "text/html", "<html></html>"), ErrorClass::Auth, "no AWS credentials"),
    ] {
        let server = Server::start([step]).await;
        let (found, message) = at("own", &server.url()).await;
        assert_eq!(found, class, "{message}");
        assert!(message.contains(words), "{message}");
    }
    let (_, message) = at("own", "http://127.0.0.1:9").await;
    assert!(message.contains("nothing listens at http://127.0.0.1:9"), "{message}");

    let pod = [("AWS_REGION", "eu-west-1"), ("AWS_WEB_IDENTITY_TOKEN_FILE", "/no/such/token")];
    let (_, message) = error_with(&pod).await;
    assert!(message.contains("AWS_ROLE_ARN is not: set both"), "{message}");
    let (_, message) = error_with(&[pod[0], pod[1], ("AWS_ROLE_ARN", "arn:x")]).await;
    assert!(message.contains("AWS_WEB_IDENTITY_TOKEN_FILE names (/no/such/token)"), "{message}");
}
