//! Files as vendors take them: their media types, and forms of the type `multipart/form-data`.

/// A file in a form.
pub(crate) struct FormFile<'a> {
    /// The name of the field.
    pub(crate) field: &'a str,
    /// The name of the file; may be anything.
    pub(crate) name: &'a str,
    pub(crate) media_type: &'a str,
    pub(crate) bytes: &'a [u8],
}

/// A form with texts and one file: the value of the header `content-type`, and the body.
pub(crate) fn form(texts: &[(&str, String)], file: &FormFile<'_>) -> (String, Vec<u8>) {
    let boundary = uuid::Uuid::new_v4().simple().to_string();
    let mut body = Vec::with_capacity(file.bytes.len() + 1_024);
    for (name, value) in texts {
        let head = format!("content-disposition: form-data; name=\"{name}\"");
        body.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n{value}\r\n").as_bytes());
    }
    let is_plain = |c: char| !c.is_control() && !matches!(c, '"' | '\\');
    let name: String = file.name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let FormFile { field, media_type, .. } = file;
    let head = format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\
         content-type: {media_type}\r\n\r\n"
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(file.bytes);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}

/// A file of a form, with its bytes. What it is, is left to the receiver.
#[derive(Clone)]
pub(crate) struct Upload {
    /// The name of the field.
    pub(crate) field: &'static str,
    /// The name of the file; may be anything.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Upload {
    /// The form with this file, and with texts.
    pub(crate) fn form(&self, texts: &[(&str, String)]) -> (String, Vec<u8>) {
        let Self { field, name, bytes } = self;
        form(texts, &FormFile { field, name, media_type: UNKNOWN_TYPE, bytes })
    }
}

/// The media type of files whose name says nothing.
pub(crate) const UNKNOWN_TYPE: &str = "application/octet-stream";

/// Media types by the ends of names. The first end of a type is its usual one.
const TYPES: &[(&str, &str)] = &[
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("webp", "image/webp"),
    ("gif", "image/gif"),
    ("aac", "audio/aac"),
    ("amr", "audio/amr"),
    ("mp3", "audio/mpeg"),
    ("m4a", "audio/mp4"),
    ("ogg", "audio/ogg"),
    ("oga", "audio/ogg"),
    ("opus", "audio/ogg"),
    ("wav", "audio/wav"),
    ("flac", "audio/flac"),
    ("mp4", "video/mp4"),
    ("3gp", "video/3gpp"),
    ("pdf", "application/pdf"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("ppt", "application/vnd.ms-powerpoint"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("txt", "text/plain"),
    ("md", "text/plain"),
    ("json", "application/json"),
];

/// The media type of a file by its name. With a wrong one, clients show a file instead of a picture.
pub(crate) fn media_type(name: &str) -> &'static str {
    let end = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    TYPES.iter().find(|(known, _)| *known == end).map_or(UNKNOWN_TYPE, |(_, media_type)| media_type)
}

/// A name for a file that came without one, such as `image.jpg`. `media_type` may have parameters.
pub(crate) fn file_name(kind: &str, media_type: Option<&str>) -> String {
    let media_type = media_type.and_then(|given| given.split(';').next()).unwrap_or_default();
    match TYPES.iter().find(|(_, known)| *known == media_type.trim()) {
        Some((end, _)) => format!("{kind}.{end}"),
        None => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_types_fit_each_other() {
        assert_eq!(media_type("a.b.JPEG"), "image/jpeg");
        assert_eq!(media_type("none"), UNKNOWN_TYPE);
        assert_eq!(file_name("image", Some("image/jpeg")), "image.jpg");
        assert_eq!(file_name("audio", Some("audio/ogg; codecs=opus")), "audio.ogg");
        assert_eq!(file_name("file", None), "file");
    }

    #[test]
    fn a_name_cannot_leave_its_header() {
        let file =
            FormFile { field: "file", name: "a\"\r\nb", media_type: "text/plain", bytes: b"x" };
        let (kind, body) = form(&[("type", "text/plain".to_owned())], &file);
        let body = String::from_utf8(body).unwrap_or_default();
        assert!(body.contains("filename=\"a___b\"\r\ncontent-type: text/plain\r\n\r\nx\r\n--"));
        let boundary = kind.rsplit('=').next().unwrap_or_default();
        assert_eq!(body.matches(boundary).count(), 3);
    }
}
