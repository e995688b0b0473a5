//! Reading a package from a zip archive.
//!
//! Only what stands in the list at the end counts, as for other programs: bytes between the members, and members that are not listed,
//! are not looked at.

use std::io::Read as _;
use std::path::Path;

use flate2::Crc;
use flate2::read::DeflateDecoder;
use myclaw_policy::escape;

use super::{MAX_MEMBERS, plain};
use crate::tree::MAX_BYTES;
use crate::{Tree, TreeEntry, TreeError};

/// Begins the record at the end, an entry of the list, and a member.
const END: [u8; 4] = *b"PK\x05\x06";
const LISTED: [u8; 4] = *b"PK\x01\x02";
const MEMBER: [u8; 4] = *b"PK\x03\x04";
/// Their lengths without names and comments.
const END_BYTES: usize = 22;
const LISTED_BYTES: usize = 46;
const MEMBER_BYTES: usize = 30;
/// Longest comment behind the record at the end.
const MAX_COMMENT: usize = 65_535;
/// A number that stands in a record of its own, of archives larger than 4 GB.
const ELSEWHERE: u64 = 0xffff_ffff;
/// The flag of encrypted members.
const ENCRYPTED: u64 = 1;
/// Ways to store a member.
const STORED: u64 = 0;
const DEFLATED: u64 = 8;
/// The system of an entry's attributes whose modes are those of Unix.
const UNIX: u64 = 3;
/// The kinds of files in such a mode.
const KIND: u64 = 0o170_000;
const REGULAR: u64 = 0o100_000;
const DIRECTORY: u64 = 0o040_000;
const LINK: u64 = 0o120_000;

/// Whether bytes begin as a zip archive does, an empty one included.
pub(super) fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(&MEMBER) || bytes.starts_with(&END)
}

/// The files of an archive. Nothing is written. Links are left out.
pub(super) fn read(bytes: &[u8]) -> Result<Tree, TreeError> {
    let end = bytes.len().saturating_sub(END_BYTES);
    let first = end.saturating_sub(MAX_COMMENT);
    let at = (first..=end).rev().find(|at| bytes[*at..].starts_with(&END));
    let record = at.and_then(|at| Fields::at(bytes, at, END_BYTES)).ok_or_else(|| broken("end"))?;
    let (count, size, start) = (record.short(10), record.long(12), record.long(16));
    if count == ELSEWHERE >> 16 || size == ELSEWHERE || start == ELSEWHERE {
        return Err(TreeError("it is a zip archive in the form for more than 4 GB".to_owned()));
    }
    if count as usize > MAX_MEMBERS {
        return Err(TreeError(format!("it has more than {MAX_MEMBERS} members")));
    }
    let (mut tree, mut at) = (Tree::default(), start as usize);
    for _ in 0..count {
        let entry = Fields::at(bytes, at, LISTED_BYTES).ok_or_else(|| broken("list"))?;
        let lengths = [28, 30, 32].map(|place| entry.short(place) as usize);
        let name = bytes.get(at + LISTED_BYTES..at + LISTED_BYTES + lengths[0]);
        let name = name.filter(|_| entry.begins(LISTED)).ok_or_else(|| broken("list"))?;
        let name = std::str::from_utf8(name)
            .map_err(|_| TreeError("it holds a file with a name that is not UTF-8".to_owned()))?;
        add(&mut tree, bytes, &entry, name)?;
        at += LISTED_BYTES + lengths.iter().sum::<usize>();
    }
    Ok(tree)
}

/// Adds what an entry of the list says.
fn add(tree: &mut Tree, bytes: &[u8], entry: &Fields<'_>, name: &str) -> Result<(), TreeError> {
    let shown = escape(name);
    // Some programs for Windows write the names of directories so.
    let path = plain(Path::new(name))?;
    let mode = if entry.short(4) >> 8 == UNIX { entry.long(38) >> 16 } else { 0 };
    match mode & KIND {
        _ if name.ends_with('/') => return Ok(()),
        DIRECTORY => return Ok(()),
        LINK => {
            tree.leave_out(&path);
            return Ok(());
        }
        0 | REGULAR => {}
        _ => {
            return Err(TreeError(format!("{shown} in it is neither a file nor a directory")));
        }
    }
    if entry.short(8) & ENCRYPTED != 0 {
        return Err(TreeError(format!(
            "{shown} in it is encrypted; unpack it and name the directory"
        )));
    }
    let (packed, size, start) = (entry.long(20), entry.long(24), entry.long(42));
    let member = Fields::at(bytes, start as usize, MEMBER_BYTES).filter(|it| it.begins(MEMBER));
    let member = member.ok_or_else(|| broken(&shown))?;
    let start = start as usize + MEMBER_BYTES + (member.short(26) + member.short(28)) as usize;
    let packed = bytes.get(start..start.saturating_add(packed as usize));
    let packed = packed.ok_or_else(|| broken(&shown))?;
    let mut content = Vec::new();
    // One byte more than is right shows that it is too long.
    let most = size.min(MAX_BYTES) + 1;
    let read = match entry.short(10) {
        STORED => packed.take(most).read_to_end(&mut content),
        DEFLATED => DeflateDecoder::new(packed).take(most).read_to_end(&mut content),
        _ => {
            return Err(TreeError(format!(
                "{shown} in it is compressed in a way that cannot be read; unpack it and name the directory"
            )));
        }
    };
    read.map_err(|_| broken(&shown))?;
    let mut sum = Crc::new();
    sum.update(&content);
    // A file that is too large is refused with its limit.
    if size <= MAX_BYTES && (content.len() as u64 != size || u64::from(sum.sum()) != entry.long(16))
    {
        return Err(broken(&shown));
    }
    tree.add(&path, TreeEntry { bytes: content, is_executable: mode & 0o111 != 0 })
}

/// The fields of a record: numbers with the lowest byte first.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn at(bytes: &'a [u8], at: usize, length: usize) -> Option<Self> {
        bytes.get(at..at.checked_add(length)?).map(Self)
    }

    fn begins(&self, with: [u8; 4]) -> bool {
        self.0.starts_with(&with)
    }

    fn short(&self, at: usize) -> u64 {
        self.number(at, 2)
    }

    fn long(&self, at: usize) -> u64 {
        self.number(at, 4)
    }

    fn number(&self, at: usize, bytes: usize) -> u64 {
        let found = self.0[at..at + bytes].iter().rev();
        found.fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

fn broken(what: &str) -> TreeError {
    TreeError(format!(
        "the zip archive is damaged ({what}); get it again, or unpack it and name the directory"
    ))
}
