use super::*;

#[test]
fn what_the_system_refuses_to_a_library_is_no_defect() {
    let registry = "/home/u/.cargo/registry/src/index.crates.io-1/";
    for (file, text, expected) in [
        (
            "tokio-1.54.1/src/runtime/blocking/pool.rs",
            "OS can't spawn worker thread: Resource temporarily unavailable (os error 11)",
            Some(Shortage::Threads),
        ),
        (
            "std/src/thread/mod.rs",
            "failed to spawn thread: Os { code: 11 }",
            Some(Shortage::Threads),
        ),
        (
            "uuid-1.18.1/src/rng.rs",
            "could not retrieve random bytes for uuid",
            Some(Shortage::Random),
        ),
        ("std/src/sys/random/linux.rs", "failed to generate random data", Some(Shortage::Random)),
        ("tokio-1.54.1/src/time/interval.rs", "`period` must be non-zero.", None),
        ("crates/tui/src/lib.rs", "index out of bounds", None),
    ] {
        assert_eq!(Shortage::of(&format!("{registry}{file}"), text), expected, "{text}");
    }
}
