use std::io::{Read as _, Write as _};

use proptest::prelude::*;

use super::{CHUNK, HEAD, MAGIC, Opening, Passphrase, SALT, Sealing, TAG};

fn passphrase(text: &str) -> Passphrase {
    Passphrase::new(text).expect("a passphrase")
}

fn sealed(plain: &[u8]) -> Vec<u8> {
    let mut sealing = Sealing::new(Vec::new(), &passphrase("tea")).expect("a stream");
    sealing.write_all(plain).expect("written");
    let sealed = sealing.finish().expect("finished");
    assert_eq!(sealed.len(), HEAD + plain.len() + TAG * plain.len().div_ceil(CHUNK).max(1));
    sealed
}

fn opened(sealed: &[u8], with: &str) -> std::io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    Opening::new(&sealed[MAGIC.len()..], &passphrase(with))?.read_to_end(&mut plain)?;
    Ok(plain)
}

fn plain(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at * 7 % 251).unwrap_or_default()).collect()
}

#[test]
fn a_stream_of_any_length_is_read_again() {
    for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 17] {
        let plain = plain(length);
        let sealed = sealed(&plain);
        assert!(length < 8 || !sealed.windows(8).any(|part| part == &plain[..8]), "{length}");
        assert_eq!(opened(&sealed, "tea").expect("opened"), plain, "{length}");
        assert!(opened(&sealed, "Tea").is_err(), "{length}");
    }
}

#[test]
fn a_stream_that_is_cut_extended_or_reordered_is_refused() {
    let sealed = sealed(&plain(3 * CHUNK));
    let part = CHUNK + TAG;
    // Also exactly between two chunks, where every chunk that is left is whole.
    for cut in [MAGIC.len() + 3, HEAD, HEAD + 1, HEAD + part, HEAD + 2 * part, sealed.len() - 1] {
        assert!(opened(&sealed[..cut], "tea").is_err(), "cut at {cut}");
    }
    let mut longer = sealed.clone();
    longer.push(0);
    assert!(opened(&longer, "tea").is_err());
    let mut swapped = sealed[..HEAD].to_vec();
    swapped.extend_from_slice(&sealed[HEAD + part..HEAD + 2 * part]);
    swapped.extend_from_slice(&sealed[HEAD..HEAD + part]);
    swapped.extend_from_slice(&sealed[HEAD + 2 * part..]);
    assert!(opened(&swapped, "tea").is_err());
}

#[test]
fn a_head_that_asks_for_hours_of_hashing_is_refused() {
    let mut sealed = sealed(b"tea");
    for iterations in [0, u32::MAX] {
        sealed[MAGIC.len() + SALT..HEAD].copy_from_slice(&iterations.to_be_bytes());
        let error = opened(&sealed, "tea").expect_err("refused").to_string();
        assert!(error.contains("its head is damaged"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_byte_can_be_changed(at in 0_usize..10_000, bit in 0_u8..8) {
        let plain = plain(9000);
        let mut sealed = sealed(&plain);
        // The magic is compared by the caller.
        let at = MAGIC.len() + at % (sealed.len() - MAGIC.len());
        // Of the iterations, only a small change stays quick.
        prop_assume!(!(MAGIC.len() + SALT..HEAD - 1).contains(&at));
        sealed[at] ^= 1 << bit;
        prop_assert!(opened(&sealed, "tea").is_err());
    }
}
