//! One input, cut in several ways.

/// Inputs up to this length are also read byte by byte.
const EACH_BYTE: usize = 512;

/// The input in pieces of several lengths. Where it is cut follows from its bytes, so that every run of one input
/// does the same.
pub(super) fn cuts(input: &[u8]) -> Vec<Vec<&[u8]>> {
    let seed = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut cuts = vec![in_two(input, seed), in_pieces(input, seed)];
    if input.len() <= EACH_BYTE {
        cuts.push(input.chunks(1).collect());
    }
    cuts
}

fn in_two(input: &[u8], seed: u64) -> Vec<&[u8]> {
    let middle = seed as usize % (input.len() + 1);
    let (first, second) = input.split_at(middle);
    vec![first, second]
}

/// Pieces of 0 to 63 bytes.
fn in_pieces(input: &[u8], mut state: u64) -> Vec<&[u8]> {
    let mut rest = input;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        // Knuth's linear congruential generator: the lengths need only differ.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (piece, after) = rest.split_at((state >> 58) as usize % (rest.len() + 1));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
