//! QR codes.

use qrcode::{Color, EcLevel, QrCode};

use crate::GatewayError;

/// The rows of a QR code without its edge: `1` is dark.
pub(crate) fn qr_code(text: &str) -> Result<Vec<String>, GatewayError> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L)
        .map_err(|error| GatewayError::Internal(format!("it has no QR code: {error}")))?;
    let rows = code.to_colors();
    let of_row = |row: &[Color]| row.iter().map(|one| one.select('1', '0')).collect();
    Ok(rows.chunks(code.width()).map(of_row).collect())
}
