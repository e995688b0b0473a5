//! A vector in two bits for each number: a fortieth of the exact one, and close enough to rank by.

/// Bits of a number.
const BITS: usize = 2;
/// The levels that stand for the numbers, in parts of the spread of all numbers of a vector: the best four for numbers
/// with a normal distribution (Lloyd and Max).
const LEVELS: [f32; 4] = [-1.510, -0.453, 0.453, 1.510];
/// Between the outer and the inner levels.
const BORDER: f32 = 0.982;

/// The bytes of a vector of `width` numbers.
pub(super) fn length(width: usize) -> usize {
    (width * BITS).div_ceil(8)
}

/// A vector as two bits a number.
pub(super) fn signature(vector: &[f32]) -> Vec<u8> {
    let mean_square =
        vector.iter().map(|number| number * number).sum::<f32>() / vector.len().max(1) as f32;
    let border = BORDER * mean_square.sqrt();
    let mut bytes = vec![0; length(vector.len())];
    for (index, number) in vector.iter().enumerate() {
        let level = match *number {
            number if number < -border => 0,
            number if number < 0.0 => 1,
            number if number < border => 2,
            _ => 3,
        };
        bytes[index / 4] |= level << (index % 4 * BITS);
    }
    bytes
}

/// Compares a query with signatures: for each byte of one, the sum of its four products.
pub(super) struct Comparison(Vec<[f32; 256]>);

impl Comparison {
    pub(super) fn with(query: &[f32]) -> Self {
        let scale = 1.0 / (query.len().max(1) as f32).sqrt();
        let table = |four: &[f32]| {
            std::array::from_fn(|byte| {
                let products = four
                    .iter()
                    .enumerate()
                    .map(|(place, number)| number * LEVELS[(byte >> (place * BITS)) & 3] * scale);
                products.sum()
            })
        };
        Self(query.chunks(4).map(table).collect())
    }

    /// About the cosine of the query and the vector of the signature; 0 if that has another width.
    pub(super) fn similarity(&self, signature: &[u8]) -> f32 {
        if signature.len() != self.0.len() {
            return 0.0;
        }
        self.0.iter().zip(signature).map(|(table, byte)| table[usize::from(*byte)]).sum()
    }
}

#[cfg(test)]
mod tests;
