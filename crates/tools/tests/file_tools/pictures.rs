use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use myclaw_llm::{ContentBlock, ImageContent};
use serde_json::json;

use crate::harness::Workspace;

/// A picture that no format packs well.
fn noise(width: u32, height: u32) -> DynamicImage {
    let mut state = 1_u32;
    DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, red, green, blue] = state.to_le_bytes();
        Rgb([red, green, blue])
    }))
}

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    picture.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
    bytes
}

/// The note and the picture that a call shows.
fn shown(workspace: &Workspace, path: &str) -> (String, ImageContent) {
    match workspace.call("read", json!({"path": path})).unwrap().content.as_slice() {
        [ContentBlock::Text(note), ContentBlock::Image(image)] => {
            (note.text.clone(), image.clone())
        }
        other => panic!("expected a note and a picture, got {other:?}"),
    }
}

#[test]
fn small_pictures_are_shown_as_they_are() {
    let workspace = Workspace::new();
    let picture = noise(20, 10);
    for (format, mime_type) in [
        (ImageFormat::Png, "image/png"),
        (ImageFormat::Jpeg, "image/jpeg"),
        (ImageFormat::Gif, "image/gif"),
        (ImageFormat::WebP, "image/webp"),
    ] {
        // The name says nothing: the first bytes do.
        let bytes = encoded(&picture, format);
        workspace.put("picture.txt", &bytes);
        let (note, image) = shown(&workspace, "picture.txt");
        assert_eq!(note, format!("picture.txt: {mime_type} picture, 20x10"));
        assert_eq!(
            image,
            ImageContent { data: STANDARD.encode(&bytes), mime_type: mime_type.to_owned() }
        );
    }
}

#[test]
fn large_pictures_are_scaled_down() {
    let workspace = Workspace::new();
    workspace.put(
        "wide.png",
        encoded(
            &DynamicImage::ImageRgba8(RgbaImage::from_pixel(4_000, 100, Rgba([255, 0, 0, 128]))),
            ImageFormat::Png,
        ),
    );
    let (note, image) = shown(&workspace, "wide.png");
    assert_eq!(
        note,
        "wide.png: image/png picture, 4000x100, shown scaled down to 2000x50 (1 pixel here is 2.00 there)"
    );
    assert_eq!(image.mime_type, "image/png");
    let sent = image::load_from_memory(&STANDARD.decode(image.data).unwrap()).unwrap();
    assert_eq!((sent.width(), sent.height()), (2_000, 50));
    assert_eq!(sent.to_rgba8().get_pixel(7, 7), &Rgba([255, 0, 0, 128]));
}

#[test]
fn heavy_pictures_are_packed_harder() {
    let workspace = Workspace::new();
    let bytes = encoded(&noise(1_200, 1_050), ImageFormat::Png);
    assert!(bytes.len() > 3_700_000);
    workspace.put("noise.png", bytes);
    let (_, image) = shown(&workspace, "noise.png");
    assert_eq!(image.mime_type, "image/jpeg");
    let sent = STANDARD.decode(image.data).unwrap();
    assert!(sent.len() <= 3_700_000, "{}", sent.len());
    assert!(image::load_from_memory(&sent).is_ok());
}

#[test]
fn damaged_pictures_are_refused() {
    let workspace = Workspace::new();
    for (name, format) in
        [("a.png", ImageFormat::Png), ("a.gif", ImageFormat::Gif), ("a.webp", ImageFormat::WebP)]
    {
        let mut bytes = encoded(&noise(60, 60), format);
        bytes.truncate(bytes.len() / 2);
        workspace.put(name, bytes);
        let error = workspace.refused("read", json!({"path": name}));
        assert!(error.contains("is damaged or cut off") && error.contains("xxd"), "{error}");
    }
    workspace.put("a.jpg", b"\xFF\xD8\xFF\xE0 not a picture");
    assert!(workspace.refused("read", json!({"path": "a.jpg"})).contains("is damaged or cut off"));
}

#[test]
fn a_picture_that_would_fill_the_memory_is_refused() {
    // A few bytes that claim to be 30000 x 30000 pixels.
    let mut bytes = encoded(&noise(1, 1), ImageFormat::Png);
    bytes[16..20].copy_from_slice(&30_000_u32.to_be_bytes());
    bytes[20..24].copy_from_slice(&30_000_u32.to_be_bytes());
    let checksum = crc32(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
    let workspace = Workspace::new();
    workspace.put("bomb.png", bytes);
    let error = workspace.refused("read", json!({"path": "bomb.png"}));
    assert!(
        error.contains("it has too many pixels") && error.contains("convert bomb.png"),
        "{error}"
    );
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc: u32, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (!(crc & 1)).wrapping_add(1))
        })
    })
}
