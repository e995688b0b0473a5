//! Pictures, made small enough for every provider.

use std::fs::File;
use std::io::{Cursor, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::error::{LimitError, LimitErrorKind};
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, RgbImage};
use myclaw_engine::{ToolError, ToolOutput};
use myclaw_llm::{ContentBlock, ImageContent};
use serde_json::json;

use crate::files::{ImageKind, shown_size};
use crate::support::{ResolvedPath, io_failure};

/// Longest side that is sent. Anthropic refuses larger pictures in conversations with many of them, and no provider
/// looks more closely.
const MAX_SIDE: u32 = 2_000;
/// Largest picture that is sent, in bytes of the file: Anthropic takes 5 MB of base64, which is 4/3 of that.
const MAX_SENT_BYTES: usize = 3_700_000;
/// Largest file that is opened as a picture.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Longest side that is decoded.
const MAX_DECODED_SIDE: u32 = 32_768;
/// Most memory that decoding may take: a photograph of 120 megapixels.
const MAX_DECODED_BYTES: u64 = 512 * 1024 * 1024;
/// JPEG qualities that are tried, best first.
const QUALITIES: [u8; 3] = [85, 70, 50];
/// How a picture shrinks that is still too large: to three quarters a step.
const SHRINK: (u32, u32) = (3, 4);

/// A picture as it is sent.
struct Sent {
    bytes: Vec<u8>,
    mime_type: &'static str,
    width: u32,
    height: u32,
}

/// Shows a picture, scaled down where it is too large. `start` are the bytes already taken from `rest`.
///
/// # Errors
/// If it cannot be read, is too large to decode or damaged.
pub(super) fn read(
    path: &ResolvedPath,
    rest: File,
    start: &[u8],
    kind: ImageKind,
) -> Result<ToolOutput, ToolError> {
    let mut bytes = start.to_vec();
    rest.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| io_failure("read", path, &error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(too_large(
            path,
            &format!("the file is larger than {}", shown_size(MAX_FILE_BYTES)),
        ));
    }
    let picture =
        decode(&bytes, kind).map_err(|error| refusal(path, kind, bytes.len() as u64, &error))?;
    let (width, height) = (picture.width(), picture.height());
    let file_bytes = bytes.len();
    let sent = if width.max(height) <= MAX_SIDE && file_bytes <= MAX_SENT_BYTES {
        Sent { bytes, mime_type: kind.mime_type(), width, height }
    } else {
        scale_down(picture, kind).map_err(|error| refusal(path, kind, file_bytes as u64, &error))?
    };
    let mut note = format!("{}: {} picture, {width}x{height}", path.shown, kind.mime_type());
    if (sent.width, sent.height) != (width, height) {
        note.push_str(&format!(
            ", shown scaled down to {}x{} (1 pixel here is {:.2} there)",
            sent.width,
            sent.height,
            f64::from(width) / f64::from(sent.width)
        ));
    }
    let details = json!({
        "path": path.shown, "mimeType": kind.mime_type(), "bytes": file_bytes, "width": width, "height": height,
        "sent": {"mimeType": sent.mime_type, "bytes": sent.bytes.len(), "width": sent.width, "height": sent.height}
    });
    let image =
        ImageContent { data: STANDARD.encode(&sent.bytes), mime_type: sent.mime_type.to_owned() };
    Ok(ToolOutput {
        content: vec![ContentBlock::text(note), ContentBlock::Image(image)],
        details: Some(details),
        is_error: false,
    })
}

/// Decodes the first frame, upright. Done for small pictures too: a damaged one would make the provider refuse the
/// whole conversation from then on.
fn decode(bytes: &[u8], kind: ImageKind) -> Result<DynamicImage, ImageError> {
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_DECODED_SIDE);
    limits.max_image_height = Some(MAX_DECODED_SIDE);
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format(kind));
    reader.limits(limits);
    let mut decoder = reader.into_decoder()?;
    // The limits bind the decoder's own buffers; the one for the result is made without asking them.
    if decoder.total_bytes() > MAX_DECODED_BYTES {
        return Err(ImageError::Limits(LimitError::from_kind(LimitErrorKind::InsufficientMemory)));
    }
    let orientation = decoder.orientation()?;
    let mut picture = DynamicImage::from_decoder(decoder)?;
    picture.apply_orientation(orientation);
    Ok(picture)
}

fn format(kind: ImageKind) -> ImageFormat {
    match kind {
        ImageKind::Png => ImageFormat::Png,
        ImageKind::Jpeg => ImageFormat::Jpeg,
        ImageKind::Gif => ImageFormat::Gif,
        ImageKind::WebP => ImageFormat::WebP,
    }
}

fn scale_down(mut picture: DynamicImage, kind: ImageKind) -> Result<Sent, ImageError> {
    let is_large = picture.width().max(picture.height()) > MAX_SIDE;
    if is_large {
        picture = picture.resize(MAX_SIDE, MAX_SIDE, FilterType::Triangle);
    }
    // A photograph stays one; and a picture that was too heavy without loss is so again at the same size.
    let mut may_be_png = kind != ImageKind::Jpeg && is_large;
    loop {
        let (width, height) = (picture.width(), picture.height());
        if may_be_png {
            let mut bytes = Vec::new();
            picture.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)?;
            if bytes.len() <= MAX_SENT_BYTES {
                return Ok(Sent { bytes, mime_type: ImageKind::Png.mime_type(), width, height });
            }
        }
        let opaque = on_white(&picture);
        for quality in QUALITIES {
            let mut bytes = Vec::new();
            JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(&opaque)?;
            if bytes.len() <= MAX_SENT_BYTES {
                return Ok(Sent { bytes, mime_type: ImageKind::Jpeg.mime_type(), width, height });
            }
        }
        let smaller = |side: u32| (side * SHRINK.0 / SHRINK.1).max(1);
        picture = picture.resize_exact(smaller(width), smaller(height), FilterType::Triangle);
        may_be_png = kind != ImageKind::Jpeg;
    }
}

/// JPEG knows no transparency; what is see-through is white, as on a page.
fn on_white(picture: &DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.to_rgb8();
    }
    let rgba = picture.to_rgba8();
    RgbImage::from_fn(rgba.width(), rgba.height(), |x, y| {
        let [red, green, blue, alpha] = rgba.get_pixel(x, y).0;
        let mix = |colour: u8| {
            let (colour, alpha) = (u32::from(colour), u32::from(alpha));
            ((colour * alpha + 255 * (255 - alpha)) / 255) as u8
        };
        image::Rgb([mix(red), mix(green), mix(blue)])
    })
}

fn refusal(path: &ResolvedPath, kind: ImageKind, bytes: u64, error: &ImageError) -> ToolError {
    match error {
        ImageError::Limits(_) => too_large(path, "it has too many pixels"),
        error => ToolError::Failed(format!(
            "cannot show {}: it starts like a picture ({}, {}) but is damaged or cut off: {error}. Get the file \
             again, or look at its bytes with bash: xxd {} | head",
            path.shown,
            kind.mime_type(),
            shown_size(bytes),
            path.shown
        )),
    }
}

fn too_large(path: &ResolvedPath, why: &str) -> ToolError {
    ToolError::Failed(format!(
        "cannot show {}: {why}. With bash, make a smaller copy first: convert {} -resize 2000x2000 small.png",
        path.shown, path.shown
    ))
}
