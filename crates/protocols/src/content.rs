//! Checks pictures before they enter a session.

use myclaw_llm::ContentBlock;
use myclaw_tools::picture_from_base64;

use myclaw_front::exit::CliError;

/// A picture, from standard base64 of its file; scaled down where it is too large for providers.
///
/// # Errors
/// The picture is damaged, or of a kind that models do not take. A provider would refuse the session from then on.
pub(super) async fn picture(data: String) -> Result<ContentBlock, CliError> {
    let prepared = tokio::task::spawn_blocking(move || picture_from_base64(&data)).await;
    match prepared {
        Ok(Ok(image)) => Ok(ContentBlock::Image(image)),
        Ok(Err(why)) => Err(CliError::usage(format!("the picture cannot be used: {why}"))),
        Err(_) => Err(CliError::usage("the picture cannot be used: reading it failed")),
    }
}
