//! Amazon's credentials through whole calls: where they come from and what is signed.
//!
//! That signatures are right is checked against Amazon's own in the unit tests; here it matters which keys sign what.

mod refusals;

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
    let files =
        [("AWS_SHARED_CREDENTIALS_FILE", text(&keys)), ("AWS_CONFIG_FILE", text(&settings))];
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

/// A program in the place of `aws`, which gives the credentials of the profile that it is asked for.
#[cfg(unix)]
fn with_aws(home: &TempDir) -> String {
    use std::os::unix::fs::PermissionsExt;

    let tool = home.path().join("bin/aws");
    std::fs::create_dir_all(tool.parent().unwrap()).unwrap();
    let script = "#!/bin/sh\n\
        [ \"$1 $2 $3\" = 'configure export-credentials --profile' ] || exit 2\n\
        echo \"{\\\"Version\\\":1,\\\"AccessKeyId\\\":\\\"ASIA$4\\\",\\\"SecretAccessKey\\\":\\\"s\\\",\\\"SessionToken\\\":\\\"t\\\"}\"\n";
    std::fs::write(&tool, script).unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o700)).unwrap();
    format!("{}:/usr/bin:/bin", text(tool.parent().unwrap()))
}

#[cfg(unix)]
#[tokio::test]
async fn what_only_amazon_s_tools_can_use_comes_through_a_credential_process() {
    let config = "[profile corp]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = Dev\n\
        [profile session]\nsso_session = corp\n\
        [profile role]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\n\
        [profile bare]\nregion = eu-west-2\n\
        [profile through]\nregion = eu-west-2\n\
        credential_process = aws configure export-credentials --profile corp\n";
    let home = home(&[
        ("config", config),
        ("credentials", "[keys]\naws_access_key_id = AKIDKEYS\naws_secret_access_key = s\n"),
    ]);
    let path = with_aws(&home);
    let of_profile = |profile| {
        [
            ("HOME", text(home.path())),
            ("PATH", path.as_str()),
            ("AWS_REGION", "eu-west-2"),
            ("AWS_PROFILE", profile),
        ]
    };
    let through = of_profile("through");
    assert_eq!(signer_with(&through).await, signed_by("ASIAcorp", "eu-west-2", Some("t")));
    // Another identity is never used instead.
    for (profile, key) in
        [("corp", "sso_account_id"), ("session", "sso_session"), ("role", "role_arn")]
    {
        let message = format!(
            "testing: the AWS profile {profile} has `{key}`, which only AWS's own tools can use: add a profile with \
             `credential_process = aws configure export-credentials --profile {profile}` to ~/.aws/config, and set \
             AWS_PROFILE to it (docs/use/models.md)"
        );
        assert_eq!(error_with(&of_profile(profile)).await, (ErrorClass::Auth, message));
    }
    for variable in [
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ] {
        let service = [(variable, "x")];
        let message = format!(
            "testing: {variable} is set, and only AWS's own tools can ask that service: set AWS_PROFILE to a profile \
             with a `credential_process`, which docs/use/models.md shows"
        );
        let bare = [&of_profile("bare")[..], &service].concat();
        assert_eq!(error_with(&bare).await, (ErrorClass::Auth, message));
        let signed = signer_with(&[&through[..], &service].concat()).await;
        assert_eq!(signed, signed_by("ASIAcorp", "eu-west-2", Some("t")));
    }
    // The token of a pod comes before the keys of a profile, the service of a container behind them.
    let keys = of_profile("keys");
    let pod = [&keys[..], &[("AWS_WEB_IDENTITY_TOKEN_FILE", "x")]].concat();
    assert!(error_with(&pod).await.1.contains("AWS_WEB_IDENTITY_TOKEN_FILE is set"));
    let container = [&keys[..], &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "x")]].concat();
    assert_eq!(signer_with(&container).await, signed_by("AKIDKEYS", "eu-west-2", None));
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let region = ("AWS_REGION", "us-east-1");
    let half = home(&[("credentials", "[default]\naws_access_key_id = AKID\n")]);
    let nothing = "testing: there are no AWS credentials: set AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile of ~/.aws";
    for (variables, message) in [
        (&[region][..], nothing),
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
