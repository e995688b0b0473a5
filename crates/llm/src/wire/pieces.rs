//! The content of users and tools, reduced to what a host accepts. It is the same in all formats; each format encodes
//! the pieces in its own way.

use std::borrow::Cow;

use super::history;
use crate::{ContentBlock, ImageContent, InputKind, Model, UserMessage};

/// Replaces an image if the model accepts none.
const IMAGE_OMITTED: &str = "[image omitted: this model takes no images]";

/// Text that is not blank, or an image that the host accepts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece<'a> {
    Text(Cow<'a, str>),
    Image(&'a ImageContent),
}

/// The types of images that a host accepts.
#[derive(Debug, Clone, Copy)]
pub(super) enum ImageTypes {
    /// All types that this program makes; the host refuses others itself.
    All,
    /// Those of these media types.
    Only(&'static [&'static str]),
}

/// The content of a message or a tool result. What hosts would refuse is left out or replaced by a note.
pub(super) fn pieces<'a>(
    model: &Model,
    types: ImageTypes,
    content: &'a [ContentBlock],
) -> Vec<Piece<'a>> {
    content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) if history::is_blank(&text.text) => None,
            ContentBlock::Text(text) => Some(Piece::Text(Cow::Borrowed(&text.text))),
            ContentBlock::Image(image) => Some(image_piece(model, types, image)),
            ContentBlock::Thinking(_) | ContentBlock::ToolCall(_) => None,
        })
        .collect()
}

fn image_piece<'a>(model: &Model, types: ImageTypes, image: &'a ImageContent) -> Piece<'a> {
    let kind = image.mime_type.as_str();
    if !model.input.contains(&InputKind::Image) {
        return Piece::Text(Cow::Borrowed(IMAGE_OMITTED));
    }
    match types {
        ImageTypes::Only(known) if !known.contains(&kind) => {
            Piece::Text(Cow::Owned(format!("[image omitted: {kind} is not supported here]")))
        }
        ImageTypes::All | ImageTypes::Only(_) => Piece::Image(image),
    }
}

/// The user's content, followed by the annotations; empty if the user said nothing.
pub(super) fn of_user<'a>(
    model: &Model,
    types: ImageTypes,
    user: &'a UserMessage,
) -> Vec<Piece<'a>> {
    let mut pieces = pieces(model, types, &user.content);
    if !pieces.is_empty() {
        let annotation = user.annotation.as_deref().filter(|text| !history::is_blank(text));
        pieces.extend(annotation.map(|text| Piece::Text(Cow::Borrowed(text))));
    }
    pieces
}

/// One text, if all `pieces` are texts; otherwise returns the pieces.
pub(super) fn joined_if_text(pieces: Vec<Piece<'_>>) -> Result<Cow<'_, str>, Vec<Piece<'_>>> {
    if pieces.iter().any(|piece| matches!(piece, Piece::Image(_))) {
        return Err(pieces);
    }
    Ok(split(pieces).0.unwrap_or_default())
}

/// The texts among `pieces` joined by line breaks, and the images.
pub(super) fn split<'a>(
    pieces: impl IntoIterator<Item = Piece<'a>>,
) -> (Option<Cow<'a, str>>, Vec<&'a ImageContent>) {
    let mut joined: Option<Cow<'a, str>> = None;
    let mut images = Vec::new();
    for piece in pieces {
        match (piece, &mut joined) {
            (Piece::Image(image), _) => images.push(image),
            (Piece::Text(text), None) => joined = Some(text),
            (Piece::Text(text), Some(joined)) => history::append(joined, "\n", text),
        }
    }
    (joined, images)
}

#[cfg(test)]
mod tests;
