//! Links a channel to the account of a phone, which scans a QR code for that.

use myclaw_channels::{SIGNAL, SIGNAL_BASE_URL, begin_signal_link, finish_signal_link};

use crate::GatewayError;
use crate::qr::qr_code;

/// What the phone calls this device.
const DEVICE: &str = "MyClaw";

/// What a phone scans.
#[derive(Debug)]
pub struct DeviceLink {
    base_url: String,
    /// What the code says.
    pub address: String,
}

impl DeviceLink {
    /// Begins to link an account of `channel`, through the program at `base_url` if that is not at its usual place. `None` if
    /// the channel has no such link.
    ///
    /// # Errors
    /// It cannot be linked; the text says why.
    pub async fn begin(channel: &str, base_url: Option<&str>) -> Option<Result<Self, String>> {
        let base_url = base_of(channel, base_url)?;
        Some(begin_signal_link(&base_url).await.map(|address| Self { base_url, address }))
    }

    /// A link that was begun before.
    pub(crate) fn begun(channel: &str, base_url: Option<&str>, address: &str) -> Option<Self> {
        Some(Self { base_url: base_of(channel, base_url)?, address: address.to_owned() })
    }

    /// The rows of the QR code without its edge: `1` is dark.
    ///
    /// # Errors
    /// The address is too long for one.
    pub fn code(&self) -> Result<Vec<String>, GatewayError> {
        qr_code(&self.address)
    }

    /// Waits for the phone. Gives the account.
    ///
    /// # Errors
    /// It was not linked; the text says why.
    pub async fn finish(&self) -> Result<String, String> {
        finish_signal_link(&self.base_url, &self.address, DEVICE).await
    }
}

fn base_of(channel: &str, base_url: Option<&str>) -> Option<String> {
    let given = base_url.map(str::trim).filter(|given| !given.is_empty());
    (channel == SIGNAL).then(|| given.unwrap_or(SIGNAL_BASE_URL).to_owned())
}
