//! Amazon's credentials through whole calls: where they come from and what is signed.
//!
//! That signatures are right is checked against Amazon's own in the unit tests; here it matters which keys sign what.

mod refusals;
mod roles;

use std::path::Path;

use myclaw_llm::{
    Api, CallLimits, ErrorClass, HttpProvider, Model, ModelRequest, Provider, ThinkingLevel,
    ToolUse,
};
use secrecy::SecretString;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::cloud_provider as provider_with;
use crate::support::*;

const ANSWER: &[u8] =
    include_bytes!("../../../llm/tests/data/recorded/bedrock_converse/tool_call.bin");

/// Long after every test.
const LATER: &str = "2099-01-01T00:00:00Z";

async fn call_with_key(provider: &HttpProvider, model: &Model, key: Option<&str>) -> Outcome {
    let key = key.map(SecretString::from);
    let messages = hello();
    let request = ModelRequest {
        model,
        system_prompt: "",
        messages: &messages,
        tools: &[],
        tool_use: ToolUse::Auto,
        max_output: None,
        options: None,
        thinking: ThinkingLevel::Off,
        api_key: key.as_ref(),
        limits: CallLimits::default(),
    };
    let mut events = Vec::new();
    let result =
        provider.call(request, &CancellationToken::new(), &mut |event| events.push(event)).await;
    Outcome { result, events }
}

/// Who signed a request, for which region: the first parts of its `Credential`, and its session token.
fn signer(request: &Recorded) -> (String, String, Option<String>) {
    let authorization = request.header("authorization").unwrap();
    let rest = authorization.strip_prefix("AWS4-HMAC-SHA256 Credential=").expect(authorization);
    let (credential, rest) = rest.split_once(", SignedHeaders=").unwrap();
    let (names, signature) = rest.split_once(", Signature=").unwrap();
    let parts: Vec<&str> = credential.split('/').collect();
    let [id, date, region, "bedrock", "aws4_request"] = parts[..] else { panic!("{credential}") };
    let token = request.header("x-amz-security-token").map(str::to_owned);
    let signed = match token {
        Some(_) => "content-type;host;x-amz-date;x-amz-security-token",
        None => "content-type;host;x-amz-date",
    };
    assert_eq!(names, signed);
    assert_eq!(signature.len(), 64);
    assert!(request.header("x-amz-date").unwrap().starts_with(date));
    (id.to_owned(), region.to_owned(), token)
}

/// Makes one call with these variables and no key, and gives who signed it.
async fn signer_with(variables: &[(&str, &str)]) -> (String, String, Option<String>) {
    let server = Server::start([stream(ANSWER)]).await;
    let model = model(Api::BedrockConverse, &server.url());
    let provider = provider_with(variables);
    call_with_key(&provider, &model, None).await.message();
    signer(&server.requests()[0])
}

async fn error_with(variables: &[(&str, &str)]) -> (ErrorClass, String) {
    let model = model(Api::BedrockConverse, "http://127.0.0.1:9");
    let outcome = call_with_key(&provider_with(variables), &model, None).await;
    (outcome.error().class, outcome.error().message.clone())
}

/// A home with these files below `.aws`.
fn home(files: &[(&str, &str)]) -> TempDir {
    let home = TempDir::new().unwrap();
    for (name, text) in files {
        let path = home.path().join(".aws").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    home
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn signed_by(id: &str, region: &str, token: Option<&str>) -> (String, String, Option<String>) {
    (id.to_owned(), region.to_owned(), token.map(str::to_owned))
}

fn json_answer(body: &str) -> Vec<Step> {
    answer("200 OK", "application/json", body)
}

#[tokio::test]
async fn a_key_is_a_bearer_token_or_a_pair_that_signs() {
    let server = Server::start((0..3).map(|_| stream(ANSWER))).await;
    let model = model(Api::BedrockConverse, &server.url());
    let provider = provider_with(&[
        ("AWS_REGION", "eu-west-1"),
        ("AWS_BEARER_TOKEN_BEDROCK", "ABSK-from-the-environment"),
        ("AWS_ACCESS_KEY_ID", "AKIDENV"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ]);
    for key in [Some("ABSK-given"), None, Some("AKIDGIVEN:given-secret:given-token")] {
        call_with_key(&provider, &model, key).await.message();
    }
    let [given, ambient, pair] = &server.requests()[..] else { panic!() };
    assert_eq!(given.header("authorization"), Some("Bearer ABSK-given"));
    assert_eq!(ambient.header("authorization"), Some("Bearer ABSK-from-the-environment"));
    assert_eq!(signer(pair), signed_by("AKIDGIVEN", "eu-west-1", Some("given-token")));
    assert!(!pair.head.contains("given-secret"), "{}", pair.head);
}

#[tokio::test]
async fn a_bearer_token_needs_no_region_where_the_address_has_none() {
    let server = Server::start([stream(ANSWER)]).await;
    let model = model(Api::BedrockConverse, &server.url());
    call_with_key(&provider_with(&[]), &model, Some("ABSK")).await.message();

    let open = Model { base_url: "https://bedrock-runtime.{region}.amazonaws.com".into(), ..model };
    let outcome = call_with_key(&provider_with(&[]), &open, Some("ABSK")).await;
    assert_eq!(
        outcome.error().message,
        "testing: no AWS region is set: set AWS_REGION, such as us-east-1, or `region` in ~/.aws/config"
    );
}

#[tokio::test]
async fn the_environment_comes_before_the_profile() {
    let files = [
        ("credentials", "[default]\naws_access_key_id = AKIDFILE\naws_secret_access_key = s\n"),
        ("config", "[default]\nregion = ap-south-1\n"),
    ];
    let home = home(&files);
    let in_home = ("HOME", text(home.path()));
    assert_eq!(signer_with(&[in_home]).await, signed_by("AKIDFILE", "ap-south-1", None));
    let variables = [
        in_home,
        ("AWS_ACCESS_KEY_ID", "AKIDENV"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
        ("AWS_SESSION_TOKEN", "t"),
        ("AWS_DEFAULT_REGION", "us-west-2"),
    ];
    assert_eq!(signer_with(&variables).await, signed_by("AKIDENV", "us-west-2", Some("t")));
}

#[tokio::test]
async fn a_named_profile_may_stand_in_either_file() {
    let home = home(&[
        (
            "keys",
            "[work]\naws_access_key_id=AKIDWORK\naws_secret_access_key=s\naws_session_token=t\n",
        ),
        ("settings", "[profile work]\nregion=eu-north-1\n[profile bare]\nregion=x\n"),
    ]);
    let keys = home.path().join(".aws/keys");
    let settings = home.path().join(".aws/settings");
    let files = [
        ("AWS_SHARED_CREDENTIALS_FILE", text(&keys)),
        ("AWS_CONFIG_FILE", text(&settings)),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ];
    let with = |profile| {
        [files.as_slice(), &[("AWS_PROFILE", profile), ("AWS_REGION", "us-east-1")]].concat()
    };
    let signed = signer_with(&[files.as_slice(), &[("AWS_PROFILE", "work")]].concat()).await;
    assert_eq!(signed, signed_by("AKIDWORK", "eu-north-1", Some("t")));
    assert_eq!(
        error_with(&with("missing")).await,
        (
            ErrorClass::Auth,
            format!(
                "testing: the AWS profile missing is neither in {} nor in {}: check AWS_PROFILE",
                settings.display(),
                keys.display()
            )
        )
    );
    let (class, message) = error_with(&with("bare")).await;
    assert_eq!(class, ErrorClass::Auth);
    assert!(
        message.starts_with("testing: there are no AWS credentials: set AWS_BEARER_TOKEN"),
        "{message}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_credential_process_is_run_without_a_shell_and_only_when_needed() {
    use std::os::unix::fs::PermissionsExt;

    let home = home(&[(
        "my tool",
        "#!/bin/sh\necho run >> \"$HOME/runs\"\n\
         [ -z \"$OPENAI_API_KEY\" ] || exit 3\n\
         echo \"{\\\"Version\\\":1,\\\"AccessKeyId\\\":\\\"AKID$1\\\",\\\"SecretAccessKey\\\":\\\"s\\\",\\\"SessionToken\\\":\\\"t\\\",\\\"Expiration\\\":\\\"$2\\\"}\"\n",
    )]);
    let tool = home.path().join(".aws/my tool");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o700)).unwrap();
    let settings = |expires: &str| {
        let text = format!(
            "[default]\nregion = us-east-1\ncredential_process = '{}' $X {expires}\n",
            tool.display()
        );
        std::fs::write(home.path().join(".aws/config"), text).unwrap();
    };
    let provider = provider_with(&[
        ("HOME", text(home.path())),
        ("PATH", "/usr/bin:/bin"),
        ("OPENAI_API_KEY", "none of its business"),
    ]);
    let server = Server::start((0..4).map(|_| stream(ANSWER))).await;
    let model = model(Api::BedrockConverse, &server.url());
    // The first two are good for years, the others for less than it takes to use them.
    for expires in [LATER, LATER] {
        settings(expires);
        call_with_key(&provider, &model, None).await.message();
    }
    let runs = || std::fs::read_to_string(home.path().join("runs")).unwrap().lines().count();
    assert_eq!(runs(), 1);
    assert_eq!(signer(&server.requests()[0]), signed_by("AKID$X", "us-east-1", Some("t")));

    let fresh = provider_with(&[("HOME", text(home.path())), ("PATH", "/usr/bin:/bin")]);
    for _ in 0..2 {
        settings("2001-01-01T00:00:00Z");
        call_with_key(&fresh, &model, None).await.message();
    }
    assert_eq!(runs(), 3);
}

#[cfg(unix)]
#[tokio::test]
async fn a_credential_process_that_fails_says_how() {
    let message = async |command: &str| {
        let config = format!("[default]\nregion = us-east-1\ncredential_process = {command}\n");
        let home = home(&[("config", &config)]);
        error_with(&[("HOME", text(home.path())), ("PATH", "/usr/bin:/bin")]).await.1
    };
    let tail = ": run it by hand to see more";
    let head = "testing: the credential_process of the AWS profile default";
    for (command, why) in [
        ("sh -c 'echo no token >&2; exit 7'", "failed with exit status: 7 (no token)"),
        ("echo hello", "printed something that is not JSON with AccessKeyId and SecretAccessKey"),
        ("'open", "has a quotation mark without its other half"),
        ("/no/such/tool", "cannot be run (/no/such/tool: No such file or directory (os error 2))"),
    ] {
        assert_eq!(message(command).await, format!("{head} {why}{tail}"));
    }
}

#[tokio::test]
async fn a_sign_in_is_exchanged_for_the_keys_of_a_role() {
    // The name of the file is the SHA-1 of `corp`.
    let cached = format!(r#"{{"accessToken":"sso-token","expiresAt":"{LATER}"}}"#);
    let config = "[profile dev]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = Dev\nregion = eu-west-2\n\
        [sso-session corp]\nsso_start_url = https://corp.example/start\nsso_region = eu-west-1\n";
    let cache = "sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json";
    let home = home(&[("config", config), (cache, &cached)]);
    let expiration = 4_070_908_800_000_u64;
    let keys = format!(
        r#"{{"roleCredentials":{{"accessKeyId":"ASIASSO","secretAccessKey":"s","sessionToken":"t","expiration":{expiration}}}}}"#
    );
    let refusal =
        answer("401 Unauthorized", "application/json", r#"{"message":"Session token not found"}"#);
    let portal = Server::start([json_answer(&keys), refusal]).await;
    let url = portal.url();
    let variables =
        [("HOME", text(home.path())), ("AWS_PROFILE", "dev"), ("AWS_ENDPOINT_URL_SSO", &url)];
    assert_eq!(signer_with(&variables).await, signed_by("ASIASSO", "eu-west-2", Some("t")));
    let asked = &portal.requests()[0];
    assert!(
        asked
            .head
            .starts_with("GET /federation/credentials?role_name=Dev&account_id=123456789012 "),
        "{}",
        asked.head
    );
    assert_eq!(asked.header("x-amz-sso_bearer_token"), Some("sso-token"));

    let refused = format!(
        "testing: 127.0.0.1:{}, which gives out AWS credentials, answered 401; run `aws sso login --profile dev`",
        portal.port
    );
    assert_eq!(error_with(&variables).await, (ErrorClass::Auth, refused));
    std::fs::write(
        home.path().join(".aws").join(cache),
        cached.replace(LATER, "2001-01-01T00:00:00Z"),
    )
    .unwrap();
    let over = "testing: the AWS sign-in has expired: run `aws sso login --profile dev`";
    assert_eq!(error_with(&variables).await, (ErrorClass::Auth, over.to_owned()));
    std::fs::remove_file(home.path().join(".aws").join(cache)).unwrap();
    let nobody = "testing: nobody is signed in to AWS here: run `aws sso login --profile dev`";
    assert_eq!(error_with(&variables).await, (ErrorClass::Auth, nobody.to_owned()));
}

const KEYS: &str = r#"{"Code":"Success","AccessKeyId":"ASIAROLE","SecretAccessKey":"s","Token":"t","Expiration":"2099-01-01T00:00:00Z"}"#;

#[tokio::test]
async fn a_container_and_an_instance_have_credentials_of_their_own() {
    let service = Server::start([json_answer(KEYS)]).await;
    let url = format!("{}/v2/credentials", service.url());
    let container = [
        ("AWS_REGION", "us-east-1"),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-token"),
    ];
    assert_eq!(signer_with(&container).await, signed_by("ASIAROLE", "us-east-1", Some("t")));
    assert_eq!(service.requests()[0].header("authorization"), Some("container-token"));

    let plain = |body: &str| answer("200 OK", "text/plain", body);
    let service = Server::start([plain("session"), plain("my-role\n"), json_answer(KEYS)]).await;
    let url = service.url();
    let instance =
        [("AWS_REGION", "us-east-1"), ("AWS_EC2_METADATA_SERVICE_ENDPOINT", url.as_str())];
    assert_eq!(signer_with(&instance).await, signed_by("ASIAROLE", "us-east-1", Some("t")));
    let lines: Vec<String> = service
        .requests()
        .iter()
        .map(|request| request.head.lines().next().unwrap().to_owned())
        .collect();
    assert_eq!(
        lines,
        [
            "PUT /latest/api/token HTTP/1.1",
            "GET /latest/meta-data/iam/security-credentials/ HTTP/1.1",
            "GET /latest/meta-data/iam/security-credentials/my-role HTTP/1.1",
        ]
    );
    assert_eq!(service.requests()[2].header("x-aws-ec2-metadata-token"), Some("session"));
}

#[tokio::test]
async fn a_container_s_service_may_not_be_anybody() {
    let message = async |url: &str| {
        error_with(&[("AWS_REGION", "us-east-1"), ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url)])
            .await
            .1
    };
    assert_eq!(
        message("http://evil.example/keys").await,
        "testing: AWS_CONTAINER_CREDENTIALS_FULL_URI names evil.example, which is neither this machine nor the container's service: use https there"
    );
    let service =
        Server::start([json_answer("{}"), answer("404 Not Found", "text/plain", "")]).await;
    let host = format!("127.0.0.1:{}", service.port);
    assert_eq!(
        message(&service.url()).await,
        format!("testing: {host} answered with something that is no AWS credentials")
    );
    assert_eq!(
        message(&service.url()).await,
        format!("testing: {host}, which gives out AWS credentials, answered 404")
    );
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let disabled = ("AWS_EC2_METADATA_DISABLED", "TRUE");
    let region = ("AWS_REGION", "us-east-1");
    let half = home(&[("credentials", "[default]\naws_access_key_id = AKID\n")]);
    let nothing = "testing: there are no AWS credentials: set AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile of ~/.aws";
    for (variables, message) in [
        (&[region, disabled][..], nothing),
        (
            &[region, ("AWS_ACCESS_KEY_ID", "AKID")],
            "testing: AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not: set both",
        ),
        (
            &[region, ("HOME", text(half.path()))],
            "testing: the AWS profile default has only one of aws_access_key_id and aws_secret_access_key: add the other",
        ),
    ] {
        assert_eq!(error_with(variables).await, (ErrorClass::Auth, message.to_owned()));
    }
}
