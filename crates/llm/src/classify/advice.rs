//! What to do about errors whose names or words leave no doubt, as data.

/// An error by one of its names and a part of its words, both in small letters, and what to do. The first row that
/// fits counts; no name means any.
const ADVICE: &[(&str, &str, &str)] = &[
    (
        "expiredtokenexception",
        "",
        "renew the AWS credentials (such as by `aws sso login`), or set new temporary keys",
    ),
    (
        "unrecognizedclientexception",
        "",
        "check the AWS access key, and that it is of this partition",
    ),
    (
        "invalidsignatureexception",
        "signature expired",
        "the clock of this machine is wrong: set it",
    ),
    ("invalidsignatureexception", "not yet current", "the clock of this machine is wrong: set it"),
    ("requesttimetooskewed", "", "the clock of this machine is wrong: set it"),
    ("requestexpired", "", "the clock of this machine is wrong: set it"),
    ("invalidsignatureexception", "", "check the AWS secret access key"),
    ("signaturedoesnotmatch", "", "check the AWS secret access key"),
    (
        "accessdeniedexception",
        "access to the model",
        "the account must be given access to this model in this region: Bedrock console, Model access",
    ),
    (
        "accessdeniedexception",
        "",
        "the AWS identity needs bedrock:InvokeModelWithResponseStream for this model, and the account access to it (Bedrock console, Model access)",
    ),
    (
        "",
        "on-demand throughput isn",
        "use the id of its inference profile: the same with `us.`, `eu.` or `global.` before it",
    ),
    ("", "model identifier is invalid", "check the model id and the region"),
];

/// What to do about an error with these names and words.
pub(super) fn on<'a>(codes: impl Iterator<Item = &'a str>, words: &str) -> Option<&'static str> {
    let codes: Vec<String> = codes.map(str::to_ascii_lowercase).collect();
    let words = words.to_lowercase();
    let row = ADVICE.iter().find(|(code, part, _)| {
        (code.is_empty() || codes.iter().any(|known| known == code)) && words.contains(part)
    });
    row.map(|&(_, _, advice)| advice)
}
