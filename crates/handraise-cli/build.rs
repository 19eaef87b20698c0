//! How the program is linked.
//!
//! A position-independent program of this size has some sixty thousand relative relocations, which the loader reads at
//! every start, in every process of ours: megabytes, as a table of 24 bytes each. Packed (`DT_RELR`) they take a thirtieth.
//! The loader of glibc 2.36 and later reads that; where we are built on an older one, or for another system, the table
//! stays as it is.

#![expect(clippy::disallowed_methods, reason = "cargo tells build scripts by variables")]

use std::{
    env,
    io::{self, Write as _},
    process::Command,
};

/// The first glibc that reads packed relocations.
const READS_PACKED: (u32, u32) = (2, 36);

fn main() -> io::Result<()> {
    let mut cargo = io::stdout();
    writeln!(cargo, "cargo::rerun-if-changed=build.rs")?;
    let is_native = env::var_os("HOST") == env::var_os("TARGET");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let is_gnu = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is_native && is_gnu && glibc().is_some_and(|version| version >= READS_PACKED) {
        writeln!(cargo, "cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs")?;
    }
    Ok(())
}

/// The version of this machine's glibc.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
