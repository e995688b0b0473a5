//! Advice for the user about an error.

use crate::ErrorClass;

/// One hint and when it is given.
struct Hint {
    codes: &'static [&'static str],
    /// Lower-cased.
    words: &'static [&'static str],
    says: &'static str,
}

/// Hints for causes that the provider names; the first that fits is used. If none fits, the class and the status select
/// the hint.
const CAUSES: &[Hint] = &[
    Hint {
        codes: &["unsupported_country_region_territory"],
        words: &["location is not supported", "region, or territory not supported"],
        says: "this provider does not serve the place the request comes from: use another provider, or a proxy (HTTPS_PROXY) in a region it serves",
    },
    Hint {
        codes: &["SERVICE_DISABLED"],
        words: &["has not been used in project"],
        says: "enable the API for the project of the key",
    },
    Hint {
        codes: &["InvalidSignatureException"],
        words: &["signature expired", "signature not yet current"],
        says: "check the secret key and the clock of this machine",
    },
    Hint {
        codes: &["RequestTimeTooSkewed", "RequestExpired"],
        words: &[],
        says: "the clock of this machine is wrong: set it",
    },
    Hint {
        codes: &["UnrecognizedClientException"],
        words: &["security token included in the request is invalid"],
        says: "check the AWS access key, and the session token if there is one",
    },
    Hint {
        codes: &["ExpiredTokenException"],
        words: &[],
        says: "renew the AWS credentials (such as by `aws sso login`), or set new temporary keys",
    },
    Hint {
        codes: &[],
        words: &["with on-demand throughput isn"],
        says: "use the id of the model's inference profile: the same with `us.`, `eu.` or `global.` before it",
    },
    Hint {
        codes: &[],
        words: &["model identifier is invalid"],
        says: "check the model id and the region",
    },
    Hint {
        codes: &["ACCESS_TOKEN_EXPIRED", "token_expired"],
        words: &["token included in the request is expired", "token has expired", "token expired"],
        says: "sign in again: the token has expired",
    },
    Hint { codes: &[], words: &["make sure your api key is valid"], says: "check the API key" },
    Hint {
        codes: &["AccessDeniedException"],
        words: &["have access to the model"],
        says: "ask for access to this model in the provider's console (AWS: also bedrock:InvokeModelWithResponseStream for the identity), and check the region",
    },
    Hint {
        codes: &[
            "content_filter",
            "content_policy_violation",
            "data_inspection_failed",
            "ResponsibleAIPolicyViolation",
            "1301",
        ],
        words: &["requires moderation", "flagged by moderation"],
        says: "the provider's moderation refused the request: rephrase it, or use another model",
    },
    Hint {
        codes: &["DeploymentNotFound"],
        words: &[],
        says: "the model id must be the name of the deployment; check it and the base URL",
    },
    Hint {
        codes: &["model_not_found"],
        words: &["try pulling it first"],
        says: "check the model id: `myclaw models list` shows those that are known",
    },
    Hint {
        codes: &[],
        words: &["matching your data policy"],
        says: "the privacy settings of the account exclude every host of this model",
    },
    Hint {
        codes: &[],
        words: &["request too large for", "tokens must be reduced"],
        says: "one request is larger than the plan's limit per minute: a smaller output limit or a shorter session fits",
    },
    Hint {
        codes: &[],
        words: &["api keys are not supported by this api"],
        says: "this address takes an access token and no API key",
    },
];

/// Words of a host that refuses the limit on the output.
const OUTPUT_LIMIT: [&str; 4] =
    ["max_tokens", "completion tokens", "output tokens", "maximum tokens you requested"];

/// The advice for an error of this class, status and cause.
pub(super) fn hint(
    class: ErrorClass,
    status: u16,
    codes: &[&str],
    words: &str,
) -> Option<&'static str> {
    let words = words.to_lowercase();
    let fits = |hint: &&Hint| {
        hint.codes.iter().any(|known| codes.iter().any(|code| known.eq_ignore_ascii_case(code)))
            || hint.words.iter().any(|known| words.contains(known))
    };
    if let Some(cause) = CAUSES.iter().find(fits) {
        return Some(cause.says);
    }
    match (class, status) {
        // The caller makes the request shorter.
        (ErrorClass::ContextOverflow, _) => None,
        (_, 404) => Some("check the base URL and the model id"),
        (_, 405) => Some("check the base URL"),
        (ErrorClass::Auth, 403) => Some("check the API key and what it is allowed to do"),
        (ErrorClass::Auth, _) => Some("check the API key"),
        (ErrorClass::Billing, _) => Some("check the credit of the account"),
        (ErrorClass::Quota, _) => Some("check the plan and the limits of the account"),
        (ErrorClass::Unknown, _) if OUTPUT_LIMIT.iter().any(|known| words.contains(known)) => {
            Some("check the output limit of the model")
        }
        _ => None,
    }
}

/// The advice for a web page in place of JSON. Pages with a status of success or of a missing page come from a wrong
/// address, or from a proxy or a sign-in page of the network in between; the others come from a gateway that fails
/// itself.
pub(super) fn page_hint(class: ErrorClass, status: u16) -> &'static str {
    match (class, status) {
        (ErrorClass::ContextOverflow, _) => {
            "a proxy in front of the server limits the size of a request"
        }
        (_, 407) => "sign in to the proxy that HTTPS_PROXY names",
        (_, 500..) => "a gateway in front of the server failed",
        (ErrorClass::RateLimit, _) => "a gateway in front of the server limits requests",
        _ => {
            "check the base URL; if it is right, a proxy or a sign-in page of this network answered instead"
        }
    }
}
