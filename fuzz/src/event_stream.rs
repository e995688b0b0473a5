//! Mutations of Amazon's binary event streams. Bytes changed at random break a checksum, and nothing behind the
//! checksums would ever be reached. So most mutations change the headers or the payload of one message, or the order of
//! messages, and write lengths and checksums anew; the others change the bytes as they are.

use libfuzzer_sys::fuzzer_mutate;

/// Lengths and their checksum; and the checksum at the end.
const PRELUDE: usize = 12;
const TRAILER: usize = 4;

/// One mutation in so many leaves lengths and checksums as they come.
const RAW: u32 = 8;

struct Message {
    headers: Vec<u8>,
    payload: Vec<u8>,
}

/// Changes the first `size` bytes of `data` and gives their new number, at most `max_size`.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut messages = split(&data[..size]);
    if messages.is_empty() || seed.is_multiple_of(RAW) {
        return fuzzer_mutate(data, size, max_size);
    }
    let chosen = (seed / 64) as usize % messages.len();
    match seed / RAW % 8 {
        0 => drop(messages.remove(chosen)),
        1 => {
            let copy = Message {
                headers: messages[chosen].headers.clone(),
                payload: messages[chosen].payload.clone(),
            };
            messages.insert((seed / 1024) as usize % (messages.len() + 1), copy);
        }
        2 => {
            let other = (seed / 1024) as usize % messages.len();
            messages.swap(chosen, other);
        }
        3 => mutate_part(&mut messages[chosen].headers, max_size),
        _ => mutate_part(&mut messages[chosen].payload, max_size),
    }
    let joined: Vec<u8> = messages.iter().flat_map(sealed).collect();
    let size = joined.len().min(max_size);
    data[..size].copy_from_slice(&joined[..size]);
    size
}

fn mutate_part(part: &mut Vec<u8>, max_size: usize) {
    let size = part.len();
    // Room to grow, but not so much that nothing else fits.
    let room = (size + 64).min(max_size);
    part.resize(room.max(size), 0);
    let new_size = fuzzer_mutate(part, size, room.max(size));
    part.truncate(new_size);
}

/// The messages of a stream, up to where it makes no sense.
fn split(mut stream: &[u8]) -> Vec<Message> {
    let mut messages = Vec::new();
    while let Some((message, after)) = split_first(stream) {
        messages.push(message);
        stream = after;
    }
    messages
}

fn split_first(stream: &[u8]) -> Option<(Message, &[u8])> {
    let number =
        |at: usize| Some(u32::from_be_bytes(stream.get(at..at + 4)?.try_into().ok()?) as usize);
    let (length, headers) = (number(0)?, number(4)?);
    let (message, after) = stream.split_at_checked(length)?;
    let end = length.checked_sub(TRAILER)?;
    let (headers, payload) = message.get(PRELUDE..end)?.split_at_checked(headers)?;
    Some((Message { headers: headers.to_vec(), payload: payload.to_vec() }, after))
}

fn sealed(message: &Message) -> Vec<u8> {
    let Message { headers, payload } = message;
    let length = PRELUDE + headers.len() + payload.len() + TRAILER;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_be_bytes());
    bytes.extend((headers.len() as u32).to_be_bytes());
    bytes.extend(checksum(&bytes).to_be_bytes());
    bytes.extend(headers);
    bytes.extend(payload);
    bytes.extend(checksum(&bytes).to_be_bytes());
    bytes
}

/// CRC-32, bit by bit: another implementation than the one that is tested.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    })
}
