use super::*;

/// Numbers that look random.
fn vector(seed: u32, width: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).max(1);
    let mut numbers: Vec<f32> = (0..width)
        .map(|_| {
            let mut sum = 0.0;
            for _ in 0..6 {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                sum += state as f32 / u32::MAX as f32 - 0.5;
            }
            sum
        })
        .collect();
    let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
    numbers.iter_mut().for_each(|number| *number /= length);
    numbers
}

#[test]
fn signatures_rank_as_the_vectors_do() {
    let (one, two) = (vector(1, 384), vector(2, 384));
    let mixed: Vec<f32> = one.iter().zip(&two).map(|(a, b)| a * 0.8 + b * 0.6).collect();
    let query = Comparison::with(&one);
    let similar = |vector: &[f32]| query.similarity(&signature(vector));
    assert!((similar(&one) - 0.94).abs() < 0.06, "{}", similar(&one));
    assert!((similar(&mixed) - 0.76).abs() < 0.1, "{}", similar(&mixed));
    assert!(similar(&two).abs() < 0.15, "{}", similar(&two));
    assert_eq!(signature(&one).len(), 96);
    assert_eq!(query.similarity(&[0; 3]), 0.0);
}
