//! Options for the linker of release builds on Linux. They change where things stand in the binary, not what it does.
//!
//! `MYCLAW_PLAIN_LINK=1` leaves them out, for other linkers than the one that comes with rustc, such as mold.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    for name in ["MYCLAW_PLAIN_LINK", "MYCLAW_LINK_MAP", "MYCLAW_LINK_ORDER"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if !is("PROFILE", "release")
        || !is("TARGET", "x86_64-unknown-linux-gnu")
        || !is("HOST", "x86_64-unknown-linux-gnu")
        || env::var_os("MYCLAW_PLAIN_LINK").is_some()
        || !has_lld()
    {
        return;
    }
    // Functions and constants with equal bytes are kept once: a tenth of the program, and a quarter of the tables that the
    // loader relocates at each start.
    link_with("--icf=all");
    link_with("--ignore-data-address-equality");
    if is_libc_new_enough() {
        // 1.2 MB less to read at each start.
        link_with("-z,pack-relative-relocs");
    }
    // For scripts/build-release: where the linker put each function, and which functions come first.
    if let Ok(map) = env::var("MYCLAW_LINK_MAP") {
        link_with(&format!("-Map={map}"));
    }
    if let Ok(order) = env::var("MYCLAW_LINK_ORDER") {
        println!("cargo:rerun-if-changed={order}");
        link_with(&format!("--symbol-ordering-file={order}"));
        link_with("--no-warn-symbol-ordering");
    }
}

fn link_with(option: &str) {
    println!("cargo:rustc-link-arg-bin=myclaw=-Wl,{option}");
}

/// True if rustc brings lld and uses it by default: the toolchains of rustup, not those of all distributions.
fn has_lld() -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let Ok(output) = Command::new(rustc).args(["--print", "sysroot"]).output() else {
        return false;
    };
    let sysroot = String::from_utf8_lossy(&output.stdout);
    let tools = "lib/rustlib/x86_64-unknown-linux-gnu/bin/gcc-ld/ld.lld";
    Path::new(sysroot.trim()).join(tools).exists()
}

/// True if the C library here, and so that of the machine that runs the binary, reads packed relocations: glibc 2.36.
fn is_libc_new_enough() -> bool {
    let Ok(output) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().strip_prefix("glibc 2.").and_then(|minor| minor.split('.').next());
    version.and_then(|minor| minor.parse::<u32>().ok()).is_some_and(|minor| minor >= 36)
}
