//! Tests of entry ids.

use std::collections::BTreeSet;

use super::*;

#[test]
fn generated_ids_are_short_distinct_and_in_order() {
    let ids: Vec<EntryId> = (0..5_000).map(|_| EntryId::generate()).collect();
    assert!(ids.iter().all(|id| id.as_str().len() == 16));
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1] && pair[0].as_str() < pair[1].as_str()));
}

#[test]
fn ids_of_several_threads_are_distinct() {
    let generate = || (0..2_000).map(|_| EntryId::generate()).collect::<Vec<_>>();
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(generate)).collect();
    let all: BTreeSet<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(all.len(), 8_000);
}

#[test]
fn ids_of_other_writers_are_kept() {
    for text in ["1", "msg_01", "550e8400-e29b-41d4-a716-446655440000", "日本"] {
        assert_eq!(EntryId::from_text(text).as_str(), text);
        let json = serde_json::to_string(&EntryId::from_text(text)).unwrap();
        assert_eq!(serde_json::from_str::<EntryId>(&json).unwrap(), EntryId::from_text(text));
    }
}

#[test]
fn overlong_ids_are_replaced_by_the_same_id_each_time() {
    let long = "x".repeat(40);
    assert_eq!(EntryId::from_text(&long), EntryId::from_text(&long));
    assert_ne!(EntryId::from_text(&long), EntryId::from_text(&"x".repeat(41)));
    assert_eq!(EntryId::from_text(&long).as_str().len(), 26);
    assert_ne!(EntryId::from_text("").as_str(), "");
}

#[test]
fn ids_by_place_are_in_the_order_of_the_file() {
    assert_eq!(EntryId::from_place(0).as_str(), "@0000000000000");
    assert!(EntryId::from_place(35) < EntryId::from_place(36));
    assert_ne!(EntryId::from_place(u64::MAX), EntryId::from_place(u64::MAX - 1));
}

#[test]
fn the_hash_matches_published_test_vectors() {
    // Test vectors of the algorithm's authors.
    assert_eq!(fnv1a_128(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    assert_eq!(fnv1a_128(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
}
