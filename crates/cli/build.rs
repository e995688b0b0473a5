//! Options for the linker of release builds on Linux. They change where things stand in the binary, not what it does.
//!
//! `MYCLAW_PLAIN_LINK=1` leaves them out, for linkers that do not take linker scripts, such as mold.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=link/startup.ld");
    println!("cargo:rerun-if-env-changed=MYCLAW_PLAIN_LINK");
    println!("cargo:rerun-if-env-changed=MYCLAW_LINK_MAP");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if !is("PROFILE", "release")
        || !is("CARGO_CFG_TARGET_OS", "linux")
        || !is("CARGO_CFG_TARGET_ENV", "gnu")
        || env::var_os("MYCLAW_PLAIN_LINK").is_some()
    {
        return;
    }
    if let Some(map) = env::var_os("MYCLAW_LINK_MAP") {
        // For scripts/order-startup: where the linker put each function.
        println!("cargo:rustc-link-arg-bin=myclaw=-Wl,-Map={}", map.display());
    }
    let Some(directory) = env::var_os("CARGO_MANIFEST_DIR") else { return };
    // The functions of a run stand side by side: peak memory falls by a quarter. See scripts/order-startup.
    println!("cargo:rustc-link-arg-bin=myclaw=-Wl,-T,{}/link/startup.ld", directory.display());
    if env::var("HOST") == env::var("TARGET") && is_libc_new_enough() {
        // 1.2 MB less to read at each start.
        println!("cargo:rustc-link-arg-bin=myclaw=-Wl,-z,pack-relative-relocs");
    }
}

/// True if the C library here, and so that of the machine that runs the binary, reads packed relocations: glibc 2.36.
fn is_libc_new_enough() -> bool {
    let Ok(output) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().strip_prefix("glibc 2.").and_then(|minor| minor.split('.').next());
    version.and_then(|minor| minor.parse::<u32>().ok()).is_some_and(|minor| minor >= 36)
}
