use super::*;
use myclaw_llm::{Api, ResolveModel, resolve_model};

fn model(id: &str, base_url: &str) -> Model {
    resolve_model(ResolveModel {
        provider: "amazon-bedrock",
        id,
        base_url: Some(base_url),
        api: Some(Api::BedrockConverse),
    })
}

#[test]
fn the_host_then_the_arn_then_the_environment_names_the_region() {
    let arn =
        "arn:aws:bedrock:eu-west-3:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-6";
    let open = "https://bedrock-runtime.{region}.amazonaws.com";
    let both =
        Variables::from_iter([("AWS_REGION", "us-east-2"), ("AWS_DEFAULT_REGION", "us-west-1")]);
    let fallback = Variables::from_iter([("AWS_DEFAULT_REGION", "us-west-1")]);
    let none = Variables::default();
    for (id, base_url, variables, region) in [
        (arn, "https://bedrock-runtime.ap-south-1.amazonaws.com", &both, Some("ap-south-1")),
        (
            arn,
            "https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com",
            &both,
            Some("us-gov-west-1"),
        ),
        (
            arn,
            "https://vpce-1a.bedrock-runtime.eu-north-1.vpce.amazonaws.com",
            &both,
            Some("eu-north-1"),
        ),
        (arn, "https://bedrock-runtime.cn-north-1.amazonaws.com.cn/", &both, Some("cn-north-1")),
        (arn, open, &both, Some("eu-west-3")),
        ("m", open, &both, Some("us-east-2")),
        ("m", open, &fallback, Some("us-west-1")),
        ("m", "http://127.0.0.1:9", &fallback, Some("us-west-1")),
        ("m", open, &none, None),
        ("arn:aws:bedrock", open, &none, None),
    ] {
        let found = named(&model(id, base_url), variables);
        assert_eq!(found.as_deref(), region, "{id} at {base_url}");
    }
}

#[test]
fn a_region_takes_its_place_in_the_address() {
    let open = "https://bedrock-runtime.{region}.amazonaws.com";
    for (given, region, expected) in [
        (open, "eu-central-1", "https://bedrock-runtime.eu-central-1.amazonaws.com"),
        (open, "cn-north-1", "https://bedrock-runtime.cn-north-1.amazonaws.com.cn"),
        ("http://127.0.0.1:9", "us-east-1", "http://127.0.0.1:9"),
    ] {
        assert_eq!(base_url(given, region), expected);
    }
    assert!(is_open(open) && !is_open("http://127.0.0.1:9"));
}

#[test]
fn what_is_no_region_is_an_error_that_says_what_to_set() {
    assert_eq!(checked(Some("us-east-1".to_owned())).unwrap(), "us-east-1");
    let message = |region: Option<&str>| checked(region.map(str::to_owned)).unwrap_err().message;
    assert_eq!(
        message(None),
        "no AWS region is set: set AWS_REGION, such as us-east-1, or `region` in ~/.aws/config"
    );
    for odd in ["", "us-east-1.evil.example/", "US East"] {
        assert_eq!(
            message(Some(odd)),
            format!("{odd:?} is no AWS region: write it like us-east-1")
        );
    }
}
