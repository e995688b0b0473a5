//! The rules of the classifier, as tables. They are tried in this order, and the first that matches decides.

mod languages;
mod phrases;

use crate::ErrorClass::{self, Auth, Billing, ContextOverflow, Quota, RateLimit, Timeout, Unknown};

use phrases::NOT_OF_THE_INPUT;
pub(super) use phrases::PHRASES;

/// A class, and the texts that mean it.
type Rule<T> = (ErrorClass, &'static [T]);

/// First: codes and types that say exactly what is wrong, in any case of letters. Codes that are not listed (such as
/// `invalid_request_error`) leave the decision to the rules below.
///
/// The numbers are Zhipu's and Z.ai's; no other known host uses them.
const EXACT_CODES: &[Rule<&str>] = &[
    (
        Quota,
        &[
            "billing_hard_limit_reached",
            "exceeded_current_quota_error",
            "insufficient_quota",
            "insufficient_user_quota",
            // Kiro's reason, next to a message without details.
            "MONTHLY_REQUEST_COUNT",
            "quota_exceeded",
            "ServiceQuotaExceededException",
            "usage_limit_reached",
            "usage_not_included",
            "1304",
            "1308",
            "1310",
        ],
    ),
    (
        ContextOverflow,
        &[
            "context_length_exceeded",
            "context_window_exceeded",
            "exceed_context_size_error",
            "model_context_window_exceeded",
            "model_max_prompt_tokens_exceeded",
            "request_too_large",
            "1261",
        ],
    ),
    (
        Auth,
        &[
            "account_deactivated",
            "API_KEY_INVALID",
            "ACCESS_TOKEN_EXPIRED",
            "ExpiredTokenException",
            "invalid_api_key",
            "invalid_authentication",
            "InvalidSignatureException",
            "SERVICE_DISABLED",
            "UnrecognizedClientException",
            "unsupported_country_region_territory",
        ],
    ),
    (
        Billing,
        &[
            "Arrearage",
            "billing_error",
            "billing_not_active",
            "insufficient_credits",
            "credit_limit",
            "CreditsError",
            "INSUFFICIENT_G1_CREDITS_BALANCE",
            "insufficient_balance",
            "payment_required",
            "1113",
        ],
    ),
    // Groq's code for a tool call that it cannot read: a mistake that a model seldom repeats.
    (Timeout, &["tool_use_failed"]),
    (
        Unknown,
        &[
            "content_filter",
            "content_policy_violation",
            "data_inspection_failed",
            "DeploymentNotFound",
            "invalid_function_parameters",
            "model_not_found",
            "ResponsibleAIPolicyViolation",
            "unsupported_parameter",
            "unsupported_value",
            "1301",
        ],
    ),
];

/// Second: sentences of known hosts that say exactly what is wrong where their code and status do not: xAI and
/// Anthropic send spent credit as 400, 403 or 429, xAI and Google a bad key as 400.
const SENTENCES: &[Rule<&str>] = &[
    (
        Billing,
        &[
            "have any credits",
            "no credits",
            "negative balance",
            "402 payment required",
            "requires more credits",
            "spending limit",
            "account is in good standing",
            "account is not active",
            "out of extra usage",
            // The plan serves such a request only for extra payment.
            "extra usage is required",
            "余额不足",
            "账户余额",
            "请充值",
            "欠费",
        ],
    ),
    (Quota, &["hit your limit", "limit reached · resets", "usage limit"]),
    // After the limits, at which extra usage is only offered.
    (Billing, &["extra usage"]),
    // A proxy's own words, which it sends with any status.
    (Timeout, &["upstream connect error"]),
    (
        Auth,
        &[
            "incorrect api key",
            "invalid api key",
            "api key not valid",
            "api key not found",
            "location is not supported",
            "not authorized to",
            "region, or territory not supported",
            "security token included in the request",
            "invalid_grant",
            "无效的令牌",
            "令牌已过期",
            "身份验证失败",
        ],
    ),
    (Unknown, &["requires moderation", "flagged by moderation"]),
    (
        RateLimit,
        &[
            "tokens per minute",
            "tokens per min ",
            "requests per min",
            "too many tokens, please wait",
            "too many tokens per day",
        ],
    ),
];

/// Third: codes that say no more than a status does.
const BROAD_CODES: &[Rule<&str>] = &[
    (
        Auth,
        &[
            "AccessDeniedException",
            "authentication_error",
            "permission_denied",
            "permission_error",
            "unauthenticated",
            "unauthorized",
        ],
    ),
    (
        RateLimit,
        &[
            "rate_limit_error",
            "rate_limit_exceeded",
            "rate_limit_reached_error",
            "rate_limited",
            "resource_exhausted",
            "ThrottlingException",
            "token_quota_exceeded",
            "too_many_requests",
            "too_many_tokens_error",
            "1302",
            "1303",
            "1305",
        ],
    ),
    (
        Timeout,
        &[
            "deadline_exceeded",
            "engine_overloaded_error",
            "InternalServerException",
            "ModelErrorException",
            "ModelNotReadyException",
            "ModelStreamErrorException",
            "ModelTimeoutException",
            "overloaded_error",
            "service_unavailable",
            "ServiceUnavailableException",
            "timeout_error",
            "unavailable",
            "unavailable_error",
        ],
    ),
];

/// Fourth: sentences that say more than the status, and less than a code: Google calls every limit a quota.
const SENTENCES_WITHOUT_CODE: &[Rule<&str>] = &[
    (
        Quota,
        &[
            "exceeded your current quota",
            "quota is not enough",
            "quota will reset",
            "allocated quota",
            "free quota",
            "额度",
        ],
    ),
    (Unknown, &["does not have access to model"]),
    (
        RateLimit,
        &[
            "请求过于频繁",
            "请求频率",
            "速率限制",
            "并发数",
            "访问量过大",
            "请求量过大",
            "访问量较大",
            "访问人数过多",
            "流量过大",
        ],
    ),
];

/// Fifth: the status. 498 is Groq's for a flex tier without capacity.
const STATUSES: &[Rule<u16>] =
    &[(Auth, &[401, 403]), (RateLimit, &[429, 498]), (Billing, &[402]), (ContextOverflow, &[413])];

/// Last: codes that say no more than status 500 does. They come last because some hosts send them with any status.
const SERVER_FAILURES: &[&str] =
    &["api_error", "internal", "internal_error", "internal_server_error", "server_error"];

/// Words of a limit whose window is a day or longer, or that allows nothing. Waiting does not help then, so a rate limit
/// with them is a quota.
const LONG_WINDOWS: &[&str] = &[
    "per day",
    "per-day",
    "perday",
    "(tpd)",
    " tpd ",
    "(rpd)",
    " rpd ",
    "daily",
    "per week",
    "weekly",
    "per month",
    "monthly",
    "/ day",
    "/ month",
    "limit: 0,",
];

/// Words for what is used up, and how many bytes away it may be.
const LACKING: &[&str] = &[
    "out of",
    "run out",
    "ran out",
    "used up",
    "used all",
    "exhausted",
    "depleted",
    "insufficient",
    "not enough",
    "too low",
    "no remaining",
];
const NEAR: usize = 30;

/// Words for a bill that was not paid.
const UNPAID: &[&str] = &[
    "unpaid invoice",
    "unpaid bill",
    "unpaid balance",
    "overdue invoice",
    "invoice is overdue",
    "overdue payment",
    "overdue balance",
    "outstanding invoice",
    "outstanding balance",
    "past invoices",
    "payment is past due",
    "payment is overdue",
    "payment has failed",
    "payment failed",
    "payment was declined",
    "in arrears",
];

const CREDENTIALS: &[&str] = &[
    "api key",
    "api-key",
    "api_key",
    "apikey",
    "bearer token",
    "access token",
    "auth token",
    "authentication token",
    "authorization header",
    "credentials",
];

/// The class of an error with this status, these codes and these words.
pub(super) fn decide(status: Option<u16>, codes: &[&str], words: &str) -> ErrorClass {
    let words = words.to_lowercase();
    let class = by_code(EXACT_CODES, codes)
        .or_else(|| can_never_fit(status, &words).then_some(ContextOverflow))
        .or_else(|| by_words(SENTENCES, &words))
        .or_else(|| says_account_is_empty(&words).then_some(Billing))
        .or_else(|| by_code(BROAD_CODES, codes))
        .or_else(|| by_words(SENTENCES_WITHOUT_CODE, &words))
        .or_else(|| first(STATUSES, |known| Some(*known) == status))
        // Status 408 may come from a gateway; the words of the host behind it are more specific.
        .or_else(|| needs_larger_window(&words).then_some(Unknown))
        .or_else(|| by_words(&PHRASES[..1], &words))
        .or_else(|| says_input_is_too_long(&words).then_some(ContextOverflow))
        .or_else(|| languages::class(&words))
        .or_else(|| (status == Some(408)).then_some(Timeout))
        .or_else(|| by_words(&PHRASES[1..], &words))
        .or_else(|| says_key_is_refused(&words).then_some(Auth))
        .or_else(|| is_server_failure(status, codes).then_some(Timeout))
        .unwrap_or(Unknown);
    match class {
        RateLimit if has_any(&words, LONG_WINDOWS) => Quota,
        class => class,
    }
}

/// Whether the request is larger than the whole limit on tokens: `Limit 6000, Requested 9000`. Such a request never
/// fits, whichever limit it is.
fn can_never_fit(status: Option<u16>, words: &str) -> bool {
    if !matches!(status, None | Some(413 | 429)) || !words.contains("token") {
        return false;
    }
    let asked = |rest| Some((number_after(rest, "limit")?, number_after(rest, "requested")?));
    words
        .match_indices("limit")
        .filter_map(|(at, _)| asked(&words[at..]))
        .any(|(most, asked)| asked > most)
}

/// Whether an account is said to have no money, or to owe some.
fn says_account_is_empty(words: &str) -> bool {
    // `out of usage credits`, `balance is used up`: one near the other.
    let is_near = |at: usize| {
        let from = words.floor_char_boundary(at.saturating_sub(NEAR));
        let end = words.ceil_char_boundary((at + NEAR).min(words.len()));
        has_any(&words[from..end], &["credit", "balance", "funds"])
    };
    let lacks = |word: &&str| words.match_indices(*word).any(|(at, _)| is_near(at));
    LACKING.iter().any(lacks) || has_any(words, UNPAID) || languages::says_account_is_empty(words)
}

/// Whether a key or token is said to be refused, where the status does not say so. Fields of tools may have such names too.
fn says_key_is_refused(words: &str) -> bool {
    let is_word = |word: &&str| words.split(|c: char| !c.is_alphanumeric()).any(|w| w == *word);
    let refused = ["invalid", "incorrect", "wrong", "missing", "expired", "revoked", "malformed"];
    has_any(words, CREDENTIALS)
        && !has_any(words, &["schema", "function", "tool", "parameter", "property", "messages"])
        && (refused.iter().any(is_word)
            || has_any(words, &["not valid", "not found", "not provided", "does not exist"]))
}

/// Whether a program refuses to work with the model because its window is too small. A shorter request does not help.
fn needs_larger_window(words: &str) -> bool {
    let names_window = ["context window", "context length", "context size", "context_length"];
    let too_small = ["too small", "below the minimum", "less than the minimum", "minimum is"];
    words.contains("minimum") && has_any(words, &names_window) && has_any(words, &too_small)
}

/// Whether the input is said to be longer than it may be, in words of a host that is not known. Lengths of the answer,
/// of a single field and of a minute have other limits.
fn says_input_is_too_long(words: &str) -> bool {
    has_any(words, &["prompt", "input", "context", "conversation", "messages"])
        && has_any(words, &["token", "length", "too long", "characters"])
        && has_any(
            words,
            &["exceed", "too long", "too large", "longer than", "larger than", "over the limit"],
        )
        && !has_any(words, NOT_OF_THE_INPUT)
}

/// The number directly after the first `word` in `text`, such as `Limit: 6,000`.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let (_, rest) = text.split_once(word)?;
    let rest = rest.trim_start_matches([':', ' ', '~']);
    let end = rest.find(|c: char| c != ',' && !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].replace(',', "").parse().ok()
}

fn by_code(rules: &[Rule<&str>], codes: &[&str]) -> Option<ErrorClass> {
    codes.iter().find_map(|code| first(rules, |known| known.eq_ignore_ascii_case(code)))
}

fn by_words(rules: &[Rule<&str>], words: &str) -> Option<ErrorClass> {
    first(rules, |known| words.contains(known))
}

fn first<T>(rules: &[Rule<T>], matches: impl Fn(&T) -> bool) -> Option<ErrorClass> {
    rules.iter().find(|(_, known)| known.iter().any(&matches)).map(|(class, _)| *class)
}

fn is_server_failure(status: Option<u16>, codes: &[&str]) -> bool {
    match status {
        Some(status) => (500..=599).contains(&status),
        None => codes
            .iter()
            .any(|code| SERVER_FAILURES.iter().any(|known| known.eq_ignore_ascii_case(code))),
    }
}

fn has_any(words: &str, known: &[&str]) -> bool {
    known.iter().any(|known| words.contains(known))
}
