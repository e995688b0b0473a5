//! Downloads of packages: encrypted, bounded, and led on to few other addresses.

use std::time::Duration;

use myclaw_llm::HttpProvider;
use myclaw_llm::access::{is_loopback, transport_error};
use tokio::time::timeout;
use url::Url;

use crate::{AgentError, FailureClass, Home};

/// Time for one download.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(120);
const CONNECT_LIMIT: Duration = Duration::from_secs(15);
/// Most addresses that a download is sent on to.
const MAX_REDIRECTS: usize = 5;

/// Only encrypted addresses, and those of this machine.
pub(super) fn check_address(url: &Url) -> Result<(), AgentError> {
    let is_open = matches!(url.scheme(), "http" | "git");
    if is_open && !is_loopback(url) {
        return Err(AgentError::usage(format!(
            "{url} is not encrypted, so anybody on the way could change the package; use https:// or ssh://"
        )));
    }
    Ok(())
}

/// The bytes behind an address, at most `most`.
pub(super) async fn download(home: &Home, url: &Url, most: u64) -> Result<Vec<u8>, AgentError> {
    let failed = |why: String| AgentError::new(FailureClass::Packages, why);
    let loading = async {
        let http = HttpProvider::new(home.http_options());
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let client = http.clients().client(&url, CONNECT_LIMIT).await;
            let client = client.map_err(|error| failed(error.message))?;
            let request = client.get(url.clone()).header("accept", "application/json, */*");
            let mut response = request
                .send()
                .await
                .map_err(|error| failed(transport_error(&error, &url, CONNECT_LIMIT).message))?;
            let status = response.status().as_u16();
            if (300..400).contains(&status) {
                let place =
                    response.headers().get("location").and_then(|place| place.to_str().ok());
                let next = place.and_then(|place| url.join(place).ok());
                let next = next.ok_or_else(|| failed(format!("{url} leads to no address")))?;
                check_address(&next)?;
                if is_loopback(&next) && !is_loopback(&url) {
                    return Err(failed(format!(
                        "{url} leads to {next}, an address of this machine"
                    )));
                }
                url = next;
                continue;
            }
            if status != 200 {
                return Err(failed(format!("{url} answers HTTP {status}; is the name right?")));
            }
            let mut bytes: Vec<u8> = Vec::new();
            loop {
                let chunk = response.chunk().await;
                let chunk = chunk.map_err(|error| failed(format!("{url} broke off: {error}")))?;
                let Some(chunk) = chunk else { return Ok(bytes) };
                if (bytes.len() + chunk.len()) as u64 > most {
                    return Err(failed(format!("{url} sends more than {} MiB", most >> 20)));
                }
                bytes.extend_from_slice(&chunk);
            }
        }
        Err(failed(format!("{url} leads from one address to the next too often")))
    };
    timeout(DOWNLOAD_LIMIT, loading).await.unwrap_or_else(|_| {
        Err(failed(format!("{url} took longer than {} s", DOWNLOAD_LIMIT.as_secs())))
    })
}
