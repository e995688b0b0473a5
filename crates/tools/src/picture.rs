//! Makes pictures small enough for every provider.

use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::error::{LimitError, LimitErrorKind};
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, RgbImage};
use myclaw_llm::ImageContent;

use crate::files::{FileKind, ImageKind, recognise};

/// Longest side that is sent. Anthropic refuses larger pictures in requests with many of them, and no provider
/// looks more closely.
const MAX_SIDE: u32 = 2_000;
/// Largest picture that is sent, in bytes of the file: Anthropic takes 5 MB of base64, which is 4/3 of that.
const MAX_SENT_BYTES: usize = 3_700_000;
/// Longest side that is decoded.
const MAX_DECODED_SIDE: u32 = 32_768;
/// Most memory that decoding may take: a photograph of 120 megapixels.
const MAX_DECODED_BYTES: u64 = 512 * 1024 * 1024;
/// JPEG qualities that are tried, best first.
const QUALITIES: [u8; 3] = [85, 70, 50];
/// The factor by which a picture that is still too large shrinks in each step: three quarters.
const SHRINK: (u32, u32) = (3, 4);

/// A picture in the form in which it is sent.
pub(crate) struct Picture {
    /// The file.
    pub(crate) bytes: Vec<u8>,
    /// Its kind.
    pub(crate) mime_type: &'static str,
    /// Pixels.
    pub(crate) width: u32,
    /// Pixels.
    pub(crate) height: u32,
    /// Width and height before it was scaled down.
    pub(crate) original: (u32, u32),
}

/// Prepares a picture for every provider: PNG, JPEG, GIF or WebP, as standard base64. Its first bytes determine the
/// kind. Large pictures are scaled down.
///
/// # Errors
/// The problem, in words that follow "the picture cannot be used:".
pub fn picture_from_base64(data: &str) -> Result<ImageContent, String> {
    let bytes = STANDARD
        .decode(data.trim_ascii())
        .map_err(|error| format!("its data is not standard base64 ({error})"))?;
    picture_from_bytes(bytes)
}

/// As [`picture_from_base64`], for the bytes of a file. Takes a while: do not call it on a runtime thread.
///
/// # Errors
/// As [`picture_from_base64`].
pub fn picture_from_bytes(bytes: Vec<u8>) -> Result<ImageContent, String> {
    let FileKind::Image(kind) = recognise(&bytes) else {
        return Err("its data is not a PNG, JPEG, GIF or WebP file".to_owned());
    };
    match Picture::prepare(bytes, kind) {
        Ok(picture) => Ok(picture.to_content()),
        Err(ImageError::Limits(_)) => Err("it has too many pixels".to_owned()),
        Err(error) => Err(format!("it is damaged or cut off ({error})")),
    }
}

/// The pixels of a picture.
pub struct Pixels {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Red, green, blue and opacity of each, row by row.
    pub rgba: Vec<u8>,
}

/// The pixels of the bytes of a file, made smaller where they are more than `most_width` by `most_height`. Takes a while.
///
/// # Errors
/// It is no picture, damaged, or too large to decode.
pub fn picture_pixels(bytes: &[u8], most_width: u32, most_height: u32) -> Result<Pixels, String> {
    let FileKind::Image(kind) = recognise(bytes) else {
        return Err("it is not a PNG, JPEG, GIF or WebP file".to_owned());
    };
    let mut picture = decode(bytes, kind).map_err(|error| error.to_string())?;
    if picture.width() > most_width || picture.height() > most_height {
        picture = picture.thumbnail(most_width, most_height);
    }
    let (width, height) = (picture.width(), picture.height());
    Ok(Pixels { width, height, rgba: picture.into_rgba8().into_raw() })
}

impl Picture {
    /// Checks a picture, and scales it down where it is too large.
    ///
    /// # Errors
    /// It is damaged, or too large to decode.
    pub(crate) fn prepare(bytes: Vec<u8>, kind: ImageKind) -> Result<Self, ImageError> {
        let picture = decode(&bytes, kind)?;
        let (width, height) = (picture.width(), picture.height());
        if width.max(height) <= MAX_SIDE && bytes.len() <= MAX_SENT_BYTES {
            let mime_type = kind.mime_type();
            return Ok(Self { bytes, mime_type, width, height, original: (width, height) });
        }
        scale_down(picture, kind)
    }

    /// The picture as a part of a message.
    pub(crate) fn to_content(&self) -> ImageContent {
        ImageContent { data: STANDARD.encode(&self.bytes), mime_type: self.mime_type.to_owned() }
    }
}

/// Decodes the first frame, upright. Done for small pictures too: a damaged one would make the provider refuse the
/// whole session from then on.
fn decode(bytes: &[u8], kind: ImageKind) -> Result<DynamicImage, ImageError> {
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_DECODED_SIDE);
    limits.max_image_height = Some(MAX_DECODED_SIDE);
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format(kind));
    reader.limits(limits);
    let mut decoder = reader.into_decoder()?;
    // The limits apply to the decoder's own buffers, but not to the one for the result.
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

fn scale_down(mut picture: DynamicImage, kind: ImageKind) -> Result<Picture, ImageError> {
    let original = (picture.width(), picture.height());
    let is_large = picture.width().max(picture.height()) > MAX_SIDE;
    if is_large {
        picture = picture.resize(MAX_SIDE, MAX_SIDE, FilterType::Triangle);
    }
    // A JPEG stays a JPEG. A PNG that was too large is too large again at the same size.
    let mut may_be_png = kind != ImageKind::Jpeg && is_large;
    loop {
        let (width, height) = (picture.width(), picture.height());
        if may_be_png {
            let mut bytes = Vec::new();
            picture.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)?;
            if bytes.len() <= MAX_SENT_BYTES {
                return Ok(Picture {
                    bytes,
                    mime_type: ImageKind::Png.mime_type(),
                    width,
                    height,
                    original,
                });
            }
        }
        let opaque = on_white(&picture);
        for quality in QUALITIES {
            let mut bytes = Vec::new();
            JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(&opaque)?;
            if bytes.len() <= MAX_SENT_BYTES {
                return Ok(Picture {
                    bytes,
                    mime_type: ImageKind::Jpeg.mime_type(),
                    width,
                    height,
                    original,
                });
            }
        }
        let smaller = |side: u32| (side * SHRINK.0 / SHRINK.1).max(1);
        picture = picture.resize_exact(smaller(width), smaller(height), FilterType::Triangle);
        may_be_png = kind != ImageKind::Jpeg;
    }
}

/// JPEG has no transparency; transparent parts become white, as on a page.
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
